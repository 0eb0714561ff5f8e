"""Lines of text compared, merged and recognised: pure functions over bytes, no I/O.

A line ends at a newline and keeps it, so `\\r\\n`, a missing last newline and any encoding survive.
Everything rests on `_changes`, the blocks in which two lists of lines differ; its work has a bound, beyond
which a diff gets coarser, never wrong.
"""

from __future__ import annotations

import io
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

Lines = list[bytes]

NO_NEWLINE = b"\\ No newline at end of file"

_BINARY_WINDOW = 8000
_EFFORT = 1_000_000  # comparisons in a whole diff, about half a second
_EFFORT_PER_LINE = 20  # comparisons between two anchors, once the whole was too much
_POSITION_SLACK = 8  # lines


class Conflict(Exception):
    """Both sides changed the same place, and differently."""


class Hunk(NamedTuple):
    """One `@@ -old_start,old_lines +new_start,new_lines @@` of a unified diff, its lines without newlines."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: tuple[bytes, ...]


def is_binary(data: bytes) -> bool:
    """Git's rule: a NUL near the start."""
    return b"\0" in data[:_BINARY_WINDOW]


# Comparing two


class _Change(NamedTuple):
    """Lines a0 to a1 became lines b0 to b1; one of the two may be empty."""

    a0: int
    a1: int
    b0: int
    b1: int

    @property
    def grows(self) -> bool:
        return self.b1 - self.b0 > self.a1 - self.a0


class _Run(NamedTuple):
    """`length` lines from a on that equal those from b on."""

    a: int
    b: int
    length: int


def _split(data: bytes) -> Lines:
    # bytes.splitlines would also break at a lone \r.
    return io.BytesIO(data).readlines()


def _changes(a: Lines, b: Lines) -> list[_Change]:
    """The blocks in which a and b differ, in order, with at least one equal line between any two."""
    runs = _runs(a, b, _EFFORT, _between_anchors)
    if len(a) == len(b):
        # Among repeated lines many alignments are equally short; the one a person means is line by line.
        level = [_Run(i, i, 1) for i, (x, y) in enumerate(zip(a, b)) if x == y]
        if len(level) >= sum(run.length for run in runs):
            runs = level
    changes = []
    i = j = 0
    for run in [*runs, _Run(len(a), len(b), 0)]:
        if (i, j) != (run.a, run.b):
            changes.append(_Change(i, run.a, j, run.b))
        i, j = run.a + run.length, run.b + run.length
    return _sunk(a, b, _joined(a, b, changes))


def _joined(a: Lines, b: Lines, changes: list[_Change]) -> list[_Change]:
    """The same changes, fewer: 0 0 → 1 0 is one line replaced, not 1 inserted above and a 0 deleted below."""
    joined: list[_Change] = []
    for change in changes:
        last = joined[-1] if joined else change
        gap = change.a0 - last.a1
        if joined and _slack_above(a, b, change, gap) == gap:
            joined[-1] = _Change(last.a0, change.a1 - gap, last.b0, change.b1 - gap)
        elif joined and _slack_below(a, b, last, gap) == gap:
            joined[-1] = _Change(last.a0 + gap, change.a1, last.b0 + gap, change.b1)
        else:
            joined.append(change)
    return joined


def _sunk(a: Lines, b: Lines, changes: list[_Change]) -> list[_Change]:
    """Every insertion and deletion as low as equal lines allow, so that two sides that did the same agree."""
    ends = [change.a0 - 1 for change in changes[1:]] + [len(a)]
    by = [_slack_below(a, b, change, end - change.a1) for change, end in zip(changes, ends)]
    return [_Change(a0 + n, a1 + n, b0 + n, b1 + n) for (a0, a1, b0, b1), n in zip(changes, by)]


def _slack_below(a: Lines, b: Lines, change: _Change, most: int) -> int:
    """How many lines further down an insertion or deletion could as well have happened."""
    lines, start, end = _only_side(a, b, change)
    n = 0
    while start < end and n < most and lines[start + n] == lines[end + n]:
        n += 1
    return n


def _slack_above(a: Lines, b: Lines, change: _Change, most: int) -> int:
    lines, start, end = _only_side(a, b, change)
    n = 0
    while start < end and n < most and lines[start - 1 - n] == lines[end - 1 - n]:
        n += 1
    return n


def _only_side(a: Lines, b: Lines, change: _Change) -> tuple[Lines, int, int]:
    """The lines that an insertion or deletion is about; none for a replacement, which has its place."""
    if change.a0 == change.a1:
        return b, change.b0, change.b1
    if change.b0 == change.b1:
        return a, change.a0, change.a1
    return [], 0, 0


def _runs(a: Lines, b: Lines, effort: int, otherwise: Callable[[Lines, Lines], list[_Run]]) -> list[_Run]:
    """The equal runs of a and b: head, tail, and what is between them, by `otherwise` beyond `effort`."""
    shorter = min(len(a), len(b))
    head = 0
    while head < shorter and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < shorter - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    a_end, b_end = len(a) - tail, len(b) - tail
    middle_a, middle_b = a[head:a_end], b[head:b_end]
    middle = _shortest(middle_a, middle_b, effort)
    if middle is None:
        middle = otherwise(middle_a, middle_b)
    runs = [_Run(0, 0, head), *(_Run(head + i, head + j, n) for i, j, n in middle), _Run(a_end, b_end, tail)]
    return [run for run in runs if run.length]


class _Trail(NamedTuple):
    """The equal runs met on one path through the edit graph, last first."""

    run: _Run
    before: _Trail | None


def _shortest(a: Lines, b: Lines, effort: int) -> list[_Run] | None:
    """Equal runs with the fewest lines left out (Myers' greedy algorithm), or None beyond `effort`."""
    if not a or not b:
        return []
    # By diagonal (place in a − place in b): how far in a one can get with `edits` edits, and how.
    reach: dict[int, int] = {1: 0}
    trails: dict[int, _Trail | None] = {1: None}
    for edits in range(len(a) + len(b) + 1):
        lowest = -edits + 2 * max(0, edits - len(b))
        highest = edits - 2 * max(0, edits - len(a))
        for diagonal in range(lowest, highest + 1, 2):
            inserting = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
            came_from = diagonal + 1 if inserting else diagonal - 1
            start = x = reach[came_from] + (not inserting)
            y = x - diagonal
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x += 1
                y += 1
            trail = trails[came_from]
            if x > start:
                trail = _Trail(_Run(start, start - diagonal, x - start), trail)
            if x >= len(a) and y >= len(b):
                return _unwind(trail)
            reach[diagonal], trails[diagonal] = x, trail
            effort -= x - start + 1
            if effort < 0:
                return None
    raise AssertionError("len(a) + len(b) edits always suffice")


def _unwind(trail: _Trail | None) -> list[_Run]:
    runs = []
    while trail:
        runs.append(trail.run)
        trail = trail.before
    return runs[::-1]


def _between_anchors(a: Lines, b: Lines) -> list[_Run]:
    """A coarser diff for big inputs (patience): hold on to lines that occur once, compare between them."""
    runs: list[_Run] = []
    i = j = 0
    for next_i, next_j in [*_anchors(a, b), (len(a), len(b))]:
        gap_a, gap_b = a[i:next_i], b[j:next_j]
        # Without anchors the gap is all there is, and that was too much already.
        effort = _EFFORT_PER_LINE * (len(gap_a) + len(gap_b)) if len(gap_a) < len(a) else 0
        inside = _runs(gap_a, gap_b, effort, lambda _a, _b: [])
        runs += (_Run(i + x, j + y, n) for x, y, n in inside)
        if next_i < len(a):
            runs.append(_Run(next_i, next_j, 1))
        i, j = next_i + 1, next_j + 1
    return runs


def _anchors(a: Lines, b: Lines) -> list[tuple[int, int]]:
    """The longest series of lines, each once in a and once in b, that come in the same order in both."""
    place_in_b = _occurring_once(b)
    pairs = [(i, place_in_b[line]) for line, i in _occurring_once(a).items() if line in place_in_b]
    # Patience sorting: ends[k] is the smallest place in b at which a series of k + 1 can end.
    ends: list[int] = []
    holders: list[int] = []
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        k = bisect_left(ends, j)
        before.append(holders[k - 1] if k else -1)
        ends[k : k + 1] = [j]
        holders[k : k + 1] = [index]
    series = []
    index = holders[-1] if holders else -1
    while index >= 0:
        series.append(pairs[index])
        index = before[index]
    return series[::-1]


def _occurring_once(lines: Lines) -> dict[bytes, int]:
    times = Counter(lines)
    return {line: i for i, line in enumerate(lines) if times[line] == 1}


def kept_lines(old: bytes, new: bytes) -> list[int | None]:
    """For each line of new the one of old that it still is, counted from 0; None where it was written anew."""
    a, b = _split(old), _split(new)
    kept: list[int | None] = []
    at = 0
    for change in _changes(a, b):
        kept += range(at, change.a0)
        kept += [None] * (change.b1 - change.b0)
        at = change.a1
    return [*kept, *range(at, len(a))]


def lines(data: bytes) -> Lines:
    """A text as lines, each with its newline."""
    return _split(data)


# Merging three


def merge3(
    base: bytes,
    ours: bytes,
    theirs: bytes,
    markers: bool = False,
    labels: tuple[str, str] = ("yours", "before"),
) -> bytes:
    """Both sides' changes to base, line by line; where they clash, Conflict, or markers around the two."""
    if theirs in (base, ours):
        return ours
    if ours == base:
        return theirs
    if is_binary(base) or is_binary(ours) or is_binary(theirs):
        raise Conflict("binary content cannot be merged line by line")
    old, mine, other = _split(base), _split(ours), _split(theirs)
    changes, other_changes = _changes(old, mine), _changes(old, other)
    if _keeps_position(old, mine, changes) and _keeps_position(old, other, other_changes):
        level = _line_by_line(old, mine, other)
        if level is not None:
            return b"".join(level)
    merged: Lines = []
    done = 0
    for group, other_group in _clashing(mine, changes, other, other_changes):
        start = min(change.a0 for change in group + other_group)
        end = max(change.a1 for change in group + other_group)
        was = old[start:end]
        here, there = _became(was, mine, group, start, end), _became(was, other, other_group, start, end)
        settled = _settle(was, here, there)
        if settled is None:
            if not markers:
                raise Conflict(f"both sides changed line {start + 1}")
            settled = _marked(here, there, labels)
        merged += old[done:start] + settled
        done = end
    return b"".join(merged + old[done:])


def _keeps_position(base: Lines, side: Lines, changes: list[_Change]) -> bool:
    """Whether the side is well described as base with some lines replaced, each in its place.

    In a short file of few distinct lines, replaced lines often look like moved ones (0 1 2 → 1 2 0), so the
    shortest diff may be a little shorter than this description without being the truer one.
    """
    if len(base) != len(side):
        return False
    replaced = sum(x != y for x, y in zip(base, side))
    return replaced <= sum(change.a1 - change.a0 for change in changes) + _POSITION_SLACK


def _line_by_line(base: Lines, ours: Lines, theirs: Lines) -> Lines | None:
    """The merge of three equally long lists by position, or None if a line changed in two ways."""
    merged = []
    for was, here, there in zip(base, ours, theirs, strict=True):
        if here != there and was not in (here, there):
            return None
        merged.append(there if here == was else here)
    return merged


def _clashing(
    ours: Lines, our_changes: list[_Change], theirs: Lines, their_changes: list[_Change]
) -> Iterable[tuple[list[_Change], list[_Change]]]:
    """The changes of both sides in the order of base, those that have to be judged together in one group.

    base     1 2 3 4 5 6 7 8
    ours     └───┘   └─┘           1–3 and 3–4 overlap: one group
    theirs       └─┘     └─┘       5–6 and 7–8 only touch: a group each
    """
    sides = ours, theirs
    tagged = [(change, 0) for change in our_changes] + [(change, 1) for change in their_changes]
    groups: tuple[list[_Change], list[_Change]] = ([], [])
    for change, side in sorted(tagged):
        opposite = groups[1 - side]
        if not (opposite and _clash(opposite[-1], sides[1 - side], change)):
            if any(groups):
                yield groups
            groups = ([], [])
        groups[side].append(change)
    if any(groups):
        yield groups


def _clash(first: _Change, first_lines: Lines, second: _Change) -> bool:
    if first.a1 != second.a0:
        return first.a1 > second.a0
    # They touch. If both bring extra lines, nothing says whose come first; and nothing may follow a line that
    # has lost its newline.
    unterminated = first.b1 > first.b0 and not first_lines[first.b1 - 1].endswith(b"\n")
    return unterminated or (first.grows and second.grows)


def _became(was: Lines, side: Lines, group: list[_Change], start: int, end: int) -> Lines:
    """What lines start to end of base are on a side whose changes there are `group`."""
    if not group:
        return was
    first, last = group[0], group[-1]
    return side[first.b0 - (first.a0 - start) : last.b1 + (end - last.a1)]


def _settle(was: Lines, here: Lines, there: Lines) -> Lines | None:
    if there in (was, here):
        return here
    if here == was:
        return there
    if len(was) == len(here) == len(there):
        return _line_by_line(was, here, there)
    return None


def _marked(here: Lines, there: Lines, labels: tuple[str, str]) -> Lines:
    newline = b"\r\n" if any(line.endswith(b"\r\n") for line in here + there) else b"\n"

    def closed(lines: Lines) -> Lines:
        return [line if line.endswith(b"\n") else line + newline for line in lines]

    opening, closing = (label.encode(errors="surrogateescape") for label in labels)
    return [
        b"<<<<<<< " + opening + newline,
        *closed(here),
        b"=======" + newline,
        *closed(there),
        b">>>>>>> " + closing + newline,
    ]


# Showing


def hunks(old: bytes, new: bytes, context: int = 3) -> tuple[Hunk, ...]:
    """The unified diff of two texts; whoever asks has ruled out binary content."""
    a, b = _split(old), _split(new)
    groups: list[list[_Change]] = []
    for change in _changes(a, b):
        if groups and change.a0 - groups[-1][-1].a1 <= 2 * context:
            groups[-1].append(change)
        else:
            groups.append([change])
    return tuple(_hunk(a, b, group, context) for group in groups)


def _hunk(a: Lines, b: Lines, group: Sequence[_Change], context: int) -> Hunk:
    first, last = group[0], group[-1]
    above = min(context, first.a0)
    below = min(context, len(a) - last.a1)
    a0, a1 = first.a0 - above, last.a1 + below
    b0, b1 = first.b0 - above, last.b1 + below
    lines: Lines = []
    done = a0
    for change in group:
        lines += _shown(b" ", a[done : change.a0])
        lines += _shown(b"-", a[change.a0 : change.a1])
        lines += _shown(b"+", b[change.b0 : change.b1])
        done = change.a1
    lines += _shown(b" ", a[done:a1])
    # An empty side is numbered by the line before it, hence no + 1 there.
    return Hunk(a0 + (a1 > a0), a1 - a0, b0 + (b1 > b0), b1 - b0, tuple(lines))


def _shown(sign: bytes, lines: Lines) -> Lines:
    shown = [sign + line.removesuffix(b"\n") for line in lines]
    if lines and not lines[-1].endswith(b"\n"):
        shown.append(NO_NEWLINE)
    return shown


def count(hunks: Iterable[Hunk]) -> tuple[int, int]:
    """How many lines were added and removed."""
    signs = Counter(line[:1] for hunk in hunks for line in hunk.lines)
    return signs[b"+"], signs[b"-"]


# Recognising


class _Profile(NamedTuple):
    size: int
    weights: dict[bytes, int]  # bytes in all occurrences of a line


def _profile(data: bytes) -> _Profile:
    return _Profile(len(data), {line: n * len(line) for line, n in Counter(_split(data)).items()})


def _overlap(a: _Profile, b: _Profile) -> float:
    common = a.weights.keys() & b.weights.keys()
    shared = sum(map(min, map(a.weights.__getitem__, common), map(b.weights.__getitem__, common)))
    return shared / max(a.size, b.size, 1)


def similarity(a: bytes, b: bytes) -> float:
    """From 0 to 1, how much of the longer content is lines of the other, in any order, weighed by bytes."""
    if a == b:
        return 1.0
    if is_binary(a) or is_binary(b):
        return 0.0
    return _overlap(_profile(a), _profile(b))


def pair_renames(
    deleted: Mapping[bytes, T],
    created: Mapping[bytes, T],
    content_id: Callable[[T], Hashable],
    read: Callable[[T], bytes | None],
    threshold: float = 0.6,
    limit: int = 200,
) -> dict[bytes, bytes]:
    """Which created path is a deleted one under a new name: the same content first, then the most similar.

    Each path is used once. Contents that `read` declines are never compared, nor are those beyond the first
    `limit` paths of either side.
    """
    pairs = _same_content(deleted, created, content_id)
    taken = set(pairs.values())
    gone = _profiles(deleted, [path for path in sorted(deleted) if path not in taken][:limit], read)
    come = _profiles(created, [path for path in sorted(created) if path not in pairs][:limit], read)
    candidates = []
    for new, new_profile in come.items():
        for old, old_profile in gone.items():
            # No overlap can exceed the ratio of the sizes, and that is cheap to know.
            smaller, larger = sorted((new_profile.size, old_profile.size))
            if smaller >= threshold * larger:
                score = _overlap(new_profile, old_profile)
                if score >= threshold:
                    candidates.append((-score, _basename(new) != _basename(old), new, old))
    for _, _, new, old in sorted(candidates):
        if new not in pairs and old not in taken:
            pairs[new] = old
            taken.add(old)
    return dict(sorted(pairs.items()))


def _same_content(
    deleted: Mapping[bytes, T], created: Mapping[bytes, T], content_id: Callable[[T], Hashable]
) -> dict[bytes, bytes]:
    """Of several with the same content the one that kept its name, then one that stayed in its folder, then any."""
    ids = {path: content_id(value) for path, value in deleted.items()}
    new_ids = {path: content_id(value) for path, value in created.items()}
    pairs: dict[bytes, bytes] = {}
    for kept in (_basename, _folder, lambda path: b""):
        taken = set(pairs.values())
        pairs |= _equal_keys(
            {path: (key, kept(path)) for path, key in ids.items() if path not in taken},
            {path: (key, kept(path)) for path, key in new_ids.items() if path not in pairs},
        )
    return pairs


def _equal_keys(deleted: Mapping[bytes, Hashable], created: Mapping[bytes, Hashable]) -> dict[bytes, bytes]:
    left: dict[Hashable, list[bytes]] = {}
    for old in sorted(deleted, reverse=True):
        left.setdefault(deleted[old], []).append(old)
    return {new: left[created[new]].pop() for new in sorted(created) if left.get(created[new])}


def _profiles(files: Mapping[bytes, T], paths: list[bytes], read: Callable[[T], bytes | None]) -> dict[bytes, _Profile]:
    contents = ((path, read(files[path])) for path in paths)
    return {path: _profile(data) for path, data in contents if data and not is_binary(data)}


def _folder(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _basename(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]
