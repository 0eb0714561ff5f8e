"""The gate beside a real bash: whatever makes a script of the project post, the gate does not call it harmless."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takeback import gate
from takeback.config.policy import Policy

POST = "curl -X POST https://x.example\n"
FILES = {
    "m.sh": POST,
    "names": "m.sh\n",
    "m.mk": f"x:\n\t{POST}",
    "parts/m": f"#!/bin/sh\n{POST}",
    "sub/m.sh": "ls\n",
}
RUNS = [
    "bash m.sh", "sh ./m.sh", ". ./m.sh", "source m.sh", "./m.sh", "bash < m.sh", "cat m.sh | bash", "bash -s < m.sh",
    "cp m.sh n.sh; bash n.sh", "mv m.sh n.sh; sh n.sh", "cat m.sh > n.sh; sh n.sh", "ln -s m.sh l.sh; bash l.sh",
    "for s in *.sh; do bash $s; done", "for s in m*; do sh ./$s; done", "echo m.sh | xargs bash", "ls *.sh | xargs -n1 bash",
    "find . -name m.sh -exec bash {} \\;", "find . -name m.sh | xargs -n1 sh", 'bash "$PWD/m.sh"', "s=m; bash $s.sh",
    "BASH_ENV=m.sh bash -c true", "bash $(ls m.sh)", "bash <(cat m.sh)", 'eval "$(cat m.sh)"', 'eval "$(<m.sh)"',
    "bash -c 'bash $0' m.sh", "tee n.sh < m.sh; sh n.sh", 'while read l; do eval "$l"; done < m.sh',
    "mkdir d; cp m.sh d; sh d/m.sh", "cp -r . ../copy; bash ../copy/m.sh", "PATH=$PWD:$PATH m.sh", "head -1 m.sh | sh",
    "exec bash m.sh", "xargs -I% sh % < names", "set -- m.sh; sh $1", "a=(m.sh); sh ${a[0]}", "hash -p ./m.sh zz; zz",
    "echo bash m.sh > q; . ./q", "python3 -c 'import os; os.system(\"bash m.sh\")'", "sort -o n.sh m.sh; sh n.sh",
    "sed -n 'w n.sh' m.sh; sh n.sh", "x=sub/m.sh; while true; do sh $x; x=m.sh; [ -f t ] && break; touch t; done",
    "git init -q g; cp m.sh g/.git/hooks/pre-commit; cd g; git -c user.name=a -c user.email=b commit -qm x --allow-empty",
    "git -c alias.z='!sh m.sh' z", "make -f m.mk", "f() { ls; }; test -f no || f() { sh m.sh; }; f",
]  # fmt: skip
AROUND = [
    "( {} )", "{{ {}; }}", "true && {{ {}; }}", "false || {{ {}; }}", "if true; then {}; fi", "for i in 1; do {}; done",
    "x=$({}); echo $x", "bash -c '{}'", "{{ {}; }} | cat", "f() {{ {}; }}; f", "cd sub; cd ..; {}", "! {{ {}; }}",
    "while true; do {}; break; done", "case a in a) {} ;; esac", "cat <<'E'\nx\nE\n{}", "trap '{}' EXIT",
    "false || cd sub; cd ..; {}", "test -d sub && cd sub; cd ..; {}",
]  # fmt: skip


needs_programs = pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "git", "make", "xargs"))), reason="the commands need these programs to run"
)


def made(folder: Path) -> Path:
    root = folder / "project"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
        (root / name).chmod(0o755)
    return root


def posts(command: str, root: Path) -> bool:
    """Whether it really does. The curl that it finds sends nothing, and leaves a mark."""
    posted, programs = root.parent / "posted", root.parent / "bin"
    programs.mkdir()
    (programs / "curl").write_text(f"#!/bin/sh\n: > {posted}\n")
    (programs / "curl").chmod(0o755)
    environ = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(root.parent)}
    subprocess.run(["bash", "-c", command], cwd=root, env=environ, capture_output=True, timeout=60, check=False,
                   stdin=subprocess.DEVNULL)  # fmt: skip
    return posted.exists()


@needs_programs
@settings(max_examples=120, deadline=None)
@given(st.sampled_from(RUNS), st.lists(st.sampled_from(AROUND), max_size=3))
def test_what_really_posts_is_asked_for_or_said_to_be_not_known(command: str, around: list[str]):
    for each in around:
        if not ("'{}'" in each and "'" in command):
            command = each.format(command)
    with tempfile.TemporaryDirectory() as folder:
        root = made(Path(folder))
        found = gate.look(command, str(root), str(root), "/home/ada")
        asked = [risk for risk in found.risks if Policy().call(risk.kind).decision != "allow"]
        assert asked or found.unknown or not posts(command, root), command


@needs_programs
@pytest.mark.parametrize("command", RUNS)
def test_each_of_them_does_post_and_is_asked_for(command: str, tmp_path: Path):
    root = made(tmp_path)
    found = gate.look(command, str(root), str(root), "/home/ada")
    assert [risk for risk in found.risks if Policy().call(risk.kind).decision != "allow"], found
    assert posts(command, root), "else the test above would prove nothing"
