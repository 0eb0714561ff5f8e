"""Commands: what a program did is taken back by another command, recorded as words and run once.

    {"argv": ["psql", "-f", "down.sql"]}      or {"shell": "…"}, recorded and shown as such; exactly one
    "run_in"       the project root, a folder in it, or another folder by its real path
    "env"          names of environment variables; their values are looked up when it runs, and never stored. Those
                   that it names itself are among them, and, when it is recorded, those that choose an account or a
                   place for its program and are set (variables.py)
    "timeout"      seconds; "expect": exit codes that mean it took effect
    "probe"        {"argv" | "shell", "expect", "gone", "timeout"}: whether it took effect, told by an exit code
    "idempotent"   running it twice does nothing more, within "idempotent_for" seconds

An exit code says that it ended: expected, it is done; another, it failed and may run again. A signal, or no end within
the timeout, and nobody knows. Its words may hold `${env:NAME}`; a variable beyond the few that every program needs, and
those that only choose a place, is a credential, which settings bind to `command://PROGRAM`. Where one is not set, it is
not run.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from takeback.config import variables
from takeback.errors import TakebackError, UsageError
from takeback.model.effects import DONE, FAILED, UNKNOWN
from takeback.model.outside import Answer, Credential, Inverse, NewAct, World, is_key_known
from takeback.privacy import redact
from takeback.store.layout import folder_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

OP = "run"
_TIMEOUT, _PROBE_TIMEOUT, _LONGEST = 300.0, 60.0, 86_400.0
_KEEP = 8 << 10  # bytes of output kept from its beginning, and as many from its end
_LATE = 0.5  # seconds to wait for output of what a program left running
_GRACE = 2.0  # seconds between asking a program to end and killing it
_NO_MARK = -1
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What nearly every program needs, and no secret among it.
_BASE = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA",
)  # fmt: skip
_WORDS = ("argv", "shell")
_KEYS = {*_WORDS, "run_in", "env", "timeout", "expect", "probe", "idempotent", "idempotent_for"}
_PROBE_KEYS = {*_WORDS, "expect", "gone", "timeout"}


class Command:
    """Runs a recorded command as the inverse of another."""

    name = "command"
    runs_code = True

    def __init__(self, world: World) -> None:
        self._world = world

    # -- recording ------------------------------------------------------------

    def check(self, inverse: Inverse) -> Inverse:
        if inverse.op != OP:
            raise UsageError(f"a command cannot {inverse.op!r}", f"the operation is {OP!r}")
        given = dict(inverse.args)
        _refuse_unknown(given, _KEYS, "a command's inverse")
        args: dict[str, Any] = _words(given, "the inverse")
        if folder := self._folder_to_record(given.get("run_in") or ""):
            args["run_in"] = folder
        if "timeout" in given:
            args["timeout"] = _seconds(given["timeout"], "timeout")
        if "expect" in given:
            args["expect"] = _codes(given["expect"], "expect")
        if given.get("probe") is not None:
            args["probe"] = _checked_probe(given["probe"])
        env = _names(given.get("env") or ())
        for words in (args, args.get("probe", {})):
            env += [name for name in variables.named(words, self._world.environ) if name not in (*env, *_BASE)]
        if env:
            args["env"] = env
        if given.get("idempotent"):
            args["idempotent"] = _flag(given["idempotent"])
            if "idempotent_for" in given:
                args["idempotent_for"] = _seconds(given["idempotent_for"], "idempotent_for")
        return Inverse(OP, args)

    def chosen(self, inverse: Inverse) -> Inverse:
        """The inverse, to be recorded here: with what chooses an account or a place for its program."""
        found = variables.chosen(inverse.args, self._world.environ)
        env = list(dict.fromkeys([*_names(inverse.args.get("env") or ()), *found]))
        return Inverse(inverse.op, {**inverse.args, **({"env": env} if env else {})})

    def places(self, inverse: Inverse) -> dict[str, str]:
        """The accounts and places that are chosen for it here."""
        given = self._world.environ
        names = [name for name in inverse.args.get("env", ()) if variables.is_place(name)]
        return {name: redact.text(given[name]) for name in names if given.get(name)}

    def lacks(self, inverse: Inverse) -> str:
        args = self.check(inverse).args
        wanted = dict.fromkeys(name for words in (args, args.get("probe", {})) for name in _referenced(args, words))
        unset = [name for name in wanted if not self._world.environ.get(name)]
        return f"{', '.join(unset)} {'is' if len(unset) == 1 else 'are'} not set here" if unset else ""

    def uses(self, inverse: Inverse) -> dict[str, str]:
        """Every variable that decides what it does, with its value here; empty where it is not set."""
        args = self.check(inverse).args
        names: dict[str, None] = {}
        for words in (args, args.get("probe", {})):
            names |= dict.fromkeys([*_referenced(args, words), *variables.named(words, None)])
        return {name: self._world.environ.get(name, "") for name in names}

    def _folder_to_record(self, given: str) -> str:
        """A folder in the project relative to it, and one elsewhere by its real path: no link decides where later."""
        if not isinstance(given, str):
            raise UsageError("run_in is the path of a folder", "give it as text, relative to the project root")
        if "\0" in given:
            raise UsageError("run_in cannot hold a NUL byte", "name the folder without it")
        root = os.path.realpath(self._world.root)
        joined = os.path.normpath(os.path.join(root, given))
        real = Path(os.path.realpath(joined))
        if real.is_relative_to(root):
            if not os.path.isabs(given) and not Path(joined).is_relative_to(root):
                raise _outside_root(given)
            return "" if real == Path(root) else real.relative_to(root).as_posix()
        if not os.path.isabs(given) or Path(joined).is_relative_to(root):
            raise _outside_root(given)
        if not real.is_dir():
            raise UsageError(f"run_in {given} is no folder", "name one that exists, or one inside the project")
        return str(real)

    def describe(self, inverse: Inverse) -> str:
        """All that could run, the probe too: what is approved must have been seen."""
        args = inverse.args
        shown = _shown(_words(args, "the inverse"))
        more = [f"in {_quoted(str(args['run_in']))}"] if args.get("run_in") else []
        if args.get("env"):
            more.append(f"with {', '.join(_names(args['env']))}")
        if "expect" in args and _codes(args["expect"], "expect") != [0]:
            more.append(f"expects {_listed(args['expect'])}")
        if args.get("idempotent"):
            more.append("idempotent")
        if more:
            shown += f" ({', '.join(more)})"
        if args.get("probe") is not None:
            probe = _checked_probe(args["probe"])
            gone = f"; not if {_listed(probe['gone'])}" if "gone" in probe else ""
            asks = _shown(_words(probe, "the probe"))
            shown += f" · probe: {asks} (taken back if it exits {_listed(probe.get('expect', (0,)))}{gone})"
        return redact.text(shown)

    def credentials(self, inverse: Inverse) -> tuple[Credential, ...]:
        """The names it passes on that no setting binds to its program, nor to that of its probe."""
        try:
            args = self.check(inverse).args
        except UsageError:
            return ()  # it is not run as it is
        found: dict[Credential, None] = {}
        for words in (args, *([args["probe"]] if "probe" in args else [])):
            found |= dict.fromkeys(Credential(name, _origin(words)) for name in _referenced(args, words))
        return tuple(wanted for wanted in found if not self._is_free(wanted))

    def _is_free(self, wanted: Credential) -> bool:
        """No secret, or bound to where it goes, or let go there by a person."""
        bound = self._world.settings.credentials.get(wanted.name, ())
        return _is_no_secret(wanted.name) or wanted.origin in bound or wanted in self._world.allowed

    # -- running --------------------------------------------------------------

    def run(self, inverse: Inverse, key: str) -> Answer:
        args = self._as_recorded(inverse)
        with _running(folder_of(self._world.settings.home, self._world.root), key) as mark:
            if mark is None:
                return Answer(UNKNOWN, "it was started before and is still running")
            ended = self._run(args, args, args.get("timeout", _TIMEOUT), key, mark)
        if ended.refused:
            return Answer(FAILED, ended.refused)
        if ended.code is None:
            return Answer(UNKNOWN, f"it was killed after {args.get('timeout', _TIMEOUT):g} s", ended.evidence)
        if ended.code < 0:
            return Answer(UNKNOWN, f"it was ended by {_signal_name(-ended.code)}", ended.evidence)
        if ended.code in args.get("expect", (0,)):
            return Answer(DONE, f"exit {ended.code}" if ended.code else "", ended.evidence)
        last = ended.output.strip().rsplit("\n", 1)[-1][:200]
        return Answer(FAILED, f"exit {ended.code}{': ' * bool(last)}{last}", ended.evidence)

    def probe(self, inverse: Inverse) -> bool | None:
        try:
            args = self._as_recorded(inverse)
            if not (probe := args.get("probe")):
                return None
            ended = self._run(args, probe, probe.get("timeout", _PROBE_TIMEOUT), "")
        except TakebackError:
            return None
        if ended.refused or ended.code is None:
            return None
        if ended.code in probe.get("expect", (0,)):
            return True
        return False if ended.code in probe.get("gone", ()) else None

    def may_repeat(self, inverse: Inverse, sent_at: float) -> bool:
        return is_key_known(inverse, sent_at, self._world.clock())

    def _as_recorded(self, inverse: Inverse) -> Mapping[str, Any]:
        """What is run has passed the same check as what was recorded, whoever wrote it into the journal since."""
        args = self.check(inverse).args
        if args.get("run_in") != inverse.args.get("run_in"):
            where = inverse.args.get("run_in", "the root")
            raise TakebackError(f"run_in {where} leads elsewhere now", "put the folder back, or run it by hand")
        return args

    def _run(
        self, args: Mapping[str, Any], words: Mapping[str, Any], timeout: float, key: str, mark: int = _NO_MARK
    ) -> _Ended:
        values = self._values(args, words)
        argv = [redact.REFERENCE.sub(lambda found: values[found[1]], word) for word in words.get("argv", ())]
        env = self._environment({name: values[name] for name in args.get("env", ())})
        if key:
            env["TAKEBACK_KEY"] = key
        folder = os.path.join(os.path.realpath(self._world.root), args.get("run_in", ""))
        secrets = [value for name, value in values.items() if not _is_no_secret(name)]
        return _run(argv or _shell(words["shell"]), folder, env, timeout, secrets, mark)

    def _values(self, args: Mapping[str, Any], words: Mapping[str, Any]) -> dict[str, str]:
        world, found = self._world, {}
        for name in _referenced(args, words):
            wanted = Credential(name, _origin(words))
            if not self._is_free(wanted):
                raise TakebackError(f"{name} may not go to {wanted.origin}", "bind it in your own settings, or approve")
            if not world.environ.get(name):
                raise TakebackError(f"{name} is not set, and the command needs it", "set it, then run this again")
            found[name] = world.environ[name]
        return found

    def _environment(self, chosen: Mapping[str, str]) -> dict[str, str]:
        given = self._world.environ
        env = {name: given[name] for name in _BASE if name in given}
        folders = [p for p in env.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(p)]
        env["PATH"] = os.pathsep.join(folders)  # a program is never looked for where it happens to run
        return {**env, **chosen}


def recorded(
    domain: Command,
    description: str,
    *,
    argv: Sequence[str] | None = None,
    shell: str | None = None,
    target: str = "",
    depends_on: Iterable[str] = (),
    **more: Any,
) -> NewAct:
    """A command that was run, described in words, with the command that takes it back."""
    if not isinstance(description, str) or not description.strip():
        raise UsageError("what was done needs a description", "say it in a line, such as: created table users")
    args: dict[str, Any] = {name: value for name, value in more.items() if value is not None}
    if argv is not None:
        args["argv"] = argv
    if shell is not None:
        args["shell"] = shell
    inverse = domain.chosen(domain.check(Inverse(OP, args)))
    did = {"environment": places} if (places := domain.places(inverse)) else {}
    said = redact.text(" ".join(description.split()))
    return NewAct("command", said, target, inverse, did=did, depends_on=tuple(depends_on))


def _is_no_secret(name: str) -> bool:
    return name in _BASE or variables.is_place(name)


# -- one process ----------------------------------------------------------------


class _Ended(NamedTuple):
    code: int | None = None  # None: it was killed after its timeout
    output: str = ""
    cut: int = 0  # bytes of output that were not kept
    refused: str = ""  # why it was never started

    @property
    def evidence(self) -> dict[str, Any]:
        found: dict[str, Any] = {"exit": self.code}
        if self.output:
            found["output"] = self.output
        if self.cut:
            found["cut"] = self.cut
        return found


@contextlib.contextmanager
def _running(store: Path, key: str) -> Iterator[int | None]:
    """A lock that a command and all it starts hold while they live, though whoever started it is killed. None if it is
    held: a probe that says "not yet" must not let a second one begin beside the first."""
    if fcntl is None or not store.is_dir():
        yield _NO_MARK
        return
    folder = store / "running"
    folder.mkdir(mode=0o700, exist_ok=True)
    mark = os.open(folder / re.sub(r"[^A-Za-z0-9-]", "_", key), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(mark)
        yield None
        return
    try:
        yield mark
    finally:
        os.close(mark)


def _run(
    argv: list[str], folder: str, env: dict[str, str], timeout: float, secrets: Iterable[str], mark: int
) -> _Ended:
    """Runs it with no input, in a session of its own, so that all it starts can be ended with it."""
    own: dict[str, Any] = {"start_new_session": True, "pass_fds": () if mark == _NO_MARK else (mark,)}
    if sys.platform == "win32":
        own = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    try:
        process = subprocess.Popen(
            argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **own
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        missing = getattr(error, "filename", None)
        what = f"{folder}: " if missing == folder else f"{argv[0]}: "
        return _Ended(refused=redact.text(f"it could not be started: {what}{why}", secrets))
    output = _Output()
    assert process.stdout is not None
    reader = threading.Thread(target=output.read_from, args=(process.stdout.fileno(),), daemon=True)
    reader.start()
    code: int | None
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        code = None
    except BaseException:
        _end(process)
        raise
    reader.join(_LATE)
    if not reader.is_alive():
        process.stdout.close()
    return _Ended(code, output.text(list(secrets)), output.cut)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a program and all it started, asking first."""
    if sys.platform == "win32":
        process.kill()
        process.wait()
        return
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)


class _Output:
    """What a program says: its beginning and its end, however much there is between."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self.cut = 0
        self._lock = threading.Lock()

    def read_from(self, fd: int) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(fd, 1 << 16):
                with self._lock:
                    self._add(data)

    def _add(self, data: bytes) -> None:
        room = max(0, _KEEP - len(self._head))
        self._head += data[:room]
        self._tail += data[room:]
        if (extra := len(self._tail) - _KEEP) > 0:
            del self._tail[:extra]
            self.cut += extra

    def text(self, secrets: list[str]) -> str:
        """Redacted; where it is cut, it is cut between words, so that no half of a secret is left."""
        with self._lock:
            head, tail, cut = bytes(self._head), bytes(self._tail), self.cut
        if not cut:
            return redact.text((head + tail).decode("utf-8", "replace"), secrets)
        before = _without_end(head.decode("utf-8", "replace"), secrets)
        after = _without_start(tail.decode("utf-8", "replace"), secrets)
        return f"{redact.text(before, secrets)}\n[… {cut} bytes …]\n{redact.text(after, secrets)}"


def _without_end(text: str, secrets: Iterable[str]) -> str:
    """Up to the last space, or to where a secret may have begun."""
    for secret in secrets:
        for size in range(min(len(secret), len(text)), 3, -1):
            if text.endswith(secret[:size]):
                text = text[: len(text) - size]
                break
    return text[: len(text) - len(re.split(r"\s", text)[-1])]


def _without_start(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        for size in range(min(len(secret), len(text)), 3, -1):
            if text.startswith(secret[-size:]):
                text = text[size:]
                break
    return text[len(re.split(r"\s", text, maxsplit=1)[0]) :].lstrip()


# -- words ----------------------------------------------------------------------


def _shell(command: str) -> list[str]:
    return ["cmd", "/c", command] if sys.platform == "win32" else ["/bin/sh", "-c", command]


def _shown(words: Mapping[str, Any]) -> str:
    if "shell" in words:
        return f"sh -c {_quoted(words['shell'])} (shell)"
    return " ".join(word if redact.REFERENCE.fullmatch(word) else _quoted(word) for word in words["argv"])


def _listed(codes: int | Iterable[int]) -> str:
    return str(codes) if isinstance(codes, int) else ", ".join(map(str, codes))


def _quoted(word: str) -> str:
    """As one would type it, in one line; what cannot be seen is spelled out."""
    if word.isprintable():
        return shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    spelled = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped)
    return f"$'{spelled}'"


def _origin(words: Mapping[str, Any]) -> str:
    """Where a variable's value goes: a program, as it is named."""
    return f"command://{words['argv'][0] if 'argv' in words else 'sh'}"


def _referenced(args: Mapping[str, Any], words: Mapping[str, Any]) -> list[str]:
    found = list(args.get("env", ()))
    for word in words.get("argv", ()):
        found += [name for name in redact.REFERENCE.findall(word) if name not in found]
    return found


def _words(given: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The command itself, exactly one of argv and shell, and no secret in it."""
    named = [name for name in _WORDS if given.get(name) is not None]
    if len(named) != 1:
        raise UsageError(f"{what} needs exactly one of argv and shell", 'give {"argv": ["program", "word", …]}')
    if named == ["shell"]:
        shell = given["shell"]
        if not isinstance(shell, str) or not shell.strip():
            raise UsageError(f"{what}'s shell is a line of text, and not empty", "or give argv, a list of words")
        _refuse_secrets([shell], what)
        if found := redact.REFERENCE.search(shell):
            raise UsageError(
                f"{what} has {found[0]} in a shell line, where its value could be read as code",
                f'name {found[1]} in env, and write "${found[1]}" in the line',
            )
        return {"shell": shell}
    argv = given["argv"]
    if isinstance(argv, str) or not isinstance(argv, Sequence) or not all(isinstance(word, str) for word in argv):
        raise UsageError(f"{what}'s argv is a list of words", 'such as ["rm", "-r", "build"]; a line goes into shell')
    if not argv or not argv[0]:
        raise UsageError(f"{what}'s argv names no program", "its first word is the program")
    _refuse_secrets(argv, what)
    if redact.REFERENCE.search(argv[0]):
        raise UsageError(f"{what}'s program cannot be a reference", "name the program itself")
    return {"argv": list(argv)}


def _refuse_secrets(words: Iterable[str], what: str) -> None:
    for word in words:
        if "\0" in word:
            raise UsageError(f"{what} holds a NUL byte, which no command can", "leave it out")
    joined = " ".join(words)
    if found := next((s for s in (*map(redact.secret_in, words), redact.secret_in(joined)) if s), ""):
        raise UsageError(
            f"{what} holds {found} itself", "put it into an environment variable and write ${env:NAME} in its place"
        )


def _checked_probe(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise UsageError("a probe is a command of its own", 'such as {"argv": ["test", "!", "-e", "x"], "gone": [1]}')
    _refuse_unknown(given, _PROBE_KEYS, "a probe")
    probe = _words(given, "the probe")
    if "expect" in given:
        probe["expect"] = _codes(given["expect"], "the probe's expect")
    if given.get("gone"):
        probe["gone"] = _codes(given["gone"], "the probe's gone")
    if set(probe.get("expect", (0,))) & set(probe.get("gone", ())):
        raise UsageError("an exit code of the probe means both yes and no", "name it in expect or in gone")
    if "timeout" in given:
        probe["timeout"] = _seconds(given["timeout"], "the probe's timeout")
    return probe


def _refuse_unknown(given: Mapping[str, Any], known: set[str], what: str) -> None:
    if unknown := sorted(str(name) for name in given if name not in known):
        raise UsageError(f"{what} has no {', '.join(unknown)}", f"it may have {', '.join(sorted(known))}")


def _names(given: Any) -> list[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError("env is a list of names", 'such as ["PGPASSWORD"]; values are looked up when it runs')
    names = list(given)
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError("env holds names of environment variables, never values", 'such as ["PGPASSWORD"]')
    return list(dict.fromkeys(names))


def _seconds(given: Any, what: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= _LONGEST * 30:
        raise UsageError(f"{what} is a number of seconds above 0", "such as 300")
    return float(given)


def _codes(given: Any, what: str) -> list[int]:
    codes = [given] if isinstance(given, int) else list(given) if isinstance(given, Iterable) else []
    if not codes or any(isinstance(c, bool) or not isinstance(c, int) or not 0 <= c <= 255 for c in codes):
        raise UsageError(f"{what} is a list of exit codes from 0 to 255", "such as [0]")
    return sorted(set(codes))


def _flag(given: Any) -> bool:
    if given is not True:
        raise UsageError("idempotent is true or false", "say true only if running it twice does nothing more")
    return True


def _outside_root(given: str) -> UsageError:
    return UsageError(f"run_in {given} leads out of the project", "name a folder inside it, or an absolute path")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
