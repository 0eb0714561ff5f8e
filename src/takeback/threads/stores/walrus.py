"""Walrus, a public network of blobs, over HTTP: a publisher takes them, an aggregator gives them.

    put   data ──► sealed ──► PUT {publisher}/v1/blobs ──► id ──► GET {aggregator}/v1/blobs/{id} ──► the same bytes?
    get   id ──► GET ──► opened ──► the caller's sha256?

Everybody can read what is there: nothing leaves this machine unsealed. A publisher's yes is not believed before the
aggregator has given the bytes back, since one of another network would say yes, too.
"""

from __future__ import annotations

import ipaddress
import json
import os
import random
import re
import threading
import time
from collections.abc import Mapping
from hashlib import sha256 as digest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takeback.errors import CredentialNeeded, Damaged, NotFound, TakebackError, UsageError
from takeback.privacy import redact
from takeback.system.http import MOST, Place, Reply, exchange, place
from takeback.text.units import format_size

from .sealed import KEY_BYTES, Seal, make_key_file, read_key, read_key_file

if TYPE_CHECKING:
    from takeback.config.settings import Settings

PUBLISHER = "https://publisher.walrus-testnet.walrus.space"  # of the public Testnet, as its documentation names them
AGGREGATOR = "https://aggregator.walrus-testnet.walrus.space"
KEY_VARIABLE = "TAKEBACK_WALRUS_KEY"
LARGEST = 256 * 1024**2  # bytes of a blob: it is held in memory
PUBLIC_LIMIT = 10 * 1024**2  # what public publishers take
_BUSY = (429, 502, 503, 504)  # as documented: try again
_FIRST, _LONGEST_WAIT = 0.25, 8.0  # seconds between two tries
_UNOPENED = 3  # tries where nobody is there at all
_FRESH = 60.0  # seconds in which a 404 may be older than the blob: caches before an aggregator keep it
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_NO_KEY = (
    f"set {KEY_VARIABLE}, or walrus.key_file to a file of mode 0600, which a saver or workspace reads; or give Walrus "
    "a key or a key_file; without one nothing is uploaded"
)


class Walrus:
    """A store for state on Walrus; by default where and with which key the owner's settings say, once a workspace uses
    it: the public Testnet, if they say nothing. `makes_key` makes the key file at the first upload, if it is not there.
    `patience` is how long one call goes on trying, beside the request under way."""

    name = "walrus"

    def __init__(
        self,
        publisher: str | None = None,
        aggregator: str | None = None,
        *,
        epochs: int = 5,
        deletable: bool = True,
        key: str | bytes = "",
        key_file: str | Path = "",
        makes_key: bool = False,
        timeout: float = 120.0,
        patience: float = 30.0,
    ) -> None:
        self._publisher = _base(PUBLISHER if publisher is None else publisher, "publisher")
        self._aggregator = _base(AGGREGATOR if aggregator is None else aggregator, "aggregator")
        self._is_placed = publisher is not None or aggregator is not None
        if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
            raise UsageError(f"{epochs!r} is no number of epochs", "give a whole number of at least 1")
        self._kept = f"epochs={epochs}&" + ("deletable=true" if deletable else "permanent=true")
        self._unmade: Path | None = None  # a key file that is to be made
        self._kept_seal: Seal | None = None
        if key or key_file:
            self._use_key(key, key_file, makes_key)
        self._timeout, self._patience = timeout, patience
        self._stored: dict[str, float] = {}  # what was put a moment ago, and when
        self._mutex = threading.Lock()

    @classmethod
    def from_settings(cls, settings: Settings, environ: Mapping[str, str], own_key: str | Path = "") -> Walrus:
        """As the owner has set it up; the key in the environment goes before the one in a file. Where no file is named
        it is `own_key`, which is made when it is needed."""
        key = environ.get(KEY_VARIABLE, "")
        if not (key or settings.walrus_key_file or own_key):
            raise _no_key()
        return cls(
            settings.walrus_publisher,
            settings.walrus_aggregator,
            epochs=settings.walrus_epochs,
            deletable=settings.walrus_deletable,
            key=key,
            key_file="" if key else settings.walrus_key_file or own_key,
            makes_key=bool(own_key) and not settings.walrus_key_file,
        )

    def set_up(self, settings: Settings, environ: Mapping[str, str], own_key: str | Path) -> None:
        """The owner's places and key, where none were given."""
        if not self._is_placed:
            self._publisher = _base(settings.walrus_publisher, "publisher")
            self._aggregator = _base(settings.walrus_aggregator, "aggregator")
        if self._kept_seal is None and self._unmade is None:
            key = environ.get(KEY_VARIABLE, "")
            file = "" if key else settings.walrus_key_file or own_key
            self._use_key(key, file, makes_key=not settings.walrus_key_file)

    def _use_key(self, key: str | bytes, key_file: str | Path, makes_key: bool) -> None:
        self._unmade = Path(key_file) if makes_key and not key and not os.path.lexists(key_file) else None
        self._kept_seal = None if self._unmade is not None else Seal(_key(key, key_file))

    def put(self, data: bytes) -> str:
        """Stores it sealed. Sealed once, so that a repeated upload is the same blob and is paid for once."""
        sealed = self._seal(make=True).seal(data)
        if len(sealed) > LARGEST:
            raise UsageError(f"{_size(data)} is too large for one blob", f"{format_size(LARGEST)} is the most")
        at = _below(self._publisher, f"/v1/blobs?{self._kept}")
        headers = {"Content-Type": "application/octet-stream", "Accept": "application/json"}
        reply = self._ask("PUT", at, headers, sealed)
        blob_id = _stored_id(reply, self._publisher.origin, sealed)
        with self._mutex:
            now = time.monotonic()
            self._stored = {id: at for id, at in self._stored.items() if now - at < _FRESH}
            self._stored[blob_id] = now
        try:
            found = self._read(blob_id)
        except NotFound:
            raise NotFound(
                f"{self._publisher.origin} says that blob {blob_id} is stored, "
                f"and {self._aggregator.origin} does not have it",
                "are both of the same network? walrus.publisher and walrus.aggregator say where they are",
            ) from None
        if found != sealed:
            raise Damaged(
                f"blob {blob_id} is not at {self._aggregator.origin} as it was sent to {self._publisher.origin}",
                "do not rely on these two; the value was not taken as stored",
            )
        return blob_id

    def get(self, blob_id: str, sha256: bytes) -> bytes:
        data = self._seal().open(self._read(blob_id), f"blob {blob_id} at {self._aggregator.origin}")
        if digest(data).digest() != sha256:
            raise Damaged(
                f"blob {blob_id} at {self._aggregator.origin} holds other data than was asked for",
                "it was stored with your key, and as something else: the record of its id is wrong",
            )
        return data

    def delete(self, blob_id: str) -> bool:
        """No: a blob is deleted on the chain, by who owns it, and over HTTP by nobody."""
        return False

    def _seal(self, make: bool = False) -> Seal:
        with self._mutex:
            if self._unmade is not None and make:
                make_key_file(self._unmade)
            if self._kept_seal is None:
                self._kept_seal = Seal(_key("", self._unmade or ""))
            self._unmade = None
            return self._kept_seal

    def _read(self, blob_id: str) -> bytes:
        """The blob as it lies there."""
        if not _ID.fullmatch(blob_id):
            raise NotFound(f"{blob_id[:200]!r} is no id of a blob on Walrus", "take it from the state checkpoint")
        at = _below(self._aggregator, f"/v1/blobs/{blob_id}")
        with self._mutex:
            is_fresh = time.monotonic() - self._stored.get(blob_id, -_FRESH) < _FRESH
        reply = self._ask("GET", at, {"Accept": "application/octet-stream"}, None, is_fresh, LARGEST + 1)
        return _blob(reply, blob_id, self._aggregator.origin)

    def _ask(
        self,
        method: str,
        at: Place,
        headers: Mapping[str, str],
        body: bytes | None,
        is_fresh: bool = False,
        most: int = MOST,
    ) -> Reply:
        """The answer that stands, after as many tries as it takes and patience allows."""
        ends = time.monotonic() + self._patience
        wait, unopened = _FIRST, 0
        while True:
            reply = exchange(method, at, {"User-Agent": "takeback", **headers}, body, self._timeout, most)
            lost = not reply.status or (reply.status == 200 and not reply.whole)
            if not lost and reply.status not in _BUSY and not (is_fresh and reply.status == 404):
                return reply
            unopened += not reply.sent
            pause = max(_asked_to_wait(reply), wait * random.uniform(0.5, 1.0))
            if unopened == _UNOPENED or time.monotonic() + pause > ends:
                return reply
            time.sleep(pause)
            wait = min(2 * wait, _LONGEST_WAIT)


def _key(key: str | bytes, key_file: str | Path) -> bytes:
    if key and key_file:
        raise UsageError("there is a key and a key file", "give one of them")
    if isinstance(key, bytes) and len(key) == KEY_BYTES:
        return key
    if key:
        return read_key(key.decode("ascii", "replace") if isinstance(key, bytes) else key, KEY_VARIABLE)
    if key_file:
        return read_key_file(Path(key_file))
    raise _no_key()


def _no_key() -> CredentialNeeded:
    return CredentialNeeded("there is no key to encrypt state with", _NO_KEY)


def _base(url: str, what: str) -> Place:
    """A publisher or aggregator, by its URL. Its path may be a secret of its owner: messages have the origin alone."""
    if not url:
        raise UsageError(f"no {what} of Walrus is set", f"set walrus.{what} in your configuration; see docs/walrus.md")
    at = place(url)
    if "?" in url or "#" in url:
        raise UsageError(f"the {what} at {at.origin} is written with a query", "write its base alone: https://host")
    if at.scheme != "https" and not _is_loopback(at.host):
        raise UsageError(
            f"the {what} {at.origin} is asked in the clear", "write https://; http:// is for this machine alone"
        )
    return at._replace(target=at.target.rstrip("/"))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _below(base: Place, path: str) -> Place:
    return base._replace(target=base.target + path)


def _stored_id(reply: Reply, origin: str, sealed: bytes) -> str:
    """The id under which a publisher says that the blob is stored for as long as was asked."""
    if reply.status == 413 or (not reply.status and reply.sent and len(sealed) > PUBLIC_LIMIT):
        what = "is too large for" if reply.status else f"was not taken ({reply.why}) by"
        raise TakebackError(
            f"a blob of {_size(sealed)} {what} {origin}",
            "public publishers take 10 MiB; set walrus.publisher to one of your own that takes more",
        )
    if reply.status in (401, 403):
        raise TakebackError(
            f"{origin} takes no blobs from us{_words(reply)}",
            "takeback sends no token: use a publisher that is open to you, such as your own on this machine",
        )
    if reply.status != 200 or not reply.whole:
        raise _failure(reply, origin, "the blob was not stored", "putting it again is safe")
    answer = _parsed(reply.body)
    created, known = answer.get("newlyCreated"), answer.get("alreadyCertified")
    named = created.get("blobObject") if isinstance(created, dict) else known
    blob_id = named.get("blobId") if isinstance(named, dict) else None
    if not isinstance(blob_id, str) or not _ID.fullmatch(blob_id):
        bad = "it calls the blob invalid" if "markedInvalid" in answer else "it names no blob"
        raise TakebackError(
            f"the blob was not stored: {origin} answered, and {bad}{_words(reply)}",
            "try again; see that walrus.publisher is a publisher",
        )
    return blob_id


def _blob(reply: Reply, blob_id: str, origin: str) -> bytes:
    """What an aggregator has under an id."""
    if reply.status == 404:
        raise NotFound(
            f"blob {blob_id} is not at {origin}",
            "its epochs may have run out, or it was deleted, or walrus.aggregator is of another network",
        )
    if reply.status in (403, 451):
        why = "it is larger than this one gives out" if reply.status == 403 else "it is blocked there"
        raise TakebackError(
            f"blob {blob_id} does not come from {origin}: {why}", "set walrus.aggregator to another one of the network"
        )
    if reply.status != 200 or not reply.whole:
        raise _failure(reply, origin, f"blob {blob_id} was not read", "it may be there; try again")
    if len(reply.body) > LARGEST:
        raise Damaged(f"blob {blob_id} at {origin} is larger than any takeback stores", "the id may be another's")
    return reply.body


def _failure(reply: Reply, origin: str, what: str, hint: str) -> TakebackError:
    if reply.status == 200:
        return TakebackError(f"{what}: {origin} broke off its answer", hint)
    if not reply.status:
        return TakebackError(f"{what}: {origin} {'was asked' if reply.sent else 'is not there'}: {reply.why}", hint)
    if 300 <= reply.status < 400:
        elsewhere = _origin_of(reply.headers.get("location", ""))
        return TakebackError(
            f"{what}: {origin} leads on to {elsewhere}, and takeback does not follow",
            "if you trust it, set it as walrus.publisher or walrus.aggregator",
        )
    if reply.status in _BUSY:
        return TakebackError(f"{what}: {origin} is busy ({reply.status}){_words(reply)}", hint)
    return TakebackError(f"{what}: {origin} answered {reply.status}{_words(reply)}", "see what it says")


def _origin_of(url: str) -> str:
    try:
        return place(url).origin
    except TakebackError:
        return "elsewhere"


def _words(reply: Reply) -> str:
    """What a server says about it, as its documentation has it: in one line, and not too long."""
    error = _parsed(reply.body).get("error")
    said = (error.get("message") or error.get("error_msg")) if isinstance(error, dict) else None
    line = " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", said).split()) if isinstance(said, str) else ""
    return f": {redact.text(line[:300])}" if line else ""


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _asked_to_wait(reply: Reply) -> float:
    """Seconds that a server asks for; a date is not worth reading for this."""
    said = reply.headers.get("retry-after", "")
    return float(said) if re.fullmatch(r"[0-9]{1,6}", said) else 0.0


def _size(data: bytes) -> str:
    return format_size(len(data))
