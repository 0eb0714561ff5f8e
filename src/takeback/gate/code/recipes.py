"""Command lines that stand behind a name: targets of a Makefile, recipes of a justfile, scripts of a package.json."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from takeback.gate.bash.state import resolved
from takeback.gate.bash.words import named
from takeback.gate.bash.wrappers import SHELLS
from takeback.gate.rules import plain

Read = Callable[[str], str | None]  # a path → what that file of the project says


class Recipe(NamedTuple):
    """Lines that are run one after another in a folder, and the file that has them."""

    file: str
    folder: str
    lines: tuple[str, ...]
    shells: tuple[tuple[str, ...], ...] = ()  # what runs each of them; empty where it is a plain shell
    unread: tuple[str, ...] = ()  # files that belong to it and could not be read


# -- make --------------------------------------------------------------------------

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_DRY = named("-n --just-print --dry-run --recon -q --question -t --touch")
_TELLS = named("-v --version -h --help")
_FOLDER, _FILE = named("-C --directory"), named("-f --file --makefile")
_VALUES = named("-C --directory -f --file --makefile -I --include-dir -o --old-file -W --what-if --eval -E")
_ASSIGNED = re.compile(r"\s*(?:export\s+|override\s+)*([\w.-]+)\s*(\?=|\+=|!=|::?:?=|=)\s*(.*)")
_RULE = re.compile(r"([^\s:#=][^:#=]*?)\s*::?(?!=)\s*([^;]*)(?:;\s*(.*))?")
_INCLUDES = re.compile(r"-?s?include\s+(.+)")
_DIRECTIVE = re.compile(r"\s*(?:ifeq|ifneq|ifdef|ifndef|else|endif|endef|unexport|undefine|vpath|export\s*$)")
_EXPANDS = re.compile(r"\$(?:\$|\(([^()]*)\)|\{([^{}]*)\}|([@<^+?*%A-Za-z]))")
_SOMETHING = "__made__"  # what a function of make gives: names of files, as a rule, that lie where it runs
_DEFAULTS = {"CC": "cc", "CXX": "c++", "AR": "ar", "LD": "ld", "RM": "rm -f", "MAKE": "make", "SHELL": "/bin/sh"}
_REACHES = named(".RECIPEPREFIX PATH MAKEFLAGS LD_PRELOAD LD_LIBRARY_PATH BASH_ENV ENV")  # what other lines mean by it
_TARGETS = 300  # of one call that are gone through
_ABOVE = 30  # folders above that may have the file
_DEEPEST = 20  # expansions in expansions, and files that include others


class _Makefile:
    """Its variables, rules and recipes."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.variables = {**_DEFAULTS, **given}
        self.fixed = frozenset(given)
        self.own: dict[str, dict[str, str]] = {}  # variables of targets, which what they need has too
        self.needs: dict[str, list[str]] = {}
        self.recipes: dict[str, list[str]] = {}
        self.unread: list[str] = []  # files that it includes
        self.ran: list[str] = []  # $(shell …) and != while it is read
        self.first = ""
        self.is_dry = False

    def read(self, text: str, folder: str, read: Read, depth: int = 0) -> None:
        current: list[str] = []
        defining = ""
        for line in re.sub(r"\\\n[ \t]*", " ", text).split("\n"):
            if defining:
                if line.strip() == "endef":
                    defining = ""
                else:
                    self.variables[defining] += line + "\n"
            elif line.startswith("\t"):
                for target in current:
                    self.recipes.setdefault(target, []).append(line)
            elif not line.strip() or line.lstrip().startswith("#") or _DIRECTIVE.match(line):
                continue
            elif (begun := re.match(r"\s*define\s+([\w.-]+)", line)) is not None:
                defining = begun[1]
                self.variables[defining] = ""
            elif (found := _INCLUDES.match(line.strip())) is not None:
                for name in self.expand(found[1]).split() if depth < _DEEPEST else ():
                    if (more := read(resolved(name, folder))) is not None:
                        self.read(more, folder, read, depth + 1)
                    elif not line.lstrip().startswith(("-", "s")) or name.startswith(("/", "..")):
                        self.unread.append(name)  # one that may be missing, and is, is none
            elif (found := _ASSIGNED.fullmatch(line)) is not None:
                self._assign(found[1], found[2], found[3])
            elif (found := _RULE.fullmatch(line.partition(" #")[0].rstrip())) is not None:
                current = self._rule(*found.groups(default=""))
            else:
                self.unread.append(f"a line of the makefile: {line.strip()[:60]}")

    def _assign(self, name: str, how: str, value: str, own: dict[str, str] | None = None) -> None:
        """For all, or for a target of its own."""
        known = {**self.variables, **(own or {})}
        if name in _REACHES:
            self.unread.append(f"what the makefile does with its {name}")
        if name in self.fixed or (how == "?=" and name in known):
            return
        if how == "!=":
            self.ran.append(self.expand(value))
            value = _SOMETHING
        elif how == "+=":
            value = f"{known.get(name, '')} {value}".strip()
        elif ":" in how:
            value = self.expand(value)
        (self.variables if own is None else own)[name] = value.partition(" #")[0]

    def _rule(self, targets: str, needs: str, recipe: str) -> list[str]:
        if (found := _ASSIGNED.fullmatch(needs)) is not None:
            for target in self.expand(targets).split():
                self._assign(found[1], found[2], found[3], self.own.setdefault(target, {}))
            return []
        current = self.expand(targets).split()
        for target in current:
            self.first = self.first or ("" if target.startswith(".") or "%" in target else target)
            self.needs.setdefault(target, []).extend(self.expand(needs.replace("|", " ")).split())
            if recipe:
                self.recipes.setdefault(target, []).append(recipe)
        return current

    def expand(self, text: str, automatic: Mapping[str, str] = {}, depth: int = 0) -> str:
        """A text with variables and functions in it, innermost first."""

        def value(found: re.Match[str]) -> str:
            if found[0] == "$$":
                return "\x01"
            inner = next((part for part in found.groups() if part is not None), "")
            name, _, rest = inner.partition(" ")
            if name == "shell":
                self.ran.append(rest.replace("\x01", "$"))
                return _SOMETHING
            if inner in automatic:
                return automatic[inner]
            if rest or ":" in inner or inner[:1] in "@<^+?*%":
                return _SOMETHING
            known = self.variables.get(inner, "")
            return self.expand(known, automatic, depth + 1).replace("$", "\x01") if depth < _DEEPEST else ""

        for _ in range(_DEEPEST):
            said = _EXPANDS.sub(value, text)
            if said == text or len(said) > 50_000:
                break
            text = said
        return text.replace("\x01", "$") if depth == 0 else text

    def lines(self, wanted: Iterable[str]) -> list[tuple[str, tuple[str, ...]]]:
        """What is run for these targets, and for all that they need; each with what runs it (`shell`)."""
        waiting = [(target, self.variables) for target in list(wanted) or [self.first]]
        found: list[tuple[str, tuple[str, ...]]] = []
        seen: set[str] = set()
        for_all = self.variables
        while waiting and len(seen) < _TARGETS:
            target, variables = waiting.pop(0)
            if target in seen:
                continue
            seen.add(target)
            owns = [own for rule, own in self.own.items() if rule == target or ("%" in rule and _fits(rule, target))]
            for own in owns:
                variables = {**variables, **own}
            self.variables = variables
            pattern_rules = [p for p in self.recipes if "%" in p and _fits(p, target)]
            for rule in [target] if target in self.recipes or target in self.needs else pattern_rules:
                needs = self.needs.get(rule, [])
                automatic = {"@": target, "<": "".join(needs[:1]), "^": " ".join(needs), "+": " ".join(needs)}
                waiting += [(need, variables) for need in needs]
                for line in self.recipes.get(rule, ()):
                    said = self.expand(line.strip().lstrip("@-+ \t"), automatic)
                    if not self.is_dry or re.match(r"\s*[@-]*\+", line) or re.search(r"\$[({]MAKE[)}]", line):
                        found.append((said, self.shell()))
        self.variables = for_all
        by = self.shell()
        return [*((line, by) for line in self.ran), *found]

    def shell(self) -> tuple[str, ...]:
        """The words of SHELL, where that is no shell of the machine."""
        words = tuple(self.expand(self.variables["SHELL"]).split())
        is_plain = not words or re.fullmatch(r"(?:/(?:usr/|usr/local/)?bin/)?\w+", words[0]) is not None
        return () if is_plain and "".join(words[:1]).rpartition("/")[2] in SHELLS | {""} else words


def only_tells(words: Sequence[str]) -> bool:
    """Whether make reads no makefile at all."""
    return bool(_TELLS & set(words[1:]))


def _is_dry(word: str) -> bool:
    return word in _DRY or (re.fullmatch(r"-[a-zA-BD-Z]*[nqt][a-zA-BD-Z]*", word) is not None and "f" not in word)


def _fits(rule: str, target: str) -> bool:
    before, _, after = rule.partition("%")
    return len(target) > len(before + after) and target.startswith(before) and target.endswith(after)


def make(words: Sequence[str], cwd: str, known: Mapping[str, str], read: Read) -> Recipe | None:
    """What `make TARGET…` runs, where its makefile lies in the project."""
    folder, files, targets, at = cwd, [], [], 1
    given = {name: value for name, value in known.items() if name != "SHELL"}  # make takes it from no environment
    dry = False  # it still reads the makefile, with its $(shell …), and runs lines with a + or another make
    if only_tells(words):
        return None
    while at < len(words):
        word, equals, value = words[at].partition("=")
        dry = dry or _is_dry(word)
        takes = word if word in _VALUES else word[:2] if word[:2] in ("-C", "-f") and len(word) > 2 else ""
        if takes:
            if not equals:
                value = word[2:] if word[:2] in ("-C", "-f") and len(word) > 2 else "".join(words[at + 1 : at + 2])
                at += takes == word
            folder = resolved(value, folder) if takes in _FOLDER else folder
            files += [value] if takes in _FILE else []
        elif word in ("-j", "-l", "--jobs") and words[at + 1 : at + 2] and words[at + 1][:1].isdecimal():
            at += 1
        elif not word.startswith("-"):
            if equals:
                given[word.rstrip(":?+")] = value
            else:
                targets.append(word)
        at += 1
    for name in files or _MAKEFILES:
        file = resolved(name, folder)
        if (text := read(file)) is not None:
            found = _Makefile({**given, "CURDIR": folder, **({"MAKE": "make -n"} if dry else {})})
            found.is_dry = dry
            found.read(text, folder, read)
            lines = found.lines(targets)
            shells = tuple(by for _, by in lines)
            return Recipe(file, folder, tuple(line for line, _ in lines), shells, tuple(found.unread))
    return None


# -- just and task -----------------------------------------------------------------

RUNNERS = named("just task go-task")
_ONLY_TELLS = named(
    "-l --list --list-all -a --summary -s --show --dump --evaluate --variables -n --dry-run --dry --version -V --help "
    "-h --init -i --edit -e --fmt --status --groups"
)
_RUNNER_FILES = {
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml", "Taskfile.dist.yml"),
}
_JUST_FILE = named("-f --justfile -t --taskfile")
_JUST_FOLDER = named("-d --working-directory --dir")
_JUST_NAME = re.compile(r"@?([A-Za-z_][\w-]*)")
_JUST_ALIAS = re.compile(r"alias\s+([\w-]+)\s*:=\s*([\w-]+)\s*")
_JUST_VALUE = re.compile(r"(?:export\s+)?([A-Za-z_][\w-]*)\s*:=\s*(.*)")


def runner(name: str, words: Sequence[str], cwd: str, read: Read) -> Recipe | None:
    """What `just NAME` or `task NAME` runs, where its file lies in the project."""
    name = "task" if name == "go-task" else name
    folder, files, wanted, at = cwd, [], [], 1
    while at < len(words):
        word, equals, value = words[at].partition("=")
        at += 1
        if word in _ONLY_TELLS:
            return None
        if word in _JUST_FILE | _JUST_FOLDER:
            if not equals:
                value = "".join(words[at : at + 1])
                at += 1
            files += [value] if word in _JUST_FILE else []
            folder = resolved(value, folder) if word in _JUST_FOLDER else folder
        elif word == "--":
            break
        elif not word.startswith("-") and not equals:
            wanted.append(word)
    for above in _upwards(folder):
        for file in (resolved(each, above) for each in files or _RUNNER_FILES[name]):
            if (text := read(file)) is not None:
                blocks = _just_blocks(text) if name == "just" else _task_blocks(text)
                return Recipe(file, file.rpartition("/")[0], tuple(_block_lines(blocks, wanted, name)))
    return None


def _upwards(folder: str) -> list[str]:
    """A folder and those above it."""
    found = [folder]
    while len(found) < _ABOVE and "/" in folder.strip("/"):
        folder = folder.rpartition("/")[0]
        found.append(folder)
    return found


class _Block(NamedTuple):
    """One recipe or task: the others that it needs, and its lines."""

    needs: list[str]
    lines: list[str]


def _block_lines(blocks: Mapping[str, _Block], wanted: Sequence[str], name: str) -> list[str]:
    first = "default" if "default" in blocks or name == "task" else next(iter(blocks), "")
    waiting = [word for word in wanted if word in blocks] or [first]
    found: list[str] = []
    seen: set[str] = set()
    while waiting and len(seen) < _TARGETS:
        each = waiting.pop(0)
        if each in seen or each not in blocks:
            continue
        seen.add(each)
        waiting += blocks[each].needs
        found += blocks[each].lines
    return found


def _just_blocks(text: str) -> dict[str, _Block]:
    blocks: dict[str, _Block] = {}
    values: dict[str, str] = {}
    current: _Block | None = None
    for line in re.sub(r"\\\n[ \t]*", " ", text).split("\n"):
        head, colon, tail = re.sub(r"'[^']*'|\"[^\"]*\"", "''", line.partition(" #")[0]).partition(":")
        if line[:1] in (" ", "\t"):
            if current is not None and line.strip():
                current.lines.append(line)
        elif (other := _JUST_ALIAS.fullmatch(line)) is not None:
            blocks[other[1]] = _Block([other[2]], [])
        elif (told := _JUST_VALUE.fullmatch(line)) is not None:
            values[told[1]] = told[2].strip()[1:-1] if told[2].strip()[:1] in ("'", '"') else _SOMETHING
        elif colon and not line.startswith(("#", "[")) and (named_so := _JUST_NAME.match(head)) is not None:
            current = blocks[named_so[1]] = _Block(re.findall(r"[A-Za-z_][\w-]*", tail), [])
    return {name: _just_body(block, values) for name, block in blocks.items()}


def _just_body(block: _Block, values: Mapping[str, str]) -> _Block:
    """The lines of a recipe, each a command; one that begins with #! is one program."""
    indent = min((len(line) - len(line.lstrip()) for line in block.lines), default=0)
    lines = [
        re.sub(r"\{\{\s*(.*?)\s*\}\}", lambda found: values.get(found[1], _SOMETHING), line[indent:])
        for line in block.lines
    ]
    if not lines or not lines[0].startswith("#!"):
        return block._replace(lines=[line.lstrip("@-") for line in lines])
    interpreter = re.sub(r"^#!\s*(?:\S*/env\s+(?:-S\s+)?)?", "", lines[0]).strip()
    body = "\n".join(lines[1:])
    return block._replace(lines=[f"{interpreter} <<'__just__'\n{body}\n__just__"])


def _task_blocks(text: str) -> dict[str, _Block]:
    """The tasks of a Taskfile: every line below a name that is a command, or may be one."""
    blocks: dict[str, _Block] = {}
    current, inside, first = None, False, 0
    for line in text.split("\n"):
        depth, said = len(line) - len(line.lstrip(" ")), line.strip()
        if not said or said.startswith("#"):
            continue
        if depth == 0:
            inside, first = said == "tasks:", 0
            continue
        first = first or depth
        if inside and depth == first:
            name, _, rest = said.partition(":")
            current = blocks[name.strip("'\"")] = _Block([], [rest.strip()] if rest.strip() else [])
        elif inside and current is not None:
            _task_line(said, current)
    return blocks


def _task_line(said: str, block: _Block) -> None:
    item = re.sub(r"^-\s+", "", said)
    key, colon, value = item.partition(":")
    if key in ("task", "deps") and colon:
        block.needs.extend(re.findall(r"[\w:.-]+", value))
    elif key in ("cmd", "sh", "cmds") and colon:
        if value.strip(" |>"):
            block.lines.append(_task_filled(value))
    elif said.startswith("- ") or not re.fullmatch(r"[a-z_]+", key) or not colon:
        block.needs.append(item.strip("'\""))
        block.lines.append(_task_filled(item))


def _task_filled(line: str) -> str:
    line = line.strip()
    line = line[1:-1] if len(line) > 1 and line[0] == line[-1] and line[0] in "'\"" else line
    return re.sub(r"\{\{.*?\}\}", _SOMETHING, line)


# -- package.json ------------------------------------------------------------------

MANAGERS = named("npm pnpm yarn bun deno node")
_RUNS = named("run run-script rum urn")
_ALONE = {"test": "test", "t": "test", "tst": "test", "start": "start", "stop": "stop", "restart": "restart"}
_LIFE = {
    **dict.fromkeys(("install", "i", "ci", "add", "rebuild"), ("preinstall", "install", "postinstall", "prepare")),
    "publish": ("prepublishOnly", "prepack", "prepare", "postpack", "publish", "postpublish"),
    "pack": ("prepack", "prepare", "postpack"),
    "version": ("preversion", "version", "postversion"),
}
GROUPS = named("npm-run-all npm-run-all2 run-s run-p")  # run scripts by their names


def scripts(name: str, words: Sequence[str], cwd: str, read: Read) -> Recipe | None:
    """What a package manager runs of a project's own scripts."""
    names = ("deno.json", "deno.jsonc", "package.json") if name == "deno" else ("package.json",)
    if name == "node":
        if (words := _node_runs(words)) == []:
            return None
    file, found = _package(names, words, cwd, read)
    if not found:
        return None
    before, _, after = (list(part) for part in _parted(words))
    said, _ = plain(name, before)
    if name in GROUPS:
        wanted, after = [key for word in said for key in found if _is_like(key, word)], []
    else:
        wanted, more = _wanted(name, said, found)
        after = [*more, *after]
    lines = []
    for key in wanted:
        for each in (f"pre{key}", key, f"post{key}"):
            if isinstance(line := found.get(each), str):
                lines.append(line + "".join(f" {_quote(word)}" for word in after if each == key))
    return Recipe(file, file.rpartition("/")[0], tuple(lines)) if lines else None


def _wanted(name: str, said: list[str], found: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The scripts that are run, and further words for them."""
    verb, *rest = *said, ""
    rest = [word for word in rest if word]
    if name == "deno":
        return (rest[:1], rest[1:]) if verb == "task" else ([], [])
    if verb in _RUNS:
        return rest[:1], rest[1:]
    if verb in _ALONE and not (name == "bun" and verb == "test"):
        return [_ALONE[verb]], rest
    if verb in _LIFE:
        return [key for key in _LIFE[verb] if key in found], []
    if name in ("pnpm", "yarn", "bun") and verb in found:
        return [verb], rest
    return [], []


def _node_runs(words: Sequence[str]) -> list[str]:
    """`node --run NAME …`, as npm would say it."""
    for at, word in enumerate(words[1:], 1):
        if word == "--run":
            return ["npm", "run", *words[at + 1 :]]
        if word.startswith("--run="):
            return ["npm", "run", word[6:], *words[at + 1 :]]
        if not word.startswith("-"):
            break
    return []


def _package(names: Sequence[str], words: Sequence[str], cwd: str, read: Read) -> tuple[str, Mapping[str, Any]]:
    """The nearest package.json, or deno.json, and its scripts."""
    folder = cwd
    for at, word in enumerate(words):
        key, equals, value = word.partition("=")
        if key in ("--prefix", "-C", "--dir", "--cwd"):
            folder = resolved(value if equals else "".join(words[at + 1 : at + 2]), cwd)
    for above in _upwards(folder):
        for name in names:
            file = f"{above.rstrip('/')}/{name}"
            if (text := read(file)) is not None:
                try:
                    told = json.loads(text)
                    told = told.get("tasks" if name.startswith("deno") else "scripts") or {}
                    lines = {key: each.get("command") if isinstance(each, dict) else each for key, each in told.items()}
                except (ValueError, AttributeError, RecursionError):
                    return file, {}
                return file, lines
    return "", {}


def _parted(words: Sequence[str]) -> tuple[Sequence[str], str, Sequence[str]]:
    at = list(words).index("--") if "--" in words else len(words)
    return words[:at], "--", words[at + 1 :]


def _is_like(key: str, word: str) -> bool:
    return key == word or ("*" in word and fnmatchcase(key, word))


def _quote(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
