"""A LangGraph agent that fails midway: one call takes the graph, the files and the charge to the step before.

    pip install '.[langgraph]'
    python examples/langgraph_rollback.py [FOLDER]

The shop's payment server is a small one on this machine: it keeps real money in no currency at all.
"""

from __future__ import annotations

import json
import operator
import sys
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypedDict

from langgraph.graph import START, StateGraph

import takeback
from takeback.integrations.langgraph import TakebackSaver

project = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()) / "project"
config: Any = {"configurable": {"thread_id": "order-1"}}


class Payments(BaseHTTPRequestHandler):
    """POST /charges takes money, POST /refunds gives it back."""

    charges: ClassVar[dict[str, int]] = {}

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/charges":
            answer = {"id": f"ch_{len(self.charges) + 1}"}
            self.charges[answer["id"]] = asked["amount"]
        else:
            answer = {"refunded": self.charges.pop(asked["charge"])}
        data = json.dumps(answer).encode()
        self.send_response(201)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Payments)
shop = f"http://127.0.0.1:{server.server_address[1]}"


class Order(TypedDict):
    log: Annotated[list[str], operator.add]


def write(state: Order) -> Any:
    (project / "order.txt").write_text("one book\n")
    return {"log": ["wrote the order"]}


def charge(state: Order) -> Any:
    request = urllib.request.Request(f"{shop}/charges", b'{"amount": 4200}')
    with urllib.request.urlopen(request) as answer:
        made = json.load(answer)
    workspace.record_http(
        "POST", f"{shop}/charges", status=201, response_body=made,
        inverse_url=f"{shop}/refunds", inverse_json={"charge": "{response.body.id}"},
    )  # fmt: skip
    (project / "order.txt").write_text("one book, paid\n")
    return {"log": ["charged the card"]}


def ship(state: Order) -> Any:
    (project / "label.txt").write_text("EXPRESS\n")
    raise RuntimeError("no courier delivers there")


def tell(graph: Any) -> None:
    state = graph.get_state(config)
    files = {path.name: path.read_text().strip() for path in sorted(project.iterdir())}
    print(f"  the graph remembers {state.values['log']}, and goes on with {state.next[0]}")
    print(f"  the project has {files}")
    print(f"  the shop has {sum(Payments.charges.values()) / 100:.2f} EUR.")


def ask(plan: takeback.Plan) -> bool:
    """A person, here: what would be done outside the files is shown before it is."""
    print(f"  take back {len(plan.outside)} payment, with the graph's state and its files? yes")
    return True


if __name__ == "__main__":
    threading.Thread(target=server.serve_forever, daemon=True).start()
    project.mkdir(parents=True)
    with takeback.open(project, create=True) as workspace, TakebackSaver(workspace) as saver:
        builder = StateGraph(Order)
        for before, node in ((START, write), ("write", charge), ("charge", ship)):
            builder.add_node(node.__name__, node)
            builder.add_edge(before, node.__name__)
        graph = builder.compile(checkpointer=saver)
        print("The agent writes an order, charges for it, and fails at shipping it:")
        try:
            graph.invoke({"log": []}, config, durability="sync")
        except RuntimeError as error:
            print(f"  {error}")
        tell(graph)
        print("One call goes back to the step before the charge:")
        step = next(one for one in graph.get_state_history(config) if one.next == ("charge",))
        saver.rollback_to("order-1", step.config["configurable"]["checkpoint_id"], with_files=True, approve=ask)
        tell(graph)
