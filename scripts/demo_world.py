"""The second half of the demo: what git cannot see. The agent charges a card, migrates a database and writes a mail;
one rollback takes all of it back, together with its files, in true reverse order.

    a payment server of its own, on loopback ─┐
    a database beside the project ────────────┼─► takeback rollback ─► the server's own ledger, before and after
    a mail that was held, not sent ───────────┘
"""

from __future__ import annotations

import json
import os
import pty
import select
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.servers.payments import Payments
from tests.servers.payments import serving as serving

KEY = "not-a-real-key-but-a-secret-one"
UP = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('CREATE TABLE orders (id, customer, cents)')"
DOWN = "import sqlite3, sys\n\nsqlite3.connect(sys.argv[1]).execute('DROP TABLE orders')\n"
MAIL = ["--to", "ada@example.com", "--subject", "Your order", "--body", "We charged you 42.00 EUR. Thank you!"]
TURNS = 60.0  # seconds that a question may take to appear

Takeback = Callable[..., None]
Type = Callable[..., None]


def act(project: Path, database: Path, server: Payments, takeback: Takeback, show: Type) -> None:
    """What the agent does beyond the files, each time saying what takes it back."""
    charged = charge(server, 4200)
    show(f"curl -X POST {server.url}/v1/charges -d '{{\"amount\": 4200}}'   → 201 {charged['id']}", "agent")
    takeback(
        "record", "http", "POST", f"{server.url}/v1/charges",
        "--status", "201", "--response-body", json.dumps(charged),
        "--inverse-url", "/v1/refunds", "--inverse-json", '{"charge": "{response.body.id}"}',
        "--inverse-header", "Authorization: Bearer ${env:SHOP_KEY}",
        who="agent",
    )  # fmt: skip
    show(f'python -c "…CREATE TABLE orders…" {database.name}', "agent")
    subprocess.run([sys.executable, "-c", UP, str(database)], check=True)
    down = project / "migrations" / "042_down.py"
    down.parent.mkdir(exist_ok=True)
    down.write_text(DOWN)
    takeback(
        "record", "command", "--did", "created the table orders",
        "--", sys.executable, "migrations/042_down.py", str(database),
        who="agent",
    )  # fmt: skip
    takeback("email", "stage", *MAIL, who="agent")
    show("rm -r migrations    # “tidying up”", "agent")
    down.unlink()
    down.parent.rmdir()


def charge(server: Payments, cents: int) -> dict[str, Any]:
    request = urllib.request.Request(
        f"{server.url}/v1/charges",
        json.dumps({"amount": cents}).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"},
    )
    with urllib.request.urlopen(request) as answer:
        made: dict[str, Any] = json.load(answer)
    return made


def tables(database: Path) -> list[str]:
    with sqlite3.connect(database) as db:
        return [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


def answer(argv: list[str], cwd: Path, environ: dict[str, str], answers: list[tuple[str, str]]) -> int:
    """Runs a command on a terminal of its own, as a person would: types each answer when its question is there."""
    master, slave = pty.openpty()
    process = subprocess.Popen(argv, cwd=cwd, env=environ, stdin=slave, stdout=slave, stderr=slave, close_fds=True)
    os.close(slave)
    waiting, seen = list(answers), ""
    try:
        while True:
            ready, _, _ = select.select([master], [], [], TURNS)
            if not ready:
                process.kill()
                break
            try:
                data = os.read(master, 4096)
            except OSError:  # the terminal is gone: the command has ended
                break
            if not data:
                break
            text = data.decode(errors="replace")
            sys.stdout.write(text.replace("\r\n", "\n"))
            sys.stdout.flush()
            seen += text
            if waiting and waiting[0][0] in seen:
                os.write(master, waiting.pop(0)[1].encode() + b"\n")
                seen = ""
    finally:
        os.close(master)
    return process.wait()
