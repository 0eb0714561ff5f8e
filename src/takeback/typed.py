"""What we need of `typing`, without its import and its reading of every annotation: 6 ms of each start.

For a type checker these are typing's own. At run time annotations stay the text they are.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any as Any
    from typing import NamedTuple as NamedTuple
    from typing import Protocol as Protocol
else:
    from _collections import _tuplegetter

    Any = object

    class _Named(tuple):
        """What all named tuples have alike: collections makes each of these anew for each class."""

        @classmethod
        def _make(cls, values):
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **values):
            made = self._make(map(values.pop, self._fields, self))
            if values:
                raise ValueError(f"Got unexpected field names: {list(values)!r}")
            return made

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            told = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({told})"

        def __getnewargs__(self):
            return tuple(self)

    _ALIKE = {name: _Named.__dict__[name] for name in ("_make", "_replace", "_asdict", "__repr__", "__getnewargs__")}

    _FEW = 8  # instances that a class has before it is worth a function of its own to make them
    _made: dict[type, int] = {}

    def _first(cls, /, *values, **named):
        """Makes the first instances of a class, then what makes all others: most classes of a run have few."""
        made = next(one for one in cls.__mro__ if "_fields" in one.__dict__)
        _made[made] = _made.get(made, 0) + 1
        rest, given = made._fields[len(values) :], {**made._field_defaults, **named}
        if _made[made] < _FEW and named.keys() <= set(rest) <= given.keys() and len(values) <= len(made._fields):
            return tuple.__new__(cls, (*values, *map(given.__getitem__, rest)))
        names = ", ".join(made._fields)
        new = eval(f"lambda _cls, {names}: _new(_cls, ({names},))", {"_new": tuple.__new__, "__builtins__": {}})
        new.__name__, new.__qualname__ = "__new__", f"{made.__qualname__}.__new__"
        new.__defaults__ = tuple(made._field_defaults.values())
        new.__annotations__ = made.__annotations__
        made.__new__ = staticmethod(new)
        return new(cls, *values, **named)

    class _Maker(type):
        """Makes a named tuple of every class that derives from NamedTuple."""

        def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, object]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, members)
            fields = tuple(members.setdefault("__annotations__", {}))
            defaults = {field: members[field] for field in fields if field in members}
            members.update((field, _tuplegetter(number, "")) for number, field in enumerate(fields))
            members.setdefault("__doc__", f"{name}({', '.join(fields)})")
            more = {"__slots__": (), "__new__": _first, "_fields": fields, "_field_defaults": defaults}
            return type(name, (tuple,), {**_ALIKE, **members, **more, "__match_args__": fields})

    class NamedTuple(metaclass=_Maker):
        pass

    class Protocol:
        pass
