"""mcp: serves agents that speak the Model Context Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.errors import TakebackError, UsageError
from takeback.system.installed import with_extra

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "[--http [--port N]] [--any-root] [--print-config]"
    parser.about = (
        "Serves agents over standard input and output, until the agent hangs up: looking, recording and\n"
        "taking back as tools; what acts outside the files only after a person's yes. With --http\n"
        "it listens on this machine alone and prints one line with its URL and a token, which every\n"
        "request must carry (Authorization: Bearer TOKEN). It serves the project it is started in, and\n"
        "no folder outside it unless you say --any-root.\n"
        "Needs the extra mcp: pip install '.[mcp]' in your clone."
    )
    parser.takes("--http", "--http", action="store_true", help="listen on 127.0.0.1 instead")
    parser.takes("--port N", "--port", default=None, help="the port; by default one that is free")
    parser.takes("--any-root", "--any-root", action="store_true", help="let it work in every project of yours")
    parser.takes("--print-config", "--print-config", action="store_true", help="print the block for .mcp.json and end")
    parser.examples = [
        ("takeback mcp --print-config > .mcp.json", "set it up for agents that read that file"),
        ("claude mcp add takeback -- takeback mcp", "or in Claude Code"),
        ("takeback mcp --http --port 8765", "for a client that connects by URL"),
    ]


def run(context: Context, args: Namespace) -> int:
    port = _port(args)
    try:
        from takeback.surfaces.mcp import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio", "pydantic", "starlette"):
            raise
        raise TakebackError(
            f"the MCP server needs a package that is not installed: {error.name}",
            f"install it: {with_extra('mcp')}",
        ) from None
    if args.print_config:
        context.terminal.write(server.config())
    elif args.http:
        server.over_http(context.cwd, context.environ, port, args.any_root)
    else:
        if context.terminal.interactive:
            context.terminal.hint("waiting for an agent on standard input; takeback mcp --print-config sets one up")
        server.over_stdio(context.cwd, context.environ, args.any_root)
    return 0


def _port(args: Namespace) -> int:
    if args.port is None:
        return 0
    if not args.http:
        raise UsageError("--port goes with --http", "takeback mcp --http --port 8765")
    if not (args.port.isdecimal() and args.port.isascii() and 0 <= int(args.port) <= 65535):
        raise UsageError(f"{args.port!r} is no port", "name a number up to 65535; 0 finds a free one")
    return int(args.port)
