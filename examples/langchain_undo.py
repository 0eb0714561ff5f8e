"""An agent of LangChain writes a file and charges a card; one undo takes back what was said, the file and the charge.
LangChain's own fake model stands in for the model, and a small server for the payments.

    pip install '.[langchain]' && python examples/langchain_undo.py
"""

from __future__ import annotations

import json
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

import takeback
from takeback.integrations.langchain import TakebackMiddleware
from takeback.integrations.langgraph import TakebackSaver

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


@tool
def write_report(path: str, text: str) -> str:
    """Writes a report."""
    (folder / path).write_text(text)
    return "written"


@tool
def charge(amount: int) -> dict[str, Any]:
    """Charges a card."""
    request = urllib.request.Request(f"{url}/charges", json.dumps({"amount": amount}).encode())
    return dict(json.load(urllib.request.urlopen(request)))


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **more: Any) -> Scripted:
        return self  # what it says is written down already


def call(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call-{name}"}])


def main() -> None:
    workspace = takeback.open(folder, create=True, store=tempfile.mkdtemp())
    # How a charge is taken back. Its id is in what the tool returned.
    undo = {"charge": {"http": {"url": f"{url}/refunds", "json": {"charge": "{result.id}"}}}}
    middleware = TakebackMiddleware(workspace, undo=undo)
    says = [
        call("write_report", path="report.md", text="Paid."),
        call("charge", amount=10),
        AIMessage("I wrote the report and charged 10."),
    ]
    saver = TakebackSaver(workspace)
    model = Scripted(messages=iter(says))
    agent = create_agent(model, [write_report, charge], middleware=[middleware], checkpointer=saver)

    thread: RunnableConfig = {"configurable": {"thread_id": "main"}}
    prompt = {"messages": [{"role": "user", "content": "Write the report and charge 10"}]}
    result = agent.invoke(prompt, thread, durability="sync")
    print(result["messages"][-1].text)
    print("report.md is there" if (folder / "report.md").exists() else "report.md is gone")
    print("messages:", len(result["messages"]))

    # A request leaves this machine only with a person's yes, or by policy; here the person is this function.
    undone = middleware.undo("main", approve=lambda plan: True)
    print(undone.message)
    print("report.md is there" if (folder / "report.md").exists() else "report.md is gone")
    print("refunded:", *refunded)
    print("messages:", len(agent.get_state(thread).values.get("messages", [])))


if __name__ == "__main__":
    main()
