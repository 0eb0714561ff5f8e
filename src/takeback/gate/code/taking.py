"""What a program takes as its code, found and judged; where it cannot be read before it runs, that is told.

Three answers, and never a fourth:
    it was read        what it does is judged like the command line
    not decided        which code it will be, only the running shell can say: `Shell.cannot_see`, and a person is asked
    not read           it is named, but lies outside the project, is too large or no text: `Shell.not_read` tells of it
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from takeback.gate.bash.state import State, resolved
from takeback.gate.bash.words import UNKNOWN, named
from takeback.gate.bash.wrappers import SHELLS

from . import inputs, other_languages
from .inputs import FILE, FOLDER, LINE, MODULE, STDIN, TEXT, Input
from .project import fits

if TYPE_CHECKING:
    from takeback.gate.bash.walk import Shell

_PATTERN = re.compile(r"[*?\[]")
_SHEBANG = re.compile(r"#!\s*(?:\S*/env\s+(?:-\S+\s+)*)?(?:\S*/)?([\w.+-]+)")
_ENDINGS = {"py": "python", "js": "node", "mjs": "node", "cjs": "node", "ts": "node", "rb": "ruby", "pl": "perl"}
_MOST = 60  # files that one pattern stands for
_JAVASCRIPT = named("node nodejs bun deno tsx ts-node")
_WITHOUT_ENDING = ("", ".js", ".mjs", ".cjs", ".ts", "/index.js", "/index.mjs", "/index.ts")


def take(shell: Shell, given: Input, state: State, stdin: str | None) -> str:
    """One input of a program; returns what it prints, as far as that is known."""
    if given.kind == TEXT:
        return text(shell, given, state, stdin)
    if given.kind == FILE:
        return file(shell, given, state, stdin)
    if given.kind == STDIN:
        return fed(shell, given, state, stdin)
    if given.kind == LINE:
        return "" if inputs.is_ssh(given.value) else shell.run(given.value, state.copy())
    if given.kind == MODULE:
        shell.simple(list(given.args), {}, stdin, state.copy())
        _module(shell, given, state)
    elif given.kind == FOLDER:
        folder(shell, given.value, state)
    else:
        shell.not_read(given.value)
    return UNKNOWN


def text(shell: Shell, given: Input, state: State, stdin: str | None) -> str:
    """Code that stands in the command."""
    if given.language in SHELLS:
        inner = state.copy()
        shell.positional(given.args[1:], inner)
        if given.args:
            inner.variables["0"] = given.args[0]
        return shell.run(given.value, inner, stdin)
    if not given.value.strip(f"{UNKNOWN} \n") and UNKNOWN in given.value:
        shell.cannot_see(f"what {given.language} is told to run")
    else:
        shell.judged(given.language, given.value, state)
        for name in other_languages.loaded_by(given.language, given.value):
            file(shell, Input(FILE, given.language, name), state, None)
    return UNKNOWN


def fed(shell: Shell, given: Input, state: State, stdin: str | None) -> str:
    """What a program is fed. Without a pipe or a redirection it is a terminal, and nothing."""
    if stdin is None:
        return ""
    if UNKNOWN in stdin and not stdin.strip(f"{UNKNOWN} \n"):
        shell.cannot_see(f"what is piped into {given.language}", piped=True)
        return UNKNOWN
    if given.language in SHELLS:
        inner = state.copy()
        shell.positional(given.args, inner)
        return shell.run(stdin, inner)
    shell.judged(given.language, stdin, state)
    if UNKNOWN in stdin:
        shell.not_read(f"a part of what is piped into {given.language}")
    return UNKNOWN


def file(shell: Shell, given: Input, state: State, stdin: str | None, sourced: bool = False) -> str:
    """A file that is run as code."""
    if state.elsewhere:
        shell.not_read(given.value)
        return UNKNOWN
    if resolved(given.value, state.cwd) == "/dev/stdin":
        return fed(shell, given, state, stdin)
    said = ""
    for path in _meant(shell, given, state):
        said += _one(shell, given, path, state, stdin, sourced)
    return said


def executed(shell: Shell, words: Sequence[str], state: State, stdin: str | None) -> str:
    """A program that is called by its path: by what its first line says it is written in."""
    word = words[0]
    given = Input(FILE, "", word, tuple(words[1:]), said=False)
    return file(shell, given, state, stdin)


def folder(shell: Shell, word: str, state: State) -> None:
    """Every file of a folder is run."""
    path = resolved(word, state.cwd)
    found = shell.project.matching(f"{path}/*") if shell.project is not None and UNKNOWN not in path else None
    if found is None or len(found) > _MOST or state.written.below(path) is None:
        shell.cannot_see(f"every file of {word}")
        return
    for each in (*found, *(state.written.below(path) or ())):
        executed(shell, [each], state, None)


def _meant(shell: Shell, given: Input, state: State) -> list[str]:
    """The files that a word names, each from the root."""
    word, project = given.value, shell.project
    path = resolved(word, state.cwd)
    if state.astray and not word.startswith("/"):
        shell.not_read(f"{word}, wherever the shell is by then")
    if state.written.text(path) is not None:
        return [path]
    if path.startswith(("/dev/fd/", "/proc/self/fd/")):
        shell.cannot_see(word, piped=True)
        return []
    if UNKNOWN in path:
        last = word.rstrip("/").rpartition("/")[2]
        if UNKNOWN in last or not last:
            if given.said:
                shell.cannot_see(shell.running or word)
            return []
        shell.not_read(word)
        tail = word.rpartition(UNKNOWN)[2].partition("/")[2]
        likely = resolved(tail, project.root) if project is not None and tail else ""
        return [likely] if project is not None and project.has(likely) else []
    if not _PATTERN.search(path) or project is None or project.has(path):
        return [path]
    found = project.matching(path)
    above = _PATTERN.split(path, 1)[0].rpartition("/")[0]
    wrote = state.written.below(above)
    if found is None or wrote is None or len(found) > _MOST:
        shell.cannot_see(shell.running or word)
        return []
    return [*found, *(each for each in wrote if fits(path, each))]


def _one(shell: Shell, given: Input, path: str, state: State, stdin: str | None, sourced: bool) -> str:
    """One file: what this text put into it, or else what lies there."""
    if (wrote := state.written.text(path)) is not None:
        if UNKNOWN in wrote and not wrote.strip(f"{UNKNOWN} \n"):
            shell.cannot_see(f"{given.value}, which this very command writes", piped=True)
            return UNKNOWN
        return _judge(shell, given, path, wrote, state, stdin, sourced)
    origin = state.written.origin(path)
    if origin == UNKNOWN:
        shell.cannot_see(f"{given.value}, which this very command brings here")
        return UNKNOWN
    project = shell.project
    if project is None:
        return UNKNOWN
    origin = _program(shell, given, origin)
    if not project.has(origin) and state.written.may_have_come(path):
        shell.cannot_see(f"{given.value}, which this very command brings here")
        return UNKNOWN
    if not project.has(origin):
        if given.said and origin != "/dev/null":
            shell.not_read(path)
        return UNKNOWN
    if state.written.is_edited(path):
        shell.not_read(f"{project.shown(path)} as it is by then")
    if (found := project.text(origin)) is None:
        shell.not_read(project.shown(origin))
        return UNKNOWN
    return shell.inside_file(origin, partial(_judge, shell, given, origin, found, state, stdin, sourced))


def _program(shell: Shell, given: Input, path: str) -> str:
    """The file that an interpreter takes where it is given a folder, or a name without its ending."""
    project = shell.project
    assert project is not None
    if given.language in ("python", "pypy") and project.has_folder(path):
        return f"{path}/__main__.py"
    if given.language == "ruby" and not project.has(path):
        return f"{path}.rb"
    if given.language not in _JAVASCRIPT:
        return path
    if project.has_folder(path):
        try:
            told = json.loads(project.text(f"{path}/package.json") or "{}").get("main")
        except (ValueError, AttributeError, RecursionError):
            told = None
        path = resolved(told, path) if isinstance(told, str) else path
    return next((path + end for end in _WITHOUT_ENDING if project.has(path + end)), path)


def _judge(
    shell: Shell, given: Input, path: str, said: str, state: State, stdin: str | None, sourced: bool
) -> str:  # fmt: skip
    language = given.language or _written_in(path, said)
    if language in SHELLS:
        inner = state if sourced else state.copy()
        before = {name: inner.variables.get(name) for name in ("BASH_SOURCE", "0")}
        if not sourced or given.args:
            shell.positional(given.args, inner)
        inner.variables["BASH_SOURCE"] = path
        if not sourced:
            inner.variables["0"] = path
        printed = shell.run(said, inner, stdin)
        inner.variables |= {name: value for name, value in before.items() if value is not None}
        return printed
    if language in inputs.INTERPRETERS or language in ("go", "sed"):
        shell.judged(language, said, state)
    else:
        shell.not_read(shell.project.shown(path) if shell.project is not None else path)
    return UNKNOWN


def _written_in(path: str, said: str) -> str:
    first = _SHEBANG.match(said)
    if first is not None:
        return other_languages.language_of(first[1])
    return _ENDINGS.get(path.rpartition(".")[2], "sh")


def _module(shell: Shell, given: Input, state: State) -> None:
    """`python -m NAME`, where that module lies in the project."""
    if UNKNOWN in given.value:
        shell.cannot_see(f"{given.language} -m {given.value}")
        return
    below = given.value.replace(".", "/")
    folders = ["", "src/", *(f"{each}/" for each in state.exported.get("PYTHONPATH", "").split(":") if each)]
    for path in (f"{folder}{below}{end}" for folder in folders for end in (".py", "/__main__.py")):
        there = resolved(path, state.cwd)
        if state.written.text(there) is not None or (
            shell.project is not None and shell.project.has(state.written.origin(there))
        ):
            file(shell, Input(FILE, given.language, path), state, None)
            return


def read(shell: Shell, state: State, path: str) -> str | None:
    """A file that says what is run, such as a makefile; None where there is none, or nobody can say what is in it."""
    wrote, project = state.written.text(path), shell.project
    if wrote is not None:
        if UNKNOWN in wrote:
            shell.cannot_see(f"{path}, which this very command writes", piped=True)
            return None
        return wrote
    origin = state.written.origin(path)
    if project is None or origin == UNKNOWN:
        return None
    said = project.text(origin)
    if said is not None and state.written.is_edited(path):
        shell.not_read(f"{project.shown(path)} as it is by then")
    return said
