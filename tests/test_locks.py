from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from takeback.errors import Locked, TakebackError
from takeback.system.locks import Lock, NullLock, waiting_while

HOLDER = """
import sys, time
from pathlib import Path
from takeback.system.locks import Lock
lock = Lock(Path(sys.argv[1]), portable=sys.argv[2] == "portable")
lock.acquire(5)
print("held", flush=True)
sys.stdin.readline()
lock.release()
print("released", flush=True)
time.sleep(60)
"""

ATTEMPT = """
import sys
from pathlib import Path
from takeback.errors import Locked
from takeback.system.locks import Lock
try:
    Lock(Path(sys.argv[1]), portable=sys.argv[2] == "portable").acquire(0)
except Locked as error:
    sys.exit(error.exit_code)
"""

COUNTER = """
import sys
from pathlib import Path
from takeback.system.locks import Lock
path, portable, counter = Path(sys.argv[1]), sys.argv[2] == "portable", Path(sys.argv[3])
for _ in range(50):
    with Lock(path, portable).hold(60):
        counter.write_text(str(int(counter.read_text()) + 1))
"""

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")


@pytest.fixture(params=[pytest.param("flock", marks=posix), "portable"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lock(tmp_path: Path, how: str) -> Lock:
    return Lock(tmp_path / "store", portable=how == "portable")


@pytest.fixture(params=[pytest.param("flock", marks=posix), "portable", "memory"])
def any_lock(request: pytest.FixtureRequest, tmp_path: Path) -> Lock:
    if request.param == "memory":
        return NullLock("store")
    return Lock(tmp_path / "store", portable=request.param == "portable")


@contextmanager
def process(program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    started = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with started:
        try:
            yield started
        finally:
            started.kill()


@contextmanager
def holder(path: Path, how: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock until it reads a line, or is killed."""
    with process(HOLDER, str(path), how) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        yield other


def seconds(act: Callable[[], object]) -> float:
    start = time.monotonic()
    act()
    return time.monotonic() - start


def test_hold_and_hold_again(any_lock: Lock) -> None:
    for _ in range(3):
        with any_lock.hold(0):
            pass
    any_lock.acquire(0)
    any_lock.release()


def test_a_failing_block_gives_the_lock_back(any_lock: Lock) -> None:
    with pytest.raises(ZeroDivisionError), any_lock.hold(0):
        1 / 0  # noqa: B018
    with any_lock.hold(0):
        pass


def test_it_says_who_is_waited_for(tmp_path: Path) -> None:
    lock, path = Lock(tmp_path / "store"), tmp_path / "store"
    assert lock.waits_for == ""
    with holder(path, "flock") as other:
        waiting = threading.Thread(target=lock.acquire, args=(60,))
        waiting.start()
        while not lock.waits_for:
            time.sleep(0.01)
        assert lock.waits_for.startswith("another process")
        if Path("/proc/locks").exists():
            assert lock.waits_for.endswith(f", {other.pid})")
        assert other.stdin is not None
        other.stdin.write("\n")
        other.stdin.flush()
        waiting.join(60)
        assert lock.waits_for == ""
    lock.release()


def test_what_nobody_wants_any_more_is_not_waited_for(tmp_path: Path) -> None:
    lock, path, wanted, failed = Lock(tmp_path / "store"), tmp_path / "store", threading.Event(), []
    wanted.set()

    def wait() -> None:
        with waiting_while(wanted.is_set):
            try:
                lock.acquire(3600)
            except Locked as error:
                failed.append(error)

    with holder(path, "flock"):
        waiting = threading.Thread(target=wait)
        waiting.start()
        while not lock.waits_for:
            time.sleep(0.01)
        wanted.clear()
        waiting.join(60)
        assert len(failed) == 1 and not lock.waits_for
        with pytest.raises(Locked), waiting_while(lambda: False):
            lock.acquire(3600)
    with waiting_while(lambda: False):
        lock.acquire(0)  # what is free is had all the same
    lock.release()


def test_it_is_asked_who_has_it_without_a_trace(lock: Lock, how: str, tmp_path: Path) -> None:
    assert not lock.is_taken() and not list(tmp_path.iterdir())
    other = Lock(lock.path, how == "portable")
    with other.hold(0):
        assert lock.is_taken()
    assert not lock.is_taken()
    lock.acquire(0)
    lock.release()


def test_giving_back_what_is_not_held_is_a_bug(any_lock: Lock) -> None:
    with pytest.raises(RuntimeError):
        any_lock.release()


def test_the_timeout_passes(any_lock: Lock) -> None:
    def attempt() -> None:
        with pytest.raises(Locked) as error:
            any_lock.acquire(0.2, holder_hint="ask the holder")
        assert error.value.exit_code == 11
        assert re.fullmatch(
            r"the store lock is still held by another process( \(\S.*, \d+\))? after 0\.2 s", error.value.message
        )
        assert error.value.hint == "ask the holder"

    with any_lock.hold(0):
        assert 0.2 <= seconds(attempt) < 2
    with any_lock.hold(0):
        pass


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system does not list locks")
def test_it_says_who_holds_it(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "store")
    with lock.hold(0), pytest.raises(Locked) as error:
        Lock(lock.path).acquire(0)
    assert f", {os.getpid()})" in error.value.message


def test_the_default_hint_says_what_to_do(any_lock: Lock) -> None:
    with any_lock.hold(0), pytest.raises(Locked) as error:
        any_lock.acquire(-1)
    assert "lock_timeout" in error.value.hint


def test_threads_exclude_each_other(any_lock: Lock) -> None:
    inside, most = [0], [0]

    def work() -> None:
        for _ in range(20):
            with any_lock.hold(60):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.0005)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_two_objects_on_one_file_exclude_each_other(lock: Lock, how: str) -> None:
    other = Lock(lock.path, portable=how == "portable")
    with lock.hold(0):
        for _ in range(3):
            with pytest.raises(Locked):
                other.acquire(0)
    with other.hold(0):
        pass


def test_another_process_is_waited_for(lock: Lock, how: str) -> None:
    with holder(lock.path, how) as other:
        with pytest.raises(Locked):
            lock.acquire(0.05)
        assert other.stdin is not None and other.stdout is not None
        other.stdin.write("\n")
        other.stdin.flush()
        lock.acquire(10)
        assert other.poll() is None, "it was released, not freed by an exit"
        lock.release()


def test_a_killed_holder_frees_the_lock_at_once(lock: Lock, how: str) -> None:
    with holder(lock.path, how) as other:
        with pytest.raises(Locked):
            lock.acquire(0)
        other.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        other.wait()
        lock.acquire(0)
        lock.release()


def test_refusals_here_do_not_free_the_lock_elsewhere(lock: Lock, how: str) -> None:
    """On POSIX, closing a second descriptor of a file can drop the locks of the first."""
    with lock.hold(0):
        for _ in range(3):
            with pytest.raises(Locked):
                Lock(lock.path, portable=how == "portable").acquire(0)
        with process(ATTEMPT, str(lock.path), how) as other:
            assert other.wait(30) == 11
    with process(ATTEMPT, str(lock.path), how) as other:
        assert other.wait(30) == 0


def test_processes_that_count_lose_nothing(tmp_path: Path, lock: Lock, how: str) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", COUNTER, str(lock.path), how, str(counter)]
    started = [subprocess.Popen(command, env=environ) for _ in range(4)]
    assert [each.wait(60) for each in started] == [0, 0, 0, 0]
    assert counter.read_text() == "200"


@posix
def test_the_file_is_private_and_stays(tmp_path: Path, lock: Lock, how: str) -> None:
    with lock.hold(0):
        pass
    (file,) = tmp_path.iterdir()
    assert file.name == ("store.sqlite" if how == "portable" else "store")
    assert file.stat().st_mode & 0o777 == 0o600


@posix
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_does_not_keep_what_the_parent_released(lock: Lock) -> None:
    lock.acquire(0)
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    try:
        lock.release()
        lock.acquire(0)
        lock.release()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_started_command_does_not_inherit_the_lock(lock: Lock) -> None:
    with lock.hold(0):
        command = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    with command:
        lock.acquire(0)
        lock.release()
        command.communicate(b"\n")


@pytest.mark.parametrize("obstacle", ["no folder", "a folder in its place"])
def test_a_lock_that_cannot_be_opened(tmp_path: Path, how: str, obstacle: str) -> None:
    path = tmp_path / "gone" / "store"
    if obstacle == "a folder in its place":
        (tmp_path / "gone" / ("store.sqlite" if how == "portable" else "store")).mkdir(parents=True)
    with pytest.raises(TakebackError, match=r"cannot lock .*store: ") as error:
        Lock(path, portable=how == "portable").acquire(0)
    assert not isinstance(error.value, Locked) and error.value.hint
