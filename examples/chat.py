"""A chat in twenty lines whose /undo takes back what was said and what was done: messages, files, effects outside.

    python examples/chat.py FOLDER          a line is a message; /undo, /redo; an empty line ends it

The agent is a stand-in that writes what it is told into notes.txt; yours calls a model and its tools there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import takeback


def agent(messages: list[Any], project: Path) -> str:
    notes = project / "notes.txt"
    notes.write_text((notes.read_text() if notes.exists() else "") + messages[-1]["content"] + "\n")
    return f"written down; {len(messages)} messages so far"


def main(folder: str) -> None:
    project = Path(folder)
    with takeback.open(project, create=True) as workspace:
        chat = takeback.Conversation(workspace)
        for line in map(str.strip, sys.stdin):
            if not line:
                break
            if line in ("/undo", "/redo"):
                print((chat.undo() if line == "/undo" else chat.redo()).message)
                continue
            with chat.turn(line):
                said = agent(chat.messages, project)
                chat.append({"role": "assistant", "content": said})
            print(said)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: python examples/chat.py FOLDER, one that is there")
    main(sys.argv[1])
