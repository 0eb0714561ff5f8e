"""Command lines that a Makefile's targets and package.json's scripts stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..patterns import pattern
from ..typed import Any, NamedTuple
from .rules import plain
from .state import resolved
from .words import named

Read = Callable[[str], str | None]  # a path → what that file of the project says


class Recipe(NamedTuple):
    """Lines that are run one after another in a folder, and the file that has them."""

    file: str
    folder: str
    lines: tuple[str, ...]


# -- make --------------------------------------------------------------------------

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_DRY = named("-n --just-print --dry-run --recon -q --question -t --touch -v --version -h --help")
_FOLDER, _FILE = named("-C --directory"), named("-f --file --makefile")
_VALUES = named("-C --directory -f --file --makefile -I --include-dir -o --old-file -W --what-if --eval -E")
_ASSIGNED = pattern(r"\s*(?:export\s+|override\s+)*([\w.-]+)\s*(\?=|\+=|!=|::?:?=|=)\s*(.*)")
_RULE = pattern(r"([^\s:#=][^:#=]*?)\s*::?(?!=)\s*([^;]*)(?:;\s*(.*))?")
_INCLUDES = pattern(r"-?s?include\s+(.+)")
_DIRECTIVE = pattern(r"\s*(?:ifeq|ifneq|ifdef|ifndef|else|endif|endef|unexport|undefine|vpath|export\s*$)")
_EXPANDS = pattern(r"\$(?:\$|\(([^()]*)\)|\{([^{}]*)\}|([@<^+?*%A-Za-z]))")
_SOMETHING = "__made__"  # what a function of make gives: names of files, as a rule, that lie where it runs
_DEFAULTS = {"CC": "cc", "CXX": "c++", "AR": "ar", "LD": "ld", "RM": "rm -f", "MAKE": "make", "SHELL": "/bin/sh"}
_TARGETS = 300  # of one call that are gone through
_DEEPEST = 20  # expansions in expansions, and files that include others


class _Makefile:
    """Its variables, rules and recipes."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.variables = {**_DEFAULTS, **given}
        self.fixed = frozenset(given)
        self.needs: dict[str, list[str]] = {}
        self.recipes: dict[str, list[str]] = {}
        self.ran: list[str] = []  # $(shell …) and != while it is read
        self.first = ""

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
            elif (found := _ASSIGNED.fullmatch(line)) is not None:
                self._assign(*found.groups())
            elif (found := _RULE.fullmatch(line.partition(" #")[0].rstrip())) is not None:
                current = self._rule(*found.groups(default=""))

    def _assign(self, name: str, how: str, value: str) -> None:
        if name in self.fixed or (how == "?=" and name in self.variables):
            return
        if how == "!=":
            self.ran.append(self.expand(value))
            value = _SOMETHING
        elif how == "+=":
            value = f"{self.variables.get(name, '')} {value}".strip()
        elif ":" in how:
            value = self.expand(value)
        self.variables[name] = value.partition(" #")[0]

    def _rule(self, targets: str, needs: str, recipe: str) -> list[str]:
        if (found := _ASSIGNED.fullmatch(needs)) is not None:  # a variable of these targets alone
            self._assign(*found.groups())
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

    def lines(self, wanted: Iterable[str]) -> list[str]:
        """What is run for these targets, and for all that they need."""
        waiting, found = list(wanted) or [self.first], []
        seen: set[str] = set()
        while waiting and len(seen) < _TARGETS:
            target = waiting.pop(0)
            if target in seen:
                continue
            seen.add(target)
            pattern_rules = [p for p in self.recipes if "%" in p and _fits(p, target)]
            for rule in [target] if target in self.recipes or target in self.needs else pattern_rules:
                needs = self.needs.get(rule, [])
                automatic = {"@": target, "<": "".join(needs[:1]), "^": " ".join(needs), "+": " ".join(needs)}
                waiting += needs
                for line in self.recipes.get(rule, ()):
                    found.append(self.expand(line.strip().lstrip("@-+ \t"), automatic))
        return [*self.ran, *found]


def is_dry(words: Sequence[str]) -> bool:
    """Whether make only says what it would do."""
    return any(map(_is_dry, words[1:]))


def _is_dry(word: str) -> bool:
    return word in _DRY or (re.fullmatch(r"-[a-zA-BD-Z]*n[a-zA-BD-Z]*", word) is not None and "f" not in word)


def _fits(rule: str, target: str) -> bool:
    before, _, after = rule.partition("%")
    return len(target) > len(before + after) and target.startswith(before) and target.endswith(after)


def make(words: Sequence[str], cwd: str, known: Mapping[str, str], read: Read) -> Recipe | None:
    """What `make TARGET…` runs, where its makefile lies in the project."""
    folder, files, given, targets, at = cwd, [], dict(known), [], 1
    while at < len(words):
        word, equals, value = words[at].partition("=")
        if _is_dry(word):
            return None
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
            found = _Makefile({**given, "CURDIR": folder})
            found.read(text, folder, read)
            return Recipe(file, folder, tuple(found.lines(targets)))
    return None


# -- package.json ------------------------------------------------------------------

MANAGERS = named("npm pnpm yarn bun")
_RUNS = named("run run-script rum urn")
_ALONE = {"test": "test", "t": "test", "tst": "test", "start": "start", "stop": "stop", "restart": "restart"}
_LIFE = {
    **dict.fromkeys(("install", "i", "ci", "add", "rebuild"), ("preinstall", "install", "postinstall", "prepare")),
    "publish": ("prepublishOnly", "prepack", "prepare", "postpack", "publish", "postpublish"),
    "pack": ("prepack", "prepare", "postpack"),
    "version": ("preversion", "version", "postversion"),
}
GROUPS = named("npm-run-all npm-run-all2 run-s run-p")  # run scripts by their names
_ABOVE = 30  # folders above that may have it


def scripts(name: str, words: Sequence[str], cwd: str, read: Read) -> Recipe | None:
    """What a package manager runs of a project's own scripts."""
    file, found = _package(name, words, cwd, read)
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
    if verb in _RUNS:
        return rest[:1], rest[1:]
    if verb in _ALONE and not (name == "bun" and verb == "test"):
        return [_ALONE[verb]], rest
    if verb in _LIFE:
        return [key for key in _LIFE[verb] if key in found], []
    if name in ("pnpm", "yarn", "bun") and verb in found:
        return [verb], rest
    return [], []


def _package(name: str, words: Sequence[str], cwd: str, read: Read) -> tuple[str, Mapping[str, Any]]:
    """The nearest package.json, and its scripts."""
    import json

    folder = cwd
    for at, word in enumerate(words):
        key, equals, value = word.partition("=")
        if key in ("--prefix", "-C", "--dir", "--cwd"):
            folder = resolved(value if equals else "".join(words[at + 1 : at + 2]), cwd)
    for _ in range(_ABOVE):
        file = f"{folder.rstrip('/')}/package.json"
        if (text := read(file)) is not None:
            try:
                told = json.loads(text).get("scripts")
            except (ValueError, AttributeError, RecursionError):
                return file, {}
            return file, told if isinstance(told, dict) else {}
        above = folder.rpartition("/")[0]
        if not above or above == folder:
            break
        folder = above
    return "", {}


def _parted(words: Sequence[str]) -> tuple[Sequence[str], str, Sequence[str]]:
    at = list(words).index("--") if "--" in words else len(words)
    return words[:at], "--", words[at + 1 :]


def _is_like(key: str, word: str) -> bool:
    from fnmatch import fnmatchcase

    return key == word or ("*" in word and fnmatchcase(key, word))


def _quote(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
