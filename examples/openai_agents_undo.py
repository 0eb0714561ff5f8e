"""An agent of the OpenAI Agents SDK writes a file and charges a card; one undo takes back what it said, the file and
the charge. The SDK's own scripted model stands in for the model, and a small server for the payments.

    pip install '.[openai-agents]' && python examples/openai_agents_undo.py
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

import takeback
from takeback.integrations.openai_agents import TakebackSession, protect

folder = Path(tempfile.mkdtemp())
refunded: list[str] = []


class Payments(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/refunds":
            refunded.append(sent["charge"])
        body = json.dumps({"id": "ch_1"}).encode()
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


server = HTTPServer(("127.0.0.1", 0), Payments)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"


@function_tool
def write_report(path: str, text: str) -> str:
    (folder / path).write_text(text)
    return "written"


@function_tool
def charge(amount: int) -> str:
    request = urllib.request.Request(f"{url}/charges", json.dumps({"amount": amount}).encode())
    return urllib.request.urlopen(request).read().decode()


async def main() -> None:
    set_tracing_disabled(True)
    ws = takeback.open(folder, create=True, store=tempfile.mkdtemp())
    # How a charge is taken back. Its id is in what the tool returned.
    undo = {"charge": {"http": {"url": f"{url}/refunds", "json": {"charge": "{result.id}"}}}}
    session = TakebackSession("main", ws, undo=undo)
    model = ScriptedModel(
        [
            [function_call("write_report", {"path": "report.md", "text": "Paid."}, call_id="call-1")],
            [function_call("charge", {"amount": 10}, call_id="call-2")],
            [assistant_message("I wrote the report and charged 10.")],
        ]
    )
    agent = protect(Agent(name="clerk", model=model, tools=[write_report, charge]), session.calls)

    result = await Runner.run(agent, "Write the report and charge 10", session=session)
    print(result.final_output)
    print("report.md is there" if (folder / "report.md").exists() else "report.md is gone")
    print("items:", len(await session.get_items()))

    # A request leaves this machine only with a person's yes, or by policy; here the person is this function.
    undone = await session.aundo(approve=lambda plan: True)
    print(undone.message)
    print("report.md is there" if (folder / "report.md").exists() else "report.md is gone")
    print("refunded:", *refunded)
    print("items:", len(await session.get_items()))


asyncio.run(main())
