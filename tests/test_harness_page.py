"""docs/harness.md is one program, and it runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/harness.md"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_page_is_one_program_that_runs(tmp_path: Path):
    found = blocks()
    assert len(found) >= 10
    (tmp_path / "my-project").mkdir()
    script = tmp_path / "page.py"
    script.write_text("\n".join(found), encoding="utf-8")
    ran = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert 'step "rewrite the order" was taken back: order.txt' in ran.stdout
    assert "charge(99) was done before and taken back by" in ran.stdout
    assert "[('charge_tool(4)', 'live'), ('charge_tool(3)', 'live'), ('charge(99)', 'live')" in ran.stdout


def test_it_names_every_argument_of_do():
    import inspect

    from takeback import Recorder

    page = PAGE.read_text(encoding="utf-8")
    names = [n for n, p in inspect.signature(Recorder.do).parameters.items() if p.kind is p.KEYWORD_ONLY]
    assert not [name for name in names if name not in page]
