"""HTTP calls and their inverses, against a real server that keeps state and misbehaves: what is refused when recorded,
what is sent and what is not, what an answer means, and the whole way through a workspace."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import takeback
from servers.payments import Payments, serving
from support import set_clock
from takeback.config.settings import Settings
from takeback.domains.http import Http, recorded
from takeback.model.effects import DONE, FAILED, UNKNOWN, Outcome
from takeback.model.outside import Act, Answer, Credential, Inverse, World
from takeback.store.blobs import MemoryBlobs
from takeback.workspace import Workspace

SECRET = "s3cr3t-value-0123456789"
API = "https://api.example.com"


@pytest.fixture
def shop() -> Iterator[Payments]:
    with serving() as payments:
        yield payments


def world(environ: Mapping[str, str] = {}, allowed: Any = (), bound: Mapping[str, tuple[str, ...]] = {}) -> World:
    settings = Settings(Path("/nowhere"), credentials=bound)
    return World(Path("/"), settings, environ, MemoryBlobs(), lambda: 1000.0, frozenset(allowed))


def inverse(url: str = f"{API}/v1/refunds", **args: Any) -> Inverse:
    return Inverse("send", {"method": "POST", "url": url, "origin": "/".join(url.split("/")[:3]), **args})


def run(url: str, environ: Mapping[str, str] = {}, allowed: Any = (), key: str = "key-1", **args: Any) -> Answer:
    http = Http(world(environ, allowed))
    return http.run(http.check(inverse(url, **args)), key)


def call(url: str, data: Any = None, method: str = "POST") -> tuple[int, dict[str, str], Any]:
    """The agent's own call, by a client that knows nothing of us."""
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as answer:
        said = answer.read()
        return answer.status, dict(answer.headers), json.loads(said) if said else None


def charge(ws: Workspace, shop: Payments, amount: int = 500, path: str = "/v1/refunds", **more: Any) -> Act:
    """A charge at the shop, recorded with its refund."""
    status, headers, body = call(f"{shop.url}/v1/charges", {"amount": amount})
    asked: dict[str, Any] = {"inverse_method": "POST", "inverse_url": shop.url + path}
    asked |= {"inverse_json": {"charge": "{response.body.id}"}, **more}
    return ws.record_http(
        "POST", f"{shop.url}/v1/charges", status=status, response_headers=headers, response_body=body, **asked
    )


def approved(ws: Workspace, verb: str = "rollback", *what: str, **options: Any) -> Outcome:
    """A verb, after a person said yes to exactly its plan."""
    plan = ws.plan(verb, *what, **options)
    ws.approve(plan, ws.unapproved(plan)[1])
    return ws.apply(plan)


def state(ws: Workspace, act: Act) -> str:
    return ws.find_effect(act.id).shown_state


# -- what is refused when it is recorded ---------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "ftp://api.example.com/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://",
        "/v1/refunds",
        "https://api.example.com:99999/x",
        "https://[::1/x",
        "https://api.example.com/a b",
        "https://api.example.com/a\r\nX-Evil: 1",
        "https://api.example.com/a\x00",
        "https://api.example.com\\@evil.example/x",
        "https://user:word@api.example.com/x",
        "https://api.example.com/v1/../admin",
        "https://api.example.com/v1/%2e%2e/admin",
        "https://${env:HOST}/x",
    ],
)
def test_a_url_that_is_odd_is_refused(url: str):
    with pytest.raises(takeback.UsageError):
        Http(world()).check(Inverse("send", {"method": "POST", "url": url, "origin": API}))


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com/x",
        "https://api.example.com:8443/x",
        "https://api.example.com.evil.example/x",
        "https://evil.example/x",
        "https://xn--pi-gia.example.com/x",
    ],
)
def test_the_inverse_and_its_probe_go_where_the_call_went(url: str):
    http = Http(world())
    with pytest.raises(takeback.UsageError, match="but the call went to https://api"):
        http.check(Inverse("send", {"method": "POST", "url": url, "origin": API}))
    with pytest.raises(takeback.UsageError, match="probe goes to"):
        http.check(inverse(probe={"url": url, "expect": [200]}))


def test_one_origin_in_several_spellings_is_one_origin():
    found = Http(world()).check(
        Inverse("send", {"method": "post", "url": "HTTPS://API.example.com:443/x#part", "origin": API})
    )
    assert found.args["url"] == f"{API}/x" and found.args["method"] == "POST"
    assert Http(world()).check(inverse("http://[::1]:8080/x")).args["origin"] == "http://[::1]:8080"
    sharp = Http(world()).check(inverse("https://bücher.example/ä?q=ö"))
    assert sharp.args["url"] == "https://xn--bcher-kva.example/%C3%A4?q=%C3%B6"


@pytest.mark.parametrize(
    "args",
    [
        {"colour": "red"},
        {"method": "BAD METHOD"},
        {"method": "CONNECT"},
        {"method": None},
        {"headers": {"X-A": "1\r\nX-B: 2"}},
        {"headers": {"X-A\r\nX-B": "2"}},
        {"headers": {"X-A": "\x1b[2J"}},
        {"headers": {"X-A": "snow ☃"}},
        {"headers": {"X-A": 1}},
        {"headers": {"X-A": "1", "x-a": "2"}},
        {"headers": {"Host": "evil.example"}},
        {"headers": {"Transfer-Encoding": "chunked"}},
        {"headers": {"Content-Length": "0"}},
        {"headers": [["X-A", "1"]]},
        {"body": "x", "json": {}},
        {"body": b"bytes"},
        {"body": "\ud800"},
        {"body": "x" * 1_000_001},
        {"json": {1, 2}},
        {"json": float("nan")},
        {"json": json.loads("[" * 200 + "]" * 200)},
        {"expect": 200},
        {"expect": [0]},
        {"expect": [True]},
        {"gone": ["404"]},
        {"timeout": 0},
        {"timeout": "30"},
        {"timeout": 3600},
        {"timeout": float("nan")},
        {"idempotent": "yes"},
        {"idempotent": True, "idempotent_for": -1},
        {"probe": "GET"},
        {"probe": {"url": f"{API}/x"}},
        {"probe": {"url": f"{API}/x", "expect": []}},
        {"probe": {"url": f"{API}/x", "expect": [200], "gone": [200]}},
        {"probe": {"method": "DELETE", "url": f"{API}/x", "expect": [200]}},
        {"probe": {"url": f"{API}/x", "expect": [200], "body": "x"}},
        {"origin": None},
    ],
    ids=repr,
)
def test_an_inverse_that_makes_no_sense_is_refused_and_says_what_to_do(args: dict[str, Any]):
    with pytest.raises(takeback.UsageError) as told:
        Http(world()).check(inverse(**args))
    assert told.value.hint


@pytest.mark.parametrize(
    "args",
    [
        {"headers": {"Authorization": "Basic dXNlcjpwYXNz"}},
        {"headers": {"authorization": "hunter2"}},
        {"headers": {"Authorization": "Bearer abcdefghijklmnopqrstuvwxyz ${env:X}"}},
        {"headers": {"Cookie": "session=1"}},
        {"headers": {"X-Shopify-Access-Token": "abc"}},
        {"headers": {"PRIVATE-TOKEN": "abc"}},
        {"headers": {"X-Note": "sk_live_0123456789abcdef"}},
        {"url": f"{API}/x?access_token=abc"},
        {"url": f"{API}/x?a=1&api_key=abc"},
        {"url": f"{API}/sk_live_0123456789abcdef"},
        {"body": "amount=1&password=abc", "headers": {"Content-Type": "application/x-www-form-urlencoded"}},
        {"body": '{"client_secret": "abc"}'},
        {"json": {"deep": [{"apiKey": "abc"}]}},
        {"json": {"note": "sk_live_0123456789abcdef"}},
        {"json": {"note": f"see {SECRET}"}},
        {"probe": {"url": f"{API}/x", "expect": [200], "headers": {"Authorization": "Bearer x"}}},
        {"probe": {"url": f"{API}/x?token=abc", "expect": [200]}},
    ],
    ids=repr,
)
def test_a_literal_credential_is_refused_naming_the_reference(args: dict[str, Any]):
    with pytest.raises(takeback.UsageError) as told:
        Http(world({"MY_TOKEN": SECRET})).check(inverse(**args))
    assert "${env:" in told.value.hint
    assert SECRET not in str(told.value) + told.value.hint


def test_the_value_of_a_variable_is_refused_by_its_name():
    with pytest.raises(takeback.UsageError) as told:
        Http(world({"MY_TOKEN": SECRET})).check(inverse(json={"note": SECRET}))
    assert "${env:MY_TOKEN}" in told.value.hint


def test_references_pass_wherever_a_credential_may_stand():
    found = Http(world()).check(
        inverse(
            f"{API}/x?api_key=${{env:A}}",
            headers={"Authorization": "Bearer ${env:B}", "Cookie": "session=${env:C}"},
            json={"password": "${env:D}", "page_token": "p2"},
            probe={"url": f"{API}/x", "expect": [200], "headers": {"X-Api-Key": "${env:E}"}},
        )
    )
    assert [c.name for c in Http(world()).credentials(found)] == ["A", "B", "C", "D", "E"]


# -- credentials and where they go ---------------------------------------------


def test_a_credential_is_asked_for_unless_it_is_bound_to_that_origin_or_allowed():
    asks = inverse(headers={"Authorization": "Bearer ${env:STRIPE_KEY}"})
    wanted = Credential("STRIPE_KEY", API)
    assert Http(world()).credentials(asks) == (wanted,)
    assert Http(world(bound={"STRIPE_KEY": (API,)})).credentials(asks) == ()
    assert Http(world(bound={"STRIPE_KEY": (f"{API}:443",)})).credentials(asks) == ()
    assert Http(world(bound={"STRIPE_KEY": ("https://other.example",)})).credentials(asks) == (wanted,)
    assert Http(world(bound={"OTHER": (API,)})).credentials(asks) == (wanted,)
    assert Http(world(allowed=[wanted])).credentials(asks) == ()
    assert Http(world(allowed=[Credential("STRIPE_KEY", "https://other.example")])).credentials(asks) == (wanted,)


def test_what_nobody_let_go_is_not_sent(shop: Payments):
    answer = run(shop.url + "/v1/refunds", {"K": SECRET}, headers={"Authorization": "Bearer ${env:K}"})
    assert answer.result == FAILED and "K" in answer.note and "nothing was sent" in answer.note
    assert shop.requests == []


def test_a_missing_credential_fails_before_anything_is_sent(shop: Payments):
    allowed = [Credential("K", shop.url)]
    with pytest.raises(takeback.TakebackError, match="K is not set here; nothing was sent"):
        run(shop.url + "/v1/refunds", {}, allowed, headers={"Authorization": "Bearer ${env:K}"})
    with pytest.raises(takeback.TakebackError, match="header"):
        run(shop.url + "/v1/refunds", {"K": "a\r\nX: 1"}, allowed, headers={"Authorization": "Bearer ${env:K}"})
    assert shop.requests == []


def test_an_inverse_that_somebody_wrote_into_the_journal_is_never_sent(shop: Payments):
    for args in (
        {"method": "POST", "url": f"{shop.url}/v1/charges", "origin": API},
        {"method": "POST", "url": f"{shop.url}/v1/charges", "origin": shop.url, "headers": {"Cookie": "a=1"}},
        {"url": 7},
        {},
    ):
        http, poisoned = Http(world()), Inverse("send", args)
        assert http.credentials(poisoned) == ()
        for use in (http.describe, http.probe, lambda found: Http(world()).run(found, "key-1")):
            with pytest.raises(takeback.UsageError):
                use(poisoned)
    assert shop.requests == []


def test_credentials_are_put_in_when_it_is_sent_and_stay_one_value_each(shop: Payments):
    odd = 'a"b&c/d e'
    environ = dict.fromkeys("ABC", odd)
    allowed = [Credential(name, shop.url) for name in "ABC"]
    run(f"{shop.url}/x?key=${{env:A}}", environ, allowed, headers={"X-Key": "${env:B}"}, json={"k": ["${env:C}"]})
    run(f"{shop.url}/x", environ, allowed, body="k=${env:C}&x=1")
    run(f"{shop.url}/x", environ, allowed, body='{"k": "${env:C}"}')
    (_, path, headers, body), (_, _, _, sent), (_, _, _, text) = shop.requests
    assert path == "/x?key=a%22b%26c%2Fd%20e"
    assert headers["X-Key"] == odd and json.loads(body) == {"k": [odd]} == {"k": [json.loads(text)["k"]]}
    assert sent == "k=a%22b%26c%2Fd+e&x=1"


def test_a_plan_shows_the_request_and_the_names_of_its_secrets():
    said = Http(world()).describe(
        Http(world()).check(
            inverse(
                headers={"Authorization": "Bearer ${env:STRIPE_KEY}", "Stripe-Account": "acct_1"},
                json={"charge": "ch_1"},
            )
        )
    )
    assert said.startswith(f"POST {API}/v1/refunds (needs STRIPE_KEY)")
    assert "Stripe-Account: acct_1" in said and '{"charge": "ch_1"}' in said and "\n" not in said
    long = Http(world()).describe(Http(world()).check(inverse(body="line\n" * 1000 + "the end")))
    assert long.endswith("line\\nthe end") and "\n" not in long


def test_all_that_could_be_sent_is_described():
    asked = {"url": f"{API}/v1/charges/ch_1", "headers": {"X-Look": "closely"}, "expect": [404], "gone": [200]}
    more = {"headers": {"Content-Type": "application/x-odd"}, "expect": [202], "gone": [409], "idempotent": True}
    said = Http(world()).describe(Http(world()).check(inverse(body="a=1", probe=asked, **more)))
    assert "Content-Type: application/x-odd a=1 (expects 202, gone means 409, idempotent)" in said
    assert f"· probe: GET {API}/v1/charges/ch_1 X-Look: closely (taken back if it answers 404; not if 200)" in said
    plain = Http(world()).describe(Http(world()).check(inverse(body="a=1")))
    assert plain == f"POST {API}/v1/refunds a=1"


# -- what an answer means ------------------------------------------------------


def refund(shop: Payments, mode: str = "", **args: Any) -> Answer:
    if not shop.charges:
        call(f"{shop.url}/v1/charges", {"amount": 5})
    headers = {"X-Misbehave": mode} if mode else {}
    return run(f"{shop.url}/v1/refunds", headers=headers, json={"charge": "ch_1"}, **args)


def test_an_expected_status_is_done_and_names_what_was_made(shop: Payments):
    answer = refund(shop)
    assert (answer.result, answer.note) == (DONE, "answered 201: re_1")
    assert answer.evidence["status"] == 201 and "re_1" in answer.evidence["response"]


def test_the_key_is_sent_unless_the_recorder_set_one(shop: Payments):
    refund(shop)
    assert shop.requests[-1][2]["Idempotency-Key"] == "key-1"
    run(f"{shop.url}/v1/refunds", headers={"idempotency-key": "mine"}, json={"charge": "ch_1"})
    sent = {name.lower(): value for name, value in shop.requests[-1][2].items()}
    assert sent["idempotency-key"] == "mine"


@pytest.mark.parametrize(
    ("mode", "result", "says", "refunds"),
    [
        ("reset", UNKNOWN, "connection was lost", 1),
        ("drop", UNKNOWN, "connection was lost", 0),
        ("hang", UNKNOWN, "no answer in time", 1),
        ("drip", UNKNOWN, "", 1),
        ("500", UNKNOWN, "answered 500", 1),
        ("half", DONE, "cut off", 1),
        ("drip-body", DONE, "cut off", 1),
        ("cut-headers", DONE, "answered 201", 1),
        ("redirect", FAILED, "redirects elsewhere", 0),
    ],
)
def test_a_server_that_misbehaves(shop: Payments, mode: str, result: str, says: str, refunds: int):
    answer = refund(shop, mode, timeout=0.4)
    assert answer.result == result and says in answer.note
    assert len(shop.refunds) == refunds


def test_a_redirect_is_followed_nowhere(shop: Payments):
    with serving() as thief:
        for elsewhere in (f"{thief.url}/stolen", f"{shop.url}/v1/charges", "/v1/charges"):
            shop.elsewhere = elsewhere
            assert refund(shop, "redirect").result == FAILED
        assert thief.requests == [] and len(shop.requests) == 4 and shop.refunds == {}


def test_what_could_not_be_reached_failed_and_may_run_again(shop: Payments):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        answer = run(f"http://127.0.0.1:{port}/x")
    assert answer.result == FAILED and "refused; nothing was sent" in answer.note
    answer = run("http://nowhere.invalid/x")
    assert answer.result == FAILED and "nothing was sent" in answer.note


def test_a_server_that_proves_nothing_about_itself_gets_nothing(shop: Payments):
    """TLS that does not come about: the request never leaves."""
    answer = run(shop.url.replace("http:", "https:") + "/v1/refunds", timeout=2)
    assert answer.result == FAILED and "nothing was sent" in answer.note
    assert shop.requests == []


def test_already_gone_is_done_for_a_delete_and_only_there(shop: Payments):
    call(f"{shop.url}/issues", {"title": "a"})
    first, second = (run(f"{shop.url}/issues/1", method="DELETE") for _ in range(2))
    assert (first.result, first.note) == (DONE, "answered 204")
    assert (second.result, second.note) == (DONE, "already gone (410)")
    assert run(f"{shop.url}/issues/7", method="DELETE").note == "already gone (404)"
    assert run(f"{shop.url}/issues/7/close").result == FAILED
    assert run(f"{shop.url}/issues/7/close", gone=[404]).result == DONE
    assert run(f"{shop.url}/issues/7", method="DELETE", gone=[]).result == FAILED


def test_a_4xx_failed_and_another_success_than_expected_is_not_known(shop: Payments):
    assert run(f"{shop.url}/v1/refunds", json={"charge": "ch_9"}).note == "refused with 400"
    assert refund(shop, expect=[200]).result == UNKNOWN
    assert refund(shop, expect=[201], key="key-2").result == DONE


def test_what_is_kept_of_an_answer_holds_no_secret_and_is_short(shop: Payments):
    call(f"{shop.url}/issues", {"title": f"{SECRET} sk_live_0123456789abcdef " + "x" * 5000})
    environ, allowed = {"K": SECRET}, [Credential("K", shop.url)]
    answer = run(f"{shop.url}/issues/1/close", environ, allowed, headers={"Authorization": "Bearer ${env:K}"})
    kept = json.dumps(answer.evidence) + answer.note
    assert SECRET not in kept and "sk_live" not in kept and len(kept) < 3000 and "closed" not in answer.note


# -- doubt ---------------------------------------------------------------------


def test_a_probe_tells_done_from_not_done_from_who_knows(shop: Payments):
    call(f"{shop.url}/v1/charges", {"amount": 5})
    http = Http(world())
    at = f"{shop.url}/v1/refunds?charge=ch_1"
    asks = http.check(inverse(f"{shop.url}/v1/refunds", probe={"url": at, "expect": [200], "gone": [404]}))
    assert http.probe(asks) is False
    refund(shop)
    assert http.probe(asks) is True
    for odd in ("/misbehave/500/x", "/misbehave/reset/x", "/misbehave/redirect/x"):
        other = http.check(
            inverse(f"{shop.url}/x", timeout=1, probe={"url": shop.url + odd, "expect": [200], "gone": [404]})
        )
        assert http.probe(other) is None, odd
    assert http.probe(http.check(inverse(f"{shop.url}/v1/refunds"))) is None
    needs = {"url": at, "expect": [200], "headers": {"Authorization": "Bearer ${env:K}"}}
    assert http.probe(http.check(inverse(f"{shop.url}/x", probe=needs))) is None, "nobody let K go there"


def test_only_a_vouched_key_is_repeated_and_not_for_ever():
    http = Http(world())  # it is 1000 there
    vouched = http.check(inverse(idempotent=True, idempotent_for=60))
    assert http.may_repeat(vouched, 950.0)
    assert not http.may_repeat(vouched, 930.0)
    assert not http.may_repeat(vouched, 0.0)
    assert not http.may_repeat(http.check(inverse()), 950.0)
    assert http.check(inverse(idempotent=True)).args["idempotent_for"] == 86400


# -- recording -----------------------------------------------------------------


def record(**more: Any) -> Any:
    what: dict[str, Any] = {
        "status": 201,
        "response_body": {"id": "ch_1", "n": 7, "data": [{"id": "a/b"}], "none": None},
    }
    what |= {"response_headers": {"LOCATION": "/v1/charges/ch_1?x=1", "X-Empty": ""}, **more}
    return recorded(Http(world({"MY_TOKEN": SECRET})), "post", f"{API}/v1/charges", **what)


def test_references_to_the_answer_are_filled_in():
    act = record(
        inverse={
            "method": "DELETE",
            "url": "{response.headers.Location}",
            "headers": {"If-Match": "{response.body.n}", "X-Status": "{response.status}"},
            "json": {
                "whole": "{response.body.n}",
                "part": "no {response.body.n}",
                "deep": ["{response.body.data.0.id}"],
            },
            "probe": {"url": "/v1/charges/{response.body.id}", "expect": [404]},
        }
    )
    args = act.inverse.args
    assert args["url"] == f"{API}/v1/charges/ch_1?x=1"
    assert args["headers"]["If-Match"] == "7" and args["headers"]["X-Status"] == "201"
    assert args["json"] == {"whole": 7, "part": "no 7", "deep": ["a/b"]}
    assert args["probe"]["url"] == f"{API}/v1/charges/ch_1"
    assert act.verdict == "compensating" and act.state == DONE and act.target == f"{API}/v1/charges/ch_1?x=1"


def test_a_value_of_the_answer_stays_one_value():
    """An id that a server chose cannot lead the inverse elsewhere."""
    url = record(inverse={"method": "DELETE", "url": "/v1/charges/{response.body.data.0.id}"}).inverse.args["url"]
    assert url == f"{API}/v1/charges/a%2Fb"
    tricky = {"id": '", "all": true, "x": "', "up": ".."}
    body = record(response_body=tricky, inverse={"method": "POST", "url": "/x", "body": '{"id": "{response.body.id}"}'})
    assert json.loads(body.inverse.args["body"]) == {"id": tricky["id"]}
    with pytest.raises(takeback.UsageError, match="dot segment"):
        record(response_body=tricky, inverse={"method": "DELETE", "url": "/v1/charges/{response.body.up}"})
    for location in ("https://evil.example/x", "//evil.example/x"):
        with pytest.raises(takeback.UsageError, match="but the call went to"):
            away = {"location": location}
            record(response_headers=away, inverse={"method": "DELETE", "url": "{response.headers.location}"})


def test_an_answer_cannot_ask_for_a_credential():
    for undo in (
        {"headers": {"X-A": "{response.body.id}"}},
        {"json": ["{response.body.id}"]},
        {"body": "{response.body.id}"},
    ):
        with pytest.raises(takeback.UsageError, match="refers to a reference"):
            record(response_body={"id": "${env:AWS_SECRET}"}, inverse={"method": "POST", "url": "/x", **undo})


def test_a_body_says_what_it_is():
    def kind(**args: Any) -> str:
        return str(Http(world()).check(inverse(**args)).args["headers"]["Content-Type"])

    assert kind(json=[1]) == kind(body='{"a": 1}') == "application/json"
    assert kind(body="charge=ch_1&x=") == "application/x-www-form-urlencoded"
    assert kind(body="plain words") == "text/plain; charset=utf-8"
    assert kind(body="a=1", headers={"Content-Type": "text/csv"}) == "text/csv"


@pytest.mark.parametrize(
    "reference",
    [
        "response", "response.", "response.body", "response.body.nope", "response.body.none", "response.body.data",
        "response.body.data.1.id", "response.body.data.-1.id", "response.body.id.more", "response.headers.nope",
        "response.headers.x-empty", "response.colour",
    ],
)  # fmt: skip
def test_a_reference_that_leads_nowhere_is_refused(reference: str):
    with pytest.raises(takeback.UsageError, match="refers to nothing"):
        record(inverse={"method": "DELETE", "url": f"/v1/charges/{{{reference}}}"})


def test_a_body_may_come_as_text_or_bytes():
    for body in ('{"id": "ch_2"}', b'{"id": "ch_2"}'):
        act = record(response_body=body, inverse={"method": "DELETE", "url": "/v1/charges/{response.body.id}"})
        assert act.inverse.args["url"].endswith("/ch_2")
    plain = record(response_body="ch_3", inverse={"method": "DELETE", "url": "/v1/charges/{response.body}"})
    assert plain.inverse.args["url"].endswith("/ch_3")


def test_what_did_not_happen_has_no_inverse():
    undo = {"method": "DELETE", "url": "/v1/charges/{response.body.id}"}
    for status in (400, 402, 404, 409, 429):
        act = record(status=status, inverse=undo)
        assert (act.state, act.inverse) == (FAILED, None)
    for status in (None, 500, 503):
        act = record(status=status, inverse=undo)
        assert act.state == "begun" and act.inverse is not None
        assert record(status=status).verdict == UNKNOWN
    for bad in (99, 600, True, "200"):
        with pytest.raises(takeback.UsageError):
            record(status=bad)


def test_without_an_inverse_it_is_irreversible_and_says_so():
    act = record()
    assert act.verdict == "irreversible" and "no inverse" in act.did["left_to_do"]
    assert record(status=0).did["status"] is None


def test_the_target_is_what_was_made():
    made = {"method": "DELETE", "url": "/v1/charges/ch_9"}
    assert record(response_headers={}, inverse=made).target == f"{API}/v1/charges/ch_9"
    other = {"method": "POST", "url": "/v1/refunds"}
    assert record(response_headers={}, inverse=other).target == f"{API}/v1/charges/ch_1"
    assert record(response_headers={}, response_body=None).target == f"{API}/v1/charges"


def test_evidence_is_short_and_holds_no_secret():
    http = Http(world({"MY_TOKEN": SECRET}))
    act = recorded(
        http, "POST", f"https://user:hunter22@api.example.com/v1/charges?api_key=abc123&token=t0ken&x={SECRET}",
        status=200, summary=f"charged\nwith {SECRET}",
        request_body={"amount": 1, "password": "hunter2", "card": {"client_secret": "hunter3"}, "note": SECRET},
        response_body="access_token=hunter4&x=1 sk_live_0123456789abcdef " + SECRET + "y" * 5000,
    )  # fmt: skip
    kept = json.dumps([act.did, act.target, act.summary])
    for secret in ("hunter", SECRET, "abc123", "t0ken", "sk_live"):
        assert secret not in kept
    assert len(kept) < 4000 and "amount" in act.did["request"] and "\n" not in act.summary


# -- through the whole workspace -----------------------------------------------


def test_a_recorded_charge_is_refunded_once(ws: Workspace, shop: Payments):
    ws.checkpoint("before")
    act = charge(ws, shop)
    assert act.by.keys() == {"surface", "above"} and act.did["status"] == 201
    with pytest.raises(takeback.ApprovalNeeded):
        ws.rollback()
    assert shop.refunds == {}
    outcome = approved(ws)
    assert [r.result for r in outcome.results] == [DONE]
    assert shop.ledger()["balance"] == 0 and len(shop.refunds) == 1
    assert state(ws, act) == "undone"


def test_running_twice_does_nothing_more(ws: Workspace, shop: Payments):
    ws.checkpoint("before")
    charge(ws, shop)
    approved(ws)
    for verb in ("rollback", "compensate"):
        assert not ws.plan(verb).outside
        assert not ws.take_back(verb).id
    assert len(shop.refunds) == 1 and shop.asked("POST", "/v1/refunds") == 1


def test_the_exact_request_is_in_the_journal_and_its_secret_is_not(ws: Workspace, tmp_path: Path):
    with serving(key=SECRET) as shop:
        ws.environ = {"STRIPE_KEY": SECRET}
        ws._made = None
        ws.record_http(
            "POST", f"{shop.url}/v1/charges", status=201, request_body={"auth": SECRET},
            response_headers={"Location": "/v1/charges/ch_1"}, response_body={"id": "ch_1", "echo": SECRET},
            inverse_method="POST", inverse_url="/v1/refunds", inverse_json={"charge": "{response.body.id}"},
            inverse_headers={"Authorization": "Bearer ${env:STRIPE_KEY}"},
        )  # fmt: skip
        shop.charges["ch_1"] = {"id": "ch_1", "amount": 5, "status": "succeeded"}
        plan = ws.plan("compensate")
        steps, unbound = ws.unapproved(plan)
        assert len(steps) == 1 and unbound == [Credential("STRIPE_KEY", shop.url)]
        ws.approve(plan)  # the step, and not where the credential goes
        with pytest.raises(takeback.ApprovalNeeded, match=f"STRIPE_KEY to {shop.url}"):
            ws.apply(plan)
        assert shop.requests == []
        assert [r.result for r in approved(ws, "compensate").results] == [DONE]
        assert shop.requests[-1][2]["Authorization"] == f"Bearer {SECRET}"
    assert "STRIPE_KEY" in json.dumps([r.body for r in ws.store.journal.rows()])
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("mode", ["reset", "hang", "500"])
def test_unknown_is_never_fired_again_and_a_person_settles_it(ws: Workspace, shop: Payments, mode: str):
    ws.checkpoint("before")
    act = charge(ws, shop, timeout=0.4)
    shop.misbehave(mode)
    assert [r.result for r in approved(ws).results] == [UNKNOWN]
    assert state(ws, act) == "unknown" and len(shop.refunds) == 1
    for verb in ("rollback", "compensate"):
        assert not ws.plan(verb).outside
        ws.take_back(verb)
    assert shop.asked("POST", "/v1/refunds") == 1
    ws.resolve(act.id, "undone")
    assert state(ws, act) == "undone" and shop.asked("POST", "/v1/refunds") == 1


def test_what_a_person_knows_was_not_done_may_be_sent_again(ws: Workspace, shop: Payments):
    act = charge(ws, shop)
    shop.misbehave("drop")
    assert [r.result for r in approved(ws, "compensate").results] == [UNKNOWN]
    assert shop.refunds == {}
    ws.resolve(act.id, "not-undone")
    with pytest.raises(takeback.ApprovalNeeded):
        ws.take_back("compensate")
    assert [r.result for r in approved(ws, "compensate").results] == [DONE]
    assert len(shop.refunds) == 1


@pytest.mark.parametrize(("mode", "sent"), [("reset", 1), ("drop", 2)])
def test_a_probe_settles_what_is_unknown(ws: Workspace, shop: Payments, mode: str, sent: int):
    """It took effect: not sent again. It did not: sent once more."""
    at = shop.url + "/v1/refunds?charge={response.body.id}"
    act = charge(ws, shop, probe={"url": at, "expect": [200], "gone": [404]})
    shop.misbehave(mode)
    assert [r.result for r in approved(ws, "compensate").results] == [UNKNOWN]
    assert [r.result for r in approved(ws, "compensate").results] == [DONE]
    assert state(ws, act) == "undone"
    assert len(shop.refunds) == 1 and shop.asked("POST", "/v1/refunds") == sent


def test_a_vouched_key_settles_what_is_unknown_by_sending_it_again(ws: Workspace, shop: Payments):
    act = charge(ws, shop, idempotent=True)
    shop.misbehave("reset")
    assert [r.result for r in approved(ws, "compensate").results] == [UNKNOWN]
    assert [r.result for r in approved(ws, "compensate").results] == [DONE]
    assert state(ws, act) == "undone"
    keys = {headers["Idempotency-Key"] for method, path, headers, _ in shop.requests if path == "/v1/refunds"}
    assert len(keys) == 1 and shop.asked("POST", "/v1/refunds") == 2 and len(shop.refunds) == 1


def test_a_vouched_key_that_the_server_forgot_is_not_sent_again(ws: Workspace, shop: Payments):
    charge(ws, shop, idempotent=True, idempotent_for=60)
    shop.misbehave("reset")
    approved(ws, "compensate")
    later = ws.clock() + 61
    set_clock(ws, lambda: later)
    assert [r.result for r in approved(ws, "compensate").results] == [UNKNOWN]
    assert shop.asked("POST", "/v1/refunds") == 1


def test_a_refused_inverse_can_run_again(ws: Workspace, shop: Payments):
    act = charge(ws, shop)
    kept = shop.charges.pop("ch_1")
    outcome = approved(ws, "compensate")
    assert [(r.result, r.note) for r in outcome.results] == [(FAILED, "refused with 400")]
    assert state(ws, act) == "live"
    shop.charges["ch_1"] = kept
    assert [r.result for r in approved(ws, "compensate").results] == [DONE]
    assert len(shop.refunds) == 1


def test_what_never_happened_is_never_taken_back(ws: Workspace, shop: Payments):
    undo = {"inverse_method": "POST", "inverse_url": "/v1/refunds", "inverse_json": {"charge": "ch_1"}}
    refused = ws.record_http("POST", f"{shop.url}/v1/charges", status=402, **undo)
    assert state(ws, refused) == "failed" and refused.inverse is None
    lost = ws.record_http("POST", f"{shop.url}/v1/charges", status=None, idempotent=True, **undo)
    assert state(ws, lost) == "unknown"
    for _ in range(3):  # nobody knows whether it happened, and sending it again would not tell
        plan = ws.plan("compensate")
        ws.approve(plan)
        ws.apply(plan)
    assert shop.requests == [] and state(ws, lost) == "unknown"
    probe = {"url": "/misbehave/500/x", "expect": [200], "gone": [404]}
    asked = ws.record_http("POST", f"{shop.url}/v1/other", status=503, idempotent=True, probe=probe, **undo)
    for _ in range(2):
        assert UNKNOWN in [r.result for r in approved(ws, "compensate").results]
    assert shop.asked("POST", "/v1/refunds") == 0 and state(ws, asked) == "unknown"
    ws.resolve(lost.id, "did-not-happen")
    assert state(ws, lost) == "failed" and shop.asked("POST", "/v1/refunds") == 0


def test_a_call_without_an_inverse_is_kept_and_named(ws: Workspace, shop: Payments):
    ws.checkpoint("before")
    act = ws.record_http("POST", f"{shop.url}/v1/charges", status=201)
    plan = ws.plan("rollback")
    assert [(s.verdict, s.taken) for s in plan.steps] == [("irreversible", False)]
    assert state(ws, act) == "irreversible" and "no inverse" in plan.steps[0].note


def test_files_and_calls_go_back_in_true_reverse_order(ws: Workspace, project: Path, shop: Payments):
    ws.checkpoint("before")
    (project / "a").write_text("1")
    charge(ws, shop)
    (project / "a").write_text("2")
    status, _, issue = call(f"{shop.url}/issues", {"title": "t"})
    ws.record_http(
        "POST", f"{shop.url}/issues", status=status, response_body=issue,
        inverse_method="POST", inverse_url="/issues/{response.body.id}/close",
    )  # fmt: skip
    (project / "a").write_text("3")
    plan = ws.plan("rollback")
    assert [s.domain for s in plan.steps] == ["files", "http", "files", "http", "files"]
    approved(ws)
    assert not (project / "a").exists()
    assert shop.entries == ["charge ch_1 500", "issue 1 opened", "issue 1 closed", "refund re_1 of ch_1"]


def test_one_failed_inverse_blocks_only_what_it_stands_on(ws: Workspace, shop: Payments):
    first, second = charge(ws, shop), charge(ws, shop)
    status, _, _ = call(f"{shop.url}/v1/charges/ch_1", method="GET")
    captured = ws.record_http(
        "POST", f"{shop.url}/v1/charges/ch_1/capture", status=status,
        inverse_method="POST", inverse_url="/v1/charges/nope",
    )  # fmt: skip
    results = {r.path.decode(): r.result for r in approved(ws, "compensate").results}
    assert results == {captured.id: FAILED, first.id: FAILED, second.id: DONE}
    assert [r["charge"] for r in shop.refunds.values()] == ["ch_2"]


# -- what the seed system got wrong --------------------------------------------


def test_rollback_keeps_the_ledger_and_a_checkpoint_hides_nothing(ws: Workspace, project: Path, shop: Payments):
    act = charge(ws, shop)
    ws.checkpoint("later")
    (project / "f").write_text("1")
    ws.rollback("later")
    assert [s.path.decode() for s in ws.plan("compensate").outside] == [act.id]
    approved(ws, "compensate")
    assert [a.shown_state for a in ws.effects()] == ["undone"]
    assert len(shop.refunds) == 1


def test_an_inverse_carries_headers_and_values_of_the_answer(ws: Workspace, shop: Payments):
    charge(ws, shop, inverse_headers={"X-Reason": "undo of {response.body.id}"})
    approved(ws, "compensate")
    _, _, headers, body = shop.requests[-1]
    assert headers["X-Reason"] == "undo of ch_1" and json.loads(body) == {"charge": "ch_1"}


def test_what_is_gone_already_counts_as_taken_back(ws: Workspace, shop: Payments):
    status, headers, _ = call(f"{shop.url}/v1/charges", {"amount": 5})
    act = ws.record_http(
        "POST", f"{shop.url}/v1/charges", status=status, response_headers=headers,
        inverse_method="DELETE", inverse_url="{response.headers.location}",
    )  # fmt: skip
    call(f"{shop.url}/v1/charges/ch_1", method="DELETE")
    outcome = approved(ws, "compensate")
    assert [(r.result, r.note) for r in outcome.results] == [(DONE, "already gone (404)")]
    assert state(ws, act) == "undone"


def test_a_refused_recording_journals_nothing(ws: Workspace, shop: Payments):
    head = ws.store.journal.head()
    with pytest.raises(takeback.UsageError):
        charge(ws, shop, inverse_headers={"Authorization": "Bearer sk_live_0123456789abcdef"})
    with pytest.raises(takeback.UsageError):
        charge(ws, shop, inverse_json={"charge": "{response.body.nope}"})
    assert ws.store.journal.head() == head and ws.effects() == []


def test_the_inverse_as_one_table_and_the_async_twin(ws: Workspace, shop: Payments):
    status, _, body = call(f"{shop.url}/v1/charges", {"amount": 5})
    undo = {"method": "POST", "url": "/v1/refunds", "json": {"charge": "{response.body.id}"}}
    act = asyncio.run(
        ws.arecord_http(
            "POST", f"{shop.url}/v1/charges", status=status, response_body=body, inverse=undo, by={"surface": "cli"}
        )
    )
    assert act.by["surface"] == "cli" and not act.by.get("actor") and act.inverse is not None
    approved(ws, "compensate")
    assert len(shop.refunds) == 1


def test_the_page_on_recording_runs(project: Path, shop: Payments, monkeypatch: pytest.MonkeyPatch):
    page = (Path(__file__).parents[2] / "docs/recording.md").read_text(encoding="utf-8")
    code = page.split("```python\n", 1)[1].split("```", 1)[0]
    assert 'API = "https://api.example.com"' in code
    monkeypatch.chdir(project)
    monkeypatch.setenv("SHOP_KEY", SECRET)
    exec(compile(code.replace(API, shop.url), "recording.md", "exec"), {})
    assert shop.ledger()["balance"] == 0 and len(shop.refunds) == 1
    assert shop.requests[-1][2]["Authorization"] == f"Bearer {os.environ['SHOP_KEY']}"


# -- what recorders get wrong -----------------------------------------------------


@pytest.mark.parametrize("wrong", [{"url": None}, {"response_headers": 3}, {"response_headers": ["x"]}, {"summary": 3},
                                   {"inverse": "DELETE"}, {"depends_on": 3.5}, {"depends_on": [None]}])  # fmt: skip
def test_wrong_types_are_told_apart(ws: Workspace, wrong: dict[str, Any]):
    given: dict[str, Any] = {"url": f"{API}/v1/charges", **wrong}
    with pytest.raises(takeback.UsageError):
        ws.record_http("POST", **given)
    assert ws.effects() == []


def test_headers_come_as_pairs_too(ws: Workspace):
    pairs = [("Location", "/v1/charges/ch_7"), ("X-Other", "1")]  # as http.client gives them
    act = ws.record_http("POST", f"{API}/v1/charges", response_headers=pairs, inverse_url="{response.headers.location}")
    assert ws.describe(act) == f"DELETE {API}/v1/charges/ch_7"


def test_the_method_of_an_inverse_goes_without_saying(ws: Workspace):
    """Whoever records, by whichever surface."""
    for body, method in (({}, "DELETE"), ({"inverse_json": {"a": 1}}, "POST"), ({"inverse_body": "a"}, "POST")):
        act = ws.record_http("POST", f"{API}/v1/charges", inverse_url=f"{API}/v1/x", **body)
        assert ws.describe(act).startswith(f"{method} {API}/v1/x")
    table = ws.record_http("POST", f"{API}/v1/charges", inverse={"url": f"{API}/v1/x"})
    assert ws.describe(table) == f"DELETE {API}/v1/x"


def test_a_call_that_failed_says_that_nothing_is_to_be_taken_back(ws: Workspace):
    act = ws.record_http("POST", f"{API}/v1/charges", status=403, inverse_url=f"{API}/v1/x")
    assert act.inverse is None and act.did["left_to_do"] == "it failed with 403, so there is nothing to take back"


def test_what_it_stands_on_may_be_called_as_it_is_shown(ws: Workspace):
    base = ws.record_http("POST", f"{API}/v1/a", inverse_url=f"{API}/v1/a/1")
    for name in (base.id[:8], base.id):
        assert ws.record_http("POST", f"{API}/v1/b", depends_on=[name]).depends_on == (base.id,)
    assert ws.record_command("did it", argv=["true"], depends_on=base.id[:8]).depends_on == (base.id,)
    assert ws.record(recorded(Http(world()), "POST", API, depends_on=[base.id[:8]])).depends_on == (base.id,)
    before = len(ws.effects())
    for unknown in ("zzzzzzzz", "start", "1", 1):
        with pytest.raises(takeback.NotFound):
            ws.record_http("POST", f"{API}/v1/b", depends_on=[unknown])
    assert len(ws.effects()) == before


@pytest.mark.parametrize("args", [{"json": {"password": 12345678}}, {"body": '{"card": {"cvc": 123}}'},
                                  {"headers": {"Authorization": "${env:A}literalsecret123"}},
                                  {"headers": {"X-Auth": "abcdefgh123"}}])  # fmt: skip
def test_a_literal_credential_of_any_type_is_refused(args: dict[str, Any]):
    with pytest.raises(takeback.UsageError, match="holds a credential"):
        Http(world()).check(inverse(**args))


# -- the same answer, recorded again ---------------------------------------------------------


def test_the_same_answer_recorded_again_is_the_same_effect_and_refunded_once(ws: Workspace, shop: Payments):
    status, headers, body = call(f"{shop.url}/v1/charges", {"amount": 5})
    given = {"status": status, "response_headers": headers, "inverse_url": "/v1/refunds"}
    undo = {"inverse_json": {"charge": "{response.body.id}"}}
    first, again = (
        ws.record_http("POST", f"{shop.url}/v1/charges", response_body=body, **given, **undo) for _ in range(2)
    )
    head = ws.store.journal.head()
    assert ws.record_http("POST", f"{shop.url}/v1/charges", response_body=json.dumps(body), **given, **undo) == first
    assert again == first and ws.store.journal.head() == head, "nothing was added"
    other = charge(ws, shop)
    assert other.id != first.id and len(ws.effects()) == 2, "another answer is another act"
    assert approved(ws).whole
    assert sorted(each["charge"] for each in shop.refunds.values()) == sorted(
        act.inverse.args["json"]["charge"] for act in (first, other) if act.inverse
    )


_CHARGES = f"{API}/v1/charges"
_SAME: dict[str, tuple[str, dict[str, Any], dict[str, Any], bool]] = {  # URL, one record, another; are they one act
    "an id": (_CHARGES, {"response_body": {"id": "ch_1"}}, {"response_body": {"id": "ch_1"}}, True),
    "an id that is a number": (_CHARGES, {"response_body": {"id": 7}}, {"response_body": {"id": 7}}, True),
    "the inverse left out of the second": (
        _CHARGES, {"response_body": {"id": "ch_1"}}, {"response_body": {"id": "ch_1"}, "inverse_url": "", "inverse_json": None}, True,
    ),
    "a Location": (
        _CHARGES, {"response_headers": {"Location": "/v1/charges/1"}}, {"response_headers": {"Location": "/v1/charges/1"}},
        True,
    ),
    "other Locations": (
        _CHARGES, {"response_headers": {"Location": "/v1/charges/1"}}, {"response_headers": {"Location": "/v1/charges/2"}},
        False,
    ),
    "where it is redirected": (
        _CHARGES, *({"status": 303, "response_headers": {"Location": "/v1/thanks"}} for _ in range(2)), False,
    ),
    "other ids": (_CHARGES, {"response_body": {"id": "ch_1"}}, {"response_body": {"id": "ch_2"}}, False),
    "another inverse": (
        _CHARGES, {"response_body": {"id": "ch_1"}}, {"response_body": {"id": "ch_1"}, "inverse_url": "/v1/other"}, False,
    ),
    "more of the same thing": (
        _CHARGES, {"response_body": {"id": 5, "sum": 1}}, {"response_body": {"id": 5, "sum": 2}}, False,
    ),
    "an answer that names nothing": (_CHARGES, {"response_body": {"ok": 1}}, {"response_body": {"ok": 1}}, False),
    "no answer's body": (_CHARGES, {}, {}, False),
    "the thing that it was sent to": (
        f"{API}/v1/counters/5/more", {"response_body": {"id": 5}}, {"response_body": {"id": 5}}, False,
    ),
    "ids that are masked": (
        _CHARGES, *({"response_body": {"id": f"sk_live_{'abcdefgh1234' * 2}{n}"}} for n in (1, 2)), False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", _SAME)
def test_only_an_answer_that_names_what_was_made_is_known_again(ws: Workspace, what: str):
    url, one, another, same = _SAME[what]
    usual = {"status": 201, "inverse_url": "/v1/undo", "inverse_json": {}}
    first, second = (ws.record_http("POST", url, **{**usual, **given}) for given in (one, another))
    assert (first.id == second.id) is same and len(ws.effects()) == 2 - same


def test_what_was_taken_back_and_made_again_is_another_effect(ws: Workspace, shop: Payments):
    url, made = f"{shop.url}/v1/charges", call(f"{shop.url}/v1/charges", {"amount": 5})[2]
    given = {"status": 201, "response_body": made, "inverse_url": "/v1/refunds"}
    undo = {"inverse_json": {"charge": "{response.body.id}"}}
    first = ws.record_http("POST", url, **given, **undo)
    assert approved(ws).whole and state(ws, first) == "undone"
    again = ws.record_http("POST", url, **given, **undo)
    assert again.id != first.id and again.shown_state == "live"
    later = ws.record_http("POST", url, **given, **undo, depends_on=[again.id])
    assert later.id != again.id, "it says that it stands on that one"
