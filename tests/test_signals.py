"""What the suite's own parent ignores (`nohup scripts/test &`), processes of tests do not."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

_HOW = "import signal; print([signal.getsignal(n) for n in (2, 1)] == [signal.default_int_handler, signal.SIG_DFL])"


def test_a_process_of_a_test_can_be_interrupted_and_hung_up() -> None:
    assert subprocess.check_output([sys.executable, "-c", _HOW]) == b"True\n"


@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_and_so_it_is_where_the_suite_itself_cannot(workers: list[str]) -> None:
    pytest_again = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *workers]
    asked = f"{__file__}::{test_a_process_of_a_test_can_be_interrupted_and_hung_up.__name__}"
    done = subprocess.run(
        ["sh", "-c", 'trap "" INT HUP; exec "$@"', "sh", *pytest_again, asked], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
