"""Where a program takes its code from: the words of a command → what in them is run.

One place decides it for shells, interpreters and the variables of their environment (code.toml). Nothing is read here;
taking.py reads what is named, and tells what could not be.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from takeback.gate.bash.words import named

TEXT, FILE, STDIN, MODULE, LINE, FOLDER, UNREAD = "text", "file", "stdin", "module", "line", "folder", "unread"


class Input(NamedTuple):
    """One thing that is run.

    TEXT    code that stands in the command          FILE    a file, as the command names it
    STDIN   what the program is fed                  MODULE  a module of Python, with its words in `args`
    LINE    a command line for a shell               FOLDER  every file of a folder
    UNREAD  something that is loaded and not read: it can only be named
    """

    kind: str
    language: str
    value: str = ""
    args: tuple[str, ...] = ()
    said: bool = True  # a file that is not there is told; False where the word may be something else


class Interpreter(NamedTuple):
    """How the words of an interpreter are read."""

    code: frozenset[str] = frozenset()  # options whose value is a program
    values: frozenset[str] = frozenset()  # options with another value
    files: frozenset[str] = frozenset()  # options whose value is a file that is run as well
    script: frozenset[str] = frozenset()  # options whose value is the file that is run
    quiet: frozenset[str] = frozenset()  # options and verbs with which it runs no code
    verbs: frozenset[str] = frozenset()  # words before the file
    letters: str = ""  # one-letter options to which the rest of the word belongs
    plain: str = FILE  # what the first word that is no option is
    fed: bool = True  # without any of these it runs what it is fed


def _i(code: str = "", values: str = "", files: str = "", script: str = "", quiet: str = "", verbs: str = "",
       letters: str = "", plain: str = FILE, fed: bool = True) -> Interpreter:  # fmt: skip
    return Interpreter(named(code), named(values), named(files), named(script), named(quiet), named(verbs), letters,
                       plain, fed)  # fmt: skip


_NODE = _i(
    "-e -p --eval --print",
    "-C --conditions --input-type --title --env-file --stack-trace-limit --max-old-space-size --inspect-port "
    "--test-name-pattern --test-reporter --tsconfig --project -P --cwd",
    "-r --require --import --loader --experimental-loader --preload",
    quiet="-v --version -h --help -c --check --v8-options",
    verbs="inspect watch",
)
_BUN = _NODE._replace(
    verbs=named("run test"),
    quiet=_NODE.quiet - named("-c --check")
    | named("install add remove update link unlink pm build init create upgrade publish outdated audit i a rm"),
)
_DENO = _i(
    "",
    "--allow-read --allow-net --config -c --import-map --reload --lock --location --seed --port --host --env-file",
    "--preload --import --require",
    quiet="-V --version -h --help fmt lint check compile install uninstall cache info doc init add remove upgrade "
    "types vendor completions publish outdated",
    verbs="run serve test bench",
)
_AWK = _i("-e --source", "-v --assign -F --field-separator", script="-f --file", quiet="--version -V", letters="vFf",
          plain=TEXT, fed=False)  # fmt: skip
_VIM = _i("-c --cmd +", "-u -U -i -T", script="-S", letters="uUiTS", plain="")

# By the name of a language: what runs its programs.
INTERPRETERS: dict[str, Interpreter] = {
    "python": _i("-c", "-W -X --check-hash-based-pycs", quiet="-V -VV --version -h --help --help-all", letters="WX"),
    "perl": _i("-e -E", "-I", letters="MmIiF0xCDV", quiet="-v --version"),
    "ruby": _i("-e", "-I -C -E -K -F -x", "-r --require", quiet="--version -h --help", letters="rIiFKETWx0C"),
    "node": _NODE,
    "bun": _BUN,
    "deno": _DENO,
    "tsx": _NODE,
    "ts-node": _NODE,
    "php": _i("-r -R -B -E", "-d -c -S -t -z", script="-f --file", quiet="-v -i -m -l --version --ini --rf",
              letters="dcStzf"),
    "lua": _i("-e", "-l", quiet="-v", letters="l"),
    "tclsh": _i("", "-encoding"),
    "expect": _i("-c", "", script="-f"),
    "osascript": _i("-e", "-l -s", letters="ls"),
    "Rscript": _i("-e", "", quiet="--version --help"),
    "awk": _AWK,
    "vim": _VIM,
    "emacs": _i("--eval", "", "-l --load", script="--script", plain="", fed=False),
    "pwsh": _i("-c -Command -command", "-ExecutionPolicy -ep", script="-File -f -file"),
}  # fmt: skip
INTERPRETERS |= {
    "pypy": INTERPRETERS["python"],
    "nodejs": _NODE,
    **dict.fromkeys(("gawk", "mawk", "nawk"), _AWK),
    **dict.fromkeys(("vi", "nvim", "ex"), _VIM),
    "powershell": INTERPRETERS["pwsh"],
}
_SHELL_VALUES = named("-o -O +o +O")
_RC = named("--rcfile --init-file")


def of(language: str, words: Sequence[str]) -> list[Input]:
    """What an interpreter runs."""
    how = INTERPRETERS[language]
    found: list[Input] = []
    given, at = False, 1  # given: it has a program, and what follows is for that program
    while at < len(words):
        word = words[at]
        at += 1
        if word in ("-", "/dev/stdin") and not given:
            found.append(Input(STDIN, language))
            given = True
            break
        if word == "--":
            break
        if word == "+" or (word.startswith("+") and "+" in how.code):
            found.append(Input(TEXT, language, word[1:]))
            given = True
        elif word.startswith("-") and len(word) > 1:
            option, value, has_value = _option(word, how)
            if option in how.quiet:
                return []
            if language in ("python", "pypy") and option == "-m":
                named_so = (value, *words[at:]) if has_value else tuple(words[at:])
                return [*found, Input(MODULE, language, "".join(named_so[:1]), named_so)]
            takes = option in how.code | how.values | how.files | how.script
            if takes and not has_value:
                value = "".join(words[at : at + 1])
                at += 1
            if option in how.code:
                found.append(Input(TEXT, language, value))
                given = True
            elif option in how.files:
                found.append(Input(FILE, language, value, said=value.startswith((".", "/"))))
            elif option in how.script:
                found.append(Input(FILE, language, value, tuple(words[at:])))
                given = True
            if given and language in ("python", "pypy"):
                break
        elif word in how.quiet:
            return []
        elif word in how.verbs:
            continue
        elif word == "eval" and language == "deno":
            return [Input(TEXT, language, "".join(words[at:][:1]))]
        else:
            at -= 1
            break
    rest = words[at:]
    if not given and rest and how.plain:
        found.append(Input(how.plain, language, rest[0], tuple(rest[1:])))
        given = True
    if not given and how.fed:
        found.append(Input(STDIN, language))
    return found


def _option(word: str, how: Interpreter) -> tuple[str, str, bool]:
    """An option, its value, and whether that stands in the same word: --eval=X, -eX, -pe (the last takes the next)."""
    takes = how.code | how.values | how.files | how.script
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value, bool(equals)
    if word in takes or word in how.quiet:
        return word, "", False
    for position, letter in enumerate(word[1:], 1):
        rest = word[position + 1 :]
        if letter == "m" and "-W" in how.values:
            return "-m", rest, bool(rest)
        if letter in how.letters or f"-{letter}" in how.code:
            return f"-{letter}", rest, bool(rest) or f"-{letter}" not in takes
    return word, "", False


def shell(words: Sequence[str]) -> list[Input]:
    """What a shell runs: its start-up file, and what -c says, else the file it is given, else what it is fed."""
    found: list[Input] = []
    at, code, fed, letters = 1, False, False, ""
    while at < len(words) and words[at][:1] in ("-", "+") and len(words[at]) > 1:
        option = words[at]
        at += 1
        if option == "--":
            break
        name, equals, value = option.partition("=")
        if name in _RC:
            found.append(Input(FILE, "sh", value if equals else "".join(words[at : at + 1])))
            at += not equals
        elif option == "--command":
            code = True
        elif not option.startswith("--"):
            letters += option[1:] if option[0] == "-" else ""
            code = code or "c" in option[1:]
            fed = fed or "s" in option[1:]
            at += option in _SHELL_VALUES or option[-1] in "oO"
    rest = tuple(words[at:])
    if "n" in letters and "i" not in letters:  # it only reads
        return []
    if code:
        return [*found, Input(TEXT, "sh", rest[0], rest[1:])] if rest else found
    if rest and not fed and rest[0] != "-":
        return [*found, Input(FILE, "sh", rest[0], rest[1:])]
    return [*found, Input(STDIN, "sh", args=rest if fed else rest[1:])]


# Programs that run a command line which an option, or a word that begins so, gives them.
_BY_OPTION: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("tar", "bsdtar", "gtar"),
        named("-I --use-compress-program --to-command -F --info-script --new-volume-script --rsh-command"),
    ),
    "rsync": named("-e --rsh"),
    "zip": named("-TT --unzip-command"),
    "sort": named("--compress-program"),
    "rg": named("--pre --hostname-bin"),
    "man": named("-P --pager"),
    "nodemon": named("-x --exec"),
    "watchexec": named("-c --command"),
    "chokidar": named("-c --command"),
    "gdb": named("-ex -iex --eval-command"),
}
_FILE_RUNNERS = named(  # of Python: they run the program that they are given
    "pdb cProfile profile trace coverage runpy debugpy kernprof scalene viztracer ipython ipython3 memory_profiler"
)


def _by_option(name: str, words: Sequence[str]) -> list[str]:
    wanted, found = _BY_OPTION.get(name, frozenset()), []
    for at, word in enumerate(words[1:], 1):
        option, equals, value = word.partition("=")
        if option in wanted:
            found.append(value if equals else "".join(words[at + 1 : at + 2]))
        elif name == "less" and re.match(r"\+.*!", word):
            found.append(word.partition("!")[2])
    return [re.sub(r"^(?:shell|!)\s*", "", line) for line in found if line.strip()]


def others(name: str, words: Sequence[str]) -> list[Input]:
    """What programs run that are neither shells nor interpreters."""
    plain = [word for word in words[1:] if not word.startswith("-")]
    if lines := _by_option(name, words):
        return [Input(LINE, "sh", line) for line in lines]
    if name == "concurrently":
        return [Input(LINE, "sh", word) for word in plain]
    if name in _FILE_RUNNERS:
        return [Input(FILE, "python", word) for word in plain if word.endswith(".py")][:1]
    if name == "run-parts" and not {"--test", "--list", "--version", "--help"} & set(words):
        return [Input(FOLDER, "", plain[-1])] if plain else []
    if name == "go" and plain[:1] == ["run"]:
        return [Input(FILE, "go", word) for word in plain[1:] if word.endswith(".go")]
    if name in ("at", "batch"):
        return [Input(FILE, "sh", words[at + 1]) for at, word in enumerate(words[:-1]) if word == "-f"]
    if name in ("sed", "gsed"):
        given = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-f", "--file")]
        return [Input(FILE, "sed", word) for word in given]
    return []


# -- the environment -----------------------------------------------------------------


def is_code(name: str) -> bool:
    """Whether a variable makes programs run other code."""
    if not (name[:1].isupper() or name.startswith(("npm_config", "_JAVA"))):
        return False
    return any(name in _table()[part] for part in _table())


def environment(assigned: Mapping[str, str]) -> list[Input]:
    """What programs run because a variable is set."""
    if not assigned:
        return []
    table, found = _table(), []
    for name, value in assigned.items():
        if name in table["commands"] and value.strip():
            found.append(Input(LINE, "sh", value))
        elif language := table["files"].get(name):
            found += [Input(FILE, language, each, said="/" in each) for each in value.split(":") if each]
        elif name in table["prompts"]:
            found += [Input(LINE, "sh", f'echo "{value}"')] if re.search(r"\$\(|`", value) else []
        elif name in table["loads"] and value:
            found.append(Input(UNREAD, "", name))
        elif language := table["options"].get(name):
            found += _options(name, language, value)
    return found


def _options(name: str, language: str, value: str) -> list[Input]:
    """Options that an interpreter finds in a variable: the files that they make it run."""
    words = value.split()
    if language in ("perl", "java"):  # modules, and libraries, by name
        loads = any(word.startswith(("-M", "-m", "-javaagent", "-agent", "-Xbootclasspath")) for word in words)
        return [Input(UNREAD, "", name)] if loads else []
    return [each for each in of(language, [language, *words]) if each.kind in (FILE, TEXT, MODULE)]


@cache
def _table() -> Mapping[str, Any]:
    with Path(__file__).with_suffix(".toml").open("rb") as file:
        return tomllib.load(file)


def is_ssh(line: str) -> bool:
    """Whether a command line is ssh with options of its own, as git is told how to reach a host."""
    return re.fullmatch(r"\s*(?:\S*/)?ssh(?:\s+[^;&|`$()<>\n]*)?", line) is not None
