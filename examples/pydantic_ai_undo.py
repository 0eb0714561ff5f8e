"""An agent of Pydantic AI writes a file and charges a card; one undo takes back what was said, the file and the charge.
Pydantic AI's own function model stands in for the model, and a small server for the payments.

    pip install '.[pydantic-ai]' && python examples/pydantic_ai_undo.py
"""

from __future__ import annotations

import json
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

import takeback
from takeback.integrations.pydantic_ai import Takeback

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


def write_report(path: str, text: str) -> str:
    (folder / path).write_text(text)
    return "written"


def charge(amount: int) -> dict[str, Any]:
    request = urllib.request.Request(f"{url}/charges", json.dumps({"amount": amount}).encode())
    return dict(json.load(urllib.request.urlopen(request)))


def main() -> None:
    workspace = takeback.open(folder, create=True, store=tempfile.mkdtemp())
    # How a charge is taken back. Its id is in what the tool returned.
    undo = {"charge": {"http": {"url": f"{url}/refunds", "json": {"charge": "{result.id}"}}}}
    capability = Takeback(workspace, undo=undo)
    says = [
        ModelResponse([ToolCallPart("write_report", {"path": "report.md", "text": "Paid."})]),
        ModelResponse([ToolCallPart("charge", {"amount": 10})]),
        ModelResponse([TextPart("I wrote the report and charged 10.")]),
    ]
    model = FunctionModel(lambda messages, info: says.pop(0))
    agent = Agent(model, tools=[write_report, charge], capabilities=[capability])

    result = agent.run_sync("Write the report and charge 10", conversation=capability.conversation())
    print(result.output)
    print("report.md is there" if (folder / "report.md").exists() else "report.md is gone")
    print("messages:", len(capability.conversation().messages))

    # A request leaves this machine only with a person's yes, or by policy; here the person is this function.
    undone = capability.undo(approve=lambda plan: True)
    print(undone.message)
    print("report.md is there" if (folder / "report.md").exists() else "report.md is gone")
    print("refunded:", *refunded)
    print("messages:", len(capability.conversation().messages))


if __name__ == "__main__":
    main()
