"""What protect writes into files, and that unprotect gives them back: real files, every agent."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_setup_documents import documents

from sampling import examples
from takeback.agents import AGENTS
from takeback.agents.setup import changes, lines, load, records
from takeback.agents.setup.targets import Ours, Place
from takeback.config.agents_own_files import HOOKS, is_agents_own
from takeback.errors import TakebackError


def ours(python: str = "/usr/bin/python3") -> Ours:
    def hook(agent: str, event: str) -> str:
        return f"{python} -I -S /lib/takeback/surfaces/resident/start.py {agent} {event}".rstrip()

    return Ours(hook, (python, "-P", "-m", "takeback"))


class Machine:
    """A project, a user's folder and takeback's own, with one agent or all."""

    def __init__(self, folder: Path) -> None:
        self.root, self.home, self.store = folder / "project", folder / "home", folder / "store"
        for made in (self.root, self.home):
            made.mkdir(parents=True)

    def place(self, user: bool = False) -> Place:
        return Place(self.root, self.home, {}, user)

    def protect(
        self, *names: str, user: bool = False, mcp: bool = True, by: Ours | None = None
    ) -> list[changes.Change]:
        targets = [t for n in names or AGENTS for t in load(n).targets(self.place(user), by or ours())]
        planned = changes.protecting(targets, self.store, mcp)
        changes.apply(planned, self.store)
        return planned

    def unprotect(self, *names: str, user: bool = False) -> list[changes.Change]:
        targets = [t for n in names or AGENTS for t in load(n).targets(self.place(user), ours())]
        planned = changes.unprotecting(targets, self.store)
        changes.apply(planned, self.store)
        return planned

    def picture(self) -> dict[str, Any]:
        """Every path of the project and the home with its kind, mode and bytes."""
        found: dict[str, Any] = {}
        for top in (self.root, self.home):
            for path in sorted(top.rglob("*")):
                info = path.lstat()
                data = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
                found[str(path)] = (stat.filemode(info.st_mode), data)
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


FILES = HOOKS  # what status looks for is what protect writes
OF_USER = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "copilot": ".copilot/hooks/takeback.json",
    "qwen": ".qwen/settings.json",
    "opencode": ".config/opencode/plugins/takeback.js",
    "cursor": ".cursor/hooks.json",
}


def test_every_agent_can_be_set_up() -> None:
    assert list(AGENTS) == list(FILES)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("user", [False, True])
def test_it_writes_where_the_agent_reads_and_leaves_nothing_behind(machine: Machine, agent: str, user: bool) -> None:
    before = machine.picture()
    machine.protect(agent, user=user)
    path = machine.home / OF_USER[agent] if user else machine.root / FILES[agent]
    assert "takeback" in path.read_text()
    elsewhere = machine.root if user else machine.home
    assert not any(elsewhere.iterdir())
    machine.unprotect(agent, user=user)
    assert machine.picture() == before
    assert not any((machine.store / "setup").iterdir())


def test_what_it_writes_into_a_project_is_taken_back_only_by_name(machine: Machine) -> None:
    machine.protect()
    written = [path.relative_to(machine.root) for path in machine.root.rglob("*") if path.is_file()]
    assert len(written) > 20
    assert [str(path) for path in written if not is_agents_own(os.fsencode(path))] == []


@pytest.mark.parametrize("agent", AGENTS)
def test_every_event_has_a_line_that_names_it(machine: Machine, agent: str) -> None:
    machine.protect(agent)
    text = (machine.root / FILES[agent]).read_text()
    if agent == "opencode":
        assert '"/usr/bin/python3 -I -S /lib/takeback/surfaces/resident/start.py opencode"' in text
        return
    known = load_agent(agent).events
    for event in json.loads(text)["hooks"]:
        assert event in known, "the hook knows what it is asked"
    told = [lines.read(line) for line in changes.lines_in(load(agent).targets(machine.place(), ours())[0])]
    assert {line.event for line in told if line} == set(json.loads(text)["hooks"])


def load_agent(name: str) -> Any:
    from takeback.agents import load as load_it

    return load_it(name)


@pytest.mark.parametrize("variable,agent,path", [
    ("CLAUDE_CONFIG_DIR", "claude", "settings.json"),
    ("CODEX_HOME", "codex", "hooks.json"),
    ("COPILOT_HOME", "copilot", "hooks/takeback.json"),
    ("XDG_CONFIG_HOME", "opencode", "opencode/plugins/takeback.js"),
])  # fmt: skip
def test_folders_that_a_variable_moves(tmp_path: Path, variable: str, agent: str, path: str) -> None:
    place = Place(tmp_path, tmp_path / "home", {variable: str(tmp_path / "moved")}, user=True)
    assert load(agent).targets(place, ours())[0].path == tmp_path / "moved" / path


def test_twice_is_once(machine: Machine) -> None:
    machine.protect()
    before = machine.picture()
    assert not any(change.differs for change in machine.protect())
    assert not any(change.differs for change in machine.protect(mcp=False)), "what was added stays"
    assert machine.picture() == before


def test_the_server_is_added_when_asked_for(machine: Machine) -> None:
    machine.protect(mcp=False)
    assert not (machine.root / ".mcp.json").exists() and not (machine.root / ".codex/config.toml").exists()
    assert "mcpServers" not in (machine.root / ".gemini/settings.json").read_text()
    machine.protect()
    wanted = {"command": "/usr/bin/python3", "args": ["-P", "-m", "takeback", "mcp"]}
    for path in (".gemini/settings.json", ".qwen/settings.json", ".cursor/mcp.json"):
        assert json.loads((machine.root / path).read_text())["mcpServers"] == {"takeback": wanted}
    import tomllib

    assert tomllib.loads((machine.root / ".codex/config.toml").read_text())["mcp_servers"] == {"takeback": wanted}


def test_a_server_that_its_owner_named_so_is_left_alone(machine: Machine) -> None:
    path = machine.root / ".mcp.json"
    path.write_text('{"mcpServers": {"takeback": {"command": "mine"}}}')
    machine.protect("claude")
    assert json.loads(path.read_text())["mcpServers"] == {"takeback": {"command": "mine"}}
    machine.unprotect("claude")
    assert path.read_text() == '{"mcpServers": {"takeback": {"command": "mine"}}}'


# -- byte for byte -----------------------------------------------------------


@given(st.data())
@examples(20, 200)
def test_any_configuration_comes_back_byte_for_byte(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    folder = tmp_path_factory.mktemp("any")
    machine = Machine(folder)
    agent = data.draw(st.sampled_from([agent for agent, path in FILES.items() if path.endswith(".json")]))
    file = machine.root / FILES[agent]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data.draw(documents()).encode())
    before = machine.picture()
    machine.protect(agent, mcp=data.draw(st.booleans()))
    assert not any(change.differs for change in machine.protect(agent, mcp=False))
    machine.unprotect(agent)
    assert machine.picture() == before
    shutil.rmtree(folder)


@pytest.mark.parametrize("text", ["", "a = 1", "a = 1\n", "a = 1\r\n[b]\r\nc = 2\r\n", "# only a comment"])
def test_toml_comes_back_byte_for_byte(machine: Machine, text: str) -> None:
    path = machine.root / ".codex/config.toml"
    path.parent.mkdir()
    path.write_bytes(text.encode())
    machine.protect("codex")
    assert path.read_bytes().startswith(text.encode()) and path.read_bytes() != text.encode()
    machine.unprotect("codex")
    assert path.read_bytes() == text.encode()


def test_what_others_add_to_toml_stays(machine: Machine) -> None:
    path = machine.root / ".codex/config.toml"
    machine.protect("codex")
    path.write_text("model = 'x'\n" + path.read_text() + "[projects.y]\ntrust_level = 'trusted'\n")
    machine.unprotect("codex")
    assert path.read_text() == "model = 'x'\n[projects.y]\ntrust_level = 'trusted'\n"


def test_what_an_agent_writes_anew_loses_ours_and_nothing_else(machine: Machine) -> None:
    path = machine.root / ".claude/settings.local.json"
    machine.protect("claude")
    held = json.loads(path.read_text())
    held["permissions"] = {"allow": ["Bash(ls)"]}
    held["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "say done"}]})
    held["hooks"]["PreToolUse"][0]["hooks"].append({"type": "command", "command": "mine"})
    path.write_text(json.dumps(held, indent=4))
    assert not any(change.differs for change in machine.protect("claude", mcp=False) if change.path != path)
    machine.unprotect("claude")
    left = json.loads(path.read_text())
    assert left["permissions"] == {"allow": ["Bash(ls)"]}
    assert left["hooks"]["Stop"] == [{"hooks": [{"type": "command", "command": "say done"}]}]
    assert "takeback" not in path.read_text() and "mine" in path.read_text()


def test_an_owners_hook_after_ours_moves_nothing(machine: Machine) -> None:
    path = machine.root / ".codex/hooks.json"
    machine.protect("codex")
    held = json.loads(path.read_text())
    held["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "say done"}]})
    path.write_text(json.dumps(held))
    assert not any(change.differs for change in machine.protect("codex"))


# -- older lines -------------------------------------------------------------


@pytest.mark.parametrize("forget", [False, True])
def test_lines_of_another_interpreter_are_renewed_and_removed(machine: Machine, forget: bool) -> None:
    """Also where nobody remembers them: the project was moved, or takeback's folder is new."""
    mine = machine.root / ".claude/settings.local.json"
    mine.parent.mkdir()
    mine.write_text('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}, "a": 1.0}\n')
    before = machine.picture()
    machine.protect(by=ours("/old/python3.11"), mcp=not forget)
    if forget:
        shutil.rmtree(machine.store)
    machine.protect(mcp=False)
    for agent, path in FILES.items():
        text = (machine.root / path).read_text()
        assert "/old/" not in text and text.count("/usr/bin/python3") >= 1, agent
    if not forget:
        machine.unprotect()
        assert machine.picture() == before
        return
    shutil.rmtree(machine.store)
    machine.unprotect()
    assert mine.read_text() == before[str(mine)][1].decode()
    assert not any("takeback" in p.read_text() for p in machine.root.rglob("*") if p.is_file())


@pytest.mark.parametrize(
    "line",
    [
        "/x/bin/python3 -I -S '/a b/takeback/surfaces/resident/start.py' claude PreToolUse",
        "[ ! -x /x/python3 ] || [ ! -f /a/takeback/surfaces/resident/start.py ] || exec /x/python3 -I -S "
        "/a/takeback/surfaces/resident/start.py claude PreToolUse",
        "/usr/bin/python -m takeback hook claude Stop",
        "takeback hook opencode",
        "/opt/takeback/bin/takeback hook codex PreToolUse",
    ],
)
def test_what_is_ours(line: str) -> None:
    assert lines.is_ours(line)


@pytest.mark.parametrize(
    "line",
    ["", "takeback checkpoint claude", "echo takeback hook", "takeback hook", "takeback hook claude Stop; mine", "x 'takeback hook claude",
     "mytakeback hook claude", "python start.py claude", None, 3],
)  # fmt: skip
def test_what_is_not(line: Any) -> None:
    assert not lines.is_ours(line)


@pytest.mark.parametrize("blank", [b"", b"\n", b"  \r\n\t", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "qwen", "cursor"])
def test_an_empty_file_counts_as_an_empty_object(machine: Machine, agent: str, blank: bytes) -> None:
    path = machine.root / FILES[agent]
    path.parent.mkdir()
    path.write_bytes(blank)
    before = machine.picture()
    machine.protect(agent)
    assert json.loads(path.read_bytes().decode("utf-8-sig"))["hooks"]
    after = machine.picture()
    machine.protect(agent)
    assert machine.picture() == after, "twice is once"
    machine.unprotect(agent)
    assert machine.picture() == before


@pytest.mark.parametrize("text,why", [
    ('model = "x"\n\n[mcp_servers.takeback]\ncommand = "takeback"\nargs = ["mcp"]\n', "already there"),
    ('mcp_servers = { takeback = { command = "takeback" } }\n', "already there"),
    ('mcp_servers = { other = { command = "x" } }\n', "in one line"),
])  # fmt: skip
def test_a_sound_configuration_of_codex_with_servers_in_it_is_left_alone(machine: Machine, text: str, why: str) -> None:
    path = machine.root / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text(text)
    before = machine.picture()
    for _ in range(2):
        told = {change.path: change.note for change in machine.protect("codex")}
        assert why in told[path] and path.read_text() == text
    assert (machine.root / ".codex/hooks.json").exists()
    machine.unprotect("codex")
    assert machine.picture() == before


def test_codex_has_other_servers(machine: Machine) -> None:
    path = machine.root / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text('[mcp_servers.other]\ncommand = "x"')
    (change,) = [change for change in machine.protect("codex") if change.path == path]
    assert not change.note and "[mcp_servers.takeback]" in path.read_text()


@pytest.mark.parametrize("agent,path,key", [
    ("claude", ".mcp.json", "mcpServers"), ("gemini", ".gemini/settings.json", "mcpServers"),
    ("copilot", ".github/mcp.json", "mcpServers"), ("qwen", ".qwen/settings.json", "mcpServers"),
    ("opencode", "opencode.json", "mcp"), ("cursor", ".cursor/mcp.json", "mcpServers"),
])  # fmt: skip
def test_a_server_of_that_name_that_is_not_ours_stays(machine: Machine, agent: str, path: str, key: str) -> None:
    file = machine.root / path
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({key: {"takeback": {"command": "mine"}}}))
    before = machine.picture()
    for _ in range(2):
        told = {change.path: change.note for change in machine.protect(agent)}
        assert told[file] == f"{key}.takeback is already there, and stays as it is"
        assert json.loads(file.read_text())[key] == {"takeback": {"command": "mine"}}
    machine.unprotect(agent)
    assert machine.picture() == before


# -- refused, by name, with nothing changed ----------------------------------


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '"x"', '{"hooks": []}', '{"hooks": "x"}', '{"hooks": {"BeforeTool": {}}}', '{"hooks": null}', "{'a': 1}", "\xff"],
)  # fmt: skip
def test_what_cannot_be_changed_safely(machine: Machine, text: str) -> None:
    path = machine.root / ".gemini/settings.json"
    path.parent.mkdir()
    path.write_bytes(text.encode("latin-1"))
    before = machine.picture()
    with pytest.raises(TakebackError) as raised:
        machine.protect()
    assert str(path) in raised.value.message
    assert machine.picture() == before


def test_a_read_only_file(machine: Machine) -> None:
    path = machine.root / ".qwen/settings.json"
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0o444)
    before = machine.picture()
    with pytest.raises(TakebackError, match="read-only") as raised:
        machine.protect()
    assert str(path) in raised.value.message and machine.picture() == before
    machine.unprotect()  # nothing of ours is in it


def test_a_file_that_is_not_ours(machine: Machine) -> None:
    path = machine.root / ".opencode/plugins/takeback.js"
    path.parent.mkdir(parents=True)
    path.write_text("export const mine = 1\n")
    before = machine.picture()
    with pytest.raises(TakebackError, match="not takeback's"):
        machine.protect()
    machine.unprotect()
    assert machine.picture() == before


def test_a_link_that_leads_nowhere(machine: Machine) -> None:
    (machine.root / ".codex").mkdir()
    (machine.root / ".codex/hooks.json").symlink_to("gone")
    with pytest.raises(TakebackError, match="leads nowhere"):
        machine.protect("codex")


def test_all_or_nothing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full at the third file: the first two are as they were."""
    mine = machine.root / ".claude/settings.local.json"
    mine.parent.mkdir()
    mine.write_text('{"a": 1}')
    before = machine.picture()
    from takeback.agents.setup import writing

    real, calls = writing.write, []

    def full(found: Any, data: bytes) -> list[str]:
        calls.append(found)
        if len(calls) == 3:
            raise TakebackError("no space left", "free some")
        return real(found, data)

    monkeypatch.setattr(writing, "write", full)
    with pytest.raises(TakebackError, match="no space"):
        machine.protect("claude")
    assert len(calls) >= 3
    assert machine.picture() == before
    assert records.load(machine.store, str(mine)) is None


# -- links, modes, races -----------------------------------------------------


def test_a_link_stays_and_its_target_is_edited(machine: Machine) -> None:
    target = machine.home / "dotfiles/claude.json"
    target.parent.mkdir()
    target.write_text('{"a": 1}\n')
    target.chmod(0o640)
    (machine.root / ".claude").mkdir()
    link = machine.root / ".claude/settings.local.json"
    link.symlink_to(target)
    before = machine.picture()
    machine.protect("claude")
    assert link.is_symlink() and "takeback" in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert [p.name for p in target.parent.iterdir()] == ["claude.json"]
    machine.unprotect("claude")
    assert machine.picture() == before


def test_a_file_changed_while_the_person_was_asked_is_not_overwritten(machine: Machine) -> None:
    path = machine.root / ".codex/hooks.json"
    path.parent.mkdir()
    path.write_text("{}")
    planned = changes.protecting(load("codex").targets(machine.place(), ours()), machine.store, False)
    path.write_text('{"theirs": true}')
    with pytest.raises(TakebackError, match="changed meanwhile"):
        changes.apply(planned, machine.store)
    assert path.read_text() == '{"theirs": true}'


@pytest.mark.posix_only("a folder swapped for a link is found by descriptor")
def test_a_folder_swapped_for_a_link_is_not_followed(machine: Machine) -> None:
    planned = changes.protecting(load("codex").targets(machine.place(), ours()), machine.store, False)
    (machine.root / ".codex").symlink_to(machine.home)
    with pytest.raises(TakebackError):
        changes.apply(planned, machine.store)
    assert not any(machine.home.iterdir())


def test_an_edited_file_of_ours_stays_and_is_named(machine: Machine) -> None:
    machine.protect("claude")
    path = machine.root / ".claude/commands/takeback/undo.md"
    path.write_text(path.read_text() + "And say please.\n")
    (kept,) = [change for change in machine.unprotect("claude") if change.kept]
    assert kept.path == path and path.exists()
    assert [p.name for p in path.parent.iterdir()] == ["undo.md"]


def test_folders_with_something_of_others_stay(machine: Machine) -> None:
    machine.protect()
    (machine.root / ".cursor/rules.md").write_text("mine")
    machine.unprotect()
    assert [p.name for p in machine.root.rglob("*")] == [".cursor", "rules.md"]


def test_a_project_on_a_disk_of_its_own() -> None:
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or os.stat(memory).st_dev == os.stat("/").st_dev:
        pytest.skip("there is no second file system here")
    with tempfile.TemporaryDirectory(prefix="takeback-", dir=memory) as folder:
        machine = Machine(Path(folder))
        before = machine.picture()
        machine.protect("claude")
        assert machine.picture() != before
        machine.unprotect("claude")
        assert machine.picture() == before
