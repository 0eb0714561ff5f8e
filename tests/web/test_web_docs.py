"""docs/web.md says what there is, and its pictures are small enough to be in a repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra takeback[web] is not installed")

from takeback.surfaces.cli.parsing import module_of
from takeback.surfaces.web import site
from takeback.surfaces.web.guard import Keys

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/web.md").read_text(encoding="utf-8")
LARGEST = 200 << 10  # bytes


def test_every_address_is_on_the_page():
    routes = [line.split()[0] for line in (site.__doc__ or "").splitlines() if line.startswith("/")]
    routes += [f"`{line}" for line in re.findall(r"^POST \S+", site.__doc__ or "", re.MULTILINE)]
    assert len(routes) > 6
    assert not [route for route in routes if route.partition("?")[0] not in PAGE]


def test_every_route_is_said_where_they_are_made():
    made = site.Site(None, lambda: None, Keys(), False, lambda: False, lambda error: None).app().routes
    told = site.__doc__ or ""
    for route in made:
        path = route.path.replace("{id}", "HASH" if route.path.startswith("/plan") else "ID")
        way = "POST " if "POST" in route.methods else ""
        assert path in ("/", "/static/{name}") or re.search(rf"(^|\s){way}{re.escape(path)}(\s|\?)", told), path


def test_every_option_is_on_the_page():
    source = Path(str(module_of("web").__file__)).read_text(encoding="utf-8")
    options = re.findall(r'parser\.takes\("(--[\w-]+)', source)
    assert len(options) == 4 and not [option for option in options if f"`{option}" not in PAGE]


def test_the_pictures_are_there_and_small():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^\]]+\]\((?:docs/)?(web[\w-]*\.png)\)", PAGE + readme)
    assert {"web.png", "web-plan.png"} <= set(shown)
    for name in shown:
        data = (ROOT / "docs" / name).read_bytes()
        assert data.startswith(b"\x89PNG") and len(data) <= LARGEST
