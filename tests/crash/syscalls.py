"""Kills at system calls, with strace: this reaches SQLite's own writes and syncs, which Python does not see.

python tests/crash/syscalls.py SCENARIO FOLDER CALL,CALL,… [NUMBER,NUMBER,…]     killed at the NUMBERth of each CALL
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from crash.points import Points
from crash.scenarios import SCENARIOS, Place, lower_big
from crash.sweep import Wrong, check, prepare, reference, run

_NUMBERS = "1,2,3,5,8,13,21"  # ever wider steps


def child(name: str, place: Place) -> None:
    lower_big()
    points = Points()
    points.armed = False
    run(SCENARIOS[name], place, points, lambda result: os.write(2, f"ack {getattr(result, 'id', '')}\n".encode()))


def main() -> None:
    name, folder, calls, *numbers = sys.argv[1:]
    place = Place(Path(folder))
    if calls == "child":
        child(name, place)
        return
    lower_big()
    scenario = SCENARIOS[name]
    prepare(scenario, place)
    _, states = reference(scenario, place)
    failures, killed = [], 0
    for call in calls.split(","):
        for number in (numbers[0] if numbers else _NUMBERS).split(","):
            place.again()
            inject = f"inject={call}:signal=SIGKILL:when={number}"
            command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject]
            done = subprocess.run(
                [*command, sys.executable, __file__, name, folder, "child"], capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                break
            if done.returncode not in (-signal.SIGKILL, 128 + signal.SIGKILL):
                failures.append(f"{call} {number}: {done.stderr[-1500:]}")
                continue
            killed += 1
            acknowledged = [line[4:] for line in done.stderr.split("\n") if line.startswith("ack ")]
            try:
                check(scenario, place, "resume", acknowledged, states, {}, True)
            except Exception as error:
                told = str(error) if isinstance(error, Wrong) else traceback.format_exc()
                failures.append(f"killed at {call} number {number}: {told}")
    print(json.dumps({"killed": killed, "failures": failures}))


if __name__ == "__main__":
    main()
