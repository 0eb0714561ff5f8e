"""Running a command as if takeback were not there: its input, output, signals and exit code are its own.

    fork ─► child: shield or isolate, then become the command
         ─► here:  signals are passed on until it ends; then the exit code, as a shell gives it

On a terminal the command stays in our process group, so that Ctrl-C and Ctrl-Z reach it, and whoever shares the
pipeline, from the terminal itself. Without one it leads a group of its own, and signals go to all of that.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from takeback.errors import TakebackError, UsageError
from takeback.privacy import redact

from . import landlock, namespaces

MISSING, NOT_EXECUTABLE, BY_SIGNAL = 127, 126, 128
_LONGEST = 72  # letters of a command in a label
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")

Mask = Iterable[int]  # signals that were blocked when we were started
Prepare = Callable[[], str]  # runs in the child; returns what the owner should know, raises OSError to stop it all


class Ended(NamedTuple):
    code: int  # as a shell has it
    note: str = ""  # what the child said before it became the command
    failure: str = ""  # why there was no command to run; empty if there was one
    ran: bool = True


def in_words(argv: Sequence[str]) -> str:
    """A command on one line, short and without secrets."""
    line = " ".join(redact.text(shlex.join(argv)).replace("\0", " ").split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def run(argv: Sequence[str], environ: Mapping[str, str], prepare: Prepare, mask: Mask) -> Ended:
    """Runs a command to its end. Call it inside `deaf()`, which keeps us alive through its signals."""
    if not hasattr(os, "fork"):
        raise TakebackError("run needs a Unix system", "take a checkpoint before and after the command instead")
    for word in (*argv, *environ.keys(), *environ.values()):
        if "\0" in word:
            raise UsageError("a command cannot hold a NUL byte", "leave it out")
    terminal = _Terminal()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _become(argv, environ, prepare, mask, writer, own_group=not terminal.ours)
    os.close(writer)
    try:
        kind, said = _report(reader)
        code = _wait(pid, own_group=not terminal.ours)
        terminal.restore(modes=code > BY_SIGNAL)
    finally:
        os.close(reader)
    if kind == "unprepared":
        return Ended(1, failure=said, ran=False)
    if kind == "unfound":
        number = int(said)
        name = argv[0]
        if number in (errno.ENOENT, errno.ENOTDIR):
            return Ended(MISSING, failure=f"{name}: there is no such program", ran=False)
        return Ended(NOT_EXECUTABLE, failure=f"{name} cannot be run ({os.strerror(number)})", ran=False)
    return Ended(code, said)


# -- in the child --------------------------------------------------------------


def _become(
    argv: Sequence[str], environ: Mapping[str, str], prepare: Prepare, mask: Mask, report: int, own_group: bool
) -> None:
    """Never returns."""
    code = 1
    try:
        if own_group:
            os.setpgid(0, 0)
            _end_with_parent()
        try:
            note = prepare()
        except OSError as error:
            _say(report, "unprepared", error.strerror or str(error))
            return
        _say(report, "ready", note)
        _hear_again(mask)
        _say(report, "unfound", str(_execute(argv, environ).errno))
        code = MISSING
    except BaseException as error:  # a child must never go on as if it were takeback
        _say(report, "unprepared", f"{type(error).__name__}: {error}")
    finally:
        os._exit(code)


def _end_with_parent() -> None:
    """In a group of its own nobody who ends ours would end the command."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)


def _hear_again(mask: Mask) -> None:
    """Signals as the command would have found them: Python ignores some, and we block others."""
    for name in ("SIGPIPE", "SIGXFSZ"):
        if (number := getattr(signal, name, None)) is not None:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, None):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _execute(argv: Sequence[str], environ: Mapping[str, str]) -> OSError:
    """Becomes the command, or says why not: the most telling reason of all places where it was looked for."""
    name = argv[0]
    folders = [""] if "/" in name else (environ.get("PATH") or os.defpath).split(os.pathsep)
    found = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    failed: OSError = found
    for folder in folders if name else ():
        path = os.path.join(folder or ".", name) if "/" not in name else name
        try:
            try:
                os.execve(path, list(argv), dict(environ))
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise
                os.execve("/bin/sh", ["/bin/sh", path, *argv[1:]], dict(environ))  # a script that names no program
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR) and failed is found:
                failed = error
    return failed


def _say(report: int, kind: str, said: str) -> None:
    os.write(report, f"{kind}\0{said}\0".encode("utf-8", "surrogateescape")[:4096])


def _report(reader: int) -> tuple[str, str]:
    """What the child said last before it became the command, or ended."""
    data = b""
    while chunk := os.read(reader, 4096):
        data += chunk
    parts = data.decode("utf-8", "surrogateescape").split("\0")
    return (parts[-3], parts[-2]) if len(parts) >= 3 else ("ready", "")


# -- shielding the store -------------------------------------------------------


def shield(home: str, root: str) -> str:
    """Keeps this process and all it starts from writing to takeback's store. Says why where it cannot.

    Who may mount gets a read-only view of it, which hinders nothing else. Without that privilege Landlock does it."""
    new_enough = landlock.abi() >= landlock.OLDEST
    try:
        namespaces.own_mounts()
        namespaces.bind_read_only(home)
    except OSError:
        pass
    else:
        return frozen(new_enough)
    if not new_enough:
        return "this kernel has no Landlock"
    if home == root or home.startswith(root.rstrip("/") + "/"):
        return "it lies inside the project"
    try:
        landlock.refuse_writing(home, [root])
    except OSError as error:
        return f"Landlock failed: {error.strerror}"
    return ""


def frozen(possible: bool) -> str:
    """A read-only view that the command cannot take away."""
    if not possible:
        return "this kernel has no Landlock, and the command may mount"
    try:
        landlock.freeze_mounts()
    except OSError as error:
        return f"the command may mount, and Landlock failed: {error.strerror}"
    return ""


# -- signals and the terminal --------------------------------------------------


def _watched() -> set[signal.Signals]:
    return {getattr(signal, name) for name in _PASSED_ON if hasattr(signal, name)} | {signal.SIGCHLD}


@contextmanager
def deaf() -> Iterator[Mask]:
    """No signal that is meant for the command ends takeback: what it did has to be journaled. Yields what was
    blocked before."""
    if not hasattr(signal, "pthread_sigmask"):
        yield ()
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, nobody could wait for the command
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _watched())
    try:
        yield before
    finally:
        while came := signal.sigpending() & _watched():
            signal.sigwait(came)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait(pid: int, own_group: bool) -> int:
    """Until the command has ended; its exit code as a shell has it."""
    while True:
        number, from_terminal = _next_signal()
        if number == signal.SIGCHLD:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else BY_SIGNAL - code
            continue
        try:
            if own_group:
                os.killpg(pid, number)
            elif not from_terminal:  # else it has reached the command already
                os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def _next_signal() -> tuple[int, bool]:
    """The next one, and whether a terminal sent it to all of our group."""
    if sys.platform == "darwin":  # does not say who sent it
        number = signal.sigwait(_watched())
        return number, number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
    found = signal.sigwaitinfo(_watched())
    return found.si_signo, found.si_code > 0


class _Terminal:
    """Our terminal, if we have one: as it was before, whatever the command leaves behind."""

    def __init__(self) -> None:
        self._fd, self._modes, self._group = -1, None, 0
        try:
            import termios

            self._fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            self._group = os.tcgetpgrp(self._fd)
            self._modes = termios.tcgetattr(self._fd)
        except (ImportError, OSError, _termios_error()):
            pass

    @property
    def ours(self) -> bool:
        return self._fd >= 0

    def restore(self, modes: bool) -> None:
        """Only where we were in front: a job in the background has no say. Its modes if the command had no time to
        set them right: it was killed."""
        if self._fd < 0:
            return
        import termios

        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        try:
            if self._group == os.getpgrp():
                if os.tcgetpgrp(self._fd) != self._group:
                    os.tcsetpgrp(self._fd, self._group)
                if modes and self._modes is not None and termios.tcgetattr(self._fd) != self._modes:
                    termios.tcsetattr(self._fd, termios.TCSADRAIN, self._modes)
        except (OSError, termios.error):
            pass
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(self._fd)
            self._fd = -1


def _termios_error() -> type[Exception]:
    try:
        import termios
    except ImportError:
        return OSError
    return termios.error
