"""How many paths a first look will find: names and kinds only, to tell how long it may take."""

from __future__ import annotations

import stat
from time import monotonic

from takeback.system.safefs import Folder
from takeback.system.safefs.descent import Descent

from .coverage import Rules


def count(root: Folder, rules: Rules, beyond: frozenset[bytes], seconds: float) -> int:
    """Paths that are covered; 0 if counting takes longer than that, since then nobody wants to wait for it."""
    until = monotonic() + seconds
    found, left = 0, [b""]
    with Descent(root) as descent:
        while left:
            if monotonic() > until:
                return 0
            path = left.pop()
            try:
                here = descent.to(path)
                listed = here.listing()
            except OSError:
                continue
            for name, st in listed:
                at = path + b"/" + name if path else name
                is_folder = stat.S_ISDIR(st.st_mode)
                if at in beyond or rules.excluded(at, is_folder):
                    continue
                found += 1
                if is_folder:
                    left.append(at)
    return found
