"""Secrets planted in the arguments of MCP calls: none is stored, and none is said back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from clients import Person, connected

import takeback
from secrets_to_plant import SHAPES
from servers.payments import Payments
from takeback.surfaces.mcp.server import Server

pytestmark = pytest.mark.anyio
VALUE = "a-value-that-no-shape-gives-away"
EVERYTHING = {name: shape.text for name, shape in SHAPES.items()}
SAID = " ".join(text.replace("\n", " ") for text in EVERYTHING.values())
SECRETS = {**{name: shape.secret.split("\n")[0] for name, shape in SHAPES.items() if name != "private key"}, "v": VALUE}


def leaks(said: str) -> list[str]:
    return [name for name, secret in SECRETS.items() if secret in said or json.dumps(secret)[1:-1] in said]


async def test_arguments_answers_and_store_hold_no_secret(work: Path, payments: Payments) -> None:
    person = Person()
    heard: list[str] = []
    common: dict[str, Any] = {
        "method": "POST", "url": f"{payments.url}/issues?token=abcd1234efgh", "status": 201, "request_body": SAID,
        "response_headers": {"Set-Cookie": "sid=abcd1234efgh", "X-Leak": SAID},
        "response_body": {"id": "1", "leak": EVERYTHING, "password": "correct horse"},
        "inverse_method": "POST", "inverse_url": payments.url + "/issues/{response.body.id}/close",
        "inverse_headers": {"Authorization": "Bearer ${env:SHOP_KEY}"},
    }  # fmt: skip
    async with connected(Server(work, {**os.environ, "SHOP_KEY": VALUE}), person=person) as calls:

        async def call(tool: str, **arguments: Any) -> Any:
            result = await calls(tool, **arguments)
            heard.append(json.dumps(result.structured_content, ensure_ascii=False) + calls.text)
            return result

        assert not (await call("record_http", **common)).is_error, calls.text
        assert not (await call("record_reversal", description=f"made {SAID}", argv=["true"])).is_error, calls.text
        for text in EVERYTHING.values():
            refused = await call("record_http", **{**common, "inverse_headers": {"X-Key": text.replace("\n", " ")}})
            assert refused.is_error, text
            assert (await call("record_reversal", description="x", argv=["curl", "-H", text])).is_error, text
        for tool, arguments in (
            ("plan", {"verb": "rollback"}), ("compensate", {"execute": True}), ("effects", {}), ("log", {}),
            ("status", {}), ("show", {"id": "2"}), ("show", {"id": "3"}),
        ):  # fmt: skip
            await call(tool, **arguments)
    assert person.asked and leaks("".join(heard + person.asked)) == []
    assert any(headers.get("Authorization") == f"Bearer {VALUE}" for *_, headers, _ in payments.requests)
    with takeback.open(work) as ws:
        rows = json.dumps([row.body for row in ws.store.journal.rows()], ensure_ascii=False)
        assert leaks(rows) == [] and len(ws.effects()) == 2
