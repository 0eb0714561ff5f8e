"""Few descriptors: an operation is run again and again, with one descriptor more each time, until it has enough.

    python tests/crash/descriptors.py SCENARIO FOLDER

After each run: either an error a person can act on, or a result that tells the truth; and with descriptors again the
same verb finishes it, and everything goes on.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from crash.scenarios import SCENARIOS, Place, Scenario
from crash.sweep import Wrong, expect_one_of, nothing_left, prepare, reference, round_trip, verified
from support import picture
from takeback.errors import TakebackError

FEWEST, MOST = 4, 40


def starved(scenario: Scenario, place: Place, limit: int) -> str:
    """What came of it in a child that may open so many files: whole, part, refused, or something worse."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            ws = place.open()
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            try:
                told = "whole" if scenario.stages[0](ws, place).whole else "part"
            except TakebackError as error:
                told = "refused" if error.message else "an error without a message"
            except BaseException:
                told = traceback.format_exc()
            os.write(writer, told.encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    return told


def check(scenario: Scenario, place: Place, after: Any) -> None:
    with place.open() as ws:
        verified(ws)
        if ws.interrupted():
            ws.resume()
        if picture(place.root) != after:
            scenario.stages[0](ws, place)
        expect_one_of(picture(place.root), after)
        nothing_left(place)
    round_trip(place)


def main() -> None:
    scenario, place = SCENARIOS[sys.argv[1]], Place(Path(sys.argv[2]))
    prepare(scenario, place)
    place.again()
    _, states = reference(scenario, place)
    told: dict[str, int] = {}
    failures = []
    for limit in range(FEWEST, MOST):
        place.again()
        outcome = starved(scenario, place, limit)
        told[outcome] = told.get(outcome, 0) + 1
        try:
            if outcome not in ("whole", "part", "refused"):
                raise Wrong(outcome)
            check(scenario, place, states[-1])
        except Exception as error:
            why = str(error) if isinstance(error, Wrong) else traceback.format_exc()
            failures.append(f"{limit} descriptors ({outcome}): {why}")
    print(json.dumps({"told": told, "failures": failures}))


if __name__ == "__main__":
    main()
