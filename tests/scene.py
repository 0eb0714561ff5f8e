"""A project with a past, made by the real calls: turns of agents, a person's own edits, acts outside the files."""

from __future__ import annotations

from pathlib import Path

from takeback.journal.brackets import Call, Caller
from takeback.workspace import Workspace

CLAUDE = Caller("claude", "s1")
CODEX = Caller("codex", "s2")


class Scene:
    """Plays agents and a person in a workspace."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        self.root: Path = ws.root
        self._calls = 0

    def turn(self, prompt: str, caller: Caller = CLAUDE, **files: str | None) -> None:
        """An agent is asked, and writes these files, each in a call of its own; None deletes one. a__b is a/b, a_b a.b."""
        self.ws.begin_turn(caller, prompt)
        for name, content in files.items():
            self.write(name.replace("__", "/").replace("_", "."), content, caller)

    def write(self, path: str, content: str | None, caller: Caller = CLAUDE) -> None:
        self._calls += 1
        verb = "Write" if content is not None else "Delete"
        call = Call(str(self._calls), verb, f"{verb} {path}", (path.encode(),), scans=False)
        self.ws.begin_call(caller, call)
        target = self.root / path
        if content is None:
            target.unlink()
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
        self.ws.end_call(caller, call)

    def bash(self, command: str, caller: Caller = CLAUDE, **files: str) -> None:
        """A shell call, in which these files change."""
        self._calls += 1
        call = Call(str(self._calls), "Bash", f"Bash: {command}")
        self.ws.begin_call(caller, call)
        for name, content in files.items():
            (self.root / name.replace("_", ".")).write_text(content)
        self.ws.end_call(caller, call)

    def unsure(self, path: str, content: str, caller: Caller = CLAUDE) -> None:
        """Something changes around a shell call of which nobody will know when it began."""
        self._calls += 1
        call = Call(str(self._calls), "Bash", f"Bash: make {path}")
        self.ws.begin_call(caller, call._replace(asked=True))
        (self.root / path).write_text(content)
        self.ws.end_call(caller, call)

    def at_once(self, first: Caller, second: Caller, **files: str) -> None:
        """Files change while shell calls of two agents are under way."""
        self._calls += 1
        calls = [(caller, Call(str(self._calls), "Bash", f"Bash: {caller.agent}")) for caller in (first, second)]
        for caller, call in calls:
            self.ws.begin_call(caller, call)
        for name, content in files.items():
            (self.root / name.replace("_", ".")).write_text(content)
        for caller, call in calls:
            self.ws.end_call(caller, call)

    def by_hand(self, label: str = "", **files: str) -> None:
        """A person edits, and takes a checkpoint."""
        for name, content in files.items():
            (self.root / name.replace("_", ".")).write_text(content)
        self.ws.checkpoint(label)


def fifty_turns(ws: Workspace, bad: int = 23) -> Scene:
    """Fifty turns of an agent, one of which dropped the licence check and deleted the tests."""
    scene = Scene(ws)
    (scene.root / "licence.py").write_text("def check(key):\n    return key in KEYS\n")
    (scene.root / "test_licence.py").write_text("def test_check():\n    assert not check('x')\n")
    ws.checkpoint("release 1.4")
    for number in range(50):
        if number == bad:
            files = {"licence_py": "def check(key):\n    return True\n", "test_licence_py": None}
            ws.begin_turn(CLAUDE, "make the failing licence test pass")
            scene.write("licence.py", files["licence_py"])
            scene.write("test_licence.py", files["test_licence_py"])
        else:
            scene.turn(f"add page {number} to the manual", **{f"docs__page{number}_md": f"# Page {number}\n\nText.\n"})
    return scene
