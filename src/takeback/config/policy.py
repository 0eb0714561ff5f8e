"""What may run, what must be asked, what is refused: per domain and verdict, and per kind of an agent's call.

    [policy]                       autopilot = true
    [policy.calls]                 push = "allow" | "ask" | "refuse"
    [policy.http]                  compensating = "allow" | "ask" | "refuse"
    [credentials.STRIPE_KEY]       origins = ["https://api.stripe.com"]

Only the user's own configuration may loosen anything; the project's file, which an agent can write, may only tighten.
Pure: settings in, decisions out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from takeback.errors import UsageError
from takeback.model.effects import HELD, IRREVERSIBLE, UNKNOWN, VERDICTS

ALLOW, ASK, REFUSE = "allow", "ask", "refuse"
_STRICTER = {ALLOW: 0, ASK: 1, REFUSE: 2}

# What an agent's call may do that takeback cannot take back.
CALLS = {
    "push": "sending commits to another repository",
    "publish": "publishing a package, an image or a release",
    "forge": "pull requests, issues, releases, repositories at a forge",
    "infrastructure": "deploying, or destroying what is deployed",
    "cluster": "changing what runs in a cluster or in containers",
    "cloud": "changing or deleting what lies in a cloud",
    "http": "a web request that writes",
    "database": "statements that destroy data",
    "remote": "working on another machine",
    "send": "sending mail",
    "delete": "deleting outside the workspace, or a repository in it",
    "erase": "making git forget what its undo needs",
    "system": "disks, users, and stopping the machine",
    "tool": "another server's tool that acts, by its annotations or its name",
    "repeat": "doing again what was done before and taken back",
    "unknown": "code that cannot be read before it runs",
    "outside": "writing outside the workspace, which is journaled as uncovered",
}
_ALLOWED = frozenset({"outside"})  # unless somebody says otherwise


class Policy(NamedTuple):
    """Decisions by "domain.verdict"; `autopilot` asks before anything that cannot be undone."""

    decisions: Mapping[str, str] = {}
    autopilot: bool = False
    calls: Mapping[str, str] = {}  # by kind, or "all"

    def call(self, kind: str) -> Decision:
        """On letting an agent do what takeback cannot take back."""
        for name in (kind, "all"):
            if (found := self.calls.get(name)) is not None and not (name == "all" and kind in _ALLOWED):
                return Decision(found, f"[policy.calls] {name}")
        if kind in _ALLOWED:
            return Decision(ALLOW, "default: it is journaled as uncovered")
        return Decision(REFUSE, "autopilot") if self.autopilot else Decision(ASK, "default")

    @property
    def domains(self) -> set[str]:
        """What it says something about by name."""
        return {key.rpartition(".")[0] for key in self.decisions} - {"all"}

    def decide(self, domain: str, verdict: str) -> Decision:
        """On taking back a step with this verdict; on an irreversible act, on doing it at all."""
        for name in (domain, "all"):
            if (found := self.decisions.get(f"{name}.{verdict}")) is not None:
                return Decision(found, f"[policy.{name}] {verdict}")
        if self.autopilot and verdict in (IRREVERSIBLE, UNKNOWN):
            return Decision(REFUSE, "autopilot")
        if (domain, verdict) == ("email", HELD):  # of other domains whoever recorded it could call anything held
            return Decision(ALLOW, "default: dropping a mail that never left harms nobody")
        return Decision(ASK, "default")

    def tightened(self, other: Policy) -> tuple[Policy, list[str]]:
        """With the stricter of both; and what the other one asked for in vain."""
        decisions, in_vain = dict(self.decisions), []
        for key, wanted in other.decisions.items():
            domain, _, verdict = key.partition(".")
            now = self.decide(domain, verdict).decision
            if _STRICTER[wanted] >= _STRICTER[now]:
                decisions[key] = wanted
                for each, set_to in self.decisions.items():  # else a looser one of a single domain would win
                    if domain == "all" and each.endswith(f".{verdict}") and _STRICTER[wanted] > _STRICTER[set_to]:
                        decisions[each] = wanted
            else:
                in_vain.append(f'policy.{key} = "{wanted}", which is looser than "{now}"')
        return self._replace(decisions=decisions, autopilot=self.autopilot or other.autopilot), in_vain

    def calls_tightened(self, wanted: Mapping[str, str]) -> tuple[Mapping[str, str], list[str]]:
        """Decisions on calls with the stricter of both; and what was asked for in vain."""
        calls, in_vain = dict(self.calls), []
        for name, decision in wanted.items():
            for kind in CALLS if name == "all" else (name,):
                if name == "all" and kind in _ALLOWED:
                    continue
                now = self._replace(calls=calls).call(kind).decision
                if _STRICTER[decision] > _STRICTER[now]:
                    calls[kind] = decision
                elif _STRICTER[decision] < _STRICTER[now]:
                    in_vain.append(f'policy.calls.{kind} = "{decision}", which is looser than "{now}"')
        return calls, in_vain


class Decision(NamedTuple):
    decision: str
    source: str


def read(value: Any) -> Policy:
    """From the table of a TOML file; ValueError if it makes no sense."""
    if not isinstance(value, dict):
        raise ValueError
    decisions: dict[str, str] = {}
    autopilot = value.get("autopilot", False)
    if not isinstance(autopilot, bool):
        raise ValueError
    for domain, table in value.items():
        if domain == "autopilot":
            continue
        if not isinstance(table, dict):
            raise ValueError
        for verdict, decision in table.items():
            if verdict not in VERDICTS or decision not in _STRICTER:
                raise ValueError
            decisions[f"{domain}.{verdict}"] = decision
    return Policy(decisions, autopilot)


def read_calls(value: Any) -> dict[str, str]:
    """Decisions on agents' calls, by kind."""
    if not isinstance(value, dict):
        raise ValueError
    for kind, decision in value.items():
        if decision not in _STRICTER:
            raise ValueError
        if kind not in CALLS and kind != "all":
            raise UsageError(f"no call is of the kind {kind}", f"the kinds are {', '.join(CALLS)}, and all")
    return dict(value)


def shown_calls(calls: Mapping[str, str]) -> str:
    return " ".join(f"{kind}={decision}" for kind, decision in sorted(calls.items())) or "ask"


def shown(policy: Policy) -> str:
    parts = [f"{key}={decision}" for key, decision in sorted(policy.decisions.items())]
    return " ".join(["autopilot"] * policy.autopilot + parts) or "ask before every act outside the files"


def read_credentials(value: Any) -> dict[str, tuple[str, ...]]:
    """Names of environment variables, each with the origins its value may be sent to."""
    if not isinstance(value, dict):
        raise ValueError
    found: dict[str, tuple[str, ...]] = {}
    for name, table in value.items():
        origins = table.get("origins") if isinstance(table, dict) and set(table) == {"origins"} else None
        if not isinstance(origins, list) or not all(isinstance(o, str) and "://" in o for o in origins):
            raise ValueError
        if any("*" in origin for origin in origins):
            raise UsageError(f"{name} is bound to a place with *", "an origin is one place: name each, without *")
        found[name] = tuple(o.rstrip("/") for o in origins)
    return found
