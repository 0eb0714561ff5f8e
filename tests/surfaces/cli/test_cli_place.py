"""Below an agent the configuration is the one that was the person's when the folder was protected."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import takeback
from takeback.config import settings
from takeback.store import layout
from takeback.surfaces.hook import settings_of
from takeback.system import agent_sessions, processes

LOOSE = '[policy.command]\ncompensating = "allow"\n[policy.calls]\nall = "allow"\n'
STRICT = '[policy.calls]\npush = "refuse"\n'


@pytest.fixture
def theirs(project: Path) -> Path:
    """A configuration that an agent wrote into the project."""
    folder = project / "xdg"
    (folder / "takeback").mkdir(parents=True)
    (folder / "takeback/config.toml").write_text(LOOSE)
    return folder


@pytest.fixture
def recorded(cli, project: Path) -> Path:
    """What its inverse makes, once it runs: something outside the files that a person has to approve."""
    made = project.parent / "ran"
    cli.ok("record", "command", "--did", "made a bucket", "--", "touch", str(made))
    return made


def session(project: Path) -> None:
    """This process is an agent's, as its hook has journaled it."""
    with takeback.open(project) as ws:
        ws.note_session(os.getpid(), processes.started(os.getpid()), "claude")


def test_a_policy_that_the_agent_wrote_does_not_count_by_its_mark(cli, recorded, theirs):
    env = {"XDG_CONFIG_HOME": str(theirs), "CLAUDECODE": "1"}
    ran = cli("compensate", "--execute", "--yes", env=env)
    assert ran.code == 4, ran
    assert not recorded.exists()


def test_nor_by_its_session_in_the_journal(cli, project, recorded, theirs):
    session(project)
    ran = cli("compensate", "--execute", "--yes", env={"XDG_CONFIG_HOME": str(theirs)})
    assert ran.code == 4, ran
    assert not recorded.exists()


@pytest.mark.parametrize("variable", ["HOME", "XDG_CONFIG_HOME"])
def test_a_home_that_the_agent_chose_does_not_count(cli, project, recorded, theirs, variable):
    folder = project / "home/.config/takeback"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(LOOSE)
    env = {"HOME": str(project / "home"), "XDG_CONFIG_HOME": "", "CLAUDECODE": "1"}
    assert cli("compensate", "--execute", "--yes", env=env).code == 4
    assert not recorded.exists()


def test_a_persons_own_does_count(cli, recorded, theirs):
    cli.ok("compensate", "--execute", "--yes", env={"XDG_CONFIG_HOME": str(theirs)})
    assert recorded.exists()


def test_it_says_what_does_not_count_and_how_to_change_it(cli, recorded, theirs, own_home):
    ran = cli.ok("config", env={"XDG_CONFIG_HOME": str(theirs), "CLAUDECODE": "1"})
    assert f"{theirs}/takeback/config.toml does not count where an agent is at work" in ran.err
    assert str(own_home / "config/takeback/config.toml") in ran.err and "takeback init" in ran.err


def test_variables_that_protect_less_do_not_count_below_an_agent(cli, project):
    cli.ok("init")
    env = {"TAKEBACK_CHECKPOINTS_KEEP": "1", "TAKEBACK_CHECKPOINTS_EXCLUDE": "*.py", "TAKEBACK_GIT_ENABLED": "false"}
    mine = cli.ok("config", "--json", env=env).json
    assert mine["checkpoints.keep"]["value"] == 1 and mine["checkpoints.exclude"]["value"] == ["*.py"]
    told = cli.ok("config", "--json", env={**env, "CLAUDECODE": "1"}).json
    assert told["checkpoints.keep"]["value"] == 200 and told["checkpoints.exclude"]["value"] == []
    assert told["git.enabled"]["value"] is True
    assert [line.partition(" ")[0] for line in told["ignored"]] == list(env)


def test_nor_does_the_variable_that_turns_it_off(cli, project):
    cli.ok("init")
    env = {"TAKEBACK_CHECKPOINTS_ENABLED": "false"}
    assert "takeback is off" in cli("checkpoint", "mine", env=env).err
    ran = cli.ok("checkpoint", "theirs", env={**env, "CLAUDECODE": "1"})
    assert "theirs" in ran.out
    assert cli.ok("config", "--json", env={**env, "CLAUDECODE": "1"}).json["ignored"]


def test_variables_that_protect_more_count_everywhere(cli):
    cli.ok("init")
    env = {"TAKEBACK_CHECKPOINTS_KEEP": "500", "TAKEBACK_AUTOPILOT": "1", "CLAUDECODE": "1"}
    told = cli.ok("config", "--json", env=env).json
    assert told["checkpoints.keep"]["value"] == 500 and told["policy.autopilot"]["value"] is True
    assert told["ignored"] == []


def test_who_moves_the_configuration_says_so_by_init(cli, project, own_home, tmp_path):
    cli.ok("init")
    moved = tmp_path / "moved"
    (moved / "takeback").mkdir(parents=True)
    (moved / "takeback/config.toml").write_text(STRICT)
    env = {"XDG_CONFIG_HOME": str(moved)}
    told = cli.ok("config", env=env)
    assert f"agents in this folder go by {own_home}/config/takeback/config.toml" in told.err
    ran = cli.ok("init", env=env)
    assert f"agents here go by your configuration at {moved}/takeback/config.toml from now on" in ran.err
    assert "agents in this folder" not in cli.ok("config", env=env).err
    found = settings_of(project, {**os.environ, "XDG_CONFIG_HOME": str(own_home / "config")})
    assert found.policy.call("push").decision == "refuse"


def test_an_agent_does_not_move_it_by_init_or_protect(cli, project, own_home, theirs):
    cli.ok("init")
    env = {"XDG_CONFIG_HOME": str(theirs), "CLAUDECODE": "1"}
    cli.ok("init", env=env)
    cli.ok("protect", "claude", "--yes", env=env)
    meta = layout.read_meta(layout.folder_of(settings.home(os.environ), project))
    assert meta["config"] == str(own_home / "config/takeback/config.toml")


def test_nor_by_init_in_a_folder_that_it_moved(cli, project, own_home, theirs):
    (project / "a.txt").write_text("a\n")
    cli.ok("init")
    moved = project.with_name("moved")
    project.rename(moved)
    env = {"CLAUDECODE": "1", "XDG_CONFIG_HOME": str(moved / "xdg")}
    ran = cli.ok("init", env=env, cwd=moved)
    assert "its history came along" in ran.out and "agents here go by" not in ran.err
    meta = layout.read_meta(layout.folder_of(settings.home(os.environ), moved))
    assert meta["config"] == str(own_home / "config/takeback/config.toml")


def test_a_folder_that_an_agent_protects_goes_by_the_users_own_by_the_systems_account(bare, project, theirs):
    bare.ok("init", env={"XDG_CONFIG_HOME": str(theirs), "CLAUDECODE": "1"})
    meta = layout.read_meta(layout.folder_of(settings.home(os.environ), project))
    assert meta["config"] == str(settings.system_config())
    assert not meta["config"].startswith(str(project))


def test_hooks_go_by_it_whatever_their_environment_says(cli, project, own_home, theirs):
    cli.ok("init")
    config = own_home / "config/takeback/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(STRICT)
    event = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "1",
             "cwd": str(project), "tool_input": {"command": "git push"}}  # fmt: skip
    from takeback.surfaces.hook import Asked, answer

    environ = {**os.environ, "XDG_CONFIG_HOME": str(theirs)}
    said = answer(Asked("claude", "PreToolUse", json.dumps(event).encode(), str(project), environ))
    assert '"deny"' in said.out


def test_a_store_from_before_it_was_noted_goes_by_the_systems_account(cli, project, recorded, theirs):
    folder = layout.folder_of(settings.home(os.environ), project)
    meta = layout.read_meta(folder)
    del meta["config"]
    layout.write_meta(folder, meta)
    env = {"XDG_CONFIG_HOME": str(theirs), "CLAUDECODE": "1"}
    assert cli("compensate", "--execute", "--yes", env=env).code == 4
    assert not recorded.exists()
    cli.ok("init")
    assert "config" in layout.read_meta(folder)


# -- a session that was journaled in another project ---------------------------------------


@pytest.fixture
def elsewhere(cli, project: Path, recorded: Path) -> Path:
    """Another protected project, in which this process is an agent's session, as its hook has journaled it there."""
    other = project.with_name("elsewhere")
    other.mkdir()
    (other / "a.txt").write_text("a\n")
    cli.ok("init", cwd=other)
    session(other)
    return other


def test_a_session_of_another_project_counts_for_its_configuration(cli, elsewhere, recorded, theirs):
    ran = cli("compensate", "--execute", "--yes", env={"XDG_CONFIG_HOME": str(theirs)})
    assert ran.code == 4, ran
    assert not recorded.exists()


@pytest.mark.parametrize(
    "words",
    [["unprotect"], ["forget"], ["prune", "--all"], ["repair"], ["label", "1", "mine"]],
    ids=lambda words: words[0],
)
def test_and_for_what_only_a_person_may_do(cli, project, elsewhere, words):
    ran = cli(*words, "--yes", cwd=elsewhere)
    assert ran.code == 4, ran
    ran = cli(*words, "--yes")
    assert ran.code == 4, ran
    assert f"process {os.getpid()} is its session" in ran.err
    assert layout.is_workspace(settings.home(os.environ), project)


def test_in_a_folder_that_nobody_protected_the_configuration_is_that_of_the_session(cli, elsewhere, theirs, own_home):
    free = elsewhere.with_name("free")
    free.mkdir()
    cli.ok("init", cwd=free, env={"XDG_CONFIG_HOME": str(theirs)})
    meta = layout.read_meta(layout.folder_of(settings.home(os.environ), free))
    assert meta["config"] == str(own_home / "config/takeback/config.toml")


def test_what_a_session_of_another_project_takes_back_is_asked_for_by_it(cli, project, elsewhere):
    (project / "b.txt").write_text("b\n")
    cli.ok("checkpoint", "b")
    cli.ok("rollback", "start", "--only", "files", "--yes")
    assert "claude" in cli.ok("log", "-1").out


def test_a_session_that_is_over_counts_no_more(cli, project):
    cli.ok("init")
    home = settings.home(os.environ)
    agent_sessions.note(home, project, processes.Process(os.getpid(), 1), "claude")
    cli.ok("label", "1", "mine")
    agent_sessions.note(home, project, processes.Process(os.getpid(), processes.started(os.getpid())), "claude")
    assert [each["started"] for each in agent_sessions.known(home)] == [processes.started(os.getpid())]
    assert cli("label", "1", "theirs").code == 4


# -- a root inside a root ----------------------------------------------------------------------


@pytest.mark.parametrize("how", ["session", "mark"])
def test_an_agent_makes_no_root_inside_a_protected_one(cli, project, how):
    (project / "src").mkdir(exist_ok=True)
    (project / "src/x").write_text("x\n")
    cli.ok("init")
    if how == "session":
        session(project)
    ran = cli("-C", "src", "init", "--force", env={"CLAUDECODE": "1"} if how == "mark" else {})
    assert ran.code == 4, ran
    assert "protecting a folder inside a protected one by itself is for a person" in ran.err
    assert not layout.is_workspace(settings.home(os.environ), project / "src")


def test_nor_one_from_the_library(cli, project, monkeypatch):
    (project / "src").mkdir(exist_ok=True)
    cli.ok("init")
    takeback.open(project / "src", create=True).close()
    (project / "lib").mkdir()
    monkeypatch.setenv("CLAUDECODE", "1")
    for create in (True, "state"):
        with pytest.raises(takeback.ApprovalNeeded, match="lies inside"):
            takeback.open(project / "lib", create=create)


def test_a_person_makes_one_and_an_agent_may_protect_a_folder_of_its_own(cli, project):
    (project / "src").mkdir(exist_ok=True)
    cli.ok("init")
    cli.ok("-C", "src", "init", "--force")
    free = project.with_name("free")
    free.mkdir()
    cli.ok("init", cwd=free, env={"CLAUDECODE": "1"})
