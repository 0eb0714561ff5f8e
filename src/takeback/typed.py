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
    from collections import namedtuple

    Any = object

    class _Maker(type):
        """Makes a named tuple of every class that derives from NamedTuple."""

        def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, object]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, members)
            fields = members.pop("__annotations__", {})
            defaults = [members.pop(field) for field in fields if field in members]
            made = namedtuple(name, fields, defaults=defaults, module=members.pop("__module__"))
            made.__annotations__ = made.__new__.__annotations__ = fields
            for member, value in members.items():
                setattr(made, member, value)
            return made

    class NamedTuple(metaclass=_Maker):
        pass

    class Protocol:
        pass
