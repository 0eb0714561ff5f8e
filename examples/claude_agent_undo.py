"""Claude Code, driven by the Claude Agent SDK, writes a file and charges a card; one undo takes back what was said, the
file and the charge, and the conversation goes on from before. A script on this machine stands in for the model, and a
small server for the payments; all else is real.

    pip install '.[claude-agent]' && python examples/claude_agent_undo.py
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool

import takeback
from takeback.harness.tool_calls import ToolCalls
from takeback.integrations.claude_agent import TakebackSessionStore, hooks, resuming

folder, home = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
refunded: list[str] = []
heard: list[str] = []  # all that the model was told, request by request


def used(name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{len(heard)}_{name}", "name": name, "input": given}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


SCRIPT = [
    lambda: used("Write", {"file_path": str(folder / "report.md"), "content": "Paid."}),
    lambda: used("mcp__shop__charge", {"amount": 10}),
    lambda: said("I wrote the report and charged 10."),
    lambda: said("Nothing has happened yet."),
]


def streamed(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One block of an answer, as the Messages API streams it."""
    message = {"id": f"msg_{len(heard)}", "type": "message", "role": "assistant", "model": "scripted", "content": []}
    yield {"type": "message_start", "message": {**message, "usage": {"input_tokens": 1, "output_tokens": 1}}}
    is_text = block["type"] == "text"
    part = {"type": "text_delta", "text": block["text"]} if is_text else {
        "type": "input_json_delta", "partial_json": json.dumps(block["input"])
    }  # fmt: skip
    empty = {**block, "text": ""} if is_text else {**block, "input": {}}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": part}
    yield {"type": "content_block_stop", "index": 0}
    reason = "end_turn" if is_text else "tool_use"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


class Server(BaseHTTPRequestHandler):
    """The model, and the payments."""

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/refunds":
            refunded.append(sent["charge"])
            return self.answer("application/json", json.dumps({"id": "re_1"}))
        if not sent.get("tools"):  # a side question, such as for a title
            return self.answer("text/event-stream", events(said("ok")))
        block = SCRIPT[min(len(heard), len(SCRIPT) - 1)]()
        heard.append(json.dumps(sent["messages"]))
        return self.answer("text/event-stream", events(block))

    def answer(self, kind: str, body: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None: ...


def events(block: dict[str, Any]) -> str:
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in streamed(block))


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"


@tool("charge", "Charges the customer's card", {"amount": int})
async def charge(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps({"id": "ch_1", "amount": args["amount"]})}]}


async def ask(prompt: str, options: ClaudeAgentOptions) -> None:
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            print(message.result)


async def main() -> None:
    workspace = takeback.open(folder, create=True, store=str(home / "takeback"))
    # How a charge is taken back. Its id is in what the tool returned.
    undo = {"charge": {"http": {"url": f"{url}/refunds", "json": {"charge": "{result.id}"}}}}
    calls = ToolCalls(workspace, agent="claude", undo=undo)
    store = TakebackSessionStore(workspace)
    options = ClaudeAgentOptions(
        cwd=folder,
        hooks=hooks(calls, store),
        session_store=store,
        mcp_servers={"shop": create_sdk_mcp_server("shop", tools=[charge])},
        permission_mode="acceptEdits",
        allowed_tools=["mcp__shop__charge"],
        setting_sources=[],
        env={"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CONFIG_DIR": str(home / "claude"),
             "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
    )  # fmt: skip

    await ask("Write the report and charge 10", options)
    print("report.md is there" if (folder / "report.md").exists() else "report.md is gone")

    # A request leaves this machine only with a person's yes, or by policy; here the person is this function.
    undone = await calls.aundo(approve=lambda plan: True)
    print(undone.message)
    await ask("What have you done so far?", await resuming(options, calls))
    print("report.md is there" if (folder / "report.md").exists() else "report.md is gone")
    print("refunded:", *refunded)
    print("the model still hears of it" if "charge 10" in heard[-1] else "the model no longer hears of it")


asyncio.run(main())
