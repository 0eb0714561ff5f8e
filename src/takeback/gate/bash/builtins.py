"""What the shell does itself, and what a few programs print: as far as later commands depend on it."""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Callable
from typing import TYPE_CHECKING

from takeback.gate.code import taking
from takeback.gate.code.inputs import FILE, INTERPRETERS, Input
from takeback.gate.code.other_languages import language_of
from takeback.gate.paths_written import FOUND

from . import find_command
from .state import ASSIGNMENT, Command, State, program, resolved
from .words import APART, UNKNOWN, ansi, named
from .wrappers import SHELLS, WRAPPERS

if TYPE_CHECKING:
    from .walk import Shell

_TAKES_MANY = named("rm rmdir unlink shred chmod chown chgrp touch ls cat grep mv sed stat file wc")
_MOST_FOUND = 60  # files that find runs something on, of which each is looked at
_LONGEST = 100_000  # characters that are printed


def echo(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    args = words[1:]
    escapes = False
    end = "\n"
    while args and re.fullmatch(r"-[neE]+", args[0]):
        escapes = escapes or "e" in args[0]
        end = "" if "n" in args[0] else end
        args = args[1:]
    said = " ".join(args)
    return (ansi(said) if escapes else said) + end


def printf(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    args, variable = words[1:], ""
    if args[:1] == ["-v"]:
        variable, args = "".join(args[1:2]), args[2:]
    if args[:1] == ["--"]:
        args = args[1:]
    if not args:
        return ""
    form, given = ansi(args[0], nul="\n"), args[1:]  # a NUL parts words too
    said = ""
    while True:
        before = len(given)
        said += re.sub(
            r"%%|%[-+ #0]*\d*(?:\.\d+)?([a-zA-Z])",
            lambda f: "%" if f[0] == "%%" else (
                (ansi(given.pop(0)) if f[1] == "b" else given.pop(0)) if given else ""),
            form,
        )  # fmt: skip
        if not given or len(given) == before:
            break
        if len(said) > _LONGEST:
            said = UNKNOWN
            break
    if variable:
        shell.assign(variable, said, state)
        return ""
    return said


def cat(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    paths = [w for w in words[1:] if not w.startswith("-") or w == "-"]
    if not paths or paths == ["-"] or words[0].endswith("tee"):
        if words[0].endswith("tee"):
            added = any(word in ("-a", "--append") for word in words)
            for path in paths:
                there = resolved(path, state.cwd)
                before = shell.content(there, state, missing="") if added else ""
                state.written.put(there, before + (stdin or UNKNOWN))
        return stdin if stdin is not None else UNKNOWN
    fed = stdin if stdin is not None else UNKNOWN
    return "".join(fed if path == "-" else shell.content(resolved(path, state.cwd), state) for path in paths)


def decode(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    if not any(w in ("--decode",) or re.fullmatch(r"-[a-z]*[dD][a-z]*", w) for w in words[1:]) or not stdin:
        return UNKNOWN
    try:
        return a2b_base64(stdin.encode()).decode("utf-8", "replace")
    except ValueError:
        return UNKNOWN


def cd(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    args = [w for w in words[1:] if not w.startswith("-") or w == "-"]
    before = state.cwd
    if words[0] == "popd":
        state.cwd = UNKNOWN
    elif args == ["-"]:
        state.cwd = state.variables.get("OLDPWD", UNKNOWN)
    else:
        state.astray = state.astray and bool(args) and not args[0].startswith("/")
        is_searched = bool(state.variables.get("CDPATH")) and bool(args) and not args[0].startswith(("/", "."))
        state.cwd = UNKNOWN if is_searched else resolved(args[0] if args else shell.home, state.cwd)
    state.variables["PWD"], state.variables["OLDPWD"] = state.cwd, before
    return ""


def mapfile(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    for at, word in enumerate(words):
        if word.startswith("-C"):  # run for every so many lines
            shell.run(word[2:] or "".join(words[at + 1 : at + 2]), state.copy())
    return ""


def evaluate(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    return shell.run(" ".join(w for w in words[1:] if w != "--"), state, stdin)


def source(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    if len(words) < 2:
        return UNKNOWN
    return taking.file(shell, Input(FILE, "sh", words[1], tuple(words[2:])), state, stdin, sourced=True)


def trap(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    args = [w for w in words[1:] if w != "--"]
    if args and not args[0].startswith("-"):
        shell.run(args[0], state.copy())
    return ""


def alias(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if equals:
            state.aliases[name] = value
    return ""


def hash_(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    if words[1:2] == ["-p"] and len(words) > 3:  # a name is given another program
        state.aliases[words[3]] = words[2]
    return ""


def fd(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    """What it runs on each file that it finds."""
    for at, word in enumerate(words):
        if word in ("-x", "--exec", "-X", "--exec-batch"):
            inner = words[at + 1 :]
            marks = ("{}", "{/}", "{//}", "{.}", "{/.}")
            if inner and not any(mark in each for mark in marks for each in inner):
                inner = [*inner, "{}"]
            made = [_anything(".") if each in marks else each.replace("{}", _anything(".")) for each in inner]
            shell.simple(made, {}, None, state.copy())
            break
    return f"./{UNKNOWN}\n"


def read(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    names = [w for w in words[1:] if re.fullmatch(r"[A-Za-z_]\w*", w)]
    line = stdin.partition("\n")[0].split(None, max(len(names) - 1, 0)) if stdin is not None else [UNKNOWN]
    if "-a" in words and names:
        shell.assign(names[-1], APART.join((stdin or UNKNOWN).split()), state)
        return ""
    for at, name in enumerate(names):
        shell.assign(name, line[at] if at < len(line) else (UNKNOWN if stdin is None else ""), state)
    return ""


def positionals(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    if "--" in words:
        shell.positional(words[words.index("--") + 1 :], state)
    return ""


def export(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    for word in words[1:]:
        if (found := ASSIGNMENT.fullmatch(word)) is not None:
            shell.assign(found[1], found[3], state, exports=True)
    shell.commands.append(Command(("export",), state.cwd, dict(state.exported)))
    shell.surrounded(state.exported, state)
    return ""


def which(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    return "".join(f"{w}\n" for w in words[1:] if not w.startswith("-"))


def dirname(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    return "".join(f"{word.rstrip('/').rpartition('/')[0] or '.'}\n" for word in words[1:] if not word.startswith("-"))


def basename(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    plain = [word for word in words[1:] if not word.startswith("-")]
    return f"{plain[0].rstrip('/').rpartition('/')[2].removesuffix(''.join(plain[1:2]))}\n" if plain else ""


def realpath(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    return "".join(f"{resolved(word, state.cwd)}\n" for word in words[1:] if not word.startswith("-"))


def mktemp(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    return f"/tmp/{UNKNOWN}\n"


def pwd(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    return state.cwd + "\n"


def quiet(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    return ""


def find(shell: Shell, words: list[str], state: State, stdin: str | None) -> str:
    """What it runs on each path, and the paths that it prints: any below, and by name those that matter."""
    places, tests = find_command.parted(words)
    reached: dict[int, dict[str, bool]] = {}
    for place in places:
        for way in find_command.below(place, resolved(place, state.cwd), shell.matters):
            shell.deadline.check()
            for action, paths in find_command.reached(tests, way).items():
                reached.setdefault(action, {}).update({path.shown: path.is_folder for path in paths})
    printed = list(reached.get(-1, ()))
    for position, test in enumerate(tests):
        found = reached.get(position, {})
        if test in ("-exec", "-execdir", "-ok", "-okdir"):
            stop = next((at for at in range(position, len(tests)) if tests[at] in (";", "+")), len(tests))
            inner = tests[position + 1 : stop]
            every = [*map(_anything, places), *found]
            if inner and _runs_code(inner) and (there := _there(shell, places, tests, position, state)) is not None:
                every = [*there, *found]
            if inner and program(inner[0]) in _TAKES_MANY and len(every) * len(inner) < _LONGEST:
                many = [each for w in inner for each in (every if w == "{}" else [w])]
                shell.simple(many, {}, None, state.copy())
                continue
            for below in every:
                if sum(word.count("{}") for word in inner) * len(below) > _LONGEST:
                    shell.cannot_see(" ".join(inner))
                    break
                shell.simple([w.replace("{}", below) for w in inner], {}, None, state.copy())
        elif test == "-delete" and (files := [path for path, is_folder in found.items() if not is_folder]):
            shell.commands.append(Command((FOUND, *files), state.cwd, elsewhere=state.elsewhere))
        elif test.startswith("-print"):
            printed += found
    return "".join(f"{path}\n" for path in (*map(_anything, places), *printed))


def _runs_code(words: list[str]) -> bool:
    """Whether find's command may run what it is given as code."""
    name = program(words[0].replace("{}", "x"))
    return "{}" in words[0] or name in SHELLS or name in WRAPPERS or language_of(name) in INTERPRETERS


def _there(shell: Shell, places: list[str], tests: list[str], position: int, state: State) -> list[str] | None:
    """The files and folders of the project that an action may be done to; None where that cannot be said."""
    found: dict[str, None] = {}
    for place in places:
        folder = resolved(place, state.cwd)
        wrote = state.written.below(folder)
        below = shell.project.below(folder) if shell.project is not None and UNKNOWN not in folder else None
        if below is None or wrote is None:
            return None
        for way in find_command.below(place, folder, [*below, *((path, False) for path in wrote)]):
            shell.deadline.check()
            found |= {path.shown: None for path in find_command.reached(tests, way).get(position, ())}
    return list(found) if len(found) <= _MOST_FOUND else None


def _anything(place: str) -> str:
    return f"{place.rstrip('/')}/{UNKNOWN}"


BUILTINS: dict[str, Callable[[Shell, list[str], State, str | None], str]] = {
    "echo": echo,
    "printf": printf,
    "cat": cat,
    "tee": cat,
    "base64": decode,
    "cd": cd,
    "pushd": cd,
    "popd": cd,
    "chdir": cd,
    "eval": evaluate,
    "source": source,
    ".": source,
    "trap": trap,
    "alias": alias,
    "read": read,
    "mapfile": mapfile,
    "readarray": mapfile,
    "set": positionals,
    "export": export,
    "declare": export,
    "which": which,
    "dirname": dirname,
    "basename": basename,
    "realpath": realpath,
    "readlink": realpath,
    "mktemp": mktemp,
    "pwd": pwd,
    "true": quiet,
    "false": quiet,
    ":": quiet,
    "find": find,
    "gfind": find,
    "yes": quiet,
    "hash": hash_,
    "fd": fd,
    "fdfind": fd,
}
