"""The domains of the outside world, listed by hand and loaded when first needed. Others add theirs by the entry-point
group `takeback.domains`."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from takeback.errors import TakebackError
from takeback.model.outside import Outside, World

BUILT_IN = {
    "http": "takeback.domains.http:Http",
    "command": "takeback.domains.command:Command",
    "email": "takeback.domains.email.domain:Email",
    "python": "takeback.domains.python:Python",
}


def known(wanted: set[str]) -> set[str]:
    """The domains there are; those that others add are looked up only if one of these names is none of ours."""
    ours = {"files", "git", "note", *BUILT_IN}
    if wanted <= ours:
        return ours
    return ours | {point.name for point in entry_points(group="takeback.domains")}


def load(name: str, world: World) -> Outside:
    """The domain of this name."""
    if name in BUILT_IN:
        module, _, found = BUILT_IN[name].partition(":")
        make = getattr(import_module(module), found)
    else:
        make = next((point.load() for point in entry_points(group="takeback.domains", name=name)), None)
    if make is not None:
        made: Outside = make(world)
        return made
    raise TakebackError(
        f"nothing here knows the domain {name!r}",
        "install the package that recorded it, or resolve its effects by hand",
    )
