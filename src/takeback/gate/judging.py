"""From the commands in a text to their risks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from .. import redact
from . import Risk, foreign, own, rules, web
from .deadline import Deadline
from .files import is_remote, touched
from .globs import ABOVE, SAME, covers
from .parsing import Shell
from .places import DEVICE, INSIDE, NOWHERE, OUT, SOMEWHERE, TEMPORARY, Places, places
from .repositories import elsewhere
from .state import TMPDIR, Command, State
from .words import UNKNOWN

UNSEEN = rules.UNREAD
_LONGEST = 200


def shell(
    command: str,
    cwd: str,
    root: str,
    home: str,
    stores: Iterable[str],
    config: Iterable[str],
    known: Mapping[str, str],
) -> tuple[Risk, ...]:
    """The risks of a shell command, the worst first, each once."""
    where = places(root, home)
    mine = own.own(home, where, stores, config)
    walked = Shell(home, own.matters(mine, where))
    text = command.replace(UNKNOWN, "").replace("\r\n", "\n")
    try:
        walked.run(text, State(cwd or root, home, known))
    except Exception:  # what makes no sense to us, or takes too long, must neither pass unseen nor break the hook
        walked.unseen.append(text[:_LONGEST])
    found: list[Risk] = []
    walked.deadline = Deadline()
    for judged in (own.in_shell(walked, mine, where, text), _all(walked, where)):
        try:
            for risk in judged:
                found.append(risk)
        except Exception:
            walked.unseen.append(text[:_LONGEST])
    for what in walked.unseen:
        found.append(Risk(UNSEEN, what or "code", "what it runs cannot be read before it runs"))
    found = [risk._replace(what=redact.text(risk.what), undo=redact.text(risk.undo)) for risk in found]
    unique = {(risk.kind, risk.what, risk.outside): risk for risk in found}
    guessed = [_by_words(risk) for risk in unique.values()] if walked.guessed else list(unique.values())
    return tuple(sorted(guessed, key=lambda risk: (not risk.refuse, risk.kind == rules.OUTSIDE)))


def _all(walked: Shell, where: Places) -> Iterator[Risk]:
    for each in walked.commands:
        walked.deadline.check()
        yield from _of(each, where)


def _by_words(risk: Risk) -> Risk:
    return risk._replace(why=f"{risk.why} (judged by its words alone: tree-sitter-bash cannot be loaded)")


def _of(command: Command, where: Places) -> Iterator[Risk]:
    name, words = command.name, list(command.words)
    if not command.elsewhere:
        yield from _files(command, where)
    if not words:
        return
    said = _said(words)
    if name == "git":
        words = _without_aliases(words, command.assigned)
        if not command.elsewhere:
            yield from elsewhere(command._replace(words=tuple(words)), where, said)
    for known, args in _disguises(name, words):
        rule = rules.matching(known, args)
        if command.stdin is None and rules.is_greeting(known, args):
            break
        if rule is not None and not rules.is_download(rule, known, args):
            undo = rules.push_undo(args) if rule.kind == rules.PUSH and known == "git" else rule.undo
            yield Risk(rule.kind, said, rule.why, undo)
            break
        if rules.is_unreadable(known, args):
            yield Risk(UNSEEN, said, f"nobody can say what {known} would do there")
            break
    if web.is_unreadable(name, words):
        yield Risk(UNSEEN, said, f"nobody can say what {name} would send there")
    if request := web.writing_request(name, words):
        kind = rules.FORGE if name == "gh" else rules.HTTP
        yield Risk(kind, said, f"a {request.split()[0]} request changes something on a server, which is not captured",
                   "takeback record http can journal the request that takes it back")  # fmt: skip
    if web.is_client(name) and (statement := web.destroys(name, words, command.stdin)):
        inside = name.startswith("sqlite") and _is_captured(words, command, where)
        if not inside:
            yield Risk(rules.DATABASE, f"{statement} in {said}", "what a database loses is not captured",
                       "restore it from a dump")  # fmt: skip
    if name in ("rsync", "scp") and any(is_remote(word) for word in words[1:] if not word.startswith("-")):
        plain = [word for word in words[1:] if not word.startswith("-")]
        dry = name == "rsync" and any(w == "--dry-run" or (w[:1] == "-" and w[1:2] != "-" and "n" in w) for w in words)
        if plain and is_remote(plain[-1]) and not dry:
            yield Risk(rules.REMOTE, said, "what is written on another machine is not captured")


def _disguises(name: str, words: list[str]) -> Iterator[tuple[str, list[str]]]:
    """A command as it is, and as what it stands for."""
    yield name, words
    if name.startswith("git-"):
        yield "git", ["git", name[4:], *words[1:]]
    if name in ("python", "php", "ruby") or name.startswith("python3"):
        for at, word in enumerate(words[1:], 1):
            if not word.startswith("-"):
                yield word.rpartition("/")[2], words[at:]
                break
    if name == "make":
        return


def _without_aliases(words: list[str], assigned: Mapping[str, str]) -> list[str]:
    """`git -c alias.x=push x` is a push."""
    config = foreign.git_config(words, assigned)
    aliases = {key[6:]: value for key, value in config.items() if key.startswith("alias.") and value[:1] != "!"}
    return [part for word in words for part in (aliases[word].split() if word in aliases else [word])]


def _is_captured(words: list[str], command: Command, where: Places) -> bool:
    file = web.sqlite_file(words)
    return not file or where.of(file, command.cwd)[0] == INSIDE


def _files(command: Command, where: Places) -> Iterator[Risk]:
    written: list[str] = []
    for path, deletes, recursive, _ in touched(command):
        if not path:
            continue
        place, real = where.of(path, command.cwd)
        shown = path.replace(UNKNOWN, "…")
        if place == DEVICE:
            yield Risk(rules.SYSTEM, f"{command.name} {shown}", "it writes to a device, below all files")
        elif place == INSIDE and deletes and (real.rstrip("/") == where.root or _is_git(real, where.root)):
            what = (
                "the workspace's own folder" if real == where.root else "a repository, whose objects are not captured"
            )
            yield Risk(rules.DELETE, _said(command.words), f"it deletes {what}")
        elif deletes and recursive and real.rstrip("/*") == TMPDIR:
            yield Risk(rules.DELETE, _said(command.words), "where TMPDIR is not set, that is the whole disk")
        elif place == OUT and deletes:
            real = real.replace(UNKNOWN, "…")
            why = f"{real} lies outside the workspace and is not captured"
            yield Risk(rules.DELETE, _said(command.words), why, outside=(real,))
        elif place == SOMEWHERE and deletes and recursive:
            yield Risk(rules.DELETE, _said(command.words), f"nobody can say where {shown} lies before it is deleted")
        elif place in (OUT, TEMPORARY):
            written.append(real.replace(UNKNOWN, "…"))
        elif place in (NOWHERE, SOMEWHERE):
            continue
    if written:
        what = _said(command.words) if command.words else f"> {written[0]}"
        yield Risk(rules.OUTSIDE, what, "what lies outside the workspace is not captured", outside=tuple(written))


def _is_git(path: str, root: str) -> bool:
    """Whether it is a repository's own folder, or something git needs in it."""
    if covers(path, f"{root}/.git") in (SAME, ABOVE):
        return True
    parts = path[len(root) :].strip("/").split("/")
    if ".git" not in parts:
        return False
    below = parts[parts.index(".git") + 1 :]
    return not below or below[0] in ("objects", "*", "refs", "packed-refs", "logs", "HEAD", UNKNOWN)


def _said(words: Iterable[str]) -> str:
    said = " ".join(words).replace(UNKNOWN, "…").replace("\n", " ")
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
