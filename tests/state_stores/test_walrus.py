"""Walrus over HTTP, against a server on loopback that answers as its documentation says, errors included."""

from __future__ import annotations

import base64
import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from conformance.state_stores import state_store_conformance
from servers.walrus import WalrusServer, serving
from takeback.config import settings
from takeback.errors import CredentialNeeded, Damaged, NotFound, TakebackError, UsageError
from takeback.threads import stores
from takeback.threads.stores.walrus import AGGREGATOR, PUBLISHER, Walrus

KEY, OTHER_KEY = "0a1b" * 16, "ff00" * 16
DATA = b"what the agent remembers: the password is swordfish"
SHA = sha256(DATA).digest()


@pytest.fixture
def server() -> Iterator[WalrusServer]:
    with serving() as server:
        yield server


@pytest.fixture
def make(server: WalrusServer) -> Callable[..., Walrus]:
    def make(**given: Any) -> Walrus:
        given = {"key": KEY, "timeout": 20.0, **given}
        return Walrus(given.pop("publisher", server.url), given.pop("aggregator", server.url), **given)

    return make


def test_conformance(make: Callable[..., Walrus]) -> None:
    state_store_conformance(make)


class InMemory:
    """The smallest store that passes: what the conformance test asks for and no more."""

    name = "memory"

    def __init__(self, kept: dict[str, bytes]) -> None:
        self._kept = kept

    def put(self, data: bytes) -> str:
        id = sha256(data).hexdigest()
        self._kept[id] = data
        return id

    def get(self, blob_id: str, sha256: bytes) -> bytes:
        if blob_id not in self._kept:
            raise NotFound(f"{blob_id!r} is not here", "it was never put")
        if blob_id != sha256.hex():
            raise Damaged(f"{blob_id} is something else")
        return self._kept[blob_id]

    def delete(self, blob_id: str) -> bool:
        return self._kept.pop(blob_id, None) is not None


def test_the_conformance_test_takes_other_stores_and_refuses_bad_ones() -> None:
    kept: dict[str, bytes] = {}
    state_store_conformance(lambda: InMemory(kept))

    class Unchecked(InMemory):
        def get(self, blob_id: str, sha256: bytes) -> bytes:
            return self._kept.get(blob_id, b"")

    class Forgetful(InMemory):
        def __init__(self) -> None:
            super().__init__({})

    class Undead(InMemory):
        def delete(self, blob_id: str) -> bool:
            return blob_id in self._kept

    for bad in (lambda: Unchecked(kept), Forgetful, lambda: Undead(kept)):
        with pytest.raises((AssertionError, pytest.fail.Exception, NotFound)):
            state_store_conformance(bad)


# What leaves this machine


def test_what_is_uploaded_is_encrypted_and_never_twice_the_same(
    make: Callable[..., Walrus], server: WalrusServer
) -> None:
    store = make()
    first, second = store.put(DATA), store.put(DATA)
    assert first != second and len(server.blobs) == 2
    for sealed in server.blobs.values():
        assert b"swordfish" not in sealed and sealed.startswith(b"TKBS\x01")
        assert len(sealed) == len(DATA) + 41, "header, nonce and tag"
    one, other = (server.blobs[id] for id in (first, second))
    assert one[:13] == other[:13] and one[13:25] != other[13:25], "one key, two nonces"


@pytest.mark.parametrize(
    ("given", "query"),
    [
        ({}, {"epochs": ["5"], "deletable": ["true"]}),
        ({"epochs": 53, "deletable": False}, {"epochs": ["53"], "permanent": ["true"]}),
    ],
)
def test_what_a_publisher_is_asked_for(
    make: Callable[..., Walrus], server: WalrusServer, given: dict[str, Any], query: dict[str, list[str]]
) -> None:
    make(**given).put(DATA)
    assert server.requests[0] == ("PUT", "/v1/blobs", query)


def test_a_base_may_have_a_path_which_no_message_shows(make: Callable[..., Walrus], server: WalrusServer) -> None:
    with pytest.raises(TakebackError) as said:
        make(publisher=f"{server.url}/my-secret/", patience=0).put(DATA)
    assert server.requests[0][1] == "/my-secret/v1/blobs"
    assert "my-secret" not in said.value.message + said.value.hint and "404" in said.value.message


def test_put_reads_back_what_it_stored(make: Callable[..., Walrus], server: WalrusServer) -> None:
    make().put(DATA)
    assert [each[0] for each in server.requests] == ["PUT", "GET"]


def test_an_aggregator_of_another_network_is_told_at_once(make: Callable[..., Walrus]) -> None:
    with serving() as elsewhere, pytest.raises(NotFound, match="does not have it") as said:
        make(aggregator=elsewhere.url, patience=0.5).put(DATA)
    assert "same network" in said.value.hint


def test_nothing_is_deleted_over_http(make: Callable[..., Walrus], server: WalrusServer) -> None:
    store = make()
    id = store.put(DATA)
    asked = len(server.requests)
    assert store.delete(id) is False and len(server.requests) == asked
    assert store.get(id, SHA) == DATA


# Trying again


def test_a_fresh_404_is_asked_again(make: Callable[..., Walrus], server: WalrusServer) -> None:
    server.hide(2)
    id = make().put(DATA)
    assert server.asked("GET") == 3
    assert make().get(id, SHA) == DATA


def test_a_404_of_what_was_put_a_moment_ago_is_asked_again_by_get_too(
    make: Callable[..., Walrus], server: WalrusServer
) -> None:
    store = make()
    id = store.put(DATA)
    server.misbehave("GET", 404, 2)
    assert store.get(id, SHA) == DATA and server.asked("GET") == 4


def test_any_other_404_stands(make: Callable[..., Walrus], server: WalrusServer) -> None:
    id = make().put(DATA)
    server.blobs.clear()
    asked = server.asked("GET")
    with pytest.raises(NotFound, match=id) as said:
        make().get(id, SHA)
    assert server.asked("GET") == asked + 1
    assert "epochs may have run out" in said.value.hint


@pytest.mark.parametrize("mode", [429, 503, 504, "drop", "half"])
@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_what_passes_is_waited_for(
    make: Callable[..., Walrus], server: WalrusServer, method: str, mode: str | int
) -> None:
    server.misbehave(method, mode, 2)
    assert make().get(make().put(DATA), SHA) == DATA
    assert server.asked(method) >= 3


@pytest.mark.parametrize("mode", ["reset", "half"])
def test_an_upload_whose_answer_was_lost_is_the_same_blob(
    make: Callable[..., Walrus], server: WalrusServer, mode: str
) -> None:
    server.misbehave("PUT", mode)
    id = make().put(DATA)
    assert server.asked("PUT") == 2 and list(server.blobs) == [id], "stored once, and already certified then"


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (429, "is busy (429): the server says why"),
        (503, "is busy (503): the server says why"),
        (504, "is busy (504)"),
        ("drop", "the connection was lost"),
        ("half", "broke off its answer"),
    ],
)
def test_patience_ends(make: Callable[..., Walrus], server: WalrusServer, mode: str | int, said: str) -> None:
    id = make().put(DATA)
    for method, act in (
        ("PUT", lambda: make(patience=0.5).put(DATA)),
        ("GET", lambda: make(patience=0.5).get(id, SHA)),
    ):
        server.requests.clear()
        server.misbehave(method, mode, 50)
        with pytest.raises(TakebackError) as failure:
            act()
        assert said in failure.value.message and "again" in failure.value.hint
        assert 2 <= server.asked(method) <= 5, "tried again, and less and less often"
    assert id in failure.value.message


def test_a_server_that_asks_for_more_patience_than_there_is_is_not_waited_for(
    make: Callable[..., Walrus], server: WalrusServer
) -> None:
    server.retry_after = "600"
    server.misbehave("PUT", 429, 50)
    with pytest.raises(TakebackError, match="429"):
        make().put(DATA)
    assert server.asked("PUT") == 1


def test_nobody_there(make: Callable[..., Walrus], server: WalrusServer) -> None:
    gone = WalrusServer()
    gone._server.server_close()
    with pytest.raises(TakebackError, match=r"the blob was not stored: http://127\.0\.0\.1:\d+ is not there"):
        make(publisher=gone.url).put(DATA)
    with pytest.raises(TakebackError, match=r"blob abc was not read: http://127\.0\.0\.1:\d+ is not there"):
        make(aggregator=gone.url).get("abc", SHA)


# Answers that stand


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (400, "answered 400: the server says why"),
        (401, "takes no blobs from us"),
        (500, "answered 500: the server says why"),
        ("nonsense", "it names no blob"),
        ("invalid", "it calls the blob invalid"),
        ("redirect", "leads on to https://evil.example, and takeback does not follow"),
    ],
)
def test_a_publisher_that_does_not_store(
    make: Callable[..., Walrus], server: WalrusServer, mode: str | int, said: str
) -> None:
    server.misbehave("PUT", mode)
    with pytest.raises(TakebackError) as failure:
        make().put(DATA)
    assert said in failure.value.message and failure.value.hint
    assert server.asked("PUT") == 1 and server.asked("GET") == 0, "asked once"


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (403, "larger than this one gives out"),
        (451, "blocked"),
        (500, "answered 500: the server says why"),
        ("redirect", "leads on to https://evil.example"),
    ],
)
def test_an_aggregator_that_does_not_give(
    make: Callable[..., Walrus], server: WalrusServer, mode: str | int, said: str
) -> None:
    id = make().put(DATA)
    server.misbehave("GET", mode)
    asked = server.asked("GET")
    with pytest.raises(TakebackError) as failure:
        make().get(id, SHA)
    assert said in failure.value.message and id in failure.value.message and failure.value.hint
    assert server.asked("GET") == asked + 1


def test_no_redirect_is_followed(make: Callable[..., Walrus], server: WalrusServer) -> None:
    with serving() as thief:
        server.elsewhere = f"{thief.url}/v1/blobs"
        server.misbehave("PUT", "redirect")
        with pytest.raises(TakebackError, match="does not follow"):
            make().put(DATA)
        assert thief.requests == []


def test_what_a_server_says_is_one_line_and_holds_no_secret(make: Callable[..., Walrus], server: WalrusServer) -> None:
    server.message = "wallet \x1b[31m\n  password=hunter2hunter2 " + "x" * 5000
    server.misbehave("PUT", 500)
    with pytest.raises(TakebackError) as failure:
        make().put(DATA)
    said = failure.value.message
    assert "wallet" in said and "\x1b" not in said and "\n" not in said and "hunter2" not in said and len(said) < 500


def test_too_large_for_a_publisher(make: Callable[..., Walrus], server: WalrusServer) -> None:
    server.largest = 100_000
    with pytest.raises(TakebackError, match=r"a blob of 5 MB is too large for http://127") as failure:
        make().put(bytes(5_000_000))
    assert "10 MiB" in failure.value.hint and server.asked("PUT") == 1
    assert make().put(bytes(99_000))


def test_a_large_upload_that_is_cut_off_is_told_with_the_limit(
    make: Callable[..., Walrus], server: WalrusServer
) -> None:
    server.largest = 20 * 1024**2
    server.misbehave("PUT", "drop", 50)
    with pytest.raises(TakebackError, match="was not taken") as failure:
        make(patience=0.5).put(bytes(11 * 1024**2))
    assert "10 MiB" in failure.value.hint


# Damage and keys


def altered(sealed: bytes, at: int) -> bytes:
    return sealed[:at] + bytes((sealed[at] ^ 1,)) + sealed[at + 1 :]


@pytest.mark.parametrize("at", [0, 13, 25, 40, -1])
def test_altered_bytes_are_damage(make: Callable[..., Walrus], server: WalrusServer, at: int) -> None:
    id = make().put(DATA)
    sealed = server.blobs[id]
    server.blobs[id] = altered(sealed, at % len(sealed))
    with pytest.raises(Damaged, match=id):
        make().get(id, SHA)


@pytest.mark.parametrize("left", [0, 3, 12, 40])
def test_a_cut_blob_is_damage(make: Callable[..., Walrus], server: WalrusServer, left: int) -> None:
    id = make().put(DATA)
    server.blobs[id] = server.blobs[id][:left]
    with pytest.raises(Damaged, match=id):
        make().get(id, SHA)


def test_a_blob_in_the_place_of_another_is_damage(make: Callable[..., Walrus], server: WalrusServer) -> None:
    one, other = make().put(DATA), make().put(b"something else")
    server.blobs[one] = server.blobs[other]
    with pytest.raises(Damaged, match=f"blob {one} .* holds other data"):
        make().get(one, SHA)


def test_what_is_given_back_otherwise_is_not_called_stored(make: Callable[..., Walrus], server: WalrusServer) -> None:
    with serving() as aggregator:
        aggregator.read = lambda id: b"TKBS, something else"  # type: ignore[method-assign]
        with pytest.raises(Damaged, match=r"is not at .* as it was sent"):
            make(aggregator=aggregator.url).put(DATA)


def test_a_newer_format_is_no_damage(make: Callable[..., Walrus], server: WalrusServer) -> None:
    id = make().put(DATA)
    server.blobs[id] = b"TKBS\x02" + server.blobs[id][5:]
    with pytest.raises(TakebackError, match="format 2") as said:
        make().get(id, SHA)
    assert not isinstance(said.value, Damaged) and said.value.hint == "update takeback"


def test_a_wrong_key_is_said_as_such(make: Callable[..., Walrus]) -> None:
    id = make().put(DATA)
    with pytest.raises(CredentialNeeded, match=f"blob {id} .* encrypted with another key") as said:
        make(key=OTHER_KEY).get(id, SHA)
    assert KEY not in said.value.message and OTHER_KEY not in said.value.message


def test_every_way_of_writing_a_key_is_the_same_key(make: Callable[..., Walrus]) -> None:
    raw = bytes.fromhex(KEY)
    id = make().put(DATA)
    encoded = base64.b64encode(b"\xfb\xff" + raw[2:])
    same = [
        raw,
        KEY.upper(),
        f"  {KEY}\n",
        KEY.encode(),
        base64.b64encode(raw).decode(),
        base64.b64encode(raw).decode()[:-1],
    ]
    assert all(make(key=key).get(id, SHA) == DATA for key in same)
    id = make(key=encoded.decode()).put(DATA)
    assert make(key=base64.urlsafe_b64encode(b"\xfb\xff" + raw[2:]).decode()).get(id, SHA) == DATA


@pytest.mark.parametrize(
    "key", ["swordfish", KEY[:-1], KEY + "0", "é" * 32, "=" * 44, base64.b64encode(b"x" * 31).decode()]
)
def test_what_is_no_key(make: Callable[..., Walrus], key: str) -> None:
    with pytest.raises(CredentialNeeded, match="TAKEBACK_WALRUS_KEY holds is no key") as said:
        make(key=key)
    assert key not in said.value.message + said.value.hint and "openssl rand -hex 32" in said.value.hint


def test_without_a_key_nothing_is_asked(make: Callable[..., Walrus], server: WalrusServer) -> None:
    with pytest.raises(CredentialNeeded, match="no key") as said:
        make(key="").put(DATA)
    assert "TAKEBACK_WALRUS_KEY" in said.value.hint and "key_file" in said.value.hint and server.requests == []


def test_a_key_file(make: Callable[..., Walrus], tmp_path: Path) -> None:
    file = tmp_path / "walrus.key"
    file.write_text(KEY + "\n")
    file.chmod(0o600)
    id = make().put(DATA)
    assert make(key="", key_file=file).get(id, SHA) == DATA == make(key="", key_file=str(file)).get(id, SHA)
    with pytest.raises(UsageError, match="a key and a key file"):
        make(key_file=file)


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_key_file_that_others_can_read_is_refused(make: Callable[..., Walrus], tmp_path: Path, mode: int) -> None:
    file = tmp_path / "walrus.key"
    file.write_text(KEY)
    file.chmod(mode)
    with pytest.raises(CredentialNeeded, match=f"open to others \\(mode {mode:04o}\\)") as said:
        make(key="", key_file=file)
    assert said.value.hint == f"chmod 600 {file}"


def test_key_files_that_are_none(make: Callable[..., Walrus], tmp_path: Path) -> None:
    with pytest.raises(CredentialNeeded, match="cannot be read: no such file"):
        make(key="", key_file=tmp_path / "missing")
    with pytest.raises(CredentialNeeded, match=r"not a regular file|cannot be read"):
        make(key="", key_file=tmp_path)
    if os.name == "posix":
        os.mkfifo(tmp_path / "pipe", 0o600)
        with pytest.raises(CredentialNeeded, match="not a regular file"):
            make(key="", key_file=tmp_path / "pipe")
    (tmp_path / "long").write_bytes(b"\xff" * 1_000_000)
    (tmp_path / "long").chmod(0o600)
    with pytest.raises(CredentialNeeded, match="is no key"):
        make(key="", key_file=tmp_path / "long")


def test_the_key_is_nowhere_to_be_seen(make: Callable[..., Walrus]) -> None:
    store = make()
    shown = repr(store) + repr(vars(store)) + repr(vars(store._seal))
    assert KEY not in shown and bytes.fromhex(KEY) not in vars(store._seal).values()


# Where it goes


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "no publisher of Walrus is set"),
        ("http://publisher.example", "in the clear"),
        ("http://127.evil.example", "in the clear"),
        ("http://10.0.0.1", "in the clear"),
        ("ftp://publisher.example", "not http or https"),
        ("https://user:pw@publisher.example", "user or password"),
        ("https://publisher.example/?epochs=9", "with a query"),
        ("https://publisher.example/../x", "dot segment"),
        ("publisher.example", "not http or https"),
    ],
)
def test_publishers_that_are_refused(make: Callable[..., Walrus], url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make(publisher=url)


def test_loopback_and_https_are_taken(make: Callable[..., Walrus]) -> None:
    for url in ("http://localhost:1", "http://127.0.0.2", "http://[::1]:3", "https://publisher.example"):
        make(publisher=url, aggregator=url)


@pytest.mark.parametrize("epochs", [0, -1, True, "5", 1.5])
def test_epochs_that_are_none(make: Callable[..., Walrus], epochs: object) -> None:
    with pytest.raises(UsageError, match="no number of epochs"):
        make(epochs=epochs)


# From the settings


def test_from_settings(server: WalrusServer, tmp_path: Path) -> None:
    file = tmp_path / "walrus.key"
    file.write_text(OTHER_KEY)
    file.chmod(0o600)
    environ = {
        "HOME": str(tmp_path),
        "TAKEBACK_WALRUS_PUBLISHER": server.url,
        "TAKEBACK_WALRUS_AGGREGATOR": server.url,
        "TAKEBACK_WALRUS_EPOCHS": "3",
        "TAKEBACK_WALRUS_DELETABLE": "no",
        "TAKEBACK_WALRUS_KEY_FILE": str(file),
    }
    loaded = settings.load(None, environ)
    by_file = stores.from_settings("walrus", loaded, environ)
    id = by_file.put(DATA)
    assert server.requests[0][2] == {"epochs": ["3"], "permanent": ["true"]}
    assert Walrus(server.url, server.url, key=OTHER_KEY).get(id, SHA) == DATA
    by_variable = stores.from_settings("walrus", loaded, environ | {"TAKEBACK_WALRUS_KEY": KEY})
    with pytest.raises(CredentialNeeded, match="another key"):
        by_variable.get(id, SHA)


def test_settings_that_lack_something(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    with pytest.raises(UsageError, match="no aggregator of Walrus is set") as said:
        Walrus("https://p.example", "", key=KEY)
    assert "walrus.aggregator" in said.value.hint
    with pytest.raises(CredentialNeeded, match="no key"):
        stores.from_settings("walrus", settings.load(None, environ), environ)
    with pytest.raises(UsageError, match="'filecoin' is no store for state"):
        stores.from_settings("filecoin", settings.load(None, environ), environ)


def test_where_nothing_is_set_it_is_the_documented_network(tmp_path: Path) -> None:
    loaded = settings.load(None, {"HOME": str(tmp_path)})
    assert (loaded.walrus_publisher, loaded.walrus_aggregator) == (PUBLISHER, AGGREGATOR)
    assert inspect.signature(Walrus).parameters["epochs"].default == loaded.walrus_epochs
    assert inspect.signature(Walrus).parameters["deletable"].default is loaded.walrus_deletable


def test_nothing_of_it_is_loaded_before_it_is_used() -> None:
    program = (
        "import sys, takeback, takeback.workspace, takeback.threads.stores; "
        "print(sorted({'takeback.threads.stores.walrus', 'takeback.threads.stores.sealed', 'cryptography'} & set(sys.modules)))"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_without_the_extra_it_says_what_to_install(server: WalrusServer) -> None:
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from takeback.errors import UsageError\nfrom takeback.threads.stores.walrus import Walrus\n"
        f"try:\n    Walrus({server.url!r}, {server.url!r}, key={KEY!r})\n"
        "except UsageError as error:\n    print(error.hint)\n"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True)
    assert "[walrus]'" in done.stdout and "install" in done.stdout and done.stderr == ""
