"""What an agent may never do to its own undo, whoever asks and however it is wrapped."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from takeback.config import agents_own_files
from takeback.gate.bash.globs import ABOVE, APART, BELOW, SAME, covers
from takeback.gate.bash.state import Command, resolved
from takeback.gate.bash.walk import Shell
from takeback.gate.bash.words import UNKNOWN, named
from takeback.system import regular_files

from .bash import switches
from .paths_written import Touched, touched
from .places import Places, is_below
from .risk import Risk
from .rules import UNREAD

KIND = "own"
_WITHOUT = "takeback's hooks are in it, and without them nothing is captured"
_VERBS = {
    "approve": "approving",
    "apply": "applying a plan",
    "resolve": "saying what came of an undo",
    "prune": "forgetting history",
    "forget": "removing the store",
    "unpin": "letting a checkpoint go",
    "label": "calling a checkpoint something else",
    "repair": "mending the store",
    "unprotect": "taking the hooks away",
    "hook": "speaking for the hooks",
    "mcp": "answering the server's questions to a person",
}
_SURFACES = {"web": "taking back in a browser", "ui": "the timeline in a terminal"}  # unless they only show
_CALLS = r"approve|resolve|prune|repair|unprotect|confirm_rules|threads\.remove"  # of the library
_GLOBAL_VALUES = ("-C",)
_READERS = named(
    "ls cat less more head tail du df stat file find tree wc grep rg test [ realpath readlink echo printf cd pwd diff "
    "sha256sum md5sum xxd od strings basename dirname command which"
)
# Where agents keep what concerns all projects, below the home.
_USER_FILES = (
    ".claude/settings.json", ".codex/hooks.json", ".codex/config.toml", ".gemini/settings.json", ".qwen/settings.json",
    ".copilot/hooks", ".copilot/config.json", ".config/opencode/plugins", ".config/opencode/opencode.json",
    ".cursor/hooks.json",
)  # fmt: skip
_HARMLESS = named("touch gtouch mkdir gmkdir")  # leave what is in a file as it is
_EXTRACTS = named("tar bsdtar gtar unzip 7z")
_MODES = named("chmod gchmod")
_OWNERS = named("chown chgrp gchown gchgrp")
_MOST_FILES = 200  # of a folder that are looked into
_WRITING_CODE = re.compile(
    r"\bopen\s*\([^)]{0,300}['\"][wax+]|write|dump|unlink|remove|rmtree|rename|replace|truncate|rm\b"
)


class Own(NamedTuple):
    """takeback's own: the stores, the user's configuration, and the files with our hooks."""

    stores: tuple[str, ...]
    config: tuple[str, ...]
    hooks: tuple[str, ...] = ()
    dots: bool = False  # `*` matches names that begin with a dot, as a shell can be told

    def holds(self, path: str, above: bool = True) -> str:
        """What of ours a change of this path would change; of a folder above it only where that counts."""
        for folders, what in ((self.stores, "the store"), (self.config, "takeback's configuration")):
            for folder in folders:
                lies = covers(path, folder, self.dots)
                if lies in (SAME, BELOW) or (lies == ABOVE and above):
                    return what
        return ""

    def hook_in(self, path: str, above: bool = True) -> str:
        """The file with our hooks that a path is, or that lies below it."""
        for file in self.hooks:
            lies = covers(path, file, self.dots)
            if lies == SAME or (lies == ABOVE and above):
                return file
        return ""


def own(home: str, where: Places, stores: Iterable[str] = (), config: Iterable[str] = ()) -> Own:
    """Given folders, or else where they lie by default."""
    stores, config = tuple(filter(None, stores)), tuple(filter(None, config))
    if home:
        stores = stores or (f"{home}/.local/state/takeback", f"{home}/Library/Application Support/takeback")
        config = config or (f"{home}/.config/takeback",)
    return Own(tuple(map(os.path.realpath, stores)), tuple(map(os.path.realpath, config)), _hook_files(where))


def matters(mine: Own, where: Places) -> tuple[tuple[str, bool], ...]:
    """What must not go: each path, and whether it is a folder. find and ls come by these among others."""
    git = f"{where.root}/.git"
    found = [(git, True), (f"{git}/HEAD", False), (f"{git}/config", False), (f"{git}/refs/heads/main", False)]
    found += [(f"{git}/objects/4b/825dc642cb6eb9a060e54bf8d69288fbee4904", False)]
    for folder in (*mine.stores, *mine.config):
        found += [(folder, True)]
    found += [(f"{store}/project/journal.db", False) for store in mine.stores]
    found += [(f"{config}/config.toml", False) for config in mine.config]
    return (*found, *((file, False) for file in mine.hooks))


def _hook_files(where: Places) -> tuple[str, ...]:
    named = [f"{where.root}/{os.fsdecode(name.rstrip(b'/'))}" for name in agents_own_files.OWN]
    named += [f"{where.root}/.claude/settings.json"]
    named += [f"{where.home}/{name}" for name in _USER_FILES] if where.home else []
    found: dict[str, None] = {}
    for path in named:
        if not path.endswith("/worktrees"):
            for file in _with_hooks(path):
                found |= {file: None, os.path.realpath(file): None}
    return tuple(found)


def _with_hooks(path: str, depth: int = 0) -> list[str]:
    """The file, or those of a folder, in which takeback is spoken of."""
    if os.path.isdir(path):
        try:
            with os.scandir(path) as entries:
                below = [entry.path for entry in entries if depth < 2 and entry.name != "node_modules"]
        except OSError:
            return []
        return [file for each in sorted(below)[:_MOST_FILES] for file in _with_hooks(each, depth + 1)]
    try:
        return [path] if b"takeback" in regular_files.read(path, 1 << 20) else []
    except (OSError, ValueError):
        return []


def in_shell(shell: Shell, mine: Own, where: Places, text: str = "") -> Iterator[Risk]:
    if any(c.name in ("shopt", "setopt") and "dotglob" in " ".join(c.words).lower() for c in shell.commands):
        mine = mine._replace(dots=True)
    for command in shell.commands:
        shell.deadline.check()
        yield from (_never(*switch) for switch in switches.assigned(command.assigned))
        yield from _verbs(command, where)
        if command.name in switches.AGENTS and (off := switches.in_text(" ".join(command.words))):
            yield _never(off, "an agent would run without takeback's hooks")
        if not command.elsewhere:
            yield from _paths(command, mine, where, shell)
            yield from _settings(command, shell, where, text)
    for code in shell.texts:
        shell.deadline.check()
        yield from _code(code, mine, where)
    for code, file in shell.files:  # a person's own program may do this, and a person says so
        shell.deadline.check()
        for risk in _code(code, mine, where):
            yield risk._replace(kind=UNREAD, what=f"{risk.what} (in {file})", refuse=False)


def of_path(path: str, mine: Own, above: bool = True) -> Risk | None:
    """The risk of writing or deleting one path, links followed by whoever asks."""
    if what := mine.holds(path, above):
        return _never(path, f"it is {what}, without which nothing can be taken back")
    if hooks := mine.hook_in(path, above):
        return _never(hooks, _WITHOUT)
    return None


def _paths(command: Command, mine: Own, where: Places, shell: Shell) -> list[Risk]:
    found = []
    seen: set[str] = set()
    name = command.name
    takes_away = name in _MODES and _takes_reading_away(command.words)
    for each in touched(command):
        shell.deadline.check()
        _, path = where.of(each.path, command.cwd)
        real = os.path.realpath(path) if UNKNOWN not in path else path
        above = each.deletes or takes_away
        for at in dict.fromkeys((path, real)):
            if at in seen:
                continue
            seen.add(at)
            if name in _EXTRACTS:
                above = at != where.root and is_below(at, where.root)
            if name in _HARMLESS or (name in _MODES and not takes_away) or name in _OWNERS:
                risk = of_path(at, mine._replace(hooks=()), above=False)
            else:
                risk = of_path(at, mine, above) or _put_below(at, each, mine, command.cwd)
            if risk is not None:
                found.append(risk)
    if found or name in _READERS:
        return found
    for word in command.words[1:]:
        value = word.partition("=")[2] if word.startswith("-") and "=" in word else word
        if value and not value.startswith("-") and ("/" in value or "takeback" in value):
            shell.deadline.check()
            _, path = where.of(value, command.cwd)
            if what := mine.holds(path, above=False):
                return [_never(path, f"it is {what}, without which nothing can be taken back")]
    return found


def _put_below(folder: str, each: Touched, mine: Own, cwd: str) -> Risk | None:
    """Files that are copied into a folder: by their names, and, of folders, by what is in them now."""
    for target in (*mine.hooks, *(f"{config}/config.toml" for config in mine.config)):
        if covers(folder, target) != ABOVE:
            continue
        parts = [part for part in target.split("/") if part]
        rel = "/".join(parts[len([part for part in folder.split("/") if part]) :])
        for source in each.sources:
            name = source.rstrip("/").rpartition("/")[2]
            if name == rel or (name and UNKNOWN not in name and covers(f"/{name}", f"/{rel}") == SAME):
                return _never(target, _WITHOUT)
            start = resolved(source, cwd)
            base = start if source.endswith(("/", "/.")) or name in (".", "") else os.path.dirname(start)
            inside = base == start or covers(f"/{name}", f"/{rel}") != APART
            if inside and UNKNOWN not in base and f"{base}/{rel}" != target and os.path.lexists(f"{base}/{rel}"):
                return _never(target, _WITHOUT)
    return None


def _takes_reading_away(words: Sequence[str]) -> bool:
    """Whether a mode leaves a file that its owner cannot read."""
    mode = next((w for w in words[1:] if not re.fullmatch(r"-[RvfcHLP]+|--.*", w)), "")
    if re.fullmatch(r"[0-7]{1,5}", mode):
        return not int(mode, 8) & 0o400
    return any(
        (re.fullmatch(r"[ugoa]*-[rwxXst]*r[rwxXst]*", part) and not re.match(r"[go]+-", part))
        or (re.match(r"[ua]*=", part) and "r" not in part.partition("=")[2])
        for part in mode.split(",")
    )  # fmt: skip


def _settings(command: Command, shell: Shell, where: Places, text: str) -> Iterator[Risk]:
    """Lines that turn hooks off, put into an agent's settings or into a file of variables."""
    for each in touched(command):
        if not switches.is_settings(each.path) and not each.sources:
            continue
        _, path = where.of(each.path, command.cwd)
        said = "\n".join((shell.written.get(resolved(each.path, command.cwd), ""), command.stdin or "", text))
        into = [(path, source) for source in each.sources[:_MOST_FILES]]
        into += [(f"{path}/{source.rpartition('/')[2]}", source) for _, source in into]
        for target, source in into or [(path, "")]:
            if switches.is_settings(target):
                copied = _text_of(resolved(source, command.cwd)) if source else ""
                if (switch := switches.in_file(target, f"{said}\n{copied}")) is not None:
                    yield _never(*switch)
                    break


def _text_of(path: str) -> str:
    """What a file says that is about to be copied; nothing, if it is no plain file."""
    try:
        return "" if UNKNOWN in path else regular_files.read(path, 1 << 20).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _verbs(command: Command, where: Places) -> list[Risk]:
    """The verbs of our own program that are a person's."""
    words = [word for word in command.words if word]
    if not any("takeback" in word for word in (command.name, *words[:6])):
        return []
    if not words or not re.fullmatch(r"takeback(-cli)?(\.__main__|\.surfaces\.cli)?|takeback[\d.]*", command.name):
        if not any(re.search(r"takeback/(__main__|surfaces/cli/__init__)\.py$", word) for word in words[:6]):
            return []
        at = next(at for at, word in enumerate(words) if re.search(r"takeback/.*\.py$", word))
        words = words[at:]
    plain, at, options, folder = [], 1, list[str](), command.cwd
    for_off = "--off" in words[1 : words.index("--") if "--" in words else None]
    while at < len(words):
        if words[at] in _GLOBAL_VALUES:
            at += 1
            folder = resolved(words[at], folder) if at < len(words) else folder
        elif not words[at].startswith("-"):
            plain.append(words[at])
        else:
            options.append(words[at])
            folder = resolved(words[at][2:], folder) if words[at].startswith("-C") else folder
        at += 1
    if "--help" in options and "--" not in options:
        return []
    verb, further, *_ = *plain, "", ""
    said = " ".join(words)
    if verb in _SURFACES and "--read-only" not in options:
        return [_never(said, f"{_SURFACES[verb]} is for a person")]
    if verb in _VERBS:
        return [_never(said, f"{_VERBS[verb]} is for a person")]
    if verb == UNKNOWN or UNKNOWN in verb:
        return [_never(said, "nobody can say which of takeback's verbs it is")]
    if verb == "init" and _may_nest(folder, where):
        return [_never(said, "protecting a folder inside a protected one by itself is for a person")]
    if verb == "email" and further in ("release", ""):
        return [_never(said, "releasing mail is for a person")] if further else []
    if verb == "thread" and _may_forget(words, plain):
        return [_never(said, "forgetting what was remembered is for a person")]
    if verb == "config" and further == "confirm":
        return [_never(said, "accepting rules that lessen what is captured is for a person")]
    if for_off:
        return [_never(said, "turning takeback off is for a person")]
    if any(name in command.assigned for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME")):
        return [_never(said, "it would use another store or configuration")]
    return []


def _may_nest(folder: str, where: Places) -> bool:
    """Whether a folder may lie inside the project: a root of its own there takes what is done in it out of the
    project's history."""
    if UNKNOWN in folder:
        return True
    real = os.path.realpath(folder)
    return real != where.root and is_below(real, where.root)


def _may_forget(words: Sequence[str], plain: Sequence[str]) -> bool:
    """Whether `takeback thread …` may be its prune. Right after `thread` the verb is clear; after options it is not."""
    after = words[words.index("thread") + 1 :]
    if after and not after[0].startswith("-") and UNKNOWN not in after[0]:
        return after[0] == "prune"
    return any(word == "prune" or UNKNOWN in word for word in plain[1:])


def _code(code: str, mine: Own, where: Places) -> list[Risk]:
    """Programs of other languages that name what is ours."""
    plain = code.replace("~", where.home)
    if any(folder in plain for folder in (*mine.stores, *mine.config)):
        return [_never("a program that names takeback's own files", "without them nothing can be taken back")]
    if re.search(r"state/takeback|config/takeback", plain):
        return [_never("a program that names takeback's own files", "without them nothing can be taken back")]
    if _WRITING_CODE.search(code):
        for name in agents_own_files.OWN:
            path = os.fsdecode(name.rstrip(b"/"))
            if path in code and mine.hook_in(f"{where.root}/{path}"):
                return [_never(path, _WITHOUT)]
        for quoted in re.findall(r"['\"]([^'\"\n]{1,200})['\"]", code):
            if (switch := switches.in_file(quoted, code)) is not None:
                return [_never(*switch)]
    if "takeback" in code and re.search(rf"['\"\s.]({_CALLS})\b", code):
        if re.search(r"\b(import|from)\s+takeback|takeback\.|['\"]takeback['\"]", code):
            return [_never("a program that uses takeback", "these of its verbs are for a person")]
    return []


def _never(what: str, why: str) -> Risk:
    return Risk(KIND, what.replace(UNKNOWN, "…")[:200], why, refuse=True)
