"""Drives the timeline as a person does: keys, and what can be read on the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot

import takeback
from takeback.surfaces.tui.app import TimelineApp
from takeback.surfaces.tui.planning import APPLYING, PLANNING


def screen(app: App) -> str:
    """What stands on the screen, line by line."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


class Player:
    """A person at the keyboard; counts the keys."""

    def __init__(self, pilot: Pilot) -> None:
        self.pilot = pilot
        self.app = pilot.app
        self.keys = 0

    async def press(self, *keys: str) -> None:
        self.keys += len(keys)
        await self.pilot.press(*keys)

    async def write(self, text: str) -> None:
        await self.press(*("space" if c == " " else c for c in text))

    async def see(self, *texts: str, without: str = "") -> str:
        """Waits until all of these stand on the screen."""
        await self.until(
            lambda: all(t in screen(self.app) for t in texts) and (not without or without not in screen(self.app)),
            texts,
        )
        return screen(self.app)

    async def until(self, is_so: Callable[[], bool], what: object = "") -> None:
        for _ in range(500):
            await self.pilot.pause(0.02)
            if is_so():
                return
        raise AssertionError(f"waited in vain for {what}; on the screen is:\n{screen(self.app)}")

    async def rest(self) -> None:
        """Until nothing is being read, planned or done, for longer than a cursor has to rest before its item is read."""
        quiet = 0
        while quiet < 3:
            await self.pilot.pause(0.05)
            at_work = any(worker.is_running for worker in self.app.workers) or getattr(self.app, "is_early", False)
            stage = getattr(self.app.screen, "stage", "")
            quiet = 0 if at_work or stage in (PLANNING, APPLYING) else quiet + 1


def play(
    root: Path, script: Callable[[Player], Awaitable[None]], size: tuple[int, int] = (110, 32), **options: object
) -> TimelineApp:
    """Opens the timeline of a project, plays a script in it, and closes it."""
    with takeback.open(root) as looking, takeback.open(root) as acting:
        app = TimelineApp(looking, acting, **options)
        run(app, script, size)
    return app


def run(app: App, script: Callable[[Player], Awaitable[None]], size: tuple[int, int]) -> None:
    async def go() -> None:
        async with app.run_test(size=size) as pilot:
            player = Player(pilot)
            await player.until(lambda: getattr(app, "now", True) is not None, "the timeline")
            await script(player)

    asyncio.run(go())
