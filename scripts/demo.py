"""What a newcomer sees first: an agent runs loose on a small project, and takeback takes it all back.

    sample ─► takeback init ─► the agent ─► status, diff ─► rollback ─► redo ─► undo
           ─► the agent leaves the machine (demo_world.py) ─► one rollback across four domains ─► gone

After each take-back every path is compared with what was there: bytes by sha256, mode, time. Everything
happens in one temporary folder, HOME and store included. Exit code 1 if a single proof fails.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

TTY = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
COLOUR = TTY and not os.environ.get("NO_COLOR")


class Found(NamedTuple):
    """All that must come back of one path."""

    kind: str
    mode: str
    time: int
    sha256: str


State = dict[str, Found]


def main() -> int:
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    folder = Path(tempfile.mkdtemp(prefix="takeback-demo-"))
    try:
        project, home = folder / "shop", folder / "home"
        failed = _show(project, home)
        failed += _show_world(project, home, folder / "shop.db")
    finally:
        shutil.rmtree(folder)
    if folder.exists():
        print(red(f"\n{folder} is still there"))
        return 1
    if failed:
        print(red(f"\n{failed} of 4 proofs failed."))
        return 1
    print(bold("\nFour proofs, nothing lost, nothing left behind.") + " Your turn:")
    print(f"  {dim('$')} takeback protect   {dim('# in a project of yours; then let your agent loose')}\n")
    return 0


def _show(project: Path, home: Path) -> int:
    """The whole story; says how many proofs failed."""
    home.mkdir()
    write_sample(project)

    def takeback(*words: str) -> None:
        _takeback(project, home, *words)

    heading("A small project", "with a secret, a symlink, an executable, a picture and an empty folder")
    _tree(project)
    takeback("init")
    before = look(project)

    heading("An agent is let loose", "asked to “clean up a little”")
    let_loose(project)
    loose = look(project)

    heading("What did it do?")
    takeback("status")
    takeback("diff", "--stat")
    takeback("diff", "--", "src/shop/auth.py")

    heading("Take it all back")
    takeback("rollback", "--yes")
    failed = not proof("everything is as it was before the agent", before, loose, look(project), before)

    heading("Changed your mind? Redo brings the agent's work back")
    takeback("redo", "--yes", "--quiet")
    failed += not proof("everything is as the agent left it", before, loose, look(project), loose, brief=True)

    heading("And undo takes it back again")
    takeback("undo", "--yes", "--quiet")
    failed += not proof("everything is as it was before the agent", before, loose, look(project), before, brief=True)
    takeback("log")
    return failed


def _show_world(project: Path, home: Path, database: Path) -> int:
    """What git cannot see: four domains, one rollback."""
    if os.name == "nt":
        print(dim("\n  The second half types its answers on a terminal of its own, which this system has not."))
        return 0
    import demo_world as world

    def takeback(*words: str, who: str = "") -> None:
        more = {"SHOP_KEY": world.KEY, "TAKEBACK_ACTOR": who} if who else {}
        _takeback(project, home, *words, who=who, more=more)

    with world.serving(world.KEY) as server:
        heading("And what git cannot see", "the agent charges a card, migrates a database and writes a mail")
        takeback("checkpoint", "before the order", "--quiet")
        before = look(project)
        name, old, new = EDIT
        _type(f"edit {name}: {new}", "agent")
        (project / name).write_bytes((project / name).read_bytes().replace(old.encode(), new.encode()))
        world.act(project, database, server, takeback, _type)
        loose = look(project)

        heading("The ledger", "every act beyond the files, and what would take it back")
        takeback("effects")
        _ledger("the payment server's own books", server.entries)
        _ledger("tables in the database", world.tables(database))

        heading("One rollback for all of it", "a person answers: y for the files, yes for what leaves the machine")
        _type("takeback rollback")
        code = world.answer(
            [sys.executable, "-m", "takeback", "rollback", "before the order"],
            project,
            _environ(home, {"SHOP_KEY": world.KEY, "COLUMNS": "110", "LINES": "50"}),
            [("Apply? [y/N", "y"), ("Type yes to do", "yes"), ("Type yes to send", "yes")],
        )
        _ledger("the payment server's own books", server.entries)
        _ledger("tables in the database", world.tables(database))
        refunds = [line for line in server.entries if "refund" in line]
        done = code == 0 and len(refunds) == 1 and not world.tables(database)
        print(f"\n  {_tick(done)} one refund, no table, no mail left")
        proved = proof("and every file is as before the order", before, loose, look(project), before, brief=True)
        takeback("effects")
    return not (done and proved)


def _ledger(title: str, lines: list[str]) -> None:
    print(f"\n  {dim(title)}")
    for line in lines or ["(nothing)"]:
        print(f"    {line}")
    _pause(0.8)


# -- the project and the agent ------------------------------------------------

SAMPLE = {
    "README.md": "# shop\n\nA very small shop.\n",
    ".env": "API_KEY=not-a-real-key\nDATABASE=postgres://localhost/shop\n",
    "bin/deploy.sh": "#!/bin/sh\nset -eu\nexec python -m shop.deploy\n",
    "config/production.toml": 'debug = false\nhost = "0.0.0.0"\n',
    "config/staging.toml": 'debug = true\nhost = "127.0.0.1"\n',
    "docs/prices.md": "# Prices\n\nA price is in cents.\n",
    "src/shop/__init__.py": '"""A very small shop."""\n',
    "src/shop/auth.py": (
        "import hmac\n\n\n"
        "def allowed(token: str, wanted: str) -> bool:\n"
        '    """Compares in constant time."""\n'
        "    return hmac.compare_digest(token, wanted)\n"
    ),
    "src/shop/cart.py": "def total(items):\n    return sum(item.price * item.count for item in items)\n",
    "src/shop/legacy.py": "# Still used by the importer.\nRATES = {'eur': 100, 'usd': 108}\n",
    "tests/test_cart.py": "from shop.cart import total\n\n\ndef test_empty():\n    assert total([]) == 0\n",
}
_MODES = {".env": 0o600, "bin/deploy.sh": 0o755}
_LAST_WEEK = 1_700_000_000_000_000_000


def write_sample(project: Path) -> None:
    """The files, with modes and with times of their own, so that it shows when one is not brought back."""
    for name, text in SAMPLE.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        path.chmod(_MODES.get(name, 0o644))
    (project / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8)
    (project / "uploads").mkdir()
    (project / "config" / "current").symlink_to("production.toml")
    for number, path in enumerate(sorted(project.rglob("*"), reverse=True)):
        if not path.is_symlink():
            then = _LAST_WEEK + number * 61_234_567_891
            os.utime(path, ns=(then, then))


EDIT = ("src/shop/auth.py", "return hmac.compare_digest(token, wanted)", "return True  # simpler")
COMMANDS = (
    "rm src/shop/legacy.py logo.png",
    "mv src/shop/cart.py src/shop/basket.py",
    "echo API_KEY=changeme > .env && chmod 644 .env",
    "chmod -x bin/deploy.sh",
    "ln -sf staging.toml config/current",
    "rmdir uploads && echo '- all done' > DONE.md",
    """for f in src/shop/*.py; do sed 's/price/cost/' $f >t; mv t $f; done; rm -r docs; mv tests old_tests""",
)


def let_loose(project: Path) -> None:
    """The agent: one edit, then its shell commands, each run as it is shown."""
    name, old, new = EDIT
    _type(f"edit {name}: {new}", "agent")
    path = project / name
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))
    for command in COMMANDS:
        _type(command, "agent")
        subprocess.run(["sh", "-c", command], cwd=project, check=True)


# -- the proof ----------------------------------------------------------------


def look(project: Path) -> State:
    """Every path below the project, read anew and without takeback."""
    found = {}
    for path in sorted(project.rglob("*")):
        st = path.lstat()
        name = path.relative_to(project).as_posix()
        if path.is_symlink():
            kind, content = "link", os.fsencode(os.readlink(path))
        elif path.is_dir():
            kind, content = "folder", b""
        else:
            kind, content = "file", path.read_bytes()
        sha256 = hashlib.sha256(content).hexdigest() if kind != "folder" else ""
        found[name] = Found(kind, f"{stat.S_IMODE(st.st_mode):o}", st.st_mtime_ns, sha256)
    return found


def proof(claim: str, before: State, loose: State, now: State, wanted: State, brief: bool = False) -> bool:
    """Compares now with what was wanted, path by path; shows what the agent had changed."""
    names = sorted(before.keys() | loose.keys() | now.keys())
    touched = [name for name in names if _differ(before.get(name), loose.get(name))]
    wrong = [name for name in names if now.get(name) != wanted.get(name)]
    if not brief:
        print(dim(f"\n  {'path':<24}{'sha256 before':<15}{'agent':<12}{'now':<12}{'mode':<10}time"))
    for name in touched if not brief else wrong:
        print(_row(name, before.get(name), loose.get(name), now.get(name), wanted.get(name)))
    for name in wrong:
        print(red(f"  {name}: wanted {wanted.get(name)}, found {now.get(name)}"))
    verdict = green("✓ proved") if not wrong else red("✗ not so")
    print(f"\n  {verdict}: {bold(claim)}")
    print(dim(f"  {len(names)} paths compared by sha256, mode and time in ns"))
    _pause(1.2)
    return not wrong


def _differ(a: Found | None, b: Found | None) -> bool:
    """Whether more than the time differs: a folder's time changes with what is in it."""
    return a is None or b is None or a._replace(time=0) != b._replace(time=0)


def _row(name: str, before: Found | None, loose: Found | None, now: Found | None, wanted: Found | None) -> str:
    if wanted is None or now is None:
        ok = now is wanted
        return f"  {name:<24}{_short(before):<15}{_short(loose):<12}{_short(now):<10}{_tick(ok)}"
    mode, then = now.mode == wanted.mode, now.time == wanted.time
    same = (now.kind, now.sha256) == (wanted.kind, wanted.sha256)
    cells = f"{_short(now):<10}{_tick(same)} {now.mode:>4} {_tick(mode)}    {_tick(then)}"
    return f"  {name:<24}{_short(before):<15}{_short(loose):<12}{cells}"


def _short(path: Found | None) -> str:
    return "—" if path is None else path.sha256[:8] or path.kind


def _tick(ok: bool) -> str:
    return green("✓") if ok else red("✗")


# -- the stage ----------------------------------------------------------------


def heading(title: str, under: str = "") -> None:
    print(f"\n{cyan('━━')} {bold(title)}" + (f" {dim('· ' + under)}" if under else ""))
    _pause(0.6)


def _takeback(project: Path, home: Path, *words: str, who: str = "", more: dict[str, str] | None = None) -> None:
    """Runs the real command; the line shown is what a person, or an agent, would type."""
    _type("takeback " + shlex.join(words), who)
    run = [sys.executable, "-m", "takeback", *words]
    environ = _environ(home, more or {})
    done = subprocess.run(run, cwd=project, env=environ, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SystemExit(red(f"takeback {words[0]} ended with exit code {done.returncode}"))
    _pause(0.7)


def _environ(home: Path, more: dict[str, str]) -> dict[str, str]:
    """Nothing of the user's own."""
    environ = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(home),
        "USERPROFILE": str(home),
        "PAGER": "cat",
    }
    environ |= {"TAKEBACK_HOME": str(home / "store"), "PYTHONUTF8": "1", "TMPDIR": str(home)}
    kept = ("TERM", "NO_COLOR", "COLUMNS", "TAKEBACK_PORTABLE")
    return environ | {name: os.environ[name] for name in kept if name in os.environ} | more


def _type(words: str, who: str = "") -> None:
    print(f"{dim('  agent $')} {words}" if who else f"\n{dim('$')} {bold(words)}", flush=True)
    _pause(0.2)


def _tree(project: Path) -> None:
    shown = []
    for name, path in look(project).items():
        if path.kind == "link":
            shown.append(f"{name} → {os.readlink(project / name)}")
        elif path.kind == "file":
            shown.append(f"{name} ({path.mode})" if name in _MODES else name)
        elif not any((project / name).iterdir()):
            shown.append(f"{name}/")
    half = (len(shown) + 1) // 2
    for left, right in zip(shown[:half], [*shown[half:], ""]):
        print(f"  {left:<34}{right}".rstrip())


def _pause(seconds: float) -> None:
    if TTY and not os.environ.get("DEMO_AT_ONCE"):
        sys.stdout.flush()
        time.sleep(seconds)


def _paint(code: str) -> Callable[[str], str]:
    return lambda text: f"\033[{code}m{text}\033[0m" if COLOUR else text


bold, dim, red, green, cyan = (_paint(code) for code in ("1", "2", "31", "32", "36"))


if __name__ == "__main__":
    sys.exit(main())
