"""Two processes for one piece of work, where forking is safe and pays."""

from __future__ import annotations

import _thread
import marshal
import os
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any

from takeback.errors import Damaged, TakebackError

from .safefs import linux

PARTS = 128  # of work that two processes share: the smaller the last one, the less one waits for the other


class DamagedThere(Damaged):
    """What the second process could not mend, since it has no journal to ask."""


def allowed(wanted: bool) -> bool:
    """Never where threads live: a forked child would inherit their locks, held for ever."""
    if not wanted or not hasattr(os, "fork") or sys.platform == "darwin" or _thread._count() > 0:
        return False
    if (os.cpu_count() or 1) < 2:
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def is_running(pid: str) -> bool:
    """Whether a process with this number lives; where in doubt, yes."""
    if os.name == "nt" or not pid.isdigit():
        return True  # there, signal 0 is no question
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _nothing() -> None:
    pass


def split(
    work: Callable[[Iterator[range], bool], list[bytes]],
    size: int,
    worth: int,
    wanted: bool,
    meanwhile: Callable[[], None] = _nothing,
) -> list[bytes]:
    """`work` on all of range(size): where that pays in two processes, each of which draws part after part until none
    is left, so that neither waits for the other. The second one is told that it is. `meanwhile` is done here before
    its end is waited for, and not at all where there is none."""
    if size < worth or not allowed(wanted):
        return work(iter((range(size),)), False)
    step = -(-size // PARTS)

    def job(numbers: Iterator[int], name: str) -> list[bytes]:
        return work((range(n * step, min(size, n * step + step)) for n in numbers), bool(name))

    return [found for each in share(job, -(-size // step), meanwhile) for found in each]


def beside(work: Callable[[], Any]) -> Callable[[], Any]:
    """Has a second process do this while the caller goes on, who asks for it once; where that is not safe, it is done
    when asked for."""
    child = _child(work) if allowed(True) else None
    return child.result if child is not None else work


def share(job: Callable[[Iterator[int], str], Any], count: int, meanwhile: Callable[[], None] = _nothing) -> list[Any]:
    """Runs `job` here and in a child, which take turns drawing numbers below `count`; then `meanwhile` here, while the
    child comes to its end. What came of each; of the first alone where no second process is to be had."""
    assert count <= 8192, "the numbers must fit into a pipe"
    try:
        reader, writer = os.pipe()
    except OSError:  # no descriptor is to be had
        return [job(iter(range(count)), "")]
    os.write(writer, b"".join(number.to_bytes(4, "little") for number in range(count)))
    os.close(writer)

    parent = os.getpid()

    def numbers() -> Iterator[int]:
        while parent in (os.getpid(), os.getppid()) and (drawn := os.read(reader, 4)):
            yield int.from_bytes(drawn, "little")

    try:
        child = _child(lambda: job(numbers(), f"-w{os.getpid():x}"))
        if child is None:
            return [job(numbers(), "")]
        try:
            mine = job(numbers(), "")
            meanwhile()
        except BaseException:
            child.end()
            raise
        return [mine, child.result()]
    finally:
        os.close(reader)


def _child(work: Callable[[], Any]) -> _Child | None:
    try:
        return _Child(work)
    except OSError:  # no process, or no descriptor, is to be had
        return None


class _Child:
    """A forked process whose result comes back through a pipe."""

    def __init__(self, work: Callable[[], Any]) -> None:
        reader, writer = os.pipe()
        here, parent = _processor(), os.getpid()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(reader)
            os.close(writer)
            raise
        if self._pid == 0:
            code = 1
            try:
                os.close(reader)
                _end_with(parent)
                _leave(here)
                try:
                    answer: tuple[bool, Any] = (True, work())
                except TakebackError as error:
                    answer = (False, (isinstance(error, Damaged), error.message, error.hint))
                except OSError as error:
                    answer = (False, (False, f"{error.strerror or error}", ""))
                data = marshal.dumps(answer)
                view = memoryview(_LENGTH.pack(len(data)) + data)
                while view:
                    view = view[os.write(writer, view[: 1 << 20]) :]
                os.close(writer)  # the answer is all: nobody waits for the end of a process
                code = 0
            finally:
                os._exit(code)
        os.close(writer)
        self._reader = reader

    def end(self) -> None:
        """Gives the child up: closing the pipe ends it at its next write."""
        os.close(self._reader)
        os.kill(self._pid, 15)
        os.waitpid(self._pid, 0)

    def result(self) -> Any:
        parts = []
        try:
            while chunk := os.read(self._reader, 1 << 20):
                parts.append(chunk)
        except BaseException:  # an interrupt: nobody goes on writing behind our back
            self.end()
            raise
        os.close(self._reader)
        _ending.append(self._pid)
        data = b"".join(parts)
        parts.clear()
        if len(data) < _LENGTH.size or len(data) != _LENGTH.size + _LENGTH.unpack_from(data)[0]:
            raise TakebackError("a second process died at its work", "run it again; it goes on from there")
        done, answer = marshal.loads(memoryview(data)[_LENGTH.size :])
        if not done:
            is_damaged, *told = answer
            raise (DamagedThere if is_damaged else TakebackError)(*told)
        return answer


def _processor() -> int:
    """Which one this process runs on; -1 where nobody says."""
    try:
        fd = os.open("/proc/self/stat", os.O_RDONLY)
    except OSError:
        return -1
    try:
        return int(os.read(fd, 4096).rpartition(b")")[2].split()[36])
    except (OSError, ValueError, IndexError):
        return -1
    finally:
        os.close(fd)


def _end_with(parent: int) -> None:
    """Whoever kills a process means all of its work: nobody goes on writing behind its back, or holds its locks."""
    linux.end_with_parent()
    if os.getppid() != parent:  # it was killed in this very moment
        os._exit(1)


def _leave(processor: int) -> None:
    """To another processor, at once: the system may leave both where they are for longer than their work takes. From
    there on it may put it where it likes."""
    try:
        processors = os.sched_getaffinity(0)
        if others := processors - {processor}:
            os.sched_setaffinity(0, others)
            os.sched_setaffinity(0, processors)
    except (OSError, AttributeError):
        pass  # not on this system


_LENGTH = struct.Struct("<Q")
_ending: list[int] = []  # children that have answered, and free their memory now


def reap() -> None:
    """Waits for children that have answered: by the end of a call they are long gone."""
    while _ending:
        os.waitpid(_ending.pop(), 0)
