"""What git runs besides itself: aliases, hooks, and programs that its configuration names.

Told on the command line, set by the same text (`git config alias.x …`), or in the repository's own configuration. That
of the user and of the machine is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from takeback.gate.bash.outputs import git_words
from takeback.gate.bash.state import Command, State, resolved
from takeback.gate.bash.words import UNKNOWN, named

from . import other_languages, taking
from .inputs import FILE, FOLDER, LINE, Input

if TYPE_CHECKING:
    from takeback.gate.bash.walk import Shell

_VERBS = named(
    "add am annotate apply archive bisect blame branch bugreport bundle cat-file check-attr check-ignore check-mailmap "
    "check-ref-format checkout checkout-index cherry cherry-pick citool clean clone column commit commit-graph "
    "commit-tree config count-objects credential describe diagnose diff diff-files diff-index diff-tree difftool "
    "fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo format-patch fsck "
    "gc get-tar-commit-id grep gui hash-object help hook imap-send index-pack init init-db instaweb interpret-trailers "
    "log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index merge-tree "
    "mergetool mktag mktree multi-pack-index mv name-rev notes pack-objects pack-redundant pack-refs patch-id prune "
    "prune-packed pull push quiltimport range-diff read-tree rebase receive-pack reflog refs remote repack replace "
    "replay request-pull rerere reset restore rev-list rev-parse revert rm send-email send-pack shortlog show "
    "show-branch show-index show-ref sparse-checkout stage stash status stripspace submodule subtree switch "
    "symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info upload-archive upload-pack "
    "var verify-commit verify-pack verify-tag version whatchanged worktree write-tree lfs svn p4 annex flow "
    "filter-repo gitk cvsserver cvsimport cvsexportcommit daemon http-backend http-fetch http-push sh-i18n sh-setup"
)
_HOOKS: Mapping[str, tuple[str, ...]] = {
    "commit": ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"),
    "merge": ("pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-merge"),
    "pull": ("pre-merge-commit", "post-merge", "post-rewrite"),
    "checkout": ("post-checkout",),
    "switch": ("post-checkout",),
    "clone": ("post-checkout",),
    "worktree": ("post-checkout",),
    "rebase": ("pre-rebase", "post-rewrite", "post-checkout"),
    "am": ("applypatch-msg", "pre-applypatch", "post-applypatch"),
    "cherry-pick": ("prepare-commit-msg", "post-commit"),
    "revert": ("prepare-commit-msg", "post-commit"),
    "push": ("pre-push",),
    "gc": ("pre-auto-gc",),
}
_SKIPS = named("-n --no-verify")
_ON_DISK = named("core.hookspath core.fsmonitor core.sshcommand diff.external")  # what runs unasked
_SERVED = re.compile(r"remote\..+\.(?:uploadpack|receivepack)")
_SECTION = re.compile(r"\s*\[([\w.-]+)(?:\s+\"((?:[^\"\\]|\\.)*)\")?\]")
_LINE = re.compile(r"\s*([A-Za-z][\w-]*)\s*=\s*(.*)")


def take(shell: Shell, command: Command, state: State) -> None:
    """What one git command runs, beyond what its words name themselves."""
    words = list(command.words)
    verb, *rest = *git_words(words), ""
    if verb == "config":
        _set(rest, state)
        return
    told = other_languages.git_config(words, command.assigned)
    folder = _folder(words, command)
    config = {**_on_disk(shell, folder, state), **state.git, **told}
    if verb and UNKNOWN not in verb and verb not in _VERBS and not verb.startswith("-"):
        _alias(shell, verb, rest, config, state, told)
        return
    for key in told:
        if not other_languages.git_runs(key) and not other_languages.git_sets(key):
            shell.not_read(f"git's {key}")
    for key in {
        *_ON_DISK,
        *filter(other_languages.git_runs, config),
    } - told.keys():  # those told are run with the words
        value = config.get(key, "")
        if key == "core.fsmonitor" and value.lower() in ("", "true", "false", "yes", "no", "0", "1"):
            continue
        if key != "core.hookspath" and value:
            taking.take(shell, Input(LINE, "sh", value), state, None)
    if verb == "hook" and rest[:1] == ["run"]:
        names = [word for word in rest[1:] if word and not word.startswith("-")]
        _hooks(shell, names[:1], folder, config.get("core.hookspath"), state)
    if verb in _HOOKS and not (_SKIPS & set(rest) and verb in ("commit", "merge", "push")):
        _hooks(shell, _HOOKS[verb], folder, config.get("core.hookspath"), state)


def _set(rest: list[str], state: State) -> None:
    """`git config KEY VALUE`: what follows finds it so."""
    plain = [word for word in rest if word and not word.startswith("-") and word != "set"]
    if len(plain) == 2:
        state.git[plain[0].lower()] = plain[1]


def _alias(
    shell: Shell, verb: str, rest: list[str], config: Mapping[str, str], state: State, told: Mapping[str, str]
) -> None:  # fmt: skip
    key = f"alias.{verb.lower()}"
    value = config.get(key)
    words = " ".join(_quoted(word) for word in rest if word)
    if value is None:
        shell.not_read(f"git {verb}")
    elif key in told:
        return  # judged with the words
    elif value.startswith("!"):
        taking.take(shell, Input(LINE, "sh", f"{value[1:]} {words}"), state, None)
    else:
        options = " ".join("-c " + _quoted(f"{name}={set_to}") for name, set_to in told.items())
        taking.take(shell, Input(LINE, "sh", f"git {options} {value} {words}"), state, None)


def _hooks(shell: Shell, names: Sequence[str], folder: str, told: str | None, state: State) -> None:
    if told is None:
        path = f"{folder}/.git/hooks"
    elif UNKNOWN in told:
        taking.take(shell, Input(FOLDER, "", told), state, None)
        return
    else:
        path = resolved(told, folder)
    project = shell.project
    inner = state.copy()
    inner.cwd = folder
    for name in names:
        there = f"{path}/{name}"
        if state.written.text(there) is not None or (project is not None and project.has(state.written.origin(there))):
            taking.take(shell, Input(FILE, "", there), inner, None)
    if told is not None and project is not None and not project.has_folder(path):
        shell.not_read(f"the hooks in {told}")


def _folder(words: list[str], command: Command) -> str:
    cwd, at = command.cwd, 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-C" and at + 1 < len(words):
            cwd = resolved(words[at + 1], cwd)
        at += 2 if words[at] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env") else 1
    return cwd


def _on_disk(shell: Shell, folder: str, state: State) -> dict[str, str]:
    """The configuration of the repository, where it lies in the project."""
    project = shell.project
    if project is None or state.elsewhere or UNKNOWN in folder:
        return {}
    root = folder
    while not project.has(f"{root}/.git/config"):
        above = root.rpartition("/")[0]
        if len(above) < len(project.root):
            return {}
        root = above
    found: dict[str, str] = {}
    section = ""
    for line in (taking.read(shell, state, f"{root}/.git/config") or "").split("\n"):
        if (begun := _SECTION.match(line)) is not None:
            section = begun[1].lower() + (f".{begun[2]}" if begun[2] is not None else "")
        elif (told := _LINE.match(line)) is not None:
            key = f"{section}.{told[1]}".lower()
            if key in _ON_DISK or key.startswith("alias.") or _SERVED.fullmatch(key):
                found[key] = re.sub(r"\\(.)", r"\1", told[2].strip().strip('"'))
    return found


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
