"""Regular expressions that are compiled when they are first used: most runs use few of them."""

from __future__ import annotations

from .typed import TYPE_CHECKING

if TYPE_CHECKING:
    import re

    pattern = re.compile
else:

    class pattern:
        """What `re.compile` would make of it."""

        def __init__(self, written, flags=0):
            self.pattern = written
            self._flags = flags

        def __getattr__(self, name):
            import re

            found = getattr(re.compile(self.pattern, self._flags), name)
            setattr(self, name, found)
            return found
