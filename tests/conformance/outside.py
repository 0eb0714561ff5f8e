"""Passes for every domain of the outside world: `outside_conformance(make, inverse, …)`.

`make(world)` gives the domain. `inverse` is one that works there, with references for its secrets; `environ` holds their
values. `fired` counts what reached the other side, and may be called at any time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from takeback.config import settings
from takeback.errors import TakebackError, UsageError
from takeback.model.effects import DONE, FAILED, UNKNOWN
from takeback.model.outside import Answer, Credential, Inverse, Outside, World
from takeback.privacy import redact
from takeback.store.blobs import MemoryBlobs

NOW = 1_800_000_000.0
GARBAGE: tuple[Any, ...] = (
    {}, {"": ""}, {"argv": None}, {"url": 7}, {"x" * 5000: "y"}, {"timeout": "soon"}, {"timeout": float("nan")},
    {"probe": []}, {"idempotent": "perhaps"}, {"args": {"args": {"args": {}}}}, {"\0": "\x1b[2J\u202e"},
)  # fmt: skip
LITERALS = ("sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2, "AKIA" + "IOSFODNN7EXAMPLE")


def world_of(root: Path, environ: Mapping[str, str] = {}, allowed: Iterable[Credential] = (), **changed: Any) -> World:
    """What a domain is given: a folder, the settings of nobody, these variables, and no store to lean on."""
    loaded = settings.load(root, {"HOME": str(root), "XDG_CONFIG_HOME": str(root / "none")})
    return World(root, loaded._replace(**changed), environ, MemoryBlobs(), lambda: NOW, frozenset(allowed))


def outside_conformance(
    make: Callable[[World], Outside],
    inverse: Inverse,
    world: World,
    fired: Callable[[], int],
    with_secret: Callable[[str], Inverse] | None = None,
    elsewhere: str = "",
) -> None:
    """`with_secret(text)` is the inverse with a literal in a place where a credential would stand. `elsewhere` is how
    another process gets the domain, as "module:Class"; without it, as this one does."""
    domain = make(world)
    assert domain.name and domain.name.islower() and domain.name != "files"
    stored = _checked(domain, inverse)
    _refuses_garbage(domain, inverse)
    if with_secret is not None:
        _refuses_literals(domain, with_secret)
    _tells_no_secret(domain, stored, world)
    assert fired() == 0, "nothing is sent by looking at an inverse"
    _asks_for_credentials(make, stored, world)
    assert fired() == 0, "nothing is sent without the credentials it needs"
    allowed = world._replace(allowed=frozenset(domain.credentials(stored)))
    _keeps_its_promises(make(allowed), stored)
    _runs_once_per_call(make(allowed), stored, fired, allowed)
    if elsewhere:
        _runs_in_another_process(elsewhere, stored, allowed, fired)


def _checked(domain: Outside, inverse: Inverse) -> Inverse:
    stored = domain.check(inverse)
    assert domain.check(stored) == stored, "checking what was checked changes nothing"
    again = json.loads(json.dumps(stored.to_json(), allow_nan=False))
    survived = Inverse(again["op"], again["args"])
    assert survived == stored, "it comes back from the journal as it went in"
    assert domain.check(survived) == stored and domain.describe(survived) == domain.describe(stored)
    return survived


def _refuses_garbage(domain: Outside, inverse: Inverse) -> None:
    with pytest.raises(UsageError):
        domain.check(Inverse("no such thing", inverse.args))
    for args in GARBAGE:
        with pytest.raises(UsageError):
            domain.check(Inverse(inverse.op, args))
    unknown = {**inverse.args, "what nobody knows": 1}
    with pytest.raises(UsageError):
        domain.check(Inverse(inverse.op, unknown))


def _refuses_literals(domain: Outside, with_secret: Callable[[str], Inverse]) -> None:
    for literal in LITERALS:
        with pytest.raises(UsageError) as refused:
            domain.check(with_secret(literal))
        told = f"{refused.value.message} {refused.value.hint}"
        assert literal not in told and "${env:" in told, "it names the form to use, and not the secret"


def _tells_no_secret(domain: Outside, stored: Inverse, world: World) -> None:
    told = domain.describe(stored)
    assert told and "\n" not in told, "one line"
    for name, value in world.environ.items():
        if name in redact.references(stored.args):
            assert value not in told and value not in json.dumps(stored.to_json())
    assert redact.text(told) == told


def _asks_for_credentials(make: Callable[[World], Outside], stored: Inverse, world: World) -> None:
    domain = make(world)
    wanted = domain.credentials(stored)
    assert {c.name for c in wanted} <= redact.references(stored.args) | set(stored.args.get("env", ()))
    assert all(c.origin for c in wanted) and domain.credentials(stored) == wanted
    if not wanted:
        return
    assert _answer(make(world), stored).result != DONE, "what nobody let go stays here"
    missing = world._replace(environ={}, allowed=frozenset(wanted))
    assert _answer(make(missing), stored).result != DONE, "and what is not set cannot be sent"


def _keeps_its_promises(domain: Outside, stored: Inverse) -> None:
    assert domain.probe(stored) in (True, False, None)
    assert domain.may_repeat(stored, NOW - 1) in (True, False)
    if not stored.args.get("idempotent"):
        assert not domain.may_repeat(stored, NOW - 1), "nobody vouched for it"


def _runs_once_per_call(domain: Outside, stored: Inverse, fired: Callable[[], int], world: World) -> None:
    before = fired()
    answer = _answer(domain, stored)
    assert answer.result == DONE and fired() == before + 1, answer
    told = answer.note + json.dumps(dict(answer.evidence), allow_nan=False)
    for name in redact.references(stored.args):
        assert world.environ[name] not in told, "no answer holds a secret"


def _answer(domain: Outside, stored: Inverse) -> Answer:
    try:
        answer = domain.run(stored, "takeback-conformance")
    except TakebackError as error:  # refused before anything was sent
        assert error.message
        return Answer(FAILED, error.message)
    assert answer.result in (DONE, FAILED, UNKNOWN) and isinstance(answer.note, str)
    json.dumps(dict(answer.evidence), allow_nan=False)
    return answer


_ELSEWHERE = """
import json, sys
from importlib import import_module
from pathlib import Path
from conformance.outside import world_of
from takeback.model.outside import Credential, Inverse
told = json.load(sys.stdin)
module, _, name = told["elsewhere"].partition(":")
allowed = [Credential(*pair) for pair in told["allowed"]]
world = world_of(Path(told["root"]), told["environ"], allowed, **told["settings"])
domain = getattr(import_module(module), name)(world)
inverse = Inverse(told["inverse"]["op"], told["inverse"]["args"])
assert domain.check(inverse) == inverse
print(domain.run(inverse, "takeback-elsewhere").result)
"""


def _runs_in_another_process(elsewhere: str, stored: Inverse, world: World, fired: Callable[[], int]) -> None:
    before = fired()
    plain = settings.load(world.root, {"HOME": str(world.root), "XDG_CONFIG_HOME": str(world.root / "none")})
    changed = {n: v for n, v in world.settings._asdict().items() if v != getattr(plain, n)}
    told = {
        "elsewhere": elsewhere, "root": str(world.root), "environ": dict(world.environ), "settings": changed,
        "allowed": [list(c) for c in world.allowed], "inverse": stored.to_json(),
    }  # fmt: skip
    tests = str(Path(__file__).resolve().parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {tests!r})\n{_ELSEWHERE}"],
        input=json.dumps(told), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "done\n", done.stderr
    assert fired() == before + 1
