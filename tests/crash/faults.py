"""Fault injection: an operation is run again and again, and each of its calls fails in turn, reads included.

    python tests/crash/faults.py SCENARIO ROUND FOLDER [SHIFT]     ROUND shifts the errors by so many; SHIFT: a sample

Every system call of the tree and of the store is a point: each fails in turn, with the next error of the list. A round
for each error is every error at every call.

After each failure: either an error a person can act on, or a result that tells the truth; and once the cause is gone
everything works again, with no trace in the tree.
"""

from __future__ import annotations

import errno
import json
import sqlite3
import sys
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from crash.points import Points, chosen
from crash.scenarios import SCENARIOS, Place, Scenario, lower_big
from crash.sweep import (
    CLOCK,
    Picture,
    Wrong,
    expect_one_of,
    nothing_left,
    prepare,
    reference,
    restorable,
    round_trip,
    run,
    verified,
)
from support import picture
from takeback.errors import TakebackError
from takeback.model.effects import Checkpoint, Outcome
from takeback.workspace import Workspace

# All but those that say something about the path, rather than that the call failed: it is absent, there, or of another
# kind; or that there is no such call here, for which there are fallbacks.
ERRORS = (
    errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES, errno.EMFILE, errno.ENOMEM, errno.EPERM, errno.EDQUOT,
    errno.ESTALE, errno.EBUSY, errno.ENFILE, errno.EFBIG, errno.ETIMEDOUT, errno.ENXIO, errno.ENODEV, errno.ECANCELED,
)  # fmt: skip
_MAY_NOT = (errno.EACCES, errno.EPERM)
_TRIES = 5


def faults(scenario: Scenario, errors: int, place: Place, shift: int | None = None) -> dict[str, Any]:
    prepare(scenario, place)
    place.again()
    names, states = reference(scenario, place, reads=True)
    failures: list[str] = []
    told: dict[str, int] = {}
    numbers, hit = chosen(names, shift), 0
    for tried, number in enumerate(numbers):
        try:
            for code in (ERRORS[(tried + errors) % len(ERRORS)], errno.EIO):
                points, outcome = failing(scenario, place, code, number, len(names))
                number = points.at
                if code not in _MAY_NOT or not "".join(points.names[number - 1 : number]).endswith("xattr"):
                    break  # attributes that may not be read are not covered, by design
            if points.seen < number:
                continue
            hit += 1
            kind = outcome if isinstance(outcome, str) else "done"
            told[kind] = told.get(kind, 0) + 1
            check(scenario, place, outcome, states, thorough=tried % 3 == 0)
        except Exception as error:
            why = str(error) if isinstance(error, Wrong) else traceback.format_exc()
            name = points.names[number - 1] if number <= len(points.names) else "?"
            failures.append(f"{errno.errorcode[code]} at point {number} ({name}): {why}")
    return {"points": len(names), "tried": len(numbers), "hit": hit, "failures": failures, "told": told}


def failing(scenario: Scenario, place: Place, code: int, number: int, calls: int) -> tuple[Points, str | list[Any]]:
    """A run whose call of this number fails, and what came of it. A look reads again what was written just before it,
    so that a run on a busy machine makes fewer calls than there were to choose from: then the one fails that is as far
    from the end, or what comes last would never fail there."""
    from_end = calls - number
    for _ in range(_TRIES):
        place.again()
        points = Points(number, code, reads=True)
        outcome = attempt(scenario, place, points)
        if points.seen >= number:
            break
        number = max(1, points.seen - from_end)
    return points, outcome


def attempt(scenario: Scenario, place: Place, points: Points) -> str | list[Any]:
    """What the stages returned, or the message of the error that ended them."""
    results: list[Any] = []
    try:
        run(scenario, place, points, results.append)
    except TakebackError as error:
        if not error.message:
            raise Wrong("an error without a message") from error
        return "refused"
    except (OSError, sqlite3.Error) as error:
        raise Wrong(f"a bare {type(error).__name__}: {traceback.format_exc()}") from error
    return results


def check(scenario: Scenario, place: Place, outcome: str | list[Any], states: list[Picture], thorough: bool) -> None:
    after = states[-1]
    now = picture(place.root)
    with place.open(create=scenario.creates) as ws:
        verified(ws)
        if isinstance(outcome, list):
            for number, result in enumerate(outcome):
                if isinstance(result, Checkpoint) and not result.partial:
                    restorable(ws, place, result.id, states[number + 1])
            last = outcome[-1]
            if isinstance(last, Outcome) and last.whole and scenario.name != "export":
                expect_one_of(seen(now, scenario), seen(after, scenario))
        elif ws.interrupted():
            resumed = ws.resume()
            assert resumed is not None
            if not resumed.whole:
                raise Wrong(f"resume did not do all: {[r for r in resumed.results if r.result != 'done']}")
            expect_one_of(picture(place.root), after)
        elif now not in states and not any(s.get(b"") == CLOCK for s in states):
            expect_one_of(now, *states)
        nothing_left(place)
        if isinstance(outcome, list) and isinstance(last, Outcome) and not last.whole and scenario.name != "export":
            second_try(scenario, ws, place, last, after)
    if thorough:
        round_trip(place)


def seen(tree: Picture, scenario: Scenario) -> Picture:
    """What a whole outcome promises. Of a file that could not be read, only a rollback, which is about all there is,
    puts back the time or names it; and a restored file cannot be linked to one that could not be read."""
    if scenario.name == "restore":
        return {path: entry[:5] for path, entry in tree.items() if path}
    if scenario.name in ("rollback", "swap"):
        return tree
    return {**tree, b"touched": tree[b"touched"][:5]}


def second_try(scenario: Scenario, ws: Workspace, place: Place, first: Outcome, after: Picture) -> None:
    """What failed comes about by the same verb. Only a time may be left, which is no work by itself."""
    tries = [first, scenario.stages[0](ws, place)]
    now, wanted = seen(picture(place.root), scenario), seen(after, scenario)
    differs = [p for p in sorted({*now, *wanted}) if now.get(p) != wanted.get(p)]
    left = [p for p in differs if not (p in now and p in wanted and _but_for_time(now[p]) == _but_for_time(wanted[p]))]
    if left:
        undone = [[r for r in o.results if r.result != "done"] for o in tries]
        raise Wrong(f"a second try does not bring back {left}: {undone}")


def _but_for_time(entry: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*entry[:5], *entry[6:])


def main() -> None:
    name, errors, folder, *shift = sys.argv[1:]
    lower_big()
    place = Place(Path(folder))
    place.base.mkdir(parents=True, exist_ok=True)
    print(json.dumps(faults(SCENARIOS[name], int(errors), place, *map(int, shift))))


if __name__ == "__main__":
    main()
