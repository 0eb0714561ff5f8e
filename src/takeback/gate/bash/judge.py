"""From the commands in a text to their risks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from takeback.gate import own_undo, requests_and_statements, rules
from takeback.gate.code import databases, other_languages
from takeback.gate.code.project import Project
from takeback.gate.code.written import Written
from takeback.gate.deadline import Deadline
from takeback.gate.git_elsewhere import elsewhere
from takeback.gate.paths_written import WRITERS, is_remote, touched
from takeback.gate.places import DEVICE, INSIDE, NOWHERE, OUT, SOMEWHERE, TEMPORARY, Places, places
from takeback.gate.risk import Risk
from takeback.privacy import redact

from .builtins import BUILTINS
from .globs import ABOVE, SAME, covers
from .outputs import NO_FILES, ONLY_READ
from .state import TMPDIR, Command, State
from .walk import SYSTEM, Shell
from .words import UNKNOWN
from .wrappers import SHELLS, WRAPPERS

UNSEEN = rules.UNREAD
_ELSEWHERE = "what a program does on other machines is not captured"
_REACHES = {
    rules.HTTP: "it opens a connection that may change something on a server, which is not captured",
    rules.SEND: "a mail that has left cannot be called back",
    rules.REMOTE: _ELSEWHERE,
    rules.CLOUD: _ELSEWHERE,
    rules.DATABASE: "what a database loses is not captured",
}
_KNOWN = ONLY_READ | NO_FILES | WRITERS  # programs that do what their name says, to files and streams
_LONGEST = 200
_CAUGHT = Exception  # what makes no sense to us, or takes too long, must neither pass unseen nor break the hook
_NETWORK = ("/dev/tcp/", "/dev/udp/")  # to bash these are connections
_LOOPBACK = ("/dev/tcp/localhost/", "/dev/tcp/127.0.0.1/")  # opened and left alone: whether somebody listens there


class Judged(NamedTuple):
    """What is known of a command: its risks, the worst first, each once; what of it nobody can know; and where it ends
    processes, by which it does not work on files alone."""

    risks: tuple[Risk, ...]
    unknown: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()


def shell(
    command: str,
    cwd: str,
    root: str,
    home: str,
    stores: Iterable[str],
    config: Iterable[str],
    known: Mapping[str, str],
) -> Judged:
    """A shell command, with the files of the project that it runs."""
    where = places(root, home)
    mine = own_undo.own(home, where, stores, config)
    walked = Shell(home, own_undo.matters(mine, where), Project(root))
    text = command.replace(UNKNOWN, "").replace("\r\n", "\n")
    try:
        walked.run(text, State(cwd or root, home, known, Written()))
    except _CAUGHT:
        walked.unseen.append(text[:_LONGEST])
    found: list[Risk] = []
    walked.deadline = Deadline()
    for judged in (own_undo.in_shell(walked, mine, where, text), _all(walked, where)):
        try:
            for risk in judged:
                found.append(risk)
        except _CAUGHT:
            walked.unseen.append(text[:_LONGEST])
    for what in walked.unseen:
        found.append(Risk(UNSEEN, what or "code", "what it runs cannot be read before it runs"))
    found = [risk._replace(what=redact.text(risk.what), undo=redact.text(risk.undo)) for risk in found]
    unique = _unique(found)
    guessed = [_by_words(risk) for risk in unique] if walked.guessed else unique
    risks = tuple(sorted(guessed, key=lambda risk: (not risk.refuse, risk.kind == rules.OUTSIDE)))
    ends = (_said(list(c.words)) for c in walked.commands if rules.signalled(c.name, c.words))
    told = (redact.text(said.replace(UNKNOWN, "…")) for said in ends)
    return Judged(risks, tuple(dict.fromkeys(_unknown(walked, where))), tuple(dict.fromkeys(told)))


def _unique(found: Iterable[Risk]) -> list[Risk]:
    """Each once, with how often it is: the same request twice is two acts."""
    unique: dict[tuple[str, str, tuple[str, ...]], Risk] = {}
    for risk in found:
        same = unique.get(key := (risk.kind, risk.what, risk.outside))
        times = risk.times + same.times if same is not None and risk.request else risk.times
        unique[key] = risk._replace(times=times)
    return [risk._replace(times=max(1, risk.times)) for risk in unique.values()]


def _unknown(walked: Shell, where: Places) -> Iterator[str]:
    """Programs of which only their own code says what they do, and what could not be read of them."""
    known = _KNOWN | SHELLS | WRAPPERS.keys() | BUILTINS.keys() | walked.functions | {"make", "gmake", "", UNKNOWN}
    for command in walked.commands:
        name = command.name
        if name not in known | rules.ENDERS and not name.isdecimal() and not rules.is_known(name, command.words):
            yield name
        elif "/" in "".join(command.words[:1]) and not command.elsewhere and not SYSTEM.match(command.words[0]):
            yield command.words[0].replace(UNKNOWN, "…")  # it only bears the name
        if name == "gh" and "graphql" in command.words and any("query=@" in w or UNKNOWN in w for w in command.words):
            yield "what gh api graphql is told"
        for path, *_ in () if command.elsewhere else touched(command):
            if path and where.of(path, command.cwd)[0] == SOMEWHERE:
                yield f"where {path.replace(UNKNOWN, '…')} lies, which it writes"
    yield from walked.unread


def _all(walked: Shell, where: Places) -> Iterator[Risk]:
    for each in walked.commands:
        walked.deadline.check()
        for risk in _of(each, where):
            risk = risk._replace(times=0) if each.again else risk
            yield risk._replace(what=f"{risk.what} (in {each.script})") if each.script else risk
    for kind, what, script in walked.sent:
        yield Risk(kind, f"{what} in {script or 'its code'}", _REACHES[kind])


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
    if rules.ends_all(name, words):
        yield Risk(rules.SYSTEM, said, "it ends every process that it may, the agent's own among them")
    if rules.sets_clock(name, words):
        yield Risk(rules.SYSTEM, said, "it sets the clock of the machine")
    if requests_and_statements.is_unreadable(name, words):
        yield Risk(UNSEEN, said, f"nobody can say what {name} would send there")
    requests = requests_and_statements.writing_requests(name, words)
    for request in requests:
        kind = rules.FORGE if name == "gh" else rules.HTTP
        what = said if len(requests) == 1 else f"{request} in {said}"  # each is an effect of its own
        yield Risk(kind, what, f"a {request.split()[0]} request changes something on a server, which is not captured",
                   "takeback record http can journal the request that takes it back", request=request)  # fmt: skip
    if requests_and_statements.is_client(name) and not (
        name.startswith("sqlite") and _is_captured(words, command, where)
    ):
        statement = requests_and_statements.destroys(name, words, command.stdin) or databases.changes(
            name, command.stdin or ""
        )
        if statement:
            yield Risk(rules.DATABASE, f"{statement} in {said}", "what is done to a database is not captured",
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
            if word in ("-c", "-m", "-r", "-e"):
                break
            if not word.startswith("-") and words[at - 1] not in ("-W", "-X", "-I"):
                yield word.rpartition("/")[2], words[at:]
                break


def _without_aliases(words: list[str], assigned: Mapping[str, str]) -> list[str]:
    """`git -c alias.x=push x` is a push."""
    config = other_languages.git_config(words, assigned)
    aliases = {key[6:]: value for key, value in config.items() if key.startswith("alias.") and value[:1] != "!"}
    return [part for word in words for part in (aliases[word].split() if word in aliases else [word])]


def _is_captured(words: list[str], command: Command, where: Places) -> bool:
    file = requests_and_statements.sqlite_file(words)
    return not file or where.of(file, command.cwd)[0] == INSIDE


def _files(command: Command, where: Places) -> Iterator[Risk]:
    written: list[str] = []
    for path, deletes, recursive, _ in touched(command):
        if not path:
            continue
        place, real = where.of(path, command.cwd)
        shown = path.replace(UNKNOWN, "…")
        if real.startswith(_NETWORK):
            if not (
                real.startswith(_LOOPBACK) and command.name in ("", "echo", ":", "true") and len(command.words) < 2
            ):
                yield Risk(rules.HTTP, f"{_said(command.words)} > {shown}".strip(), _REACHES[rules.HTTP])
        elif place == DEVICE:
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
        elif place == OUT or (place == TEMPORARY and not command.script):
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
