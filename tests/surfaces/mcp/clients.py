"""Clients of the SDK, and the person behind them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import jsonschema
from mcp import Client
from mcp_types import ElicitResult, Implementation

ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}  # how a client connects, and what it speaks then


class Person:
    """Answers what a client asks: yes to all, or whatever `says` makes of a message."""

    def __init__(self, says: Callable[[str], Any] = lambda _: True) -> None:
        self.says = says
        self.asked: list[str] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        said = self.says(params.message)
        if isinstance(said, ElicitResult):
            return said
        return ElicitResult(action="accept", content={"approve": said})


class Calls:
    """`await calls.ok("status")` calls takeback_status and gives its data."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.text = ""
        self._schemas: dict[str, Any] = {}  # tool → what it says that it answers with

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        result = await self.client.call_tool(f"takeback_{tool}", arguments)
        self.text = result.content[0].text
        assert "Traceback" not in self.text
        json.dumps(result.structured_content)
        await self._must_be_as_published(f"takeback_{tool}", result)
        return result

    async def _must_be_as_published(self, tool: str, result: Any) -> None:
        """Every answer, failures too, is what the tool's outputSchema says."""
        if not self._schemas:
            self._schemas = {t.name: t.output_schema for t in (await self.client.list_tools()).tools}
        if (schema := self._schemas.get(tool)) is None:
            return  # there is no such tool
        jsonschema.Draft202012Validator(schema).validate(result.structured_content)

    async def ok(self, tool: str, **arguments: Any) -> Any:
        result = await self(tool, **arguments)
        assert not result.is_error, self.text
        return result.structured_content

    async def fails(self, tool: str, **arguments: Any) -> Any:
        """Its message and hint."""
        result = await self(tool, **arguments)
        assert result.is_error, self.text
        error = result.structured_content["error"]
        assert error["message"] and error["hint"]
        return error


@asynccontextmanager
async def connected(server: Any, era: str = "auto", person: Person | None = None) -> AsyncIterator[Calls]:
    info = Implementation(name="test-agent", version="1")
    async with Client(server, mode=era, elicitation_callback=person, client_info=info) as client:
        yield Calls(client)
