"""A long-lived process without threads that holds a workspace, as a harness would: it times its own calls.

One JSON request a line on stdin, one answer a line on stdout.
"""

from __future__ import annotations

import json
import sys
import time

import takeback
import takeback.workspace


def main() -> None:
    ws = None
    for line in sys.stdin:
        request = json.loads(line)
        verb = request["verb"]
        started = time.perf_counter()
        if verb == "first":
            ws = takeback.open(request["tree"], create=True, store=request["store"])
        elif verb == "checkpoint":
            ws.checkpoint("bench")
        else:
            outcome = ws.rollback()
            assert outcome.id and outcome.whole, outcome.counts
        print(json.dumps(time.perf_counter() - started), flush=True)
    if ws is not None:
        ws.close()


if __name__ == "__main__":
    main()
