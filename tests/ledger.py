"""An outside domain for tests: an inverse writes one line into a ledger, a real file outside the project.

    "<ledger>.how" beside it says how the ledger behaves from now on, one word:

    ok       writes the line, and says so               refuse   raises before anything is written
    fail     writes nothing, and says so                crash    raises something unforeseen after writing
    unknown  writes the line, and the answer is lost    die      writes the line, and kills its process
    lost     writes nothing, and the answer is lost     gate     writes the line once "<ledger>.gate" is there
    blind    as ok, but its probe cannot tell           die first  kills its process before anything is written

It is registered by an entry point, as anybody's domain would be: `register(folder)` makes the package.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from takeback.errors import TakebackError, UsageError
from takeback.model.effects import COMPENSATING, DONE, FAILED, UNKNOWN
from takeback.model.outside import Act, Answer, Credential, Inverse, NewAct, World
from takeback.privacy import redact
from takeback.workspace import Workspace

_KNOWN = {"ledger", "line", "probe", "idempotent", "idempotent_for", "writes", "needs", "says"}
spies: list[Callable[[Inverse, str], None]] = []  # called before a line is written


class Ledger:
    name = "ledger"
    runs_code = True

    def __init__(self, world: World) -> None:
        self.world = world

    def check(self, inverse: Inverse) -> Inverse:
        args = inverse.args
        if inverse.op != "write" or not isinstance(args, dict) or set(args) - _KNOWN:
            raise UsageError("the ledger knows how to write one line", 'Inverse("write", {"ledger": …, "line": …})')
        for name in ("ledger", "line"):
            if not isinstance(args.get(name), str) or not args[name] or "\n" in args[name] or len(args[name]) > 4000:
                raise UsageError(f"{name} is one line of text", f"give a {name}")
        if not os.path.isabs(args["ledger"]) or not isinstance(args.get("writes", {}), dict):
            raise UsageError("ledger is an absolute path", "write the whole path")
        if found := redact.secret_at(args):
            raise UsageError(f"it holds {found}", "write ${env:NAME}")
        return Inverse("write", dict(args))

    def describe(self, inverse: Inverse) -> str:
        return redact.text(f"write {inverse.args['line']!r} into {inverse.args['ledger']}")

    def credentials(self, inverse: Inverse) -> tuple[Credential, ...]:
        bound = self.world.settings.credentials
        return tuple(Credential(n, o) for n, o in inverse.args.get("needs", ()) if o not in bound.get(n, ()))

    def run(self, inverse: Inverse, key: str) -> Answer:
        args = inverse.args
        for name, origin in args.get("needs", ()):
            if Credential(name, origin) not in self.world.allowed | set(self._bound(name)):
                raise TakebackError(f"{name} may not go to {origin}", "approve it")
        for spy in spies:
            spy(inverse, key)
        how = self._how(args)
        if how == "refuse":
            raise TakebackError("the ledger is closed", "open it")
        if how == "fail":
            return Answer(FAILED, "the ledger said no")
        if how == "lost":
            return Answer(UNKNOWN, "no answer came")
        if how == "die first":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "gate":
            while not Path(args["ledger"] + ".gate").exists():
                time.sleep(0.01)
        self._write(args, key)
        for path, content in args.get("writes", {}).items():  # what a command may do to the tree by itself
            (self.world.root / path).write_text(content)
        if how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "crash":
            raise ZeroDivisionError("unforeseen")
        if how == "unknown":
            return Answer(UNKNOWN, "no answer came")
        said = redact.REFERENCE.sub(lambda found: self.world.environ[found[1]], args.get("says", "written"))
        return Answer(DONE, said, {"said": said, "key": key})

    def probe(self, inverse: Inverse) -> bool | None:
        args = inverse.args
        if not args.get("probe") or self._how(args) == "blind":
            return None
        if self._how(args) == "refuse":
            raise TakebackError("the ledger is closed", "open it")
        return args["line"] in [line for _, line in entries(args["ledger"])]

    def may_repeat(self, inverse: Inverse, sent_at: float) -> bool:
        args = inverse.args
        return bool(args.get("idempotent")) and self.world.clock() - sent_at < args.get("idempotent_for", 86_400)

    def _bound(self, name: str) -> list[Credential]:
        return [Credential(name, origin) for origin in self.world.settings.credentials.get(name, ())]

    def _write(self, args: Any, key: str) -> None:
        if args.get("idempotent") and key in [known for known, _ in entries(args["ledger"])]:
            return
        fd = os.open(args["ledger"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(fd, f"{key} {args['line']}\n".encode())
        finally:
            os.close(fd)

    def _how(self, args: Any) -> str:
        switch = Path(args["ledger"] + ".how")
        return switch.read_text() if switch.exists() else "ok"


def entries(ledger: Path | str) -> list[tuple[str, str]]:
    """(key, line) of everything that was ever written, oldest first."""
    path = Path(ledger)
    found = path.read_text().splitlines() if path.exists() else []
    return [(key, line) for key, _, line in (each.partition(" ") for each in found)]


def lines(ledger: Path | str) -> list[str]:
    return [line for _, line in entries(ledger)]


def behave(ledger: Path, how: str) -> None:
    Path(f"{ledger}.how").write_text(how)


def record(ws: Workspace, ledger: Path, line: str, target: str = "", by: Any = None, **more: Any) -> Act:
    """An act whose inverse writes this line. Fields of NewAct are its own, the rest are the inverse's arguments."""
    own = {name: more.pop(name) for name in list(more) if name in NewAct._fields}
    inverse = Inverse("write", {"ledger": str(ledger), "line": line, **more})
    act = NewAct("ledger", f"did {line}", target or f"thing://{line}", inverse, COMPENSATING)
    return ws.record(act._replace(**own), by)


def register(folder: Path) -> str:
    """A package whose entry point is this domain; its folder goes on the path, after that of this file."""
    about = folder / "ledger_domain-1.0.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ledger-domain\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[takeback.domains]\nledger = ledger:Ledger\n")
    return os.pathsep.join([str(folder), str(Path(__file__).resolve().parent)])
