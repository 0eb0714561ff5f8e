"""Every domain of the outside world passes the same conformance test, and so does one of somebody else's."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import ledger as ledgers
from conformance.outside import outside_conformance, world_of
from servers.gmail import Gmail
from servers.payments import serving
from takeback.domains.command import Command
from takeback.domains.email.domain import Email, cancel
from takeback.domains.http import Http
from takeback.domains.python import Python
from takeback.model.outside import Answer, Inverse

SECRET = "a-secret-that-no-shape-gives-away"
ENVIRON = {"SHOP_KEY": SECRET, "PATH": os.environ.get("PATH", ""), "HOME": "/"}


def test_ledger(tmp_path: Path):
    written = tmp_path / "ledger"
    args = {"ledger": str(written), "line": "refund", "says": "with ${env:SHOP_KEY}"}
    outside_conformance(
        _Discreet, Inverse("write", args), world_of(tmp_path, ENVIRON), lambda: len(ledgers.lines(written)),
        lambda secret: Inverse("write", {**args, "line": f"pay with {secret}"}), "ledger:Ledger",
    )  # fmt: skip


class _Discreet(ledgers.Ledger):
    def run(self, inverse: Inverse, key: str) -> Answer:
        answer = super().run(inverse, key)
        return answer._replace(note="written", evidence={})


def test_http(tmp_path: Path):
    with serving(SECRET) as shop:
        shop.charges["ch_1"] = {"id": "ch_1", "amount": 500}
        args: dict[str, Any] = {
            "method": "POST", "url": f"{shop.url}/v1/refunds", "origin": shop.url, "json": {"charge": "ch_1"},
            "headers": {"Authorization": "Bearer ${env:SHOP_KEY}"},
        }  # fmt: skip

        def with_secret(secret: str) -> Inverse:
            return Inverse("send", {**args, "headers": {"Authorization": f"Bearer {secret}"}})

        world = world_of(tmp_path, ENVIRON)
        outside_conformance(Http, Inverse("send", args), world, lambda: len(shop.refunds), with_secret, _name(Http))
        for place in ({"url": f"{shop.url}/v1?key=%s"}, {"json": {"note": "%s"}}, {"body": "k=%s", "json": None}):
            literal = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
            filled = {k: v for k, v in {**args, **_filled(place, literal)}.items() if v is not None}
            with pytest.raises(Exception, match="env:"):
                raise _refusal(Http(world), Inverse("send", filled))


def test_command(tmp_path: Path):
    fired = tmp_path / "fired"
    script = tmp_path / "undo.sh"
    script.write_text(f'printf x >> {fired}; echo "it said $SHOP_KEY"\n')
    args = {"argv": ["/bin/sh", str(script)], "env": ["SHOP_KEY"]}
    outside_conformance(
        Command, Inverse("run", args), world_of(tmp_path, ENVIRON),
        lambda: len(fired.read_text()) if fired.exists() else 0,
        lambda secret: Inverse("run", {"argv": ["/bin/sh", str(script), f"--token={secret}"]}), _name(Command),
    )  # fmt: skip


def test_email(tmp_path: Path):
    with Gmail() as gmail:
        gmail.answer("POST", "/gmail/v1/users/me/drafts", {"message": {"raw": "VG86IGFAYgoKaGk="}})
        world = world_of(tmp_path, {}, gmail_access_token=gmail.token, gmail_api_base=gmail.url)
        outside_conformance(
            Email, cancel("gmail", {"draft": "r1", "thread": "t1"}), world,
            lambda: len([asked for asked in gmail.asked if asked.method == "DELETE"]),
        )  # fmt: skip
        assert gmail.drafts == {} and gmail.sent == []


def test_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fired = tmp_path / "fired"
    site = tmp_path / "site"
    site.mkdir()
    (site / "shop_undo.py").write_text(
        f"def refund(charge, key):\n    open({str(fired)!r}, 'a').write('x')\n    return {{'charge': charge, 'k': key}}\n"
    )
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    project = tmp_path / "project"
    project.mkdir()
    args = {"function": "shop_undo:refund", "kwargs": {"charge": "ch_1", "key": "${env:SHOP_KEY}"}}
    outside_conformance(
        Python, Inverse("call", args), world_of(project, ENVIRON, functions=["shop_undo:refund"]),
        lambda: len(fired.read_text()) if fired.exists() else 0,
        lambda secret: Inverse("call", {**args, "kwargs": {"charge": secret}}), _name(Python),
    )  # fmt: skip
    sys.modules.pop("shop_undo", None)


@pytest.mark.parametrize(
    "broken",
    ["sends when it checks", "tells its secret", "takes anything", "answers what it likes", "changes when checked"],
)
def test_a_domain_that_does_not_conform_fails(tmp_path: Path, broken: str):
    """The test itself can fail, in each of its parts."""
    written = tmp_path / "ledger"
    args = {"ledger": str(written), "line": "refund ${env:SHOP_KEY}"}

    class Broken(_Discreet):
        def check(self, inverse: Inverse) -> Inverse:
            if broken == "takes anything":
                return inverse
            if broken == "sends when it checks":
                self._write(args, "k")
            found = super().check(inverse)
            return (
                found._replace(args={**found.args, "line": found.args["line"] + "!"}) if "changes" in broken else found
            )

        def describe(self, inverse: Inverse) -> str:
            return super().describe(inverse) + (SECRET if broken == "tells its secret" else "")

        def run(self, inverse: Inverse, key: str) -> Answer:
            answer = super().run(inverse, key)
            return Answer("perhaps") if broken == "answers what it likes" else answer

    def conforms(make: Any) -> None:
        written.unlink(missing_ok=True)
        world = world_of(tmp_path, ENVIRON)
        outside_conformance(make, Inverse("write", args), world, lambda: len(ledgers.lines(written)))

    conforms(_Discreet)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        conforms(Broken)


def _name(made: type) -> str:
    return f"{made.__module__}:{made.__name__}"


def _filled(place: Mapping[str, Any], literal: str) -> dict[str, Any]:
    return {
        name: value % literal
        if isinstance(value, str)
        else {k: v % literal for k, v in value.items()}
        if value
        else None
        for name, value in place.items()
    }


def _refusal(domain: Http, inverse: Inverse) -> Exception:
    try:
        domain.check(inverse)
    except Exception as error:
        told = f"{error} {getattr(error, 'hint', '')}"
        assert "ghp_" not in told
        return type(error)(told)
    raise AssertionError("it was taken")
