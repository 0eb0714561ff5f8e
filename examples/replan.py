"""A harness that replans: step 3 fails and is taken back, the plan changes, and steps 1 and 2 stand.

    python examples/replan.py [FOLDER]

The shop is a file beside the project: money moves there that no file history would bring back.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import takeback

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
project, payments = folder / "project", folder / "payments.txt"


def lines() -> list[str]:
    return payments.read_text().splitlines() if payments.exists() else []


def refund(charge: str) -> None:
    payments.write_text("\n".join([*lines(), f"refund {charge}"]) + "\n")


@takeback.tool(undo=refund, undo_args={"charge": "{result.id}"})
def charge(amount: int) -> dict[str, str]:
    id = f"ch_{sum(line.startswith('charge') for line in lines())}"
    payments.write_text("\n".join([*lines(), f"charge {id} {amount} EUR"]) + "\n")
    return {"id": id}


class NoCourier(Exception):
    pass


def ship_by_express(memory: dict[str, str]) -> None:
    memory["shipping"] = "express"
    (project / "label.pdf").write_text("EXPRESS")
    charge(99)
    raise NoCourier("no express courier delivers there")


def ship_by_mail(memory: dict[str, str]) -> None:
    memory["shipping"] = "standard"
    charge(9)


def ask(plan: takeback.Plan) -> bool:
    """A person, here: what would be done outside the files is shown before it is."""
    print(f"   take back {len(plan.outside)} payment and {len(plan.taken) - len(plan.outside)} file? yes")
    return True


def main() -> None:
    project.mkdir(parents=True)
    memory: dict[str, str] = {}
    with takeback.open(project, create=True, store=str(folder / "store")) as workspace:
        with workspace.step("1 write the order"):
            (project / "order.txt").write_text("20 EUR, one book\n")
        with workspace.step("2 charge the customer"):
            (project / "invoice.txt").write_text("paid\n")
            charge(20)
        for ship in (ship_by_express, ship_by_mail):
            name = f"3 {ship.__name__.replace('_', ' ')}"
            print(name)
            try:
                with workspace.step(name, approve=ask) as step:
                    step.remember(memory)
                    ship(memory)
                break
            except NoCourier as error:
                print(f"   {error}; the plan changes")
        standing = [act.summary for act in workspace.effects() if act.shown_state == "live"]
    files = sorted(path.name for path in project.iterdir())
    print(json.dumps({"files": files, "payments": lines(), "memory": memory, "standing": standing}))


if __name__ == "__main__":
    main()
