"""The hook's end of the resident process: hands over what the agent said, prints what comes back.

Imported by its folder alone (start.py), with nothing but what every interpreter has built in: a hook runs at each of
an agent's calls, and its start is most of what it costs. Whatever goes wrong here costs one slow call: the hook then
does all of it by itself.

    request   two lengths ─► installation, agent, event, folder and its inode, environment (joined by NUL) ─► what
              the agent said
    answer    "." while it is at work ─► "=", exit code, two lengths, standard output, standard error; "-": not here
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    Reply = tuple[int, bytes, bytes]

HEAD, TAIL = 8, 9  # bytes before a request, and before an answer once it is marked as one
AT_WORK, ANSWER, NOT_HERE = b".", b"=", b"-"
STATUS, STOP = "!status", "!stop"  # instead of an agent: what the resident process says of itself; its end
SERVE = "--serve"  # instead of an agent: become the resident process
_CONNECT = 1.0  # seconds
_SILENCE = 5.0  # seconds: a resident process says more often than that that it is at work
_OFF = (b"off", b"0", b"false", b"no")
_PEER_CREDENTIALS = 17  # of Linux
_KILL = 9
_NEEDED = ("zstandard", "pathspec", "platformdirs", "tree_sitter")  # packages


def main(words: Sequence[str]) -> NoReturn:
    """Ends the process. To an agent every code but 0 and 2 is a failure of its own, and 2 is a no."""
    if sys.platform == "win32":
        from nt import _exit, write
    else:
        from posix import _exit, write

    if words and words[0] == SERVE:
        _take_up_packages()
        from takeback.surfaces.resident.server import serve

        _exit(serve(words[1:]))
    code, out, err = 0, b"", b""
    try:
        said = _input()
        code, out, err = _asked(words, said) or _by_itself(words, said)
    except BaseException:
        code = 0
    for fd, data in ((2, err), (1, out)):
        try:
            while data:
                data = data[write(fd, data) :]
        except OSError:
            continue  # nobody listens
    _exit(code)


def _input() -> bytes:
    if sys.platform == "win32":
        return sys.stdin.buffer.read()
    from posix import isatty, read

    parts: list[bytes] = []
    try:
        while not isatty(0) and (part := read(0, 1 << 16)):
            parts.append(part)
    except OSError:
        pass  # closed: then it was told nothing
    return b"".join(parts)


# -- the resident process ------------------------------------------------------


def folder(environ: Mapping[bytes, bytes]) -> bytes:
    """Where the socket lies: the user's runtime folder, or else one of our own among the temporary files."""
    from posix import geteuid, stat

    user = geteuid()
    chosen = environ.get(b"XDG_RUNTIME_DIR", b"")
    try:
        if chosen.startswith(b"/") and stat(chosen).st_uid == user:
            return chosen + b"/takeback"
    except OSError:
        pass
    return b"/tmp/takeback-%d" % user


def is_private(place: bytes) -> bool:
    """Whether a folder is ours and nobody else's: a socket in any other may be anyone's."""
    from posix import geteuid, lstat

    try:
        found = lstat(place)
    except OSError:
        return False
    return found.st_mode & 0o170077 == 0o040000 and found.st_uid == geteuid()


def installation() -> bytes:
    """Which takeback this is, however its path is spelt: the process of another one is replaced."""
    from posix import stat

    found = stat(__file__)
    return b"%d %d %d" % (found.st_dev, found.st_ino, found.st_mtime_ns)


def identity(here: bytes) -> bytes:
    """Which folder this is: a process that sees another one at its path, as below an overlay, cannot look for us."""
    from posix import stat

    try:
        found = stat(here)
    except OSError:
        return b""
    return b"%d %d" % (found.st_dev, found.st_ino)


def request(words: Sequence[str], said: bytes, here: bytes, environ: Mapping[bytes, bytes]) -> bytes:
    agent, event = (*(word.encode("utf-8", "surrogateescape") for word in words), b"", b"")[:2]
    settings = (name + b"=" + value for name, value in environ.items())
    head = b"\0".join((installation(), agent, event, here, identity(here), *settings))
    return len(head).to_bytes(4, "big") + len(said).to_bytes(4, "big") + head + said


def _asked(words: Sequence[str], said: bytes) -> Reply | None:
    """What the resident process answers; None where there is none, or none that answers."""
    if sys.platform == "win32":
        return None
    from posix import environ, getcwdb

    if environ.get(b"TAKEBACK_RESIDENT", b"").lower() in _OFF:
        return None
    place = folder(environ)
    if not is_private(place):
        return None
    try:
        here = getcwdb()
    except OSError:  # the folder is gone
        here = environ.get(b"PWD", b"")
    return ask(place, request(words, said, here, environ))


def ask(place: bytes, data: bytes) -> Reply | None:
    from _socket import AF_UNIX, SOCK_STREAM, socket

    line = socket(AF_UNIX, SOCK_STREAM)
    try:
        line.settimeout(_CONNECT)
        line.connect(place + b"/socket")
        if not _is_own(line):
            return None
        line.settimeout(_SILENCE)
        return _exchanged(line, data)
    except TimeoutError:
        _end(line)
    except OSError:
        pass
    finally:
        line.close()
    return None


def _exchanged(line: Socket, data: bytes) -> Reply | None:
    line.sendall(data)
    found = b""
    while len(found) < TAIL + 1 or len(found) < TAIL + 1 + _length(found):
        part = line.recv(1 << 16)
        if not part:
            return None
        found = (found + part).lstrip(AT_WORK) if not found else found + part
        if found[:1] == NOT_HERE:
            return None
    after = TAIL + 1 + int.from_bytes(found[2:6], "big")
    return found[1], found[TAIL + 1 : after], found[after:]


def _length(found: bytes) -> int:
    return int.from_bytes(found[2:6], "big") + int.from_bytes(found[6:10], "big")


def _peer(line: Socket) -> tuple[int, int] | None:
    """The process at the other end, and its user; None on systems that do not tell it this way."""
    if sys.platform != "linux":
        return None
    found = line.getsockopt(1, _PEER_CREDENTIALS, 12)
    return int.from_bytes(found[:4], sys.byteorder), int.from_bytes(found[4:8], sys.byteorder)


def _is_own(line: Socket) -> bool:
    from posix import geteuid

    peer = _peer(line)
    return peer is None or peer[1] == geteuid()


def _end(line: Socket) -> None:
    """A resident process that says nothing is stuck or stopped, maybe with the store locked: nobody else could
    capture. Killed at any point it leaves the journal whole."""
    from posix import geteuid, kill

    try:
        peer = _peer(line)
        if peer is not None and peer[0] > 1 and peer[1] == geteuid():
            kill(peer[0], _KILL)
    except OSError:
        pass


# -- without it ----------------------------------------------------------------


def _by_itself(words: Sequence[str], said: bytes) -> Reply:
    import gc

    gc.disable()  # what a start makes stays to the end: to look it over for cycles would only cost time
    _take_up_packages()
    from takeback.surfaces.resident.alone import answer

    return answer(words, said)


def _take_up_packages() -> None:
    """What -S left out. Where what we need lies beside our own package, or where the interpreter keeps packages, these
    folders are enough; elsewhere it takes all that a start without -S does. The client's folder goes: its modules have
    plain names."""
    here = sys.path.pop(0)
    beside = here.replace("\\", "/").rsplit("/", 3)[0]
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    own = sys.executable.rsplit("/", 2)[0] + f"/lib/python{version}/site-packages"
    sys.path.append(beside)
    if all(_is_there(f"{beside}/{name}") for name in _NEEDED):
        return
    if all(_is_there(f"{own}/{name}") for name in _NEEDED):
        sys.path.append(own)
        return
    import site

    site.main()


def _is_there(path: str) -> bool:
    if sys.platform == "win32":
        return False
    from posix import stat

    try:
        return bool(stat(path))
    except OSError:
        return False
