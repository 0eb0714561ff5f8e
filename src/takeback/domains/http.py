"""HTTP calls: what was asked of a server, and the one request that takes it back.

    recorded(…)  request, answer, inverse ──► NewAct       references to the answer are filled in, secrets refused
    Http.run     the inverse, with its key ──► done, failed (no effect, may run again) or unknown (never by itself)

Credentials stand in an inverse by name, `${env:NAME}`. Their values are looked up when it is sent, go to the origin of
the recorded call and nowhere else, and are out of everything that is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urljoin

from takeback.errors import TakebackError, UsageError
from takeback.model.effects import COMPENSATING, DONE, FAILED, IRREVERSIBLE, UNKNOWN
from takeback.model.outside import BEGUN, KEY_LASTS, Answer, Credential, Inverse, NewAct, World, is_key_known
from takeback.privacy import redact
from takeback.system.http import Place, Reply, exchange, place, refuse_dots

NOT_SAID = 0  # as a status: it was done, and nobody noted the answer
_TIMEOUT, _LONGEST = 30.0, 600.0  # seconds
_LARGEST = 1_000_000  # bytes of an inverse's body
_EXCERPT = 2_000  # characters of a body that are kept as evidence
_KEYS = frozenset(
    ("method", "url", "headers", "body", "json", "expect", "gone", "timeout", "probe", "idempotent", "idempotent_for")
) | {"origin"}
_PROBE_KEYS = frozenset(("method", "url", "headers", "expect", "gone"))
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Of the connection, not of the request: they could lead it elsewhere or cut it in two.
_NOT_OURS = frozenset(
    ("connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)
_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
_DEEPEST = 100  # levels of a body


class Http:
    """Sends the inverse of an HTTP call."""

    name = "http"

    def __init__(self, world: World) -> None:
        self.world = world

    # -- before it is stored, and before it is approved ------------------------

    def check(self, inverse: Inverse) -> Inverse:
        """In one spelling, with its defaults filled in; whatever is odd about it is refused here."""
        args = dict(inverse.args)
        _must(inverse.op == "send", f"{inverse.op!r} is nothing that http does", "the inverse of a call is `send`")
        _known(args, _KEYS, "an HTTP inverse")
        _must(
            isinstance(args.get("origin"), str),
            "the inverse lacks the origin of the call",
            "record the call with its URL",
        )
        origin = place(args["origin"] + "/").origin
        found = _request(args, origin, "the inverse")
        found["origin"] = origin
        found.setdefault("gone", [404, 410] if found["method"] == "DELETE" else [])
        found["timeout"] = _seconds(args.get("timeout"), _TIMEOUT, "timeout")
        _must(found["timeout"] <= _LONGEST, f"a timeout of {found['timeout']:g} s is too long", "600 s at most")
        _add_body(found, args)
        if (probe := args.get("probe")) is not None:
            _must(isinstance(probe, Mapping), "a probe is a table of method, url, expect and gone", "write it so")
            found["probe"] = _probe(probe, origin)
        if args.get("idempotent"):
            _must(args["idempotent"] is True, "idempotent is true or false", "write one of them")
            found["idempotent"] = True
            found["idempotent_for"] = _seconds(args.get("idempotent_for"), KEY_LASTS, "idempotent_for")
        _refuse_secrets(found, self.world.environ)
        return Inverse("send", found)

    def describe(self, inverse: Inverse) -> str:
        """All that could be sent, the probe too: what is approved must have been seen."""
        args = self.check(inverse).args
        names = sorted(redact.references(args))
        parts = [f"{args['method']} {args['url']}"]
        if names:
            parts.append(f"(needs {', '.join(names)})")
        body = json.dumps(args["json"], ensure_ascii=False) if "json" in args else args.get("body", "")
        parts += _headers_shown(args, body)
        if body:
            parts.append(redact.text(_spelled(body)))
        more = [f"expects {_listed(args['expect'])}"] if "expect" in args else []
        if args["gone"] != ([404, 410] if args["method"] == "DELETE" else []):
            more.append(f"gone means {_listed(args['gone']) or 'nothing'}")
        if args.get("idempotent"):
            more.append("idempotent")
        if more:
            parts.append(f"({', '.join(more)})")
        if probe := args.get("probe"):
            asks = [f"{probe['method']} {probe['url']}", *_headers_shown(probe, "")]
            gone = f"; not if {_listed(probe['gone'])}" if probe["gone"] else ""
            parts.append(f"· probe: {' '.join(asks)} (taken back if it answers {_listed(probe['expect'])}{gone})")
        return " ".join(parts)

    def credentials(self, inverse: Inverse) -> tuple[Credential, ...]:
        try:
            args = self.check(inverse).args
        except UsageError:  # it is never sent, so it needs none
            return ()
        origin, bound = args["origin"], self.world.settings.credentials
        wanted = [Credential(name, origin) for name in sorted(redact.references(args))]
        return tuple(c for c in wanted if c not in self.world.allowed and not _is_bound(bound.get(c.name, ()), origin))

    def lacks(self, inverse: Inverse) -> str:
        wanted = sorted(redact.references(self.check(inverse).args))
        unset = [name for name in wanted if not self.world.environ.get(name)]
        return f"{', '.join(unset)} {'is' if len(unset) == 1 else 'are'} not set here" if unset else ""

    # -- sending ---------------------------------------------------------------

    def run(self, inverse: Inverse, key: str) -> Answer:
        args = self.check(inverse).args  # again: a journal can be written by others
        if unbound := self.credentials(inverse):
            return Answer(FAILED, f"nobody let {unbound[0].name} go to {unbound[0].origin}; nothing was sent")
        headers = dict(args.get("headers", {}))
        if not any(name.lower() == "idempotency-key" for name in headers):
            headers["Idempotency-Key"] = key
        reply = self._send({**args, "headers": headers}, args["timeout"])
        return self._judged(args, reply)

    def probe(self, inverse: Inverse) -> bool | None:
        args = self.check(inverse).args
        probe = args.get("probe")
        if probe is None or self.credentials(inverse):
            return None
        try:
            status = self._send(probe, args["timeout"]).status
        except TakebackError:
            return None
        return True if status in probe["expect"] else False if status in probe["gone"] else None

    def may_repeat(self, inverse: Inverse, sent_at: float) -> bool:
        return is_key_known(inverse, sent_at, self.world.clock())

    def _send(self, request: Mapping[str, Any], timeout: float) -> Reply:
        """The request with its credentials in place; TakebackError, and nothing sent, if one is missing."""
        url = self._resolved(request["url"], lambda value: quote(value, safe=""))
        headers = {name: self._resolved(value) for name, value in request.get("headers", {}).items()}
        for name, value in headers.items():
            _header(name, value, "the inverse, filled in,")
        body = None
        if "json" in request:
            body = json.dumps(_mapped(request["json"], self._resolved), ensure_ascii=False).encode()
        elif "body" in request:
            body = self._resolved(request["body"], _escape(request["body"], headers)).encode()
        return exchange(request["method"], place(url), headers, body, timeout)

    def _resolved(self, text: str, escape: Callable[[str], str] = str) -> str:
        return redact.REFERENCE.sub(lambda found: escape(self._value(found[1])), text)

    def _value(self, name: str) -> str:
        value = self.world.environ.get(name, "")
        if not value:
            raise TakebackError(f"{name} is not set here; nothing was sent", f"set {name} and run it again")
        return value

    def _judged(self, args: Mapping[str, Any], reply: Reply) -> Answer:
        """What an answer, or none, says about whether the inverse took effect."""
        status = reply.status
        hidden = _hidden(args, self.world.environ)
        evidence: dict[str, Any] = {"status": status, "response": _excerpt(reply.body, hidden)}
        if not reply.sent:
            return Answer(FAILED, f"it could not be reached: {reply.why}; nothing was sent")
        if not status:
            return Answer(UNKNOWN, f"it was sent and {reply.why}: nobody knows whether it took effect")
        if status in args.get("expect", range(200, 300)):
            torn = "" if reply.whole else "; the rest of the answer was cut off"
            return Answer(DONE, f"answered {status}{redact.text(_made(reply.body), hidden)}{torn}", evidence)
        if status in args["gone"]:
            return Answer(DONE, f"already gone ({status})", evidence)
        if 300 <= status < 400:
            to = redact.text(urljoin(args["url"], reply.headers.get("location", "")), hidden)
            return Answer(FAILED, f"redirects elsewhere ({status} to {to}), which is not followed", evidence)
        if 400 <= status < 500:
            return Answer(FAILED, f"refused with {status}", evidence)
        return Answer(UNKNOWN, f"answered {status}: nobody knows whether it took effect", evidence)


# -- recording -----------------------------------------------------------------


def recorded(
    domain: Http,
    method: str,
    url: str,
    *,
    status: int | None = NOT_SAID,
    request_body: Any = None,
    response_headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    response_body: Any = None,
    inverse: Mapping[str, Any] | None = None,
    summary: str = "",
    depends_on: Iterable[str] = (),
) -> NewAct:
    """A call that was made, as an act. A 4xx had no effect, so it gets no inverse; without a status, or after a 5xx,
    nobody knows.

    `inverse` has the arguments of `send`; its texts may refer to the answer, as `{response.body.id}`."""
    _must(status is None or status == NOT_SAID or _is_status(status), f"{status!r} is no HTTP status", "100 to 599")
    _must(isinstance(url, str), f"{url!r} is no URL", "such as https://api.example.com/v1/charges")
    _must(isinstance(summary, str), "a summary is a line of text", "or leave it out")
    method, at = _method(method), place(re.sub(r"^([a-zA-Z]+://)[^/?#]*@", r"\1", url))
    failed = status is not None and 400 <= status < 500
    in_doubt = status is None or status >= 500
    answer = _Answered(at.url, status, _pairs(response_headers or {}), response_body)
    made = None
    later: dict[str, Any] = {}
    if inverse is not None and not failed:
        wanted = inverse if inverse.get("method") else {**inverse, "method": _usual_method(inverse)}
        if in_doubt and _refers_to_body(wanted) and not answer.has_body:
            later = _until_answered(domain, wanted, at)
        else:
            made = domain.check(Inverse("send", {**_filled(wanted, answer), "origin": at.origin}))
    hidden = _hidden(made.args if made else inverse, domain.world.environ)

    shown = redact.text(at.url, hidden)
    did: dict[str, Any] = {"method": method, "url": shown, "status": status or None}
    excerpts = {"request": _excerpt(request_body, hidden), "response": _excerpt(response_body, hidden)}
    did |= {name: excerpt for name, excerpt in excerpts.items() if excerpt}
    did |= {"undo": later} if later else {}
    thing = "" if failed or in_doubt else _thing(method, at, status, answer)
    if thing and redact.text(thing, hidden) == thing:  # masked, it would be the same as another's
        did["made"] = thing
    if not made and not failed and not in_doubt:
        did["left_to_do"] = "no inverse was recorded: what the server did stays done"
    if failed:
        did["left_to_do"] = f"it failed with {status}, so there is nothing to take back"
    said = " ".join(summary.split()) or f"{method} {shown}" + (f" → {status}" if status else "")
    return NewAct(
        domain.name,
        _cut(redact.text(said, hidden), 300),
        redact.text(_target(method, at, made, answer), hidden),
        made,
        COMPENSATING if made else UNKNOWN if in_doubt else IRREVERSIBLE,
        did,
        tuple(depends_on),
        FAILED if failed else BEGUN if in_doubt else DONE,
    )


def _usual_method(inverse: Mapping[str, Any]) -> str:
    return "DELETE" if inverse.get("body") is None and inverse.get("json") is None else "POST"


def _pairs(headers: Any) -> dict[str, str]:
    """Headers as a table, from whatever a client has them in."""
    try:
        return {str(name): str(value) for name, value in (headers.items() if hasattr(headers, "items") else headers)}
    except (TypeError, ValueError):
        raise UsageError("response_headers are a table, or pairs of name and value", "pass them as they came") from None


def _refers_to_body(inverse: Mapping[str, Any]) -> bool:
    return any(text.startswith("response.body") for text in _RESPONSE.findall(json.dumps(dict(inverse), default=str)))


def _until_answered(domain: Http, inverse: Mapping[str, Any], at: Place) -> dict[str, Any]:
    """An inverse that refers to an answer which never came: kept as it was written, until a person says what the
    answer would have been. All but that is checked now."""

    def named(text: str) -> str:
        def result(found: re.Match[str]) -> str:
            _, part, path = (*found[1].split(".", 2), "", "")[:3]
            _must(part == "body", f"{{{found[1]}}} refers to an answer that never came", "refer to its body alone")
            return f"{{result{'.' * bool(path)}{path}}}"

        return _RESPONSE.sub(result, text)

    written = _mapped(dict(inverse), named)
    for request in (written, written.get("probe")):
        if isinstance(request, dict) and isinstance(request.get("url"), str):
            _must(request["url"][:1] != "{", "an answer that never came says where it goes", "begin with its path")
            refuse_dots(request["url"])
            request["url"] = urljoin(at.url, request["url"])
    _must(
        str(written.get("url", "")).startswith(at.origin + "/"),
        "the inverse does not say where it goes",
        "name its URL",
    )
    domain.check(Inverse("send", {**_mapped(written, lambda text: _RESULT.sub("x", text)), "origin": at.origin}))
    return {"domain": domain.name, "args": written, "given": {}}


class _Answered:
    """What came back from the recorded call, to be referred to."""

    def __init__(self, url: str, status: int | None, headers: Mapping[str, str], body: Any) -> None:
        self.url = url
        self.headers = {str(name).lower(): str(value) for name, value in headers.items()}
        for name in ("location", "content-location"):
            if name in self.headers:
                self.headers[name] = urljoin(url, self.headers[name])
        self.body = _parsed(body)
        self.has_body = body is not None and body != ""
        self._parts = {"headers": self.headers, "body": self.body, "status": status or None}

    def value(self, reference: str) -> Any:
        """What `response.body.data.0.id` leads to; refused if that is nothing, or more than one value."""
        _, *path = reference.split(".")
        found: Any = self._parts
        for name in path:
            if isinstance(found, Mapping):
                found = found.get(name.lower() if found is self.headers else name)
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                found = None
        _must(
            found is not None and found != "" and not isinstance(found, (dict, list)),
            f"{{{reference}}} refers to nothing in the answer",
            "pass response_body and response_headers as they came, and refer to what is in them",
        )
        # A server must not be able to ask for a credential by what it answers.
        _must("${" not in str(found), f"{{{reference}}} refers to a reference", "write the value itself")
        return found


_RESULT = re.compile(r"\{result(?:\.[^{}]*)?\}")
_RESPONSE = re.compile(r"\{(response(?:\.[^{}]*)?)\}")


def _filled(inverse: Mapping[str, Any], answer: _Answered) -> dict[str, Any]:
    """An inverse with every reference to the answer replaced by what it refers to."""

    def fill(text: str, escape: Callable[[str], str] = str) -> str:
        return _RESPONSE.sub(lambda found: escape(_plain(answer.value(found[1]))), text)

    def whole(text: str) -> Any:  # in JSON, a text that is nothing but a reference takes on the type of its value
        found = _RESPONSE.fullmatch(text)
        return answer.value(found[1]) if found else fill(text)

    def url(text: str) -> str:  # only at its beginning may an answer say where it leads, as a Location does
        first = _RESPONSE.match(text)
        start = _plain(answer.value(first[1])) if first else ""
        filled = start + fill(text[first.end() if first else 0 :], lambda value: quote(value, safe=""))
        refuse_dots(filled)  # joining would resolve them
        return urljoin(answer.url, filled)

    out = dict(inverse)
    if isinstance(out.get("url"), str):
        out["url"] = url(out["url"])
    if isinstance(out.get("headers"), Mapping):
        out["headers"] = {k: fill(v) if isinstance(v, str) else v for k, v in out["headers"].items()}
    if isinstance(out.get("body"), str):
        out["body"] = fill(out["body"], _escape(out["body"], out.get("headers") or {}))
    if out.get("json") is not None:
        out["json"] = _mapped(out["json"], whole)
    if isinstance(out.get("probe"), Mapping):
        out["probe"] = _filled(out["probe"], answer)
    return out


def _target(method: str, at: Place, made: Inverse | None, answer: _Answered) -> str:
    """The URL of what the call made or changed, as far as anything tells; what shares it depends on it."""
    if (location := answer.headers.get("location", "")).startswith(at.origin + "/"):
        return location
    if made is not None and made.args["method"] in ("DELETE", "PATCH", "PUT"):
        return str(made.args["url"])
    id = answer.body.get("id") if isinstance(answer.body, Mapping) else None
    if method == "POST" and isinstance(id, (str, int)) and id:
        return _inside(at, id)
    return at.url


def _thing(method: str, at: Place, status: int | None, answer: _Answered) -> str:
    """The URL of what a POST made, by its answer; empty where that names nothing, or only what the call was sent to:
    then two calls with one answer may be two acts."""
    if method != "POST" or (status and not 200 <= status < 300):
        return ""
    location = answer.headers.get("location", "")
    if location.startswith(at.origin + "/") and location != at.url:
        return location
    id = answer.body.get("id") if isinstance(answer.body, Mapping) else None
    if not isinstance(id, (str, int)) or isinstance(id, bool) or str(id) in ("", *re.split("[/?&=]", unquote(at.url))):
        return ""
    return _inside(at, id)


def _inside(at: Place, id: str | int) -> str:
    return f"{at.url.partition('?')[0].rstrip('/')}/{quote(str(id), safe='')}"


# -- an inverse, checked -------------------------------------------------------


def _must(holds: object, message: str, hint: str) -> None:
    if not holds:
        raise UsageError(message, hint)


def _known(args: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    if unknown := sorted(set(args) - known):
        raise UsageError(f"{what} has no {unknown[0]!r}", f"it has {', '.join(sorted(known - {'origin'}))}")


def _request(args: Mapping[str, Any], origin: str, what: str) -> dict[str, Any]:
    """What an inverse and its probe have in common."""
    _must(isinstance(args.get("url"), str), f"{what} has no URL", "say where it is sent")
    at = place(args["url"])
    _must(
        at.origin == origin,
        f"{what} goes to {at.origin}, but the call went to {origin}",
        "it may only go where the call went: scheme, host and port",
    )
    found: dict[str, Any] = {"method": _method(args.get("method")), "url": at.url}
    headers = args.get("headers") or {}
    _must(isinstance(headers, Mapping) and len(headers) <= 50, f"the headers of {what} are no table", "name: value")
    for name, value in headers.items():
        _header(name, value, what)
    _must(len({n.lower() for n in headers}) == len(headers), f"{what} has a header twice", "write each one once")
    if headers:
        found["headers"] = dict(headers)
    for key in ("expect", "gone"):
        if (codes := args.get(key)) is not None:
            _must(isinstance(codes, (list, tuple)) and all(map(_is_status, codes)), f"{key} lists statuses", "[200]")
            found[key] = sorted(set(codes))
    return found


def _probe(args: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """A probe only looks; and it has to say which answer means what, for there is no safe guess."""
    _known(args, _PROBE_KEYS, "a probe")
    found = _request({"method": "GET", **args}, origin, "the probe")
    _must(found["method"] in ("GET", "HEAD"), f"a probe only looks, and {found['method']} acts", "use GET or HEAD")
    found.setdefault("gone", [])
    _must(
        found.get("expect") and not set(found["expect"]) & set(found["gone"]),
        "a probe lists in `expect` the statuses that mean the inverse took effect, in `gone` those that it did not",
        "for a DELETE: expect = [404, 410], gone = [200]",
    )
    return found


def _method(method: object) -> str:
    found = method.upper() if isinstance(method, str) else ""
    _must(_TOKEN.fullmatch(found) and found not in ("CONNECT", "TRACE"), f"{method!r} is no method", "such as DELETE")
    return found


def _header(name: object, value: object, what: str) -> None:
    _must(isinstance(name, str) and _TOKEN.fullmatch(name), f"{name!r} is no name of a header", "correct it")
    assert isinstance(name, str)
    _must(name.lower() not in _NOT_OURS, f"{what} sets {name}, which is not for it to say", "leave it out")
    good = isinstance(value, str) and len(value) <= 8192 and not re.search(r"[^\t\x20-\x7e\xa0-\xff]", value)
    _must(good, f"the header {name} of {what} is no line of plain text", "without line breaks or control characters")


def _is_status(code: object) -> bool:
    return isinstance(code, int) and not isinstance(code, bool) and 100 <= code <= 599


def _seconds(value: Any, default: float, name: str) -> float:
    if value is None:
        return default
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    _must(is_number and 0 < value < float("inf"), f"{name} is a number of seconds, not {value!r}", "such as 30")
    return float(value)


def _add_body(found: dict[str, Any], args: Mapping[str, Any]) -> None:
    """The body, and what it is, if the headers do not say so."""
    body, data = args.get("body"), args.get("json")
    _must(body is None or data is None, "an inverse has a body or json, not both", "leave one out")
    try:
        if data is not None:
            found["json"] = _mapped(json.loads(json.dumps(data, allow_nan=False)), str)
        sent = json.dumps(data) if data is not None else body or ""
        size = len(sent.encode())
    except (TypeError, ValueError, AttributeError, RecursionError):
        raise UsageError("the body of the inverse is neither text nor JSON", "pass text, or plain data") from None
    _must(size <= _LARGEST, f"a body of {size} bytes is too large", f"{_LARGEST} bytes at most")
    if not sent:
        return
    if data is None:
        found["body"] = body
    headers = found.setdefault("headers", {})
    if not _says_type(headers):
        headers["Content-Type"] = _type_of(sent)


# -- secrets -------------------------------------------------------------------

_VARIABLE = re.compile(r"(?i)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")


def _refuse_secrets(found: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """A credential in an inverse would lie in the journal: it has to be a reference."""
    body = found.get("body", "")  # as text, a form is like a query
    if told := redact.secret_at(found) or redact.secret_at(_parsed(body)) or redact.secret_in("?" + body):
        raise _literal(told)
    texts = list(_strings({**found, "origin": ""}))
    for name, value in _known_secrets(environ).items():
        if any(value in text for text in texts):
            raise _literal(f"the value of {name}", name)


def _literal(what: str, name: str = "NAME") -> UsageError:
    return UsageError(
        f"the inverse holds a credential: {what}; nothing was recorded",
        f"put it into an environment variable and write ${{env:{name}}} instead",
    )


def _known_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that hold a secret, by what they are called; where a key lies is none."""
    return {n: v for n, v in environ.items() if _VARIABLE.search(n) and len(v) >= 8 and not re.match(r"/|\w+://", v)}


def _hidden(args: Any, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Values that must not be kept of anything said in this call."""
    return (*redact.values_of(args, environ), *_known_secrets(environ).values())


def _is_bound(origins: Iterable[str], origin: str) -> bool:
    for bound in origins:
        try:
            if place(bound + "/").origin == origin:
                return True
        except UsageError:  # what makes no sense binds nothing
            continue
    return False


# -- texts and bodies ----------------------------------------------------------


def _parsed(body: Any) -> Any:
    """A body as data where it is JSON, else as text."""
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            pass
    return body


def _excerpt(body: Any, hidden: Iterable[str]) -> str:
    """The beginning of a body as evidence, its secrets out."""
    found = _parsed(body)
    if found is None or found == "":
        return ""
    if isinstance(found, str):  # its first name stands where one of a query would
        return _cut(redact.text("?" + found[: 10 * _EXCERPT], hidden)[1:], _EXCERPT)
    return _cut(json.dumps(redact.value(found, hidden), ensure_ascii=False), _EXCERPT)


def _strings(value: Any) -> Iterator[str]:
    """Every text in plain data, names included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for each in (*value, *value.values()) if isinstance(value, Mapping) else value:
            yield from _strings(each)


def _mapped(value: Any, change: Callable[[str], Any], depth: int = 0) -> Any:
    """Plain data with every text in it changed."""
    _must(depth <= _DEEPEST, "the body is nested too deeply", f"{_DEEPEST} levels at most")
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _mapped(each, change, depth + 1) for name, each in value.items()}
    return [_mapped(each, change, depth + 1) for each in value] if isinstance(value, (list, tuple)) else value


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _says_type(headers: Mapping[str, str]) -> str:
    return next((str(value) for name, value in headers.items() if str(name).lower() == "content-type"), "")


def _type_of(body: str) -> str:
    """What a text is, where nobody says so."""
    if isinstance(_parsed(body), (dict, list)):
        return _JSON
    return _FORM if re.fullmatch(r"[^\s=&]+=[^\s&]*(?:&[^\s=&]+=[^\s&]*)*", body) else "text/plain; charset=utf-8"


def _escape(body: str, headers: Mapping[str, str]) -> Callable[[str], str]:
    """How a value is written inside a body, so that it stays one value."""
    said = _says_type(headers) or _type_of(body)
    if said.startswith(_FORM):
        return quote_plus
    return (lambda value: json.dumps(value)[1:-1]) if isinstance(_parsed(body), (dict, list)) else str


def _headers_shown(request: Mapping[str, Any], body: str) -> list[str]:
    """Every header of a request, but for a type that goes without saying."""
    plain = _type_of(body) if body else ""
    found = redact.headers(request.get("headers", {}))
    return [f"{name}: {value}" for name, value in found.items() if (name.lower(), value) != ("content-type", plain)]


def _spelled(text: str) -> str:
    """In one line, nothing left out: what cannot be seen is spelled."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _listed(codes: Iterable[int]) -> str:
    return ", ".join(map(str, codes))


def _made(body: bytes) -> str:
    """What an inverse made, if the answer names it."""
    found = _parsed(body)
    id = found.get("id") if isinstance(found, Mapping) else None
    return f": {_cut(str(id), 80)}" if isinstance(id, (str, int)) and id else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more)"
