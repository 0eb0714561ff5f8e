"""What a word means that is both a path and how an id begins; and that commands in hints do what they say, no more."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

import takeback
from scene import Scene
from takeback.journal.brackets import Call, Caller
from takeback.system import processes


def effects(cli) -> list[dict]:
    return list(cli.ok("log", "kind:effect", "--json").json["rows"])


@pytest.fixture
def twins(cli):
    """A file whose name is how the id of another file's change begins. Both changed."""
    (cli.project / "precious.txt").write_text("one\n")
    cli.ok("checkpoint", "base")
    (cli.project / "precious.txt").write_text("two\n")
    cli.ok("checkpoint", env={"TAKEBACK_ACTOR": "claude"})
    id = effects(cli)[0]["id"]
    cli.name, cli.id = id[:6], id
    (cli.project / cli.name).write_text("first\n")
    cli.ok("checkpoint", "both")
    (cli.project / cli.name).write_text("second\n")
    cli.ok("checkpoint", env={"TAKEBACK_ACTOR": "claude"})
    return cli


@pytest.mark.parametrize("how", ["{}", "./{}"])
def test_revert_means_the_path_before_the_beginning_of_an_id(twins, contents, how) -> None:
    ran = twins.ok("revert", how.format(twins.name), "--yes")
    assert f"Revert {twins.name} " in ran.out
    assert contents()[twins.name] == b"first\n" and contents()["precious.txt"] == b"two\n"


def test_more_letters_of_the_id_mean_the_effect(twins, contents) -> None:
    twins.ok("revert", twins.id[:8], "--yes")
    assert contents()[twins.name] == b"second\n" and contents()["precious.txt"] == b"one\n"


def test_a_path_that_is_gone_but_known_is_meant_too(twins, contents) -> None:
    (twins.project / twins.name).unlink()
    ran = twins("revert", twins.name, "--yes")
    assert contents()["precious.txt"] == b"two\n" and twins.name in ran.out + ran.err


def test_a_path_that_never_changed_is_no_effect_either(cli, contents) -> None:
    (cli.project / "README.md").write_text("changed\n")
    cli.ok("checkpoint")
    id = effects(cli)[0]["id"]
    (cli.project / id[:5]).write_text("a file that nothing captures\n")
    ran = cli("revert", id[:5], "--yes", env={"TAKEBACK_CHECKPOINTS_EXCLUDE": id[:5]})
    assert ran.code == 2 and contents()["README.md"] == b"changed\n"
    assert f"no change of {id[:5]!r} is recorded" in ran.err and id[:8] in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ["undo", "{}", "--yes"],
        ["rollback", "{}", "--yes"],
        ["restore", "{}", "precious.txt", "--yes"],
        ["restore", "{}", ".", "--to", "elsewhere"],
        ["show", "{}"],
        ["compensate", "--to", "{}"],
        ["plan", "undo", "{}"],
        ["pin", "{}"],
    ],
)
def test_where_only_an_entry_will_do_both_are_named_and_nothing_is_done(twins, contents, words) -> None:
    before = contents()
    ran = twins(*(word.format(twins.name) for word in words))
    assert ran.code == 2 and contents() == before
    assert f"{twins.name!r} is a path, and also how the id of {twins.id[:12]} (effect) begins" in ran.err
    assert twins.id[:8] in ran.err.splitlines()[1]
    assert shlex.split(ran.err.partition("takeback revert ")[2]) == [f"./{twins.name}"]


def test_words_of_a_prompt_are_no_path_that_is_there(cli, ws, contents) -> None:
    scene = Scene(ws)
    scene.turn("rewrite README.md and more", README_md="new\n", other_txt="new\n")
    ws.close()
    ran = cli("undo", "README.md", "--yes")
    assert ran.code == 2 and "'README.md' is a path, and also in what an agent was asked" in ran.err
    assert contents()["other.txt"] == b"new\n"
    assert cli.ok("undo", "and more", "--yes").code == 0
    assert "other.txt" not in contents()


def test_diff_means_the_path_and_names_both_where_nobody_can_tell(twins) -> None:
    assert twins.ok("diff", "base", twins.name, "--stat").out.count("precious.txt") == 0
    (twins.project / "base").write_text("a file\n")
    ran = twins("diff", "base")
    assert ran.code == 2 and "'base' is a path, and also the checkpoint" in ran.err
    for word in shlex.split(ran.err.splitlines()[1])[2:]:
        if word.startswith("./"):
            assert "base" in twins.ok("diff", word, "--stat").out


def test_below_a_folder_a_path_is_meant_from_there(twins, contents) -> None:
    inner = twins.project / "inner"
    inner.mkdir()
    ran = twins("revert", twins.name, "--yes", cwd=inner)  # no inner/NAME: the effect
    assert ran.code == 0 and contents()["precious.txt"] == b"one\n" and contents()[twins.name] == b"second\n"
    (inner / twins.id[:7]).write_text("1\n")
    ran = twins("undo", twins.id[:7], cwd=inner)
    assert ran.code == 2 and "is a path" in ran.err


@pytest.fixture
def two_kept(cli):
    """One effect of claude's changed two files; a person changed both since."""
    for name in ("f.txt", "it's g.txt"):
        (cli.project / name).write_text("a\nb\nc\n")
    cli.ok("checkpoint", "base")
    for name in ("f.txt", "it's g.txt"):
        (cli.project / name).write_text("A\nb\nc\n")
    cli.ok("checkpoint", env={"TAKEBACK_ACTOR": "claude"})
    for name in ("f.txt", "it's g.txt"):
        (cli.project / name).write_text("A, mine\nb\nc\n")
    return cli


@pytest.mark.parametrize("where", [".", "src"])
@pytest.mark.parametrize("name", ["f.txt", "it's g.txt"])
def test_the_command_for_a_kept_path_takes_that_path_and_nothing_more(two_kept, contents, name, where) -> None:
    folder = two_kept.project / where
    ran = two_kept("revert", str(two_kept.project / name), "--yes", cwd=folder)
    assert ran.code == 3
    (kept,) = [line for line in ran.err.splitlines() if line.startswith(f"  kept {name}")]
    two_kept.ok(*shlex.split(kept.partition("take it too: takeback ")[2].partition(", or ")[0]), "--yes", cwd=folder)
    other = "it's g.txt" if name == "f.txt" else "f.txt"
    assert contents()[name] == b"a\nb\nc\n" and contents()[other] == b"A, mine\nb\nc\n"


def test_show_names_the_same_command(two_kept, contents) -> None:
    id = two_kept("undo", "--actor", "claude", "--yes", "--json").json["id"]
    shown = two_kept.ok("show", id).out
    (kept,) = [line for line in shown.splitlines() if "f.txt" in line and "kept" in line]
    two_kept.ok(*shlex.split(kept.partition("takeback ")[2]), "--yes")
    assert contents()["f.txt"] == b"a\nb\nc\n" and contents()["it's g.txt"] == b"A, mine\nb\nc\n"


def test_of_an_effect_whose_rest_is_gone_the_id_is_enough(drifted) -> None:
    kept = next(line for line in drifted("rollback", "--yes").err.splitlines() if line.startswith("  kept notes.md"))
    command = kept.partition("take it too: takeback ")[2].partition(",")[0].split()
    assert len(command) == 3 and command[0] == "revert" and command[2] == "--force"


def test_the_command_for_what_was_asked_about_keeps_the_scope_and_the_target(drifted, contents) -> None:
    drifted.ok("record", "command", "--did", "something", "--", "touch", "undone")
    ran = drifted("rollback", "base", "--only", "files", "--yes")
    (line,) = [line for line in ran.err.splitlines() if line.startswith("take people's work too: takeback ")]
    assert line.endswith("--all --only files")
    drifted.ok(*shlex.split(line.partition(": takeback ")[2]), "--yes")
    assert contents()["notes.md"] == b"a\nb\nc\nd\ne\n" and "undone" not in contents()


def test_names_that_cannot_be_shown_can_be_typed_in_bash() -> None:
    import subprocess

    from takeback.surfaces.wording.ways import typed

    for path in (b"plain", b"a b", b"it's", b"new\nline", b"\xff\xfe", "ü".encode(), b"a\\b\xff'c", b"-x", b"$HOME"):
        said = subprocess.run(["bash", "-c", f"printf %s {typed(path)}"], capture_output=True, check=True).stdout
        assert said == b"./" + path
        said = subprocess.run(["bash", "-c", f"printf %s {typed(path, 'src')}"], capture_output=True, check=True).stdout
        assert said == b"../" + path


@pytest.mark.parametrize(
    "words",
    [
        ["revert", "f.txt"],
        ["revert", "{effect}", "./f.txt"],
        ["restore", "base", "f.txt"],
        ["rollback", "base", "--only", "files"],
        ["rollback", "{effect}"],
        ["undo", "the first thing"],
        ["undo"],
        ["undo", "2"],
    ],
)
def test_after_a_redo_the_command_takes_back_just_that_once_more(cli, contents, words) -> None:
    for name in ("f.txt", "g.txt", "h.txt"):
        (cli.project / name).write_text("1\n")
    cli.ok("checkpoint", "base")
    with takeback.open(cli.project) as ws:
        scene = Scene(ws)
        scene.turn("the first thing", f_txt="2\n")
        scene.bash("both", f_txt="3\n", g_txt="2\n")
        scene.turn("the second thing", h_txt="2\n")
        effect = next(e.id for e in ws.history().effects if len(e.changes) == 2 and b"g.txt" in e.changes)
    cli.ok(*(word.format(effect=effect) for word in words), "--yes")
    then = contents()
    hint = cli.ok("redo", "--yes").err.partition("take this back: takeback ")[2].splitlines()[0]
    assert contents() != then
    cli.ok(*shlex.split(hint), "--yes")
    assert contents() == then, hint


def way_back(said: str) -> list[str]:
    """The command that a redo names to take it back."""
    return shlex.split(said.partition("take this back: takeback ")[2].splitlines()[0])


def test_after_a_redo_of_two_rollbacks_the_command_takes_back_both_and_nothing_more(cli, contents) -> None:
    cli.ok("checkpoint", "base")
    with takeback.open(cli.project) as ws:
        scene = Scene(ws)
        scene.turn("job one", a_txt="1\n")
        (cli.project / "mine.txt").write_text("mine\n")
        scene.turn("job two", b_txt="1\n")
    cli.ok("rollback", "base", "--yes")
    cli.ok("rollback", "base", "--all", "--yes")
    then = contents()
    hint = way_back(cli.ok("redo", "2", "--yes").err)
    assert {"a.txt", "b.txt", "mine.txt"} <= contents().keys()
    cli.ok(*hint, "--yes")
    assert contents() == then, hint


def test_after_a_redo_of_half_a_turn_the_command_takes_back_that_half(cli, contents) -> None:
    """An undo while the turn was at work, and another one after it."""
    with takeback.open(cli.project) as ws:
        scene = Scene(ws)
        scene.turn("long job", a_txt="1\n")
        cli.ok("undo", "--yes")
        scene.write("b.txt", "2\n")
        cli.ok("undo", "--yes")
    assert way_back(cli.ok("redo", "--yes").err) == ["undo"]
    then = contents()
    hint = way_back(cli.ok("redo", "--yes").err)
    assert {"a.txt", "b.txt"} <= contents().keys()
    cli.ok(*hint, "--yes")
    assert contents() == then, hint
    cli.ok("redo", "--yes")
    cli.ok("undo", "--yes")
    assert not {"a.txt", "b.txt"} & contents().keys()
    assert way_back(cli.ok("redo", "--yes").err) == ["undo"]


def test_after_a_redo_over_later_work_the_command_leaves_that_work(cli, contents) -> None:
    with takeback.open(cli.project) as ws:
        scene = Scene(ws)
        scene.turn("job one", a_txt="1\n")
        scene.turn("job two", b_txt="1\n")
        cli.ok("undo", "2", "--yes")
        scene.turn("job three", c_txt="1\n")
    then = contents()
    hint = way_back(cli.ok("redo", "--yes").err)
    cli.ok(*hint, "--yes")
    assert contents() == then and "c.txt" in then, hint


def test_where_no_command_takes_back_just_a_redo_none_is_named(cli) -> None:
    cli.ok("checkpoint", "base")
    with takeback.open(cli.project) as ws:
        scene = Scene(ws)
        for n in range(8):
            scene.turn(f"job {n}", **{f"f{n}_txt": "1\n"})
        cli.ok("rollback", "base", "--yes")
        scene.turn("another", g_txt="1\n")
    ran = cli.ok("redo", "--yes")
    assert "brought back 8 files" in ran.out and "take this back" not in ran.err


@pytest.fixture
def uncertain(cli):
    """A call of claude's was cut off; two files changed about then, nobody knows whether by it."""
    for name in ("f.txt", "g.txt"):
        (cli.project / name).write_text("1\n")
    cli.ok("checkpoint", "base")
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with takeback.open(cli.project) as ws:
        caller = Caller("claude", "s", "", process.pid, processes.started(process.pid))
        ws.begin_turn(caller, "build it")
        ws.begin_call(caller, Call("1", "Bash", "Bash: build"))
    for name in ("f.txt", "g.txt"):
        (cli.project / name).write_text("2\n")
    process.communicate(b"\n")
    return cli


def test_the_command_for_an_uncertain_path_takes_that_path_and_nothing_more(uncertain, contents) -> None:
    ran = uncertain("revert", "f.txt", "--yes")
    command = (ran.out + ran.err).partition("too: takeback ")[2].splitlines()[0]
    assert contents()["f.txt"] == b"2\n"
    uncertain.ok(*shlex.split(command), "--yes")
    assert contents()["f.txt"] == b"1\n" and contents()["g.txt"] == b"2\n"


def test_an_undo_that_took_uncertain_work_is_asked_for_again_without_more(uncertain, contents) -> None:
    uncertain.ok("checkpoint")
    (uncertain.project / "mine.txt").write_text("mine\n")
    uncertain.ok("checkpoint", "mine")
    uncertain.typing("undo", "--actor", "claude", answers=[("Apply?", "t\n")])
    assert contents()["f.txt"] == b"1\n" and "mine.txt" in contents()
    ran = uncertain.ok("redo", "--yes")
    assert "take this back: takeback undo" in ran.err and "--all" not in ran.err
