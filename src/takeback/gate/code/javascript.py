"""Requests that JavaScript sends, by the libraries that it loads and what it calls them; read by its words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from takeback.gate.bash.words import named

WRITES = r"(?i:post|put|patch|delete)"
_PLAIN = named("http https http2 follow-redirects")  # whose request() takes a method
_CLIENTS = _PLAIN | named(
    "axios got ky superagent needle undici request node-fetch cross-fetch isomorphic-fetch phin bent wretch ofetch "
    "request-promise request-promise-native node-libcurl @actions/http-client"
)
_WRITING = named("post put patch del delete")
_WINDOW = 600  # characters behind a call that may be its options
_LOADED = r"(?:await\s+)?(?:require|import)\s*\(\s*['\"`](?:node:)?([\w@./-]+)['\"`]\s*\)"
_BOUND = re.compile(r"\b(?:const|let|var)\s+(\{[^}]*\}|[\w$]+)\s*=\s*(?:\(\s*)?" + _LOADED + r"\)?(?:\.(\w+))?")
_IMPORTED = re.compile(r"\bimport\s+([^'\"`;]+?)\s+from\s+['\"`](?:node:)?([\w@./-]+)['\"`]")
_DIRECT = re.compile(_LOADED + r"((?:\s*\.\s*[\w$]+)*)\s*\(")
_THEN = re.compile(_LOADED + r"\s*\.\s*then\s*\(\s*(?:async\s+)?\(?\s*(\{[^}]*\}|[\w$]+)")
_CALL = re.compile(r"(?<![\w$.])([\w$]+)((?:\s*\.\s*[\w$]+)*)\s*\(")
_MADE = re.compile(
    r"\b(?:const|let|var)\s+([\w$]+)\s*=\s*(?:await\s+)?(?:new\s+)?([\w$]+)\s*\.\s*"
    r"(?:create|extend|defaults|Client|Pool)\s*\("
)
_GIVEN = re.compile(r"(?<![\w$'\"`])([A-Za-z_$][\w$]*)\s*[,)]")


def sent(code: str) -> Iterator[str]:
    """Each call that sends a request which writes, or may."""
    names = dict(_names(code))
    for made, by in _MADE.findall(code):  # a client of one's own
        if by in names or by in _CLIENTS:
            names[made] = names.get(by, by).partition(".")[0]
    for call in _DIRECT.finditer(code):
        if call[1] in _CLIENTS:
            yield from _of(code, call.end(), f"{call[1]}{_path(call[2])}")
    for call in _CALL.finditer(code):
        name, path = call[1], _path(call[2])
        if name in names:
            yield from _of(code, call.end(), names[name] + path)
        elif name in ("fetch", "globalThis", "window") and (name == "fetch" or path == ".fetch"):
            yield from _of(code, call.end(), "fetch")
        elif name in _CLIENTS - {"request"} and not re.search(rf"\b(?:const|let|var|function)\s+{name}\b", code):
            yield from _of(code, call.end(), name + path)  # one that is there without being loaded


def _names(code: str) -> Iterator[tuple[str, str]]:
    """What names stand for: a library, or one of its functions."""
    bound = [(found[1], found[2], found[3]) for found in _BOUND.finditer(code)]
    bound += [(found[1], found[2], None) for found in _IMPORTED.finditer(code)]
    bound += [(found[2], found[1], None) for found in _THEN.finditer(code)]
    for names, library, member in bound:
        if library not in _CLIENTS:
            continue
        whole = f"{library}.{member}" if member and member != "default" else library
        before, brace, inside = names.partition("{")
        for each in inside.rstrip("} ").split(",") if brace else ():
            called, _, local = (part.strip() for part in re.sub(r"\bas\b", ":", each).partition(":"))
            if called:
                yield local or called, library if called == "default" else f"{library}.{called}"
        for each in before.replace("* as", "").split(","):
            if each.strip():
                yield each.strip(), whole


def _path(told: str) -> str:
    """`.default.post`, without what says nothing."""
    return re.sub(r"\s|\(.*?\)|\.default\b", "", told)


def _of(code: str, at: int, called: str) -> Iterator[str]:
    library, _, path = called.partition(".")
    last = path.rpartition(".")[2]
    if last in _WRITING:
        yield called
        return
    if library in _PLAIN and last not in ("request", "connect"):
        return
    if last in ("create", "extend", "defaults"):
        after = re.compile(r"\s*\.\s*([\w$]+)\s*\(").match(code, at + len(_arguments(code, at)))
        if after is not None and after[1] in _WRITING:
            yield f"{library}.{after[1]}"
        return
    if last in ("get", "head", "options", "createServer", "Agent", "stream"):
        return
    if last not in ("", "request", "fetch", "connect", "all"):
        return
    options = _options(code, at)
    wrote = re.search(rf"\bmethod['\"]?\s*:\s*['\"`]({WRITES})['\"`]", options)
    wrote = wrote or re.match(rf"\s*['\"`]({WRITES})['\"`]\s*,", options)
    if wrote is not None:
        yield f"{called} with {wrote[1]}"
    elif re.search(r"\bmethod['\"]?\s*(?::\s*(?!['\"`])[\w$(]|[,}])", options):
        yield f"{called} with a method that cannot be read"
    elif library not in _PLAIN and re.search(r"\b(?:body|json|form|data)\b['\"]?\s*[:,}]", options):
        yield f"{called} with a body"


def _arguments(code: str, at: int) -> str:
    """What stands between the brackets of a call, with the closing one."""
    depth, end = 1, at
    while end < min(len(code), at + _WINDOW) and depth:
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        end += 1
    return code[at:end]


def _options(code: str, at: int) -> str:
    """What a call is given: its arguments, and what the names among them were set to."""
    given = _arguments(code, at)
    for name in _GIVEN.findall(given):
        for found in re.finditer(rf"(?<![\w$.]){re.escape(name)}\s*=\s*(?=\{{)", code):
            given += " " + code[found.end() : found.end() + _WINDOW].partition("}")[0] + "}"
        for later in re.findall(rf"(?<![\w$]){re.escape(name)}\.method\s*=\s*(['\"`]\w+['\"`])", code):
            given += f" method: {later}"
    return given
