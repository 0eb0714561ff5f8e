"""Custom commands: what a person types in an agent to undo, redo, roll back, look and mark.

Where the agent runs a command line by itself, the answer is in the prompt already; elsewhere the model is asked to run
it. Each file is ours alone.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from ...typed import NamedTuple
from .targets import MARK, Ours, Whole, seal


class Command(NamedTuple):
    name: str
    about: str
    words: str  # of takeback
    hint: str = ""  # what may be added


COMMANDS = (
    Command("undo", "take back what the agent did in its last turn", "undo --yes", "[N]"),
    Command("redo", "bring back what the last take-back took", "redo --yes", "[N]"),
    Command("rollback", "go back to a checkpoint", "rollback --yes", "[CHECKPOINT]"),
    Command("log", "what was done, by whom, newest first", "log", "[FILTER]"),
    Command("checkpoint", "mark this moment, to go back to", "checkpoint", "[LABEL]"),
)
_THEN = (
    "Tell the person in one or two sentences what takeback did. Files may have changed: read a file again before "
    "you edit it. Do not do again what was taken back unless you are asked to."
)
_PRINTED = f"This is what takeback printed. {_THEN}"


def markdown(folder: Path, ours: Ours, agent: str) -> list[Whole]:
    """For Claude Code and Qwen Code, which run what stands behind an exclamation mark."""
    return [_whole(folder / f"{c.name}.md", markdown_text(c, _line(ours, c), agent)) for c in COMMANDS]


def markdown_text(command: Command, line: str, agent: str, mark: str = f"# {MARK}") -> str:
    shell = {"claude": "!`{} $ARGUMENTS`", "qwen": "!{{{}}}"}[agent]
    head = ["---", *([mark] if mark else []), f"description: {command.about}"]
    if agent == "claude":
        head += [
            f"argument-hint: {json.dumps(command.hint)}",
            f"allowed-tools: {json.dumps(f'Bash({line}:*)')}",
            "disable-model-invocation: true",
        ]
    return "\n".join([*head, "---", "", shell.format(line), "", _PRINTED, ""])


def toml(folder: Path, ours: Ours) -> list[Whole]:
    """For Gemini CLI."""
    made = []
    for command in COMMANDS:
        prompt = json.dumps(f"!{{{_line(ours, command)}}}\n\n{_PRINTED}", ensure_ascii=False)
        text = f"# {MARK}\ndescription = {json.dumps(command.about)}\nprompt = {prompt}\n"
        made.append(_whole(folder / f"{command.name}.toml", text))
    return made


def opencode(folder: Path, ours: Ours) -> list[Whole]:
    """For opencode."""
    made = []
    for command in COMMANDS:
        head = ["---", f"# {MARK}", f"description: {command.about}", "---", ""]
        text = "\n".join([*head, f"!`{_line(ours, command)} $ARGUMENTS 2>&1`", "", _PRINTED, ""])
        made.append(_whole(folder / f"{command.name}.md", text))
    return made


def plain(folder: Path, ours: Ours) -> list[Whole]:
    """For Cursor, whose commands are prompts and nothing else."""
    return [
        _whole(folder / f"takeback-{c.name}.md", f"<!-- {MARK} -->\n{_asking(ours, c)}\n\n{_THEN}\n") for c in COMMANDS
    ]


def prompts(folder: Path, ours: Ours) -> list[Whole]:
    """For Codex, whose prompts live in the user's folder alone."""
    made = []
    for command in COMMANDS:
        head = [
            "---",
            f"# {MARK}",
            f"description: {command.about}",
            f"argument-hint: {json.dumps(command.hint)}",
            "---",
        ]
        text = "\n".join([*head, "", _asking(ours, command) + " Add: $ARGUMENTS", "", _THEN, ""])
        made.append(_whole(folder / f"takeback-{command.name}.md", text))
    return made


def _asking(ours: Ours, command: Command) -> str:
    return f"Run exactly this in the shell, once, and nothing else: `{_line(ours, command)}`"


def _line(ours: Ours, command: Command) -> str:
    return f"{shlex.join(ours.program)} {command.words}"


def _whole(path: Path, text: str) -> Whole:
    return Whole(path, seal(text))
