"""Who gets in, and what no page but ours can make happen: forged requests against the real server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest

from takeback.surfaces.web import guard
from takeback.surfaces.web.guard import Keys


@pytest.fixture
def bad(ws, scene):
    scene.turn("break it", a_txt="broken\n")
    return ws


# -- getting in ---------------------------------------------------------------


def test_without_a_cookie_there_is_nothing_to_see(bad, served):
    for path in ("/", "/timeline", "/timeline.json", "/events", "/static/page.js", "/nowhere"):
        answer = served.ask(path, Cookie="")
        assert answer.status == 401 and "broken" not in answer.text and str(bad.root) not in answer.text


@pytest.mark.parametrize("query", ["", "token=", "token=wrong", "ticket=wrong", "token={t}&token={t}", "token={t}&x=1"])
def test_only_the_token_lets_in(served, query):
    answer = served.ask(f"/enter?{query.format(t=served.token)}", Cookie="")
    assert answer.status == 401 and "set-cookie" not in answer.headers


def test_the_cookie_is_strict_and_the_token_goes_nowhere(served):
    answer = served.ask(f"/enter?token={served.token}", Cookie="")
    assert answer.status == 200 and served.token not in answer.text
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and served.token not in cookie
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert served.token not in served.ask("/timeline").text


def test_another_cookie_or_two_are_refused(served):
    name = served.cookie.partition("=")[0]
    for cookie in (f"{name}=wrong", f"{name}={served.token}", f"{served.cookie}; {name}=wrong", "other=1"):
        assert served.ask("/timeline", Cookie=cookie).status == 401


def test_a_ticket_is_good_once_and_not_for_long():
    now = [0.0]
    keys = Keys(lambda: now[0])
    ticket = keys.ticket()
    assert keys.lets_in(f"ticket={ticket}".encode()) and not keys.lets_in(f"ticket={ticket}".encode())
    ticket = keys.ticket()
    now[0] = 61.0
    assert not keys.lets_in(f"ticket={ticket}".encode()) and not keys.lets_in(b"ticket=")


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="this system does not tell whose a connection is")
def test_a_connection_of_another_user_does_not_get_in(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        ends = client.getsockname(), server.getsockname()
        assert guard.owner_of(*ends) == os.getuid() and guard.is_ours(*ends)
        for owner, fits in ((os.getuid(), True), (0, True), (54321, False), (None, True)):
            monkeypatch.setattr(guard, "owner_of", lambda *_, owner=owner: owner)
            assert guard.is_ours(*ends) is fits


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp6"), reason="this system does not tell whose a connection is")
def test_nor_does_one_that_is_written_as_ipv6():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_INET6) as client:
        client.connect(("::ffff:127.0.0.1", server.getsockname()[1]))
        accepted, seen = server.accept()
        with accepted:
            assert guard.owner_of(seen, server.getsockname()) == os.getuid()


# -- from elsewhere ------------------------------------------------------------


def test_a_name_that_leads_here_is_refused(served):
    port = served.host.rpartition(":")[2]
    for host in ("evil.example", f"evil.example:{port}", f"localhost:{port}", served.host.partition(":")[0], ""):
        assert served.ask("/timeline", Host=host).status in (400, 403), host
    assert served.ask("/timeline", Host=served.host + ".").status == 403
    assert served.ask("/timeline").status == 200


def test_two_hosts_are_refused(served):
    """Whichever of them a server in between would look at."""
    address, _, port = served.host.partition(":")
    with socket.create_connection((address, int(port))) as wire:
        wire.sendall(f"GET /timeline HTTP/1.1\r\nHost: {served.host}\r\nHost: evil.example\r\n"
                     f"Cookie: {served.cookie}\r\nConnection: close\r\n\r\n".encode())  # fmt: skip
        assert wire.makefile("rb").readline().split()[1] in (b"400", b"403")


def test_where_the_port_goes_without_saying_a_browser_does_not_say_it():
    from takeback.surfaces.web.server import host_of

    assert (host_of("127.0.0.1", 80), host_of("127.0.0.1", 8080)) == ("127.0.0.1", "127.0.0.1:8080")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1", "https://{host}", "http://{host}.evil"]
)
def test_a_foreign_origin_is_refused(bad, served, origin):
    origin = origin.format(host=served.host)
    assert served.ask("/timeline", Origin=origin).status == 403
    form = {"form": served.form_token(), "how": "undo"}
    assert served.ask("/plan", "POST", form, Origin=origin).status == 403


def test_a_form_without_an_origin_is_refused(bad, served):
    assert served.ask("/plan", "POST", {"form": served.form_token(), "how": "undo"}, Origin="").status == 403


def test_other_sites_load_nothing_of_ours(served):
    for site in ("cross-site", "same-site"):
        assert served.ask("/timeline.json", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors").status == 403
        form = {"form": served.form_token(), "how": "undo"}
        assert served.ask("/plan", "POST", form, Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate").status == 403
        assert served.ask("/plan", "POST", form, Sec_Fetch_Site="same-origin").status == 303
    assert served.ask("/timeline", Sec_Fetch_Site="none", Sec_Fetch_Mode="navigate").status == 200


# -- changing --------------------------------------------------------------------


@pytest.fixture
def posts():
    """Every address that changes something, as the site itself has them."""
    from takeback.surfaces.web.site import Site

    site = Site(None, lambda: None, Keys(), False, lambda: False, lambda error: None)
    found = [route.path.replace("{id}", "x" * 32) for route in site.app().routes if "POST" in route.methods]
    assert len(found) >= 7
    return found


def test_every_change_needs_the_cookie_the_origin_and_the_form(bad, served, posts):
    head, token = bad.store.journal.head().seq, served.form_token()
    form = {"form": token, "how": "undo", "label": "x"}
    for path in posts:
        assert served.ask(path, "POST", form, Cookie="").status == 401, path
        assert served.ask(path, "POST", form, Origin="http://evil.example").status == 403, path
        assert served.ask(path, "POST", form, Origin="").status == 403, path
        assert served.ask(path, "POST", {**form, "form": "wrong"}).status == 403, path
        assert "not one of ours" in served.ask(path, "POST", {"how": "undo", "label": "x"}).text, path
    assert bad.store.journal.head().seq == head


@pytest.mark.parametrize("token", [None, "", "wrong"])
def test_a_form_without_its_token_is_refused(bad, served, token):
    form = {"how": "undo"} | ({} if token is None else {"form": token})
    assert served.ask("/plan", "POST", form).status == 403
    hash = served.plan(how="undo").rpartition("/")[2]
    form = {"hash": hash} | ({} if token is None else {"form": token})
    assert served.ask(f"/plan/{hash}/apply", "POST", form).status == 403
    assert (bad.root / "a.txt").exists()


def test_a_form_of_another_kind_is_refused(bad, served):
    form = {"form": served.form_token(), "how": "undo"}
    for kind in ("text/plain", "multipart/form-data; boundary=x", "application/json", ""):
        assert served.ask("/plan", "POST", form, Content_Type=kind).status == 403


def test_a_form_that_is_too_large_is_refused(served):
    assert served.ask("/plan", "POST", {"form": served.form_token(), "how": "x" * 70_000}).status == 413


def test_nothing_is_changed_by_get_or_another_method(bad, served, posts):
    place = served.plan(how="undo")
    before = bad.store.journal.head().seq
    for path in ("/plan?how=undo", f"{place}/apply", place, f"{place}.json", "/timeline", "/timeline.json", *posts):
        served.ask(path)
        served.ask(f"{path}?form={served.form_token()}&label=x&how=undo&done=yes")
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert served.ask("/timeline", method).status in (404, 405)
    assert bad.store.journal.head().seq == before and (bad.root / "a.txt").exists()


def test_only_the_hash_that_was_shown_is_applied(bad, served):
    place = served.plan(how="undo")
    answer = served.ask(f"{place}/apply", "POST", {"form": served.form_token(), "hash": "0" * 64})
    assert answer.status == 409 and (bad.root / "a.txt").exists()


def test_a_plan_that_is_stale_by_now_is_refused(bad, served):
    place = served.plan(how="undo")
    (bad.root / "a.txt").write_text("a person was here\n")
    answer = served.ask(f"{place}/apply", "POST", {"form": served.form_token(), "hash": place.rpartition("/")[2]})
    assert answer.status == 409 and "a.txt" in answer.text and "Plan it again" in answer.text
    assert (bad.root / "a.txt").read_text() == "a person was here\n"


def test_read_only_changes_nothing(bad, serve, posts):
    head = bad.store.journal.head().seq
    with serve("--read-only") as served:
        page = served.ask("/timeline")
        assert "read-only" in page.text and 'method="post"' not in page.text and 'name="form"' not in page.text
        for path in posts:
            refused = served.ask(path, "POST", {"how": "undo", "label": "x"})
            assert refused.status == 403 and "this is read-only" in refused.text, path
    assert bad.store.journal.head().seq == head


# -- how it answers ----------------------------------------------------------------


def test_every_answer_has_its_headers(bad, served):
    token = served.form_token()
    answers = [served.ask(p) for p in ("/timeline", "/timeline.json", "/static/style.css", "/nowhere", "/item/nothing")]
    answers += [served.ask("/timeline", Cookie=""), served.ask("/timeline", Host="evil")]
    answers += [served.ask("/plan", "POST", {"form": token, "how": "undo"})]
    for answer in answers:
        headers = answer.headers
        assert headers["x-frame-options"] == "DENY" and headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store" and headers["cross-origin-opener-policy"] == "same-origin"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy and "trusted-types 'none'" in policy
        assert "form-action 'self'" in policy and "base-uri 'none'" in policy and "http" not in policy
        assert "server" not in headers


@pytest.mark.parametrize(
    "path", ["/nowhere", "/static/../guard.py", "/static/%2e%2e/guard.py", "/static/x", "/item/", "/admin"]
)
def test_everything_else_is_not_there(served, path):
    assert served.ask(path).status == 404


def test_it_listens_on_an_address_of_its_own(served, serve):
    """A browser gives a cookie to every port of an address: another local server must not get ours."""
    address = served.host.partition(":")[0]
    assert address.startswith("127.") and address != "127.0.0.1"
    with serve() as other:
        assert other.host.partition(":")[0] != address


def test_an_address_that_is_not_this_machine_alone_is_refused(ws):
    for address in ("0.0.0.0", "192.168.1.2", "::", "example.com"):
        words = [sys.executable, "-m", "takeback", "web", "--no-open", "--address", address]
        done = subprocess.run(words, cwd=ws.root, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "this machine alone" in done.stderr


def test_an_agent_gets_no_page_that_takes_back(ws):
    words = [sys.executable, "-m", "takeback", "web", "--no-open"]
    done = subprocess.run(
        words, cwd=ws.root, capture_output=True, text=True, timeout=60, env={**os.environ, "CLAUDECODE": "1"}
    )
    assert done.returncode == 4 and "for a person" in done.stderr and "http://" not in done.stdout


def test_the_browser_that_is_opened_gets_in_once(ws, serve, tmp_path):
    """Its command line may be seen by others: what stands there is no use to them."""
    browser, said = tmp_path / "browser", tmp_path / "said"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {said}.part && mv {said}.part {said}\n')
    browser.chmod(0o755)
    with serve(opens=True, BROWSER=str(browser)) as served:
        for _ in range(300):
            if said.exists():
                break
            time.sleep(0.1)
        address = said.read_text()
        assert address.startswith(f"{served.origin}/enter?ticket=") and served.token not in address
        path = address.removeprefix(served.origin)
        first, second = served.ask(path, Cookie=""), served.ask(path, Cookie="")
        assert first.status == 200 and "SameSite=Strict" in first.headers["set-cookie"] and second.status == 401


def test_two_starts_do_not_know_each_others_cookies(served, serve):
    with serve() as other:
        assert other.ask("/timeline", Cookie=served.cookie).status == 401
        assert other.ask(f"/enter?token={served.token}", Cookie="").status == 401


def test_a_port_that_is_taken_is_told(ws):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = [sys.executable, "-m", "takeback", "web", "--no-open", "--address", "127.0.0.1", "--port", port]
        done = subprocess.run(words, cwd=ws.root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and f"port {port} cannot be used" in done.stderr and "--port" in done.stderr


def test_events_say_that_there_is_more(ws, scene, served):
    import http.client

    address, _, port = served.host.partition(":")
    connection = http.client.HTTPConnection(address, int(port), timeout=30)
    head = ws.store.journal.head().seq
    connection.request("GET", f"/events?since={head}", headers={"Cookie": served.cookie})
    answer = connection.getresponse()
    assert answer.getheader("content-type").startswith("text/event-stream") and answer.readline() == b"retry: 2000\n"
    scene.turn("more", a_txt="a\n")
    lines = [answer.readline() for _ in range(3)]
    assert b"event: changed\n" in lines
    connection.close()
