"""Custom commands: what a person types in an agent to undo, redo, roll back, look and mark.

Where the agent runs a command line by itself, the answer is in the prompt already; elsewhere the model is asked to run
it. Each file is ours alone.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import NamedTuple

from .targets import MARK, Ours, Whole, seal


class Command(NamedTuple):
    name: str
    about: str
    words: tuple[str, ...]  # of takeback, run one after another; what the person adds goes to the last
    hint: str = ""  # what may be added
    then: str = ""  # what is done only once the person has answered


COMMANDS = (
    Command("undo", "take back what the agent did in its last turn", ("undo --yes",), "[N]"),
    Command("redo", "bring back what the last take-back took", ("redo --yes",), "[N]"),
    Command(
        "rollback",
        "list the points to go back to, show the plan, and go to the one you then name",
        ("log kind:checkpoint -n 20", "rollback --dry-run"),
        "[CHECKPOINT]",
        "rollback ID --yes",
    ),
    Command("log", "what was done, by whom, newest first", ("log",), "[FILTER]"),
    Command("checkpoint", "mark this moment, to go back to", ("checkpoint",), "[LABEL]"),
)
_THEN = (
    "Tell the person in one or two sentences what takeback did. Files may have changed: read a file again before "
    "you edit it. Do not do again what was taken back unless you are asked to."
)
_PRINTED = f"This is what takeback printed. {_THEN}"
_ASK = (
    "It lists the points to go back to, newest first, each with its id, and the plan of what would change. Nothing was "
    "changed. Show the person the points and the plan, ask which point to go back to, and end your turn. Never choose "
    "one yourself. Only when the person has answered with an id, run exactly `{then}` with that id in place of ID, "
    "once; to show the plan of another point, run `{plan} ID`. " + _THEN
)


def markdown(folder: Path, ours: Ours, agent: str) -> list[Whole]:
    """For Claude Code and Qwen Code, which run what stands behind an exclamation mark."""
    return [_whole(folder / f"{c.name}.md", markdown_text(c, _program(ours), agent)) for c in COMMANDS]


def markdown_text(command: Command, program: str, agent: str, mark: str = f"# {MARK}") -> str:
    shell = {"claude": "!`{}`", "qwen": "!{{{}}}"}[agent]
    lines = _lines(program, command)
    head = ["---", *([mark] if mark else []), f"description: {command.about}"]
    if agent == "claude":
        allowed = ", ".join(f"Bash({line}:*)" for line in lines)
        head += [
            f"argument-hint: {json.dumps(command.hint)}",
            f"allowed-tools: {json.dumps(allowed)}",
            "disable-model-invocation: true",
        ]
        lines[-1] += " $ARGUMENTS"
    return "\n".join([*head, "---", "", *map(shell.format, lines), "", _told(program, command), ""])


def toml(folder: Path, ours: Ours) -> list[Whole]:
    """For Gemini CLI."""
    made = []
    for command in COMMANDS:
        shown = "\n".join(f"!{{{line}}}" for line in _lines(_program(ours), command))
        prompt = json.dumps(f"{shown}\n\n{_told(_program(ours), command)}", ensure_ascii=False)
        text = f"# {MARK}\ndescription = {json.dumps(command.about)}\nprompt = {prompt}\n"
        made.append(_whole(folder / f"{command.name}.toml", text))
    return made


def opencode(folder: Path, ours: Ours) -> list[Whole]:
    """For opencode."""
    made = []
    for command in COMMANDS:
        head = ["---", f"# {MARK}", f"description: {command.about}", "---", ""]
        *others, last = _lines(_program(ours), command)
        shown = [f"!`{line} 2>&1`" for line in (*others, f"{last} $ARGUMENTS")]
        text = "\n".join([*head, *shown, "", _told(_program(ours), command), ""])
        made.append(_whole(folder / f"{command.name}.md", text))
    return made


def plain(folder: Path, ours: Ours) -> list[Whole]:
    """For Cursor, whose commands are prompts and nothing else."""
    return [
        _whole(folder / f"takeback-{c.name}.md", f"<!-- {MARK} -->\n{_asking(ours, c)}\n\n{_after(ours, c)}\n")
        for c in COMMANDS
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
        text = "\n".join(
            [*head, "", _asking(ours, command) + " Add to the last of it: $ARGUMENTS", "", _after(ours, command), ""]
        )
        made.append(_whole(folder / f"takeback-{command.name}.md", text))
    return made


def _asking(ours: Ours, command: Command) -> str:
    lines = _lines(_program(ours), command)
    these = "this" if len(lines) == 1 else "these two, one after the other"
    return f"Run exactly {these} in the shell, once, and nothing else: {' and '.join(f'`{line}`' for line in lines)}"


def _after(ours: Ours, command: Command) -> str:
    return _told(_program(ours), command).removeprefix("This is what takeback printed. ")


def _told(program: str, command: Command) -> str:
    """What the model is to make of what was printed."""
    if not command.then:
        return _PRINTED
    asked = _ASK.format(then=f"{program} {command.then}", plan=f"{program} {command.words[-1]}")
    return f"This is what takeback printed. {asked}"


def _lines(program: str, command: Command) -> list[str]:
    return [f"{program} {words}" for words in command.words]


def _program(ours: Ours) -> str:
    return shlex.join(ours.program)


def _whole(path: Path, text: str) -> Whole:
    return Whole(path, seal(text))
