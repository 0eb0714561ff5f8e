"""Our NamedTuple is typing's, in all that we use of it."""

from __future__ import annotations

import pickle
import typing

import pytest

from takeback import typed


class Ours(typed.NamedTuple):
    """A point."""

    x: int
    y: int = 2

    @property
    def sum(self) -> int:
        return self.x + self.y

    @classmethod
    def origin(cls) -> Ours:
        return cls(0, 0)

    def __str__(self) -> str:
        return f"{self.x}/{self.y}"


class Theirs(typing.NamedTuple):
    """A point."""

    x: int
    y: int = 2


@pytest.mark.parametrize("what", ["_fields", "_field_defaults", "__match_args__", "__doc__", "__bases__", "__module__"])
def test_is_made_alike(what: str) -> None:
    assert getattr(Ours, what) == getattr(Theirs, what)


def test_acts_alike() -> None:
    assert Ours(1) == Theirs(1) == (1, 2)
    assert repr(Ours(1, y=3)) == "Ours(x=1, y=3)"
    assert Ours(1)._replace(y=5).sum == 6
    assert Ours.origin() == (0, 0)
    assert str(Ours(1)) == "1/2"
    assert pickle.loads(pickle.dumps(Ours(4))) == Ours(4)
    assert typing.get_type_hints(Ours) == typing.get_type_hints(Theirs)
    with pytest.raises(TypeError):
        Ours()  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Ours(1).x = 2  # type: ignore[misc]


def test_the_first_ones_and_the_later_ones_are_made_alike() -> None:
    class Fresh(typed.NamedTuple):
        x: int
        y: int = 2
        z: int = 3

    for number in range(2 * typed._FEW):
        assert Fresh(number) == (number, 2, 3)
        assert Fresh(number, z=5) == Fresh(z=5, x=number) == (number, 2, 5)
        assert Fresh(1, 2, number) == (1, 2, number)


def test_the_first_ones_refuse_what_the_later_ones_refuse() -> None:
    wrong: list[tuple[list[int], dict[str, int]]] = [([], {}), ([1, 2, 3], {}), ([1], {"x": 1}), ([1], {"w": 1})]
    for values, named in wrong:

        class Fresh(typed.NamedTuple):
            x: int
            y: int = 2

        with pytest.raises(TypeError):
            Fresh(*values, **named)
