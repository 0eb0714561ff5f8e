"""A second process: what it finds comes back, what goes wrong in it is said, and it does not stay where its parent is.

In processes of their own: xdist's workers have threads, and nobody forks there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(getattr(os, "sched_getaffinity", lambda pid: ())(0)) < 2,
    reason="forks only on Linux with two processors",
)


def run(script: str) -> str:
    told = (
        "import os\nfrom takeback.system import forking as workers\nfrom takeback.errors import TakebackError\n"
        + script
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_done_beside_is_told_when_it_is_asked_for():
    assert run("found = workers.beside(lambda: os.getpid())\nprint(found() != os.getpid())") == "True\n"


def test_it_goes_to_another_processor_and_may_go_on_from_there():
    script = (
        "put, asked = os.sched_setaffinity, []\n"
        "os.sched_setaffinity = lambda pid, processors: (asked.append(sorted(processors)), put(pid, processors))\n"
        "here, all_of_them = workers._processor(), sorted(os.sched_getaffinity(0))\n"
        "workers._processor = lambda: here  # it may be put elsewhere meanwhile\n"
        "asked, after = workers.beside(lambda: (asked, sorted(os.sched_getaffinity(0))))()\n"
        "print(asked == [[p for p in all_of_them if p != here], all_of_them], after == all_of_them)"
    )
    assert run(script) == "True True\n"


@pytest.mark.parametrize(
    ("work", "told"),
    [
        ("1 / 0", "a second process died"),
        ("os._exit(3)", "a second process died"),
        ("os.stat('/nowhere')", "No such file"),
    ],
)
def test_what_goes_wrong_beside_is_said(work: str, told: str):
    script = (
        f"found = workers.beside(lambda: {work})\ntry: found()\nexcept TakebackError as error: print(error.message)"
    )
    assert told in run(script)


def test_where_threads_live_it_is_done_here():
    script = (
        "import threading\nend = threading.Event()\nthreading.Thread(target=end.wait).start()\n"
        "print(workers.beside(os.getpid)() == os.getpid())\nend.set()"
    )
    assert run(script) == "True\n"


def test_where_no_process_is_to_be_had_it_is_done_here():
    script = (
        "def none(): raise BlockingIOError(11, 'Resource temporarily unavailable')\n"
        "before, os.fork = len(os.listdir('/proc/self/fd')), none\n"
        "print(workers.beside(os.getpid)() == os.getpid(), len(os.listdir('/proc/self/fd')) - before)"
    )
    assert run(script) == "True 0\n"


def test_damage_that_the_second_process_finds_is_damage():
    script = (
        "from takeback.errors import Damaged\ndef lost(): raise Damaged('lost', 'run it again')\n"
        "try: workers.beside(lost)()\nexcept Damaged as error: print(error.message, error.hint)"
    )
    assert run(script) == "lost run it again\n"


def test_where_no_process_is_to_be_had_all_of_it_is_looked_at_here():
    script = (
        "def none(): raise BlockingIOError(11, 'Resource temporarily unavailable')\n"
        "before, os.fork = len(os.listdir('/proc/self/fd')), none\n"
        "work = lambda ranges, second: [b'%d' % n for numbers in ranges for n in numbers]\n"
        "print(len(workers.split(work, 1000, 0, True)), len(os.listdir('/proc/self/fd')) - before)"
    )
    assert run(script) == "1000 0\n"


def test_what_can_be_done_meanwhile_is_done_before_the_second_one_has_ended():
    script = (
        "reader, writer = os.pipe()\n"
        "def work(numbers, name):\n"
        "    drawn = list(numbers)\n"
        "    return os.read(reader, 9) if name else b'mine'  # it ends only once it is told to\n"
        "print(*workers.share(work, 8, lambda: os.write(writer, b'meanwhile')))"
    )
    assert run(script) == "b'mine' b'meanwhile'\n"


def killed(script: str) -> str:
    """What is said before all processes have ended that had the script's output open."""
    told = (
        "import os, time\nfrom takeback.system import forking as workers\nfrom takeback.system.safefs import linux\n"
        + script
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, timeout=20)
    assert done.returncode == -9, done.stderr
    return done.stdout


def test_the_second_one_dies_with_whoever_forked_it():
    assert killed("workers.beside(lambda: time.sleep(60))\nos.kill(os.getpid(), 9)") == ""


def test_where_the_system_does_not_see_to_that_it_draws_no_more():
    script = (
        "linux.end_with_parent = lambda: None\n"
        "parent, (reader, writer) = os.getpid(), os.pipe()\n"
        "def job(numbers, name):\n"
        "    if not name:\n"
        "        os.read(reader, 1)\n"
        "        os.kill(parent, 9)\n"
        "    drawn = [next(numbers)]\n"
        "    os.write(writer, b'.')\n"
        "    while os.getppid() == parent: time.sleep(0.01)\n"
        "    print(len(drawn + list(numbers)), flush=True)\n"
        "workers.share(job, 8)"
    )
    assert killed(script) == "1\n"
