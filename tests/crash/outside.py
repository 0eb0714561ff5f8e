"""The kill sweep over a plan with files and outside acts: one firing of each inverse, never two, none forgotten.

    python tests/crash/outside.py HOW FOLDER     HOW: before, after

Each run starts from the same tree, store and approved plan; the child applies it and dies at its Nth mutating call, the
line in the ledger being one of them. Then:

    verify ─► resume ─► each line is there at most once, and every effect says what is true of it
    ─► a person resolves what nobody knows ─► approve and run again ─► every line is there exactly once, the tree is back
"""

from __future__ import annotations

import json
import sys
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import ledger
from crash.points import Points, chosen
from crash.scenarios import Place, Scenario
from crash.sweep import Wrong, expect_one_of, forked, nothing_left, verified
from support import picture
from takeback import domains
from takeback.model.effects import Outcome
from takeback.workspace import Workspace

domains.BUILT_IN["ledger"] = "ledger:Ledger"
LINES = {"plain": {}, "probed": {"probe": True}, "vouched": {"idempotent": True}, "on plain": {"target": "t/sub"}}


def written(place: Place) -> Path:
    folder = place.base / "out"
    folder.mkdir(exist_ok=True)
    return folder / "ledger"


def prepare(place: Place) -> str:
    """Four effects among changes of files, and an approved plan that takes everything back; its id."""
    place.root.mkdir(parents=True)
    (place.root / "f").write_text("0\n")
    with place.open(create=True) as ws:
        ws.checkpoint("base")
        for number, (line, how) in enumerate(LINES.items()):
            (place.root / "f").write_text(f"{number + 1}\n")
            (place.root / line).mkdir()
            ledger.record(ws, written(place), line, **{"target": "t" if line == "plain" else line, **how})
        (place.root / "last").write_text("x\n")
        plan = ws.plan("rollback", save=True)
        ws.approve(plan)
    for meta in place.home.glob("*/workspace.json"):  # each run has a copy of the root, which is another folder
        meta.write_text(json.dumps({**json.loads(meta.read_text()), "inode": 0}))
    place.save()
    return plan.id


def sweep(how: str, place: Place, shift: int | None = None) -> dict[str, Any]:
    before = None
    plan = prepare(place)
    scenario = Scenario("outside", lambda _: None, (lambda ws, _: ws.apply(plan),), 1)
    place.again()
    written(place)
    names = forked(scenario, place, Points())[2]
    after = picture(place.root)
    failures: list[str] = []
    seen: Counter[str] = Counter()
    dead = 0
    numbers = chosen(names, shift)
    if how == "after":
        numbers = numbers[::3]  # after one call is before the next: that is for what lies between
    for number in numbers:
        place.again()
        written(place)
        before = before or picture(place.root)
        killed, acknowledged, _ = forked(scenario, place, Points(number, how))
        if not killed:
            failures.append(f"point {number} ({names[number - 1]}) did not kill")
            continue
        dead += 1
        try:
            seen[check(place, plan, before, after, bool(acknowledged))] += 1
        except Exception as error:
            told = str(error) if isinstance(error, Wrong) else traceback.format_exc()
            failures.append(f"killed {how} point {number} ({names[number - 1]}): {told}")
    return {"points": len(names), "tried": len(numbers), "dead": dead, "failures": failures, "seen": dict(seen)}


def check(place: Place, plan: str, before: Any, after: Any, acknowledged: bool) -> str:
    sent = written(place)
    with place.open() as ws:
        verified(ws)
        began = ws.store.journal.last("takeback") is not None
        interrupted = bool(ws.interrupted())
        if not began:
            if ledger.lines(sent) or picture(place.root) != before:
                raise Wrong("something was done before the intent")
            applied: Outcome | None = ws.apply(plan)  # its approval was not used
        else:
            applied = ws.resume()
        if interrupted and applied is None:
            raise Wrong("nothing to resume")
        states = truthful(ws, sent)
        if acknowledged and set(states.values()) != {"undone"}:
            raise Wrong(f"acknowledged, and yet {states}")
        for act in ws.effects():
            if act.shown_state == "unknown":  # a person looks into the ledger
                is_there = act.summary.removeprefix("did ") in ledger.lines(sent)
                ws.resolve(act.id, "undone" if is_there else "not-undone")
        again = ws.plan("rollback", save=True)
        ws.approve(again)
        if not ws.apply(again.id).whole:
            raise Wrong("it does not converge")
        if Counter(ledger.lines(sent)) != Counter(list(LINES)):
            raise Wrong(f"the ledger has {ledger.lines(sent)}")
        if set(truthful(ws, sent).values()) != {"undone"}:
            raise Wrong("not all is undone")
        if ws.plan("rollback").steps or ws.interrupted():
            raise Wrong("there is more to do")
        expect_one_of(picture(place.root), after)
        nothing_left(place)
        verified(ws)
    return "unknown" if "unknown" in states.values() else "settled"


def truthful(ws: Workspace, sent: Path) -> dict[str, str]:
    """What each effect says of itself, held against the ledger."""
    fired = Counter(ledger.lines(sent))
    states = {act.summary.removeprefix("did "): act.shown_state for act in ws.effects()}
    for line, state in states.items():
        allowed = {"undone": {1}, "live": {0}, "unknown": {0, 1}}[state]
        if fired[line] not in allowed:
            raise Wrong(f"{line} is {state}, and was written {fired[line]} times")
        if state == "unknown" and LINES[line].get("probe"):
            raise Wrong(f"{line} has a probe, and is still unknown")
    return states


if __name__ == "__main__":
    place = Place(Path(sys.argv[2]))
    print(json.dumps(sweep(sys.argv[1], place, *map(int, sys.argv[3:]))))
