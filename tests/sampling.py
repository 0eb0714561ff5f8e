"""How much of what could be tried is tried: a sample that is the same each time, or with `scripts/test --all` everything.

A property has a number of examples for each; TAKEBACK_TEST_EXAMPLES=2000 asks for another one, of new examples. A sample
must be large enough to fail when the thing it guards is broken.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

WHOLE = os.environ.get("TAKEBACK_WHOLE_SWEEP") == "1"
_ASKED = os.environ.get("TAKEBACK_TEST_EXAMPLES", "")
SAME = not WHOLE and not _ASKED  # examples each time


def number(few: int, many: int, share: float = 1.0) -> int:
    """Of examples; `share` is for the slow ones among those that are asked for by number."""
    return max(5, int(int(_ASKED) * share)) if _ASKED else many if WHOLE else few


def examples(few: int, many: int, *, share: float = 1.0, steps: int = 50) -> settings:
    """`steps` are of a machine of rules."""
    return settings(
        max_examples=number(few, many, share),
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=SAME,
        suppress_health_check=list(HealthCheck),
    )
