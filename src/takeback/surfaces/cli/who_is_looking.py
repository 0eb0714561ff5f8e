"""Who is looking: the owner at a terminal sees what is there, anybody else sees no secrets.

a terminal                as it is
a pipe, a file, --json    masked; with --unmasked as it is
an agent is above         masked, on a terminal too; --unmasked is refused, exit 4
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.privacy.masking import mask_difference, mask_file, mask_lines, mask_state
from takeback.privacy.redact import text
from takeback.surfaces.wording.text import listed
from takeback.threads.plain_data import differences

from . import approving

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from takeback.model.thread_states import StateDifference
    from takeback.show.views import FileDiff
    from takeback.workspace import Workspace

    from .context import Context
    from .parsing import Parser


def add_option(parser: Parser) -> None:
    parser.takes("--unmasked", "--unmasked", action="store_true", help="secrets too, into a pipe or file; owner only")


class Mask:
    """What one run holds back; nothing is imported for it where nothing is."""

    def __init__(self, context: Context, workspace: Workspace, unmasked: bool = False) -> None:
        if unmasked:
            approving.only_a_person(context, "seeing secrets as they are", workspace)
        self._context = context
        self._agent = approving.agent_above(context, workspace)
        elsewhere = context.json or not context.terminal.out_is_tty
        self.on = bool(self._agent) or (elsewhere and not unmasked)
        self.masked: list[str] = []  # the paths, of files or in states, of which something is held back

    def files(self, found: Sequence[FileDiff], stat: bool = False) -> tuple[FileDiff, ...]:
        """Differences as they may be shown; one line per file says nothing of contents but where a link leads."""
        if not self.on:
            return tuple(found)
        out = tuple(f if stat and f.kind != "symlink" else mask_file(f) for f in found)
        self.masked += [f.path for f, shown in zip(found, out) if shown != f]
        return out

    def lines(self, path: str, found: Sequence[bytes]) -> list[bytes]:
        """The lines of a file as they may be shown."""
        if not self.on:
            return list(found)
        out = mask_lines(path, found)
        self.masked += [path] if out != list(found) else []
        return out

    def state(self, value: Any, path: str = "") -> Any:
        """A value of a thread's state as it may be shown; `path` is where it stands there."""
        if not self.on:
            return value
        shown = mask_state(value, path)
        self.masked += [text(where) or "state" for where, *_ in differences(value, shown, path)]
        return shown

    def differences(self, found: Sequence[StateDifference]) -> list[StateDifference]:
        """What differs between two states, as it may be shown."""
        if not self.on:
            return list(found)
        out = [mask_difference(each) for each in found]
        self.masked += [shown.path for each, shown in zip(found, out) if shown != each]
        return out

    def tell(self) -> None:
        """Says once, on standard error, that something was held back, and to its owner how to get it."""
        if not self.masked:
            return
        how = (
            "an agent is at work here" if self._agent else "this is not your terminal; to have it as it is: --unmasked"
        )
        self._context.terminal.hint(f"secrets are masked ({listed(self.masked)}): {how}")
