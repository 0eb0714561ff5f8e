"""Passes for every domain: `domain_conformance(make)`.

`make()` gives a World: the domain, a path in it, at least two states that path can have (None for absent among
them, where it can be), and how somebody else puts it into one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

from takeback.model.effects import DONE, FAILED, KEPT, KIND_NAMES, Domain, Result, State, Step, same


@dataclass
class World:
    domain: Domain
    path: bytes
    states: list[State]
    put: Callable[[bytes, State], None]


_keys = iter(range(1_000_000))


def _key() -> str:
    return f"k{next(_keys):031}"


def _step(world: World, expected: State, goal: State) -> Step:
    return Step(world.domain.name, world.path, expected, goal, "exact", ())


def _apply(world: World, expected: State, goal: State, again: bool = False, key: str = "") -> Result:
    results = list(world.domain.apply([_step(world, expected, goal)], key or _key(), {}, again))
    assert [r.path for r in results] == [world.path], "one result per step, by its path"
    assert results[0].result in (DONE, KEPT, FAILED)
    return results[0]


def _kind(state: State) -> str:
    return "nothing" if state is None else f"{KIND_NAMES.get(state.kind, state.kind)} {state.mode:o}"


def _is(world: World, state: State) -> bool:
    return same(world.domain.present(world.path), state)


def domain_conformance(make: Callable[[], World]) -> None:
    world = make()
    assert world.domain.name and isinstance(world.domain.joins, bool)
    assert len(world.states) >= 2
    for state in world.states:
        world.put(world.path, state)
        assert _is(world, state), "present tells what is there"
        assert _is(world, state), "and changes nothing by looking"
    for expected, goal in permutations(world.states, 2):
        world.put(world.path, expected)
        assert _apply(world, expected, goal).result == DONE
        assert _is(world, goal), "done means verified"
    _keeps_what_others_did(world)
    _can_be_run_again(world)
    assert list(world.domain.apply([], _key(), {})) == []


def _keeps_what_others_did(world: World) -> None:
    for expected, goal, other in permutations(world.states, 3):
        world.put(world.path, other)
        result = _apply(world, expected, goal)
        about = f"expected {_kind(expected)}, goal {_kind(goal)}, there is {_kind(other)}"
        assert result.result != DONE and result.note, f"it is told why: {about}"
        assert _is(world, other), f"a state the plan does not expect is never changed: {about}"


def _can_be_run_again(world: World) -> None:
    for expected, goal in permutations(world.states, 2):
        key = _key()
        world.put(world.path, expected)
        world.domain.sweep([_step(world, expected, goal)], key)
        assert _is(world, expected), "sweeping changes no path"
        assert _apply(world, expected, goal, True, key).result == DONE
        assert _is(world, goal)
        world.domain.sweep([_step(world, expected, goal)], key)
        assert _apply(world, expected, goal, True, key).result == DONE, "a goal that is already there is done"
        assert _is(world, goal)
        assert _apply(world, goal, expected, True, _key()).result == DONE, "and back, as an abort does"
        assert _is(world, expected)
    for expected, goal, other in permutations(world.states, 3):
        world.put(world.path, other)
        result = _apply(world, expected, goal, True)
        if other is None or (expected is not None and goal is not None and other.kind == goal.kind == 2):
            continue  # half-way states of an earlier run look like this
        assert result.result != DONE and _is(world, other), "what is neither is somebody's"
