"""record: what was done outside the files, journaled with what takes it back."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from takeback.errors import UsageError
from takeback.surfaces.wording import effects_outside, json_shapes
from takeback.surfaces.wording.text import safe
from takeback.surfaces.wording.typed_json import parsed_json, text_given
from takeback.text.units import parse_duration

if TYPE_CHECKING:
    from typing import Any

    from takeback.model.outside import Act
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.workspace import Workspace

_HTTP, _COMMAND = ("http",), ("command",)
_FOR = {  # option → the kinds that take it
    "status": _HTTP, "response_header": _HTTP, "response_body": _HTTP, "request_body": _HTTP,
    "inverse_method": _HTTP, "inverse_url": _HTTP, "inverse_header": _HTTP, "inverse_body": _HTTP,
    "inverse_json": _HTTP, "gone": _HTTP, "probe_method": _HTTP, "probe_url": _HTTP, "probe_header": _HTTP,
    "shell": _COMMAND, "run_in": _COMMAND, "env": _COMMAND, "target": _COMMAND, "probe_argv": _COMMAND,
    "probe_shell": _COMMAND, "expect": _HTTP + _COMMAND, "timeout": _HTTP + _COMMAND,
    "probe_expect": _HTTP + _COMMAND, "probe_gone": _HTTP + _COMMAND, "idempotent": _HTTP + _COMMAND,
    "idempotent_for": _HTTP + _COMMAND, "did": _HTTP + _COMMAND, "left_to_do": ("note",),
    "for_effect": _HTTP + _COMMAND,
}  # fmt: skip


def add(parser: Parser) -> None:
    parser.synopsis = "http METHOD URL … | command --did TEXT … -- ARGV… | note TEXT"
    parser.about = (
        "Journals what was done outside the files; it sends and runs nothing. `http` is a request that\n"
        "was made, with the one that takes it back: it goes to the same server, may refer to the answer\n"
        "({response.body.id}, {response.headers.location}) and to credentials by name (${env:NAME}),\n"
        "whose values are looked up when it is sent. `command` is something done, with the command that\n"
        "takes it back. `note` is something that cannot be taken back, so that the ledger knows of it.\n"
        "What a hook saw is in the ledger already: --for ID gives it what takes it back, and makes no\n"
        "second effect; a request with the same method and URL in the same turn is known by itself.\n"
        "So is an answer that names what was made, recorded again: it stays one effect.\n"
        "TAKEBACK_ACTOR names who did it."
    )
    takes, again = parser.takes, {"action": "append", "default": None}
    takes("KIND", "kind", nargs="?", default="", help="http, command or note")
    takes("WORDS…", "words", nargs="*", help="METHOD URL, or the text of a note")
    takes("--did TEXT", "--did", help="what was done, in a line")
    takes("--status N", "--status", help="http: the answer's status; none if no answer came")
    takes("--request-body TEXT", "--request-body", help="http: text, @FILE, or - for standard input")
    takes("--response-header 'K: V'", "--response-header", **again, help="http: of the answer; several times")
    takes("--response-body TEXT", "--response-body", help="http: text, @FILE, or - for standard input")
    takes("--inverse-method M", "--inverse-method", help="http: of what takes it back; POST with a body, else DELETE")
    takes("--inverse-url URL", "--inverse-url", help="http: where it is sent, at the same server")
    takes(
        "--inverse-header 'K: V'", "--inverse-header", **again, help="http: such as 'Authorization: Bearer ${env:KEY}'"
    )
    takes("--inverse-body TEXT", "--inverse-body", help="http: what is sent, as it is")
    takes("--inverse-json JSON", "--inverse-json", help="http: what is sent, as JSON")
    takes("--shell STRING", "--shell", help="command: one line for the shell, instead of -- ARGV…")
    takes("--run-in DIR", "--run-in", help="command: the folder it runs in; the project's root")
    takes("--env NAME", "--env", **again, help="command: a variable that it gets; several times")
    takes("--target TEXT", "--target", help="command: what it touched; later ones on the same depend on it")
    takes("--expect N[,N]", "--expect", help="statuses or exit codes that mean it took effect; 2xx, or 0")
    takes("--gone N[,N]", "--gone", help="http: statuses that mean nothing was left to do; 404, 410 of a DELETE")
    takes("--timeout AGE", "--timeout", help="how long to wait for it, such as 30s")
    takes("--probe-url URL", "--probe-url", help="http: asked, with GET, whether it took effect")
    takes("--probe-method M", "--probe-method", help="http: asked in another way")
    takes("--probe-header 'K: V'", "--probe-header", **again, help="http: sent with that question")
    takes("--probe-argv WORDS", "--probe-argv", help="command: whose exit code says whether it took effect")
    takes("--probe-shell STRING", "--probe-shell", help="command: the same, for the shell")
    takes("--probe-expect N[,N]", "--probe-expect", help="what means: it took effect")
    takes("--probe-gone N[,N]", "--probe-gone", help="what means: it did not")
    takes("--idempotent", "--idempotent", action="store_true", help="sent again with the same key it does nothing more")
    takes("--idempotent-for AGE", "--idempotent-for", help="for so long; 24h")
    takes("--for ID", "--for", dest="for_effect", help="an effect that a hook saw: it gets what takes it back")
    takes("--depends-on ID", "--depends-on", **again, help="an older effect that it stands on; several times")
    takes("--left-to-do TEXT", "--left-to-do", help="note: what a person can still do about it")
    takes("--call ID", "--call", help="the call of an agent in which it was done")
    parser.has_after = True
    parser.examples = [
        ("takeback record http POST https://api.stripe.com/v1/charges --status 200 \\", ""),
        ("    --response-body @charge.json --inverse-url https://api.stripe.com/v1/refunds \\", ""),
        ("    --inverse-header 'Authorization: Bearer ${env:STRIPE_KEY}' \\", ""),
        ("    --inverse-body 'charge={response.body.id}' --idempotent", ""),
        ("takeback record command --did 'made bucket demo' -- aws s3 rb s3://demo", ""),
        ("takeback record http --for kxvm --inverse-url /v1/charges/ch_3P", ""),
        ("takeback record note 'rotated the signing key'", ""),
    ]


def run(context: Context, args: Namespace) -> int:
    kinds = {"http": _http, "command": _command, "note": _note}
    if args.kind not in kinds:
        what = f"there is nothing called {args.kind!r} to record" if args.kind else "say what to record"
        raise UsageError(what, "takeback record http, record command or record note")
    _refuse_others(args)
    with context.open() as workspace:
        by = {"surface": "cli", "actor": context.environ.get("TAKEBACK_ACTOR", ""), "call": args.call or ""}
        known = {name: value for name, value in by.items() if value}
        before = dict(workspace.history().acts)
        act = kinds[args.kind](workspace, args, known, _older(workspace, args.depends_on))
        inverse = effects_outside.describer(workspace)(act) if act.inverse else ""
        if context.json:
            context.terminal.json({"effect": json_shapes.effect(act, workspace.history(), inverse)})
            return 0
        if before.get(act.id) == workspace.history().acts[act.id]:
            context.terminal.say(f"recorded already as {act.id[:8]}: nothing was added")
        _tell(context, workspace, act, inverse)
        return 0


def _http(workspace: Workspace, args: Namespace, by: dict[str, str], older: list[str]) -> Act:
    if (len(args.words) != 2 and not (args.for_effect and not args.words)) or args.after:
        raise UsageError("record http needs a method and a URL", "takeback record http POST https://…")
    method, url = args.words or ("", "")
    return workspace.record_http(
        method,
        url,
        status=_status(args.status),
        request_body=text_given(args.request_body),
        response_headers=_headers(args.response_header),
        response_body=text_given(args.response_body),
        inverse_method=args.inverse_method or "",
        inverse_url=args.inverse_url or "",
        inverse_headers=_headers(args.inverse_header),
        inverse_body=text_given(args.inverse_body),
        inverse_json=parsed_json(args.inverse_json, "--inverse-json", '\'{"charge": "{response.body.id}"}\''),
        expect=_codes(args.expect, "--expect"),
        gone=_codes(args.gone, "--gone"),
        timeout=_seconds(args.timeout),
        probe=_probe(args, url=args.probe_url, method=args.probe_method, headers=_headers(args.probe_header)),
        idempotent=args.idempotent,
        idempotent_for=_seconds(args.idempotent_for),
        summary=args.did or "",
        depends_on=older,
        by=by,
        for_effect=args.for_effect or "",
    )


def _command(workspace: Workspace, args: Namespace, by: dict[str, str], older: list[str]) -> Act:
    if args.words:
        raise UsageError(
            f"{args.words[0]!r} stands before --: the command that takes it back stands after it",
            "takeback record command --did TEXT -- ARGV…",
        )
    more = {
        "run_in": args.run_in,
        "env": args.env,
        "timeout": _seconds(args.timeout),
        "expect": _codes(args.expect, "--expect"),
        "probe": _probe(args, argv=shlex.split(args.probe_argv) if args.probe_argv else None, shell=args.probe_shell),
        "idempotent": args.idempotent or None,
        "idempotent_for": _seconds(args.idempotent_for),
    }
    return workspace.record_command(
        args.did or "",
        argv=args.after or None,
        shell=args.shell,
        target=args.target or "",
        depends_on=older,
        by=by,
        for_effect=args.for_effect or "",
        **{name: value for name, value in more.items() if value is not None},
    )


def _note(workspace: Workspace, args: Namespace, by: dict[str, str], older: list[str]) -> Act:
    text = " ".join([*args.words, *args.after])
    return workspace.record_note(text, left_to_do=args.left_to_do or "", depends_on=older, by=by)


def _tell(context: Context, workspace: Workspace, act: Act, inverse: str) -> None:
    terminal = context.terminal
    id = terminal.style(act.id[:8], "bold")
    terminal.say(f"effect {id}: {safe(act.summary)} · {effects_outside.state(terminal, act.shown_state)}")
    if inverse:
        terminal.say(f"  taken back by {safe(inverse)}")
        terminal.hint(f"take it back: takeback revert {act.id[:8]}, or with all else: takeback rollback")
    elif act.shown_state == "failed":
        terminal.hint("it did not happen, so there is nothing to take back")
    elif act.sayings:
        terminal.hint(f"nobody knows whether it happened: find out, then {act.resolving}")
    else:
        terminal.hint(f"nothing takes it back: {safe(str(act.did.get('left_to_do', 'no inverse was recorded')))}")
        if how := effects_outside.giving(act):
            terminal.hint(f"if something does: {how}")


# -- what was typed ------------------------------------------------------------


def _refuse_others(args: Namespace) -> None:
    """An option that means nothing for this kind would be lost without a word."""
    for option, kinds in _FOR.items():
        if getattr(args, option) not in (None, False) and args.kind not in kinds:
            flag = "--for" if option == "for_effect" else "--" + option.replace("_", "-")
            raise UsageError(f"{flag} means nothing for record {args.kind}", "see takeback help record")


def _older(workspace: Workspace, named: list[str] | None) -> list[str]:
    return [workspace.find_effect(name).id for name in named or ()]


def _status(given: str | None) -> int | None:
    """0 where nobody noted it, None where no answer came."""
    if given is None:
        return 0
    if given.lower() == "none":
        return None
    if not given.isdecimal():
        raise UsageError(f"--status needs a number, not {given!r}", "such as 201; none if no answer came")
    return int(given)


def _headers(given: list[str] | None) -> dict[str, str] | None:
    if given is None:
        return None
    found = {}
    for line in given:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise UsageError("a header is written 'Name: value'", "such as 'Location: /v1/charges/ch_3P'")
        found[name.strip()] = value.strip()
    return found


def _codes(given: str | None, flag: str) -> list[int] | None:
    if given is None:
        return None
    parts = [part.strip() for part in given.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f"{flag} needs numbers, not {given!r}", f"such as {flag} 200,204")
    return [int(part) for part in parts]


def _seconds(given: str | None) -> float | None:
    if given is None:
        return None
    return float(given) if given.replace(".", "", 1).isdecimal() else parse_duration(given)


def _probe(args: Namespace, **ways: Any) -> dict[str, Any] | None:
    """How to find out whether the inverse took effect; None if that was not said."""
    codes = {"expect": _codes(args.probe_expect, "--probe-expect"), "gone": _codes(args.probe_gone, "--probe-gone")}
    found = {name: value for name, value in {**ways, **codes}.items() if value is not None}
    return found or None
