"""Bytes that only the holder of a key can read and nobody can alter unseen, for places that are public.

    TKBS │ version, 1 byte │ fingerprint of the key, 8 │ nonce, 12 │ AES-256-GCM of the data │ its tag, 16

The header is authenticated with the data. Cipher key and fingerprint both come from the owner's key by HKDF-SHA256,
so the fingerprint says which key it was and nothing about it. The nonce is random: the same data is never sealed alike.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from takeback.errors import CredentialNeeded, Damaged, TakebackError, UsageError
from takeback.system.installed import with_extra

KEY_BYTES = 32
_MAGIC, _VERSION = b"TKBS", 1
_HEADER, _NONCE, _TAG = 13, 12, 16  # bytes
_INFO = b"takeback sealed state 1"
_LONGEST = 1_000  # bytes of a key file
_HOW = "a key is 32 random bytes as 64 hex digits or as base64: (umask 077; openssl rand -hex 32 > walrus.key)"


class Seal:
    """One key, ready to seal and to open."""

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
            from cryptography.hazmat.primitives.hashes import SHA256
            from cryptography.hazmat.primitives.kdf.hkdf import HKDF
        except ImportError:
            raise UsageError(
                "to encrypt state before it leaves this machine, takeback needs the package cryptography",
                with_extra("walrus"),
            ) from None
        derived = HKDF(SHA256(), KEY_BYTES + 8, None, _INFO).derive(key)
        self._cipher = AESGCM(derived[:KEY_BYTES])
        self.fingerprint = derived[KEY_BYTES:]

    def seal(self, data: bytes) -> bytes:
        header = _MAGIC + bytes((_VERSION,)) + self.fingerprint
        nonce = os.urandom(_NONCE)
        return header + nonce + self._cipher.encrypt(nonce, data, header)

    def open(self, sealed: bytes, blob: str) -> bytes:
        """The data; told apart are another key, a newer format and damage. `blob` is how to call it."""
        from cryptography.exceptions import InvalidTag

        if not sealed.startswith(_MAGIC) or len(sealed) < _HEADER + _NONCE + _TAG:
            raise Damaged(f"{blob} is not what takeback stored", "it was altered or cut off, or the id is another's")
        if (version := sealed[len(_MAGIC)]) != _VERSION:
            raise TakebackError(f"{blob} is in format {version}, which this takeback does not know", "update takeback")
        header, nonce = sealed[:_HEADER], sealed[_HEADER : _HEADER + _NONCE]
        if (theirs := header[-8:]) != self.fingerprint:
            raise CredentialNeeded(
                f"{blob} was encrypted with another key: its fingerprint is {theirs.hex()}, "
                f"that of the key in use {self.fingerprint.hex()}",
                "use the key it was stored with; nothing was changed",
            )
        try:
            return self._cipher.decrypt(nonce, sealed[_HEADER + _NONCE :], header)
        except InvalidTag:
            raise Damaged(
                f"{blob} was altered since it was stored", "the key is the right one; its bytes are not"
            ) from None


def read_key(text: str, source: str) -> bytes:
    """A key as people write it. What is wrong is said without the text."""
    text = text.strip()
    if re.fullmatch(r"[0-9A-Fa-f]{64}", text):
        return bytes.fromhex(text)
    try:
        key = base64.b64decode(text.rstrip("=").translate(str.maketrans("-_", "+/")) + "=", validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise CredentialNeeded(f"what {source} holds is no key", _HOW)
    return key


def read_key_file(path: Path) -> bytes:
    """The key in a file that nobody but its owner can read."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise CredentialNeeded(f"the key file {path} cannot be read: {(error.strerror or '').lower()}", _HOW) from None
    try:
        _must_be_private(os.fstat(fd), path)
        text = os.read(fd, _LONGEST).decode("ascii", "replace")
    finally:
        os.close(fd)
    return read_key(text, f"the key file {path}")


def make_key_file(path: Path) -> None:
    """A new key, for its owner alone; one that is there by now, stays. Of several who make it at once, one does."""
    staging = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(staging, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            with os.fdopen(fd, "w") as file:
                file.write(os.urandom(KEY_BYTES).hex() + "\n")
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(staging, path)  # whole, or not at all
        finally:
            os.unlink(staging)
    except OSError as error:
        raise CredentialNeeded(
            f"the key file {path} cannot be made: {(error.strerror or '').lower()}",
            "make one elsewhere, and name it as walrus.key_file in your configuration",
        ) from None


def _must_be_private(state: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise CredentialNeeded(f"the key file {path} is not a regular file", _HOW)
    if os.name != "posix":  # there the mode says nothing about who may read
        return
    if state.st_mode & 0o077:
        mode = f"{stat.S_IMODE(state.st_mode):04o}"
        raise CredentialNeeded(f"the key file {path} is open to others (mode {mode})", f"chmod 600 {path}")
    if state.st_uid not in (os.geteuid(), 0):
        raise CredentialNeeded(f"the key file {path} belongs to somebody else", "make one of your own")
