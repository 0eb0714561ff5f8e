"""The pictures of docs/ui.md and the README, made by the program itself: a project with a morning behind it, and
`takeback ui` in it. Run it when the screen looks different: .venv/bin/python scripts/ui_pictures.py [DIR]
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

CHECKOUT = Path(__file__).resolve().parent.parent
NOON = 1_780_056_000.0  # 2026-05-29 12:00
LICENCE = '''"""Which keys may start the program."""

from keys import KEYS


def check(key: str) -> bool:
    return key in KEYS
'''
TESTS = """from licence import check


def test_a_wrong_key_does_not_start_it():
    assert not check("wrong")
"""


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def past(root: Path, clock: Clock) -> None:
    """Six turns of two agents, a person between them, a charge and a mail."""
    import takeback
    from takeback.journal.brackets import Call, Caller

    claude, codex, calls = Caller("claude", "s1"), Caller("codex", "s2"), iter(range(1000))

    def turn(minutes: float, caller: Caller, prompt: str, **files: str | None) -> None:
        clock.now += minutes * 60
        ws.begin_turn(caller, prompt)
        for name, content in files.items():
            path = name.replace("__", "/").replace("_dot_", ".")
            verb = "Write" if content is not None else "Delete"
            call = Call(str(next(calls)), verb, f"{verb} {path}", (path.encode(),), scans=False)
            ws.begin_call(caller, call)
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink() if content is None else target.write_text(content)
            ws.end_call(caller, call)

    (root / "licence.py").write_text(LICENCE)
    (root / "test_licence.py").write_text(TESTS)
    with takeback.open(root, create="state") as ws:
        ws.clock = ws.observer.clock = clock
        ws.checkpoint("release 1.4")
        turn(31, claude, "write the manual", docs__install_dot_md="# Install\n\npip install shop\n")
        turn(9, claude, "add an order page", order_dot_py="def total(items):\n    return sum(items)\n")
        turn(4, codex, "make the failing licence test pass",
             licence_dot_py=LICENCE.replace("return key in KEYS", "return True"), test_licence_dot_py=None)  # fmt: skip
        turn(6, claude, "charge the card for order 17", order_dot_py="def total(items):\n    return sum(items) / 100\n")
        by = {"actor": "claude"}
        ws.record_http(
            "POST", "https://api.shop.example/v1/charges", status=201, request_body={"amount": 1700, "card": "tok_1"},
            response_body={"id": "ch_3P", "amount": 1700}, by=by,
            inverse_url="https://api.shop.example/v1/charges/{response.body.id}",
        )  # fmt: skip
        ws.hold_email("ada@example.com", "Order 17", "Dear Ada,\n\nthank you for your order.\n", by=by)
        clock.now += 240
        (root / "notes.txt").write_text("call Ada\n")
        ws.checkpoint("before lunch")
        turn(2, claude, "tidy up", notes_dot_txt=None)
        clock.now += 60
        ws.undo()
        clock.now += 45


async def picture(root: Path, clock: Clock, size: tuple[int, int], keys: Sequence[str]) -> str:
    import takeback
    from takeback.surfaces.tui.app import TimelineApp

    with takeback.open(root) as looking, takeback.open(root) as acting:
        for ws in (looking, acting):
            ws.clock = ws.observer.clock = clock
        app = TimelineApp(looking, acting)
        async with app.run_test(size=size) as pilot:
            for key in ("", *keys, ""):
                if key != "down":  # what is there so far is drawn before the next one
                    for _ in range(3):
                        await pilot.pause(0.2)
                        await app.workers.wait_for_complete()
                if key:
                    await pilot.press(key)
            await pilot.pause()
            return without_fonts(app.export_screenshot(title="takeback ui"))


def without_fonts(svg: str) -> str:
    """A picture that loads nothing from anywhere."""
    return re.sub(r"@font-face\s*{[^}]*}\s*", "", svg).replace("Fira Code", "ui-monospace, Menlo, Consolas")


def main(folder: Path) -> None:
    import takeback.model.ids

    numbers = itertools.count()
    takeback.model.ids.os = SimpleNamespace(  # the same ids in every run
        urandom=lambda size: hashlib.sha256(str(next(numbers)).encode()).digest()[:size]
    )
    os.environ["TZ"] = "UTC"
    time.tzset()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ |= {"TAKEBACK_HOME": f"{scratch}/store", "TAKEBACK_RESIDENT": "off"}
        root, clock = Path(scratch, "shop"), Clock()
        root.mkdir()
        past(root, clock)
        pictures = {
            "ui.svg": ((120, 30), [*["down"] * 5, "enter"]),
            "ui-plan.svg": ((100, 26), [*["down"] * 4, "x"]),
        }
        for name, (size, keys) in pictures.items():
            (folder / name).write_text(asyncio.run(picture(root, clock, size, keys)), encoding="utf-8")
            print(folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else CHECKOUT / "docs")
