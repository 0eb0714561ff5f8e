"""What the gate makes of shell commands: look-alikes pass, disguises do not, nothing makes it fall over."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from gate_commands import DISGUISED, LEAVES_HOOKS, LOOK_ALIKES, OUTSIDE, OWN, READ_OUTSIDE
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from takeback import gate
from takeback.config.policy import CALLS
from takeback.gate.bash import grammar
from takeback.gate.bash import judge as shell_judge
from takeback.gate.deadline import TooLate
from takeback.gate.risk import Risk

ROOT, HOME = "/srv/project", "/home/me"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with our hooks in it."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.local.json").write_text('{"hooks": "takeback hook claude"}')
    return tmp_path


def judge(command: str, root: str = ROOT) -> tuple[Risk, ...]:
    return gate.shell(command, root, root, HOME)


def judge_or_fail(command: str) -> tuple[Risk, ...]:
    """The same without the net that turns a fault of ours into a question."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shell_judge, "_CAUGHT", TooLate)
        return judge(command)


def asked(command: str) -> list[Risk]:
    return [risk for risk in judge(command) if risk.kind != "outside"]


def test_there_are_enough_of_each():
    assert len(set(LOOK_ALIKES)) >= 80 and len({c for c, _ in DISGUISED}) >= 120 and len(OWN) >= 40


@pytest.mark.parametrize("command", LOOK_ALIKES)
def test_look_alikes_pass(command: str):
    assert asked(command) == []


@pytest.mark.parametrize(("command", "kind"), DISGUISED)
def test_disguises_do_not_pass(command: str, kind: str):
    found = judge(command)
    assert kind in {risk.kind for risk in found}, found
    assert kind in CALLS


@pytest.mark.parametrize("command", OUTSIDE)
def test_writes_outside_are_told_and_not_asked_for(command: str):
    found = judge(command)
    assert {risk.kind for risk in found} == {"outside"}, found


@pytest.mark.parametrize("command", READ_OUTSIDE)
def test_what_is_only_read_outside_is_no_risk(command: str):
    assert judge(command) == ()


@pytest.mark.parametrize("command", ["CDPATH=/ cd opt && echo a > x", "export CDPATH=/opt; cd x; echo a > y"])
def test_where_a_folder_is_searched_for_nobody_says_what_is_written(command: str):
    assert any("lies, which it writes" in what for what in gate.look(command, ROOT, ROOT, HOME).unknown)


@pytest.mark.parametrize(
    ("command", "times"),
    [("POST", 1), ("POST; POST", 2), ("POST && echo one && POST", 2), ("for i in 1 2 3; do POST; done", 3),
     ("pay() { POST; }; pay; pay", 2), ("if a; then POST; else POST; fi", 1), ("POST || POST", 1),
     ("case $x in a) POST;; b) POST; POST;; esac", 2), ("while read x; do POST; done < a", 1), ("POST; sudo POST", 2)],
)  # fmt: skip
def test_the_same_request_counts_as_often_as_it_is_sent(command: str, times: int):
    (risk,) = judge(command.replace("POST", "curl -X POST http://h.example/o -d a=1"))
    assert risk.kind == "http" and risk.times == times


@pytest.mark.parametrize("command", OWN)
def test_an_agent_never_gets_at_its_own_undo(command: str, project: Path):
    found = gate.shell(command, str(project), str(project), HOME)
    assert any(risk.refuse and risk.kind == "own" for risk in found), found


@pytest.mark.parametrize(
    "command",
    ["cat .claude/settings.local.json", "ls .claude", "grep hooks .claude/settings.local.json", "git add .claude",
     "rm -rf .claude/worktrees/x", "echo {} > .claude/settings.json", "cat ~/.config/takeback/config.toml",
     "ls -la ~/.local/state/takeback", "echo 'x = 1' > .takeback.toml", "rm -rf build", "touch .claude/agents.md"],
)  # fmt: skip
def test_reading_what_is_ours_and_writing_beside_it_is_nobodys_business(command: str, project: Path):
    assert not [r for r in gate.shell(command, str(project), str(project), HOME) if r.refuse]


@pytest.mark.parametrize("command", LEAVES_HOOKS)
def test_what_leaves_our_hooks_alone_is_not_refused(command: str, project: Path):
    found = gate.shell(command, str(project), str(project), HOME)
    assert not [risk for risk in found if risk.refuse], found


def test_a_folder_that_is_copied_is_refused_for_what_lies_in_it(project: Path):
    (project / "other" / ".claude").mkdir(parents=True)
    assert not [r for r in gate.shell("cp -r other/. .", str(project), str(project), HOME) if r.refuse]
    (project / "other" / ".claude" / "settings.local.json").write_text("{}")
    for command in ("cp -r other/. .", "cp -r other/.claude .", "rsync -a other/ ./", "cp other/.claude/* .claude/"):
        assert [r for r in gate.shell(command, str(project), str(project), HOME) if r.refuse], command


def test_a_copied_file_turns_no_hooks_off(project: Path):
    (project / "settings.json").write_text('{"disableAllHooks": true}')
    for command in (
        "cp settings.json .claude/",
        "mv settings.json .claude/settings.json",
        "cp settings.json ~/.claude",
    ):
        assert [r for r in gate.shell(command, str(project), str(project), HOME) if r.refuse], command
    (project / "settings.json").write_text("{}")
    assert not [r for r in gate.shell("cp settings.json .claude/", str(project), str(project), HOME) if r.refuse]


def test_an_agents_file_without_our_hooks_is_the_agents(project: Path):
    (project / ".claude" / "settings.local.json").write_text("{}")
    assert not gate.shell("rm .claude/settings.local.json", str(project), str(project), HOME)


def test_the_store_and_configuration_may_lie_elsewhere(project: Path):
    places = {"stores": ("/data/store",), "config": ("/data/config",)}
    for command in ("rm -rf /data/store", "rm -rf /data", "echo > /data/config/config.toml"):
        found = gate.shell(command, str(project), str(project), HOME, **places)
        assert any(risk.refuse for risk in found), command


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf $TAKEBACK_HOME", 'cp a "$TAKEBACK_HOME"/journal.db', "bash -c 'rm -rf ${TAKEBACK_HOME}/*'",
        "echo > $XDG_CONFIG_HOME/takeback/config.toml", 'tee "${XDG_CONFIG_HOME:-/etc}/takeback/config.toml"',
        "d=$XDG_STATE_HOME; rm -rf $d/takeback", "rm -rf $XDG_STATE_HOME",
    ],
)  # fmt: skip
def test_they_may_be_named_by_the_variables_that_lead_there(command: str, project: Path):
    environ = {"TAKEBACK_HOME": "/data/state/takeback", "XDG_CONFIG_HOME": "/data/config",
               "XDG_STATE_HOME": "/data/state", "OTHER": "/data"}  # fmt: skip
    places = {"stores": ("/data/state/takeback",), "config": ("/data/config/takeback/config.toml",)}
    known = gate.known(environ)
    found = gate.shell(command, str(project), str(project), HOME, **places, known=known)
    assert any(risk.refuse for risk in found), command
    assert "OTHER" not in known and gate.known({"TAKEBACK_HOME": ""}) == {}


# -- what is told --------------------------------------------------------------


def test_a_risk_says_what_why_and_what_would_undo_it():
    (risk,) = judge("cd src && bash -c 'git push --force origin main'")
    assert risk.what == "git push --force origin main"
    assert "repository" in risk.why and not risk.why.endswith(".")
    assert risk.undo == "git push --force-with-lease origin OLD:main"
    (deleted,) = judge("git push --delete origin old")
    assert deleted.undo == "git push origin OLD:refs/heads/old"


def test_paths_outside_are_named_from_the_root():
    (risk,) = judge("cd /opt/a && echo x > ../b")
    assert risk.outside == ("/opt/b",)


def test_a_link_that_leads_out_is_outside(tmp_path: Path):
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    (root / "link").symlink_to(elsewhere)
    found = gate.shell("rm -rf link/data", str(root), str(root), HOME)
    assert [risk.kind for risk in found] == ["delete"]
    assert not gate.shell("rm link", str(root), str(root), HOME)


def test_temporary_folders_are_none_where_the_project_lies_in_one(tmp_path: Path):
    root = Path("/tmp/project-of-a-test")
    assert [r.kind for r in gate.shell("rm -rf /tmp/other", str(root), str(root), HOME)] == ["delete"]
    assert [r.kind for r in judge("rm -rf /tmp/other")] == ["outside"]


def test_the_worst_comes_first():
    found = judge("echo x > /opt/y; git push; takeback approve k")
    assert [risk.kind for risk in found] == ["own", "push", "outside"]


# -- without the parser ----------------------------------------------------------


WITHOUT = [
    "git push", "sudo git push", "bash -c 'git push'", "ls; git push", "ls && gi''t push", "(git push)", "git push | cat",
    "X=push; git $X", "echo \"$(git push)\"", "takeback approve k", "rm -rf /opt/x", "timeout 5 npm publish",
]  # fmt: skip


@pytest.mark.parametrize("command", WITHOUT)
def test_without_the_parser_words_are_judged_and_it_is_said(command: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(grammar, "parser", lambda: None)
    found = judge(command)
    assert found and all("by its words alone" in risk.why for risk in found)


@pytest.mark.parametrize("command", ["ls", "echo git push", "git commit -m 'git push'", "# git push", "rm -rf build",
                                     "cat <<EOF\ngit push\nEOF", "grep 'git push' x"])  # fmt: skip
def test_without_the_parser_look_alikes_still_pass(command: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(grammar, "parser", lambda: None)
    assert judge(command) == ()


def test_a_package_that_is_not_there_is_no_error():
    told = "import sys; sys.modules['tree_sitter'] = None; sys.modules['tree_sitter_bash'] = None\n" \
           "from takeback import gate\nprint(gate.shell('git push', '/', '/srv', '/home/me')[0].why)"  # fmt: skip
    found = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout
    assert "by its words alone" in found


# -- fuzz --------------------------------------------------------------------------


def _quoted(word: str, how: int) -> str:
    """The same word, written otherwise."""
    if how == 0:
        return word
    if how == 1:
        return f"'{word}'"
    if how == 2:
        return f'"{word}"'
    if how == 3:
        return word[:1] + "''" + word[1:]
    if how == 4:
        return "".join(f"\\{letter}" if letter.isalpha() else letter for letter in word)
    return "$'" + "".join(f"\\x{ord(letter):02x}" for letter in word) + "'"


WRAPS = [
    "sudo {}", "env A=b {}", "timeout 5 {}", "nice {}", "nohup {}", "command {}", "time {}", "( {} )", "{{ {}; }}", "! {}",
    "true && {}", "false || {}", "ls; {}", "{} &", "{} | cat", "if true; then {}; fi", "for x in 1 2; do {}; done",
    "f() {{ {}; }}; f", "echo $({})", "setsid {}", "stdbuf -oL {}", "case a in *) {} ;; esac", "cd src; {}",
    "while read x; do {}; done", "X=$({})", "{} 2>/dev/null",
]  # fmt: skip
STRINGS = ["bash -c {}", "sh -lc {}", "eval {}", "sudo bash -c {}", "script -qc {} /dev/null", "echo {} | sh", "bash <<< {}",
           "su me -c {}", "find . -exec sh -c {} \\;", "trap {} EXIT", "env -S {}", "xargs -I% sh -c {} < x"]  # fmt: skip


@examples(150, 2000)
@given(
    st.sampled_from([(["git", "push"], "push"), (["npm", "publish"], "publish"), (["terraform", "destroy"], "infrastructure"),
                     (["rm", "-rf", "/opt/x"], "delete"), (["takeback", "approve", "kxv"], "own"),
                     (["kubectl", "delete", "pod"], "cluster")]),
    st.lists(st.integers(0, 5), min_size=3, max_size=3),
    st.lists(st.sampled_from(WRAPS + STRINGS), max_size=4),
)  # fmt: skip
def test_no_wrapping_loses_a_command(dangerous: tuple[list[str], str], hows: list[int], wraps: list[str]):
    words, kind = dangerous
    command = " ".join(_quoted(word, how) for word, how in zip(words, hows))
    has_control = False
    for wrap in wraps:
        if wrap in STRINGS:
            if wrap.startswith("env -S") and has_control:
                continue  # it takes no more than words
            command = wrap.format(shlex.quote(command))
        elif wrap.startswith(("sudo", "env", "timeout", "nice", "nohup", "command", "setsid", "stdbuf", "time")):
            if has_control:
                continue
            command = wrap.format(command)
        elif command.endswith("&") or "<<<" in command:
            continue
        else:
            command = wrap.format(command)
            has_control = True
        has_control = has_control or wrap in ("echo {} | sh", "bash <<< {}")
    assert kind in {risk.kind for risk in judge(command)}, command


@examples(150, 2000)
@given(st.text(st.sampled_from("git push rm -rf/~$(){}[]<>|&;'\"`\\\n\t=*?!#EOF0aX:,.@%^"), max_size=80))
def test_no_text_makes_it_fall_over(text: str):
    for risk in judge_or_fail(text):
        assert risk.kind in CALLS or risk.kind == "own"
        assert risk.what and risk.why and "\0" not in risk.what


@examples(100, 1000)
@given(st.text(max_size=60))
def test_no_letters_make_it_fall_over(text: str):
    judge_or_fail(text)
    judge_or_fail(f"echo '{text}' | sh")


@pytest.mark.parametrize("text", ["é", "\U0001f600", "\u2028", "\udcff", "日本語", "\xa0"])
def test_letters_that_are_not_ascii_stay_what_they_are(text: str):
    (risk,) = judge(f"git push 'a{text}b' {text} \"{text}$X\" <<< {text}")
    assert risk.what.startswith(f"git push a{text}b {text} {text}")
    assert judge(f"git commit -m 'git push {text}'; echo {text}") == ()
    assert judge(f"echo {text} && git push")[0].kind == "push"


def test_letters_that_are_not_ascii_do_not_end_the_process():
    """The scanner of the grammar reads out of bounds at them: in a process of its own, with very many."""
    told = (
        "import random; from takeback import gate; random.seed(1)\n"
        "for _ in range(4000):\n"
        "    odd = (random.randrange(32, 127), random.randrange(128, 0xd800), random.randrange(0x10000, 0x10ffff))\n"
        "    gate.shell(''.join(chr(random.choice(odd)) for _ in range(30)), '/', '/srv', '/home/me')\n"
    )
    subprocess.run([sys.executable, "-c", told], check=True, timeout=120)


def test_what_is_too_deep_or_too_long_is_unknown_and_not_a_crash():
    deep = "git push"
    for _ in range(60):
        deep = f"bash -c {shlex.quote(deep)}" if len(deep) < 20_000 else f"sudo {deep}"
    assert "unknown" in {risk.kind for risk in judge(deep)} or "push" in {risk.kind for risk in judge(deep)}
    assert "push" in {risk.kind for risk in judge("ls;" * 1000 + "git push")}
    assert "unknown" in {risk.kind for risk in judge("f() { f; f; }; f")}
    assert judge("(" * 3000 + "git push" + ")" * 3000)


# -- no text takes longer than a hook may --------------------------------------------


SLOW = [
    "a=$a$a;" * 4500 + "a=; git push origin main",
    "a=xxxxxxxxxxxxxxxx;" + "a=$a$a;" * 12 + "b=$a$a$a$a$a$a$a$a;" * 4500 + "git push",
    "echo " + "{a,b}" * 4000 + "; git push",
    "echo " + "{" * 20_000 + "; git push",
    "".join(f"export a{n}=1;" for n in range(20_000)) + "git push",
    "echo " + "''" * 100_000 + ")); git push",
    "cat " + "<<A " * 20_000 + "\n)) git push",
    "x=" + "y" * 19_000 + ";" + "echo ${x//y/" + "z" * 150 + "};" * 500 + "git push",
    "python -c '" + "open(" * 60_000 + "'; git push",
    "rm " + " ".join(f"./d{n}/x" for n in range(40_000)) + "; git push",
    "(" * 50_000 + "git push",
    "$(" * 30_000 + "git push",
    "find . " + "-name a -o " * 20_000 + "-delete; git push",
    "for a in " + "1 " * 9 + "; do for b in 1 2 3 4 5 6 7 8 9; do " * 30 + "git push",
    "f() { f | f; }; f; git push",
]  # fmt: skip


@pytest.mark.parametrize("command", SLOW, ids=range(len(SLOW)))
def test_what_is_not_judged_in_time_is_asked_for(command: str):
    """The hook is given a minute; what it says later nobody hears, and the push would pass. Counted is the time that it
    computes, so that a busy machine makes no difference."""
    told = "import resource, sys; from takeback import gate; resource.setrlimit(resource.RLIMIT_CPU, (30, 30))\n"
    told += "found = gate.shell(sys.stdin.read(), '/srv/p', '/srv/p', '/home/me')\n"
    told += "print({risk.kind for risk in found} & {'unknown', 'push'} and 'asked')"
    found = subprocess.run([sys.executable, "-c", told], input=command, capture_output=True, text=True, timeout=600)
    assert found.stdout.strip() == "asked", found.stderr
