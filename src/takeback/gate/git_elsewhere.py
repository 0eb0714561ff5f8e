"""git in a repository that lies outside the workspace: none of its branches, files or index is captured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from takeback.gate.bash.outputs import git_words
from takeback.gate.bash.state import Command, resolved
from takeback.gate.bash.words import UNKNOWN, named

from . import rules
from .places import INSIDE, NOWHERE, OUT, SOMEWHERE, Places
from .risk import Risk

_WRITES = named(
    "add am apply bisect branch checkout cherry-pick clean commit config fetch gc init merge mv notes pull rebase "
    "remote reset restore revert rm sparse-checkout stash submodule switch symbolic-ref tag update-index update-ref "
    "worktree read-tree checkout-index filter-branch"
)
_LISTS = named("branch tag remote stash worktree notes config submodule symbolic-ref")  # where nothing else is said
_SHOWS = named("list show -v --list -l -a -r --get --get-all --get-regexp --show-current get-url status -vv --contains")


def elsewhere(command: Command, where: Places, said: str) -> Iterator[Risk]:
    """What a git command would write or lose in another repository."""
    verb, *rest = *git_words(list(command.words)), ""
    rest = [word for word in rest if word]
    if verb not in _WRITES or (verb in _LISTS and (not rest or rest[0] in _SHOWS) and rest[:1] != ["-D"]):
        return
    found = [where.of(folder, command.cwd) for folder in _folders(command)]
    outside = [(place, real) for place, real in found if place not in (INSIDE, NOWHERE)]
    if not outside:
        return
    place, real = next((each for each in outside if each[0] == OUT), outside[0])
    shown = real.replace(UNKNOWN, "…")
    loses = _loses(verb, rest)
    if loses and place == OUT:
        why = f"the repository of {shown} lies outside the workspace, and what it loses is not captured"
        yield Risk(rules.DELETE, said, why, outside=(shown,))
    elif loses and place == SOMEWHERE:
        yield Risk(rules.DELETE, said, "nobody can say in which repository it loses something")
    elif place != SOMEWHERE:
        why = "the repository lies outside the workspace and is not captured"
        yield Risk(rules.OUTSIDE, said, why, outside=(shown,))


def _folders(command: Command) -> list[str]:
    """Where its repository and its files lie."""
    words, at = command.words, 1
    cwd, git, tree = command.cwd, command.assigned.get("GIT_DIR", ""), command.assigned.get("GIT_WORK_TREE", "")
    while at < len(words) and words[at].startswith("-"):
        key, equals, value = words[at].partition("=")
        if key in ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env") and not equals:
            value = words[at + 1] if at + 1 < len(words) else ""
            at += 1
        if key == "-C":
            cwd = resolved(value, cwd)
        elif key == "--git-dir":
            git = value
        elif key == "--work-tree":
            tree = value
        at += 1
    found = [resolved(folder, cwd) for folder in (git, tree) if folder]
    return found or [cwd]


def _loses(verb: str, rest: Sequence[str]) -> bool:
    """Whether something is gone afterwards, other than to who knows git's reflog."""
    letters = {letter for word in rest if re.fullmatch(r"-[A-Za-z]+", word) for letter in word[1:]}
    given = set(rest)
    forced = "f" in letters or "--force" in given
    by_verb: Mapping[str, bool] = {
        "reset": bool(given & {"--hard", "--merge", "--keep"}),
        "clean": forced and "n" not in letters and "--dry-run" not in given,
        "checkout": bool(given & {"--", ".", "--ours", "--theirs"}) or forced or any(w.startswith(":") for w in rest),
        "switch": forced or "--discard-changes" in given or "C" in letters,
        "restore": not (bool(given & {"--staged"}) or "S" in letters) or "--worktree" in given or "W" in letters,
        "branch": bool(letters & set("DMd")) or "--delete" in given,
        "tag": "d" in letters or "--delete" in given or forced,
        "stash": rest[:1] in (["drop"], ["clear"]),
        "worktree": rest[:1] == ["remove"] or rest[:1] == ["prune"],
        "update-ref": "d" in letters or "--delete" in given or "--stdin" in given,
        "remote": rest[:1] in (["remove"], ["rm"]),
        "rm": "--cached" not in given and "n" not in letters,
        "read-tree": "u" in letters or "--reset" in given,
        "checkout-index": forced,
        "filter-branch": True,
        "submodule": rest[:1] == ["deinit"],
    }
    return by_verb.get(verb, False)
