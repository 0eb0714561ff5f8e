"""web: the timeline in a browser, on this machine alone."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING

from takeback.errors import TakebackError, UsageError
from takeback.surfaces.cli import approving
from takeback.surfaces.wording.text import safe
from takeback.system.installed import with_extra

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.surfaces.web.server import Served
    from takeback.workspace import Workspace


def add(parser: Parser) -> None:
    parser.synopsis = "[--port N] [--address A] [--no-open] [--read-only]"
    parser.about = (
        "Serves the timeline as a page and opens it in your browser, until you press Ctrl-C: turns, calls\n"
        "and effects as they happen, differences side by side, and take-backs by a plan that you confirm.\n"
        "It listens on this machine alone and lets in only whoever has the address it prints, which\n"
        "holds a token. Where an agent is at work it is refused, but for --read-only.\n"
        "Needs the extra web: pip install '.[web]' in your clone."
    )
    parser.takes("--port N", "--port", default=None, help="the port; by default one that is free")
    parser.takes("--address A", "--address", default="", help="a loopback address; by default one of its own")
    parser.takes("--no-open", "--no-open", action="store_true", help="print the address, open no browser")
    parser.takes("--read-only", "--read-only", action="store_true", help="look only: nothing can be taken back from it")
    parser.examples = [
        ("takeback web", "open it"),
        ("takeback web --read-only", "to look, and no more"),
        ("takeback web --no-open --address 127.0.0.1 --port 8765", "to forward that port over ssh"),
    ]


def run(context: Context, args: Namespace) -> int:
    port = _port(args.port)
    try:
        from takeback.surfaces.web import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "anyio", "h11", "click"):
            raise
        raise TakebackError(
            f"the web page needs a package that is not installed: {error.name}",
            f"install it: {with_extra('web')}",
        ) from None
    if args.address:
        server.must_be_loopback(args.address)
    with context.open(when_off=True) as workspace:  # says what is wrong before anything is served
        if workspace.store.is_read_only:
            args.read_only = True
        if not args.read_only:
            context.must_be_on(workspace.settings)
            approving.only_a_person(context, "taking back in a browser", workspace)

    def ready(served: Served) -> None:
        _tell(context, served, args)

    def bug(error: Exception) -> None:
        from takeback.surfaces.cli.failures import bug, known
        from takeback.surfaces.wording.failures import of_the_system

        explained = of_the_system(error)
        if explained is not None:
            known(explained, context.terminal, as_json=False)
        else:
            bug(error, context.terminal, as_json=False, verb="web")

    def finishing(what: str) -> None:
        context.terminal.hint(f"{what} is under way: stops when it is done; Ctrl-C again stops in the middle of it")

    def opened() -> Workspace:
        return context.open(when_off=True, tell=False)

    try:
        server.serve(opened, args.address, port, args.read_only, ready, bug, finishing)
    except KeyboardInterrupt:
        context.terminal.say("stopped")  # as it was meant to be
    return 0


def _tell(context: Context, served: Served, args: Namespace) -> None:
    terminal = context.terminal
    if context.json:
        terminal.json({"url": served.entry, "read_only": args.read_only})
    else:
        terminal.write(served.entry)
    terminal.out.flush()
    mode = ", read-only" if args.read_only else ""
    terminal.hint(f"the timeline of {safe(str(context.root() or context.cwd))}{mode}; whoever has this address gets in")
    opens = not args.no_open and _open(served)
    terminal.hint(f"{'opened in your browser' if opens else 'open it in your browser'}; Ctrl-C ends it")


def _open(served: Served) -> bool:
    try:
        return webbrowser.open(served.once)
    except (webbrowser.Error, OSError):
        return False


def _port(given: str | None) -> int:
    if given is None:
        return 0
    if not (given.isdecimal() and given.isascii() and int(given) <= 65535):
        raise UsageError(f"{given!r} is no port", "name a number up to 65535; 0 finds a free one")
    return int(given)
