"""From what is wanted in which files to what changes there; then all of it is written, or none.

targets ─► read each file ─► take ours out ─► put ours in ─► Change(before, after) ─► a person's yes ─► apply
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from takeback.errors import TakebackError
from takeback.system.locks import Lock

from . import jsonc, lines, records, writing
from .document import Document, Made, Span, without
from .records import Record
from .targets import Block, Config, Hooks, Target, Whole, is_marked, is_sealed
from .writing import Found

_EMPTY = "{}\n"
_LINES = ("command", "bash", "powershell")  # where a handler has its command line
_ASKED = re.compile(r"http://(?:127\.0\.0\.1|localhost|\[::1\]):(?P<port>\d{1,5})/(?P<agent>\w+)(?:/\w*)?")


class Change(NamedTuple):
    """What becomes of one file."""

    found: Found
    after: bytes | None
    record: Record | None = None  # to be kept with it; None: there is nothing of ours any more
    folders: tuple[str, ...] = ()  # that were made for it
    kept: str = ""  # why something of ours stays
    old: Record | None = None  # the record that was kept before
    note: str = ""  # what was wanted and is left alone, and why
    key: str = ""  # by which its record is kept, where that is not the file itself

    @property
    def path(self) -> Path:
        return self.found.path

    @property
    def differs(self) -> bool:
        return self.found.data != self.after


class _Clean(NamedTuple):
    """A file's text without ours; None where the file goes too."""

    text: str | None
    made: Made = frozenset()
    kept: str = ""


# -- planning ----------------------------------------------------------------


def protecting(targets: Iterable[Target], home: Path, mcp: bool) -> list[Change]:
    """What protect does. Raises, naming the file, where one of them cannot be changed safely."""
    return [_open(change) for target in targets if (change := _protect(target, home, mcp)) is not None]


def unprotecting(targets: Iterable[Target], home: Path) -> list[Change]:
    """What unprotect does."""
    return [_open(_unprotect(target, home)) for target in targets]


def _open(change: Change) -> Change:
    if change.differs:
        writing.must_be_open(change.found)
    return change


def _protect(target: Target, home: Path, mcp: bool) -> Change | None:
    found = writing.read(target.path)
    text = _text(found)
    record = records.load(home, str(found.real))
    if isinstance(target, Whole):
        if text is not None and not is_marked(text):
            raise TakebackError(
                f"{found.path} is there already and not takeback's", "move it away, or name other agents"
            )
        return _changed(found, target.text, text is None or record is not None, record)
    clean = _clean(target, found, text, record)
    if isinstance(target, Block):
        if not mcp and clean.text == text:
            return None
        return _put_block(target, found, clean, record)
    if not mcp and target.hooks is None and clean.text == text:
        return None
    if text is not None and _is_in_place(target, found, text, record, mcp):
        note = _theirs(target, _parsed(found, text, frozenset()), record) if mcp else ""
        return Change(found, found.data, record, old=record, note=note)
    return _put_config(target, found, clean, record, mcp)


def _is_in_place(target: Config, found: Found, text: str, record: Record | None, mcp: bool) -> bool:
    """Whether all of ours is there as it should be, wherever others have put theirs."""
    if _is_blank(text):
        return False
    had = record.made if record is not None else frozenset()
    document = _parsed(found, text, frozenset())
    for where, value in (*target.needed, *target.members):
        node = document.find(where)
        if node is None and (mcp or where in had or (where, value) in target.needed):
            return False
        if node is not None and where in had and node.value != value:
            return False
    events = target.hooks.events if target.hooks is not None else {}
    there = [(event, value) for event in _events(document) for value in _elements(document, event)]
    ours = [(event, value) for event, value in there if any(map(_is_handler, _handlers([value])))]
    return sorted(map(repr, ours)) == sorted(map(repr, events.items()))


def _theirs(target: Config, document: Document, record: Record | None) -> str:
    """Says which members somebody else has put there by the same name: they stay as they are."""
    had = record.made if record is not None else frozenset()
    there = [where for where, _ in target.members if where not in had and document.find(where) is not None]
    return ", ".join(f"{'.'.join(where)} is already there, and stays as it is" for where in there)


def _elements(document: Document, event: str) -> list[Any]:
    node = document.find(("hooks", event))
    return node.value if node is not None and jsonc.is_list(node) else []


def _put_config(target: Config, found: Found, clean: _Clean, record: Record | None, mcp: bool) -> Change:
    had = record.made if record is not None else frozenset()
    blank = clean.text if clean.text is not None and _is_blank(clean.text) else ""
    document = _parsed(found, _EMPTY if clean.text is None or _is_blank(clean.text) else clean.text, clean.made)
    note = _theirs(target, document, record) if mcp else ""
    try:
        for where, value in target.needed:
            document.set(where, value)
        for event, value in (target.hooks.events if target.hooks else {}).items():
            document.append(("hooks", event), value)
        for where, value in target.members:
            if mcp or where in had:
                document.set(where, value)
    except jsonc.Malformed as error:
        raise _refused(found, str(error)) from None
    text = blank + document.text
    spans = (Span(len(blank), document.text),) if blank or clean.text == "" else document.spans()
    return _changed(found, text, clean.text is None, record, spans, document.made)._replace(note=note)


def _put_block(target: Block, found: Found, clean: _Clean, record: Record | None) -> Change:
    before = clean.text or ""
    newline = "\r\n" if "\r\n" in before else "\n"
    marked = [f"# >>> {target.name}", *target.lines, f"# <<< {target.name}", ""]
    added = (newline if before and not before.endswith("\n") else "") + newline.join(marked)
    try:
        if note := target.taken(before):
            after = None if clean.text is None else found.data if before == _text(found) else before.encode()
            return Change(found, after, None, old=record, note=note)
        target.check(before + added)
    except ValueError as error:
        raise _refused(found, str(error)) from None
    return _changed(found, before + added, clean.text is None, record, (Span(len(before), added),))


def _changed(
    found: Found,
    text: str,
    absent: bool,
    old: Record | None,
    spans: Sequence[Span] = (),
    made: Made = frozenset(),
) -> Change:
    data = text.encode()
    folders = old.folders if old is not None else ()
    record = Record(str(found.real), records.digest(data), absent, tuple(spans), made, folders)
    return Change(found, data, record, folders, old=old)


def _unprotect(target: Target, home: Path) -> Change:
    found = writing.read(target.path)
    record = records.load(home, str(found.real))
    folders = record.folders if record is not None else ()
    if found.data is None:
        return Change(found, None, None, folders, old=record)
    if b"takeback" not in found.data:  # nothing of ours: whatever else is wrong with it, it stays
        return Change(found, found.data, None, folders, old=record)
    text = _text(found)
    assert text is not None
    clean = _clean(target, found, text, record)
    data = None if clean.text is None else found.data if clean.text == text else clean.text.encode()
    return Change(found, data, None, folders, clean.kept, record)


# -- taking ours out ---------------------------------------------------------


def _clean(target: Target, found: Found, text: str | None, record: Record | None) -> _Clean:
    if text is None:
        return _Clean(None)
    if isinstance(target, Config) and _is_blank(text):
        return _Clean(text)
    if isinstance(target, Whole):
        if is_sealed(text):
            return _Clean(None)
        return _Clean(text, kept="was edited since" if is_marked(text) else "")
    if record is not None and record.after == records.digest(found.data or b""):
        if record.absent:
            return _Clean(None)
        if (before := without(text, record.spans)) is not None:
            return _Clean(before)
    return (
        _clean_block(target, text, record) if isinstance(target, Block) else _clean_config(target, found, text, record)
    )


def _clean_config(target: Config, found: Found, text: str, record: Record | None) -> _Clean:
    """Finds ours wherever it is by now: the agent, or its owner, wrote the file anew."""
    document = _parsed(found, text, None if record is None else record.made)
    if target.hooks is not None:
        for event in _events(document):
            document.take_out_within(("hooks", event), "hooks", _is_handler)
            document.take_out(("hooks", event), _is_handler)
    for where, _ in target.members:
        if record is not None and where in record.made:
            document.drop(where)
    by_name = target.path.stem == "takeback" and document.text != text
    needed = {where[0] for where, _ in target.needed}
    if (by_name or (record is not None and record.absent)) and set(document.root.value) <= needed:
        return _Clean(None)
    return _Clean(document.text, frozenset(document.made))


def _clean_block(target: Block, text: str, record: Record | None) -> _Clean:
    start, end = f"# >>> {target.name}", f"# <<< {target.name}"
    kept, inside = [], False
    for line in text.splitlines(keepends=True):
        if line.strip() == start:
            inside = True
        if not inside:
            kept.append(line)
        if line.strip() == end:
            inside = False
    left = "".join(kept)
    if inside:  # its end is gone: nobody can tell what is ours
        return _Clean(text, kept="has lost the end of takeback's part")
    return _Clean(None if not left and record is not None and record.absent else left)


def _events(document: Document) -> list[str]:
    hooks = document.find(("hooks",))
    return [part.key for part in hooks.parts] if hooks is not None and jsonc.is_object(hooks) else []


def _is_handler(value: Any) -> bool:
    return isinstance(value, dict) and any(lines.is_ours(value.get(key)) for key in _LINES)


# -- what is there -----------------------------------------------------------


def lines_in(target: Target) -> list[str]:
    """The command lines of ours in a file, as they are now; none where it cannot be read."""
    return [line for _, line in hooks_in(_value_of(target))]


def _value_of(target: Target) -> dict[str, Any]:
    try:
        text = _text(writing.read(target.path))
        if text is None or not isinstance(target, Config) or target.hooks is None:
            return {}
        return dict(Document(text).root.value)
    except (TakebackError, jsonc.Malformed):
        return {}


def hooks_in(value: Any) -> list[tuple[str, str]]:
    """The hooks of ours in a configuration, as (event, command line)."""
    return [
        (event, handler[key])
        for event, handler in _handlers_in(value)
        for key in _LINES
        if lines.is_ours(handler.get(key))
    ]


def asked_by_http(target: Target, agent: str) -> dict[str, int]:
    """The events that an agent is set up to tell the resident process by HTTP, and the port of each. A person wrote
    these: protect does not, and leaves them alone."""
    there = [(event, handler.get("url")) for event, handler in _handlers_in(_value_of(target))]
    found = [(event, _ASKED.fullmatch(url)) for event, url in there if isinstance(url, str)]
    return {event: int(url["port"]) for event, url in found if url and url["agent"] == agent}


def broken(target: Target, home: Path) -> str:
    """Why the hooks that protect put into a file cannot be read there any more; empty if they can, or none were."""
    if not isinstance(target, Config) or target.hooks is None:
        return ""
    try:
        found = writing.read(target.path)
        text = _text(found)
        if text is not None and not _is_blank(text) and ("takeback" in text or _is_known(found, home)):
            Document(text)
    except jsonc.Malformed as error:
        return f"{target.path} does not parse: {error}"
    except TakebackError as error:
        return error.message if records.load(home, os.path.realpath(target.path)) is not None else ""
    return ""


def _is_known(found: Found, home: Path) -> bool:
    return records.load(home, str(found.real)) is not None


def has_ours(target: Target) -> bool:
    """Whether hooks of ours are in a file."""
    if not isinstance(target, Whole):
        return bool(lines_in(target))
    try:
        return is_marked(_text(writing.read(target.path)) or "")
    except TakebackError:
        return False


def wanted_lines(hooks: Hooks) -> list[str]:
    """The same as protect would write them."""
    handlers = _handlers(list(hooks.events.values()))
    return [handler[key] for handler in handlers for key in _LINES if key in handler]


def _handlers_in(value: Any) -> list[tuple[str, dict[str, Any]]]:
    """Each event of a configuration with each of its handlers, whosever."""
    events = value.get("hooks")
    named = events.items() if isinstance(events, dict) else ()
    return [(event, handler) for event, groups in named for handler in _handlers(groups)]


def _handlers(groups: Any) -> list[dict[str, Any]]:
    elements = [group for group in groups if isinstance(group, dict)] if isinstance(groups, list) else []
    inner = [h for group in elements if isinstance(group.get("hooks"), list) for h in group["hooks"]]
    return [handler for handler in (*elements, *inner) if isinstance(handler, dict)]


# -- doing it ----------------------------------------------------------------


@contextmanager
def alone(home: Path, timeout: float, portable: bool) -> Iterator[None]:
    """No other takeback plans and writes meanwhile: what one notes of a file, the other would forget."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise TakebackError(f"{home} cannot be made ({error.strerror})", "mend its permissions") from error
    with Lock(home / "setup.lock", portable).hold(timeout):
        yield


def apply(changes: Sequence[Change], home: Path) -> None:
    """Writes all of them; where one fails, those before it are put back."""
    done: list[Change] = []
    made: list[str] = []
    try:
        for change in changes:
            made += _apply(change, home)
            done.append(change)
    except BaseException:
        for change in reversed(done):
            _put_back(change)
        writing.remove_folders(made)
        for change in changes:
            if change.old is not None:
                records.keep(home, change.old)
            else:
                records.forget(home, change.key or str(change.found.real))
        raise
    gone = {folder for c in changes if c.after is None for folder in c.folders}
    writing.remove_folders(sorted(gone))
    for change in changes:
        if change.record is None and not change.kept:
            records.forget(home, change.key or str(change.found.real))


def _apply(change: Change, home: Path) -> list[str]:
    """Returns the folders that it made."""
    if change.record is not None:
        records.keep(home, change.record)  # before the file: a record too many does no harm
    if not change.differs:
        return []
    if change.after is None:
        writing.remove(change.found)
        return []
    made = writing.write(change.found, change.after)
    if made and change.record is not None:
        records.keep(home, change.record._replace(folders=(*change.folders, *made)))
    return made


def _put_back(change: Change) -> None:
    try:
        now = writing.read(change.path)
        if not change.differs:
            return
        if change.found.data is None:
            writing.remove(now)
            return
        writing.write(now._replace(mode=change.found.mode, owner=change.found.owner), change.found.data)
    except TakebackError:
        pass  # the error that led here is told


# -- reading -----------------------------------------------------------------


def _text(found: Found) -> str | None:
    if found.data is None:
        return None
    try:
        return found.data.decode("utf-8")
    except UnicodeDecodeError:
        raise _refused(found, "it is no UTF-8") from None


def _is_blank(text: str) -> bool:
    """Whether a configuration says nothing yet: agents take such a file for {}."""
    return not text.removeprefix("\ufeff").strip()


def _parsed(found: Found, text: str, made: Made | None) -> Document:
    try:
        return Document(text, made)
    except jsonc.Malformed as error:
        raise _refused(found, str(error)) from None


def _refused(found: Found, why: str) -> TakebackError:
    return TakebackError(f"{found.path} cannot be changed safely: {why}", "mend the file; nothing was changed")
