"""Requests that write, and statements that destroy: read from the words of curl, wget, HTTPie and database clients."""

from __future__ import annotations

import re
from collections.abc import Sequence

from takeback.gate.bash.words import UNKNOWN, named

_READS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND"})
_CURL_DATA = ("-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--data-urlencode", "--json", "-F",
              "--form",
              "--form-string", "-T", "--upload-file", "-Q", "--quote", "--mail-from", "--mail-rcpt")  # fmt: skip
_CURL_FLAGS = "#0123456789fgGhiIjJkKlLMnNOpqRsSvVZaB"  # letters of curl that take no value
_CURL_LONG_FLAGS = named(
    "--silent --fail --location --show-error --insecure --compressed --verbose --include --head --get --globoff --ipv4 "
    "--ipv6 --no-buffer --remote-name --remote-header-name --fail-with-body --no-progress-meter --http2 --http1.1 "
    "--create-dirs --netrc --location-trusted --progress-bar --parallel --tlsv1.2 --raw --remote-time"
)
_CURL_LONG_VALUES = named(
    "--cacert --cert --connect-timeout --cookie --cookie-jar --data --data-ascii --data-binary --data-raw "
    "--data-urlencode --doh-url --form --form-string --header --json --key --max-time --oauth2-bearer --output "
    "--preproxy --proxy --proxy-header --referer --request --retry --upload-file --user --user-agent --write-out"
)
_ADDRESS = re.compile(r"\w+://")
_CHOICE = re.compile(r"\{([^{}]*)\}|\[(\d+)-(\d+)\]")
_MOST_PLACES = 50
_WGET_DATA = ("--post-data", "--post-file", "--body-data", "--body-file")
_HARMLESS_GH = frozenset({"graphql"})


def writing_requests(name: str, words: Sequence[str]) -> tuple[str, ...]:
    """The method and place of each request that writes; none for what only reads."""
    if name == "curl":
        method = _curl(words)
    elif name == "wget":
        method = _wget(words)
    elif name in ("http", "https", "xh", "xhs", "httpie"):
        method = _httpie(words)
    elif name == "gh" and "api" in words[1:4]:
        method = _gh_api(words)
    else:
        return ()
    if not method or method in _READS:
        return ()
    found = _curl_places(words) if name == "curl" else []
    if name == "wget":
        found = [word for word in words[1:] if _ADDRESS.match(word)]
    if not found:
        found = [w for w in words[1:] if "://" in w or re.match(r"[\w.-]+\.[a-z]{2,}(/|$|:)|localhost|:\d", w)][:1]
    return tuple(dict.fromkeys(f"{method} {place}".strip() for place in found or [""]))


def is_unreadable(name: str, words: Sequence[str]) -> bool:
    """Whether curl is told what to do by a file, or by words that nobody can read: where it is sent may be unknown."""
    if name != "curl":
        return False
    unknown, has_place = 0, False
    before = ""
    for word in words[1:]:
        is_value = before.startswith("-") and (
            before not in _CURL_LONG_FLAGS if before.startswith("--") else before[-1] not in _CURL_FLAGS
        )
        before = "" if is_value else word
        if is_value:
            continue
        if len(word) > 4 and "--config".startswith(word.partition("=")[0]):
            return True
        if re.match(rf"-[{_CURL_FLAGS.replace('K', '')}]*K", word):
            return True
        unknown += word == UNKNOWN
        has_place = has_place or "://" in word or re.match(r"[\w.-]+\.[a-z]{2,}(/|$|:)|localhost", word) is not None
    return unknown > (0 if has_place else 1)


def _curl_places(words: Sequence[str]) -> list[str]:
    """Where curl sends a request each. An address behind an option that nobody here knows is one of them."""
    found: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word == "--url":
            found.append(next(rest, ""))
        elif word.startswith("--"):
            key, equals, value = word.partition("=")
            if key == "--url" and equals:
                found.append(value)
            elif key not in _CURL_LONG_FLAGS and not equals:
                value = next(rest, "")
                found += [value] if key not in _CURL_LONG_VALUES and _ADDRESS.match(value) else []
        elif word.startswith("-") and len(word) > 1:
            if len(word[1:].lstrip(_CURL_FLAGS)) == 1:
                next(rest, "")
        else:
            found.append(word)
    is_literal = any(re.match(rf"-[{_CURL_FLAGS}]*g|--globoff", word) for word in words[1:])
    return [place for each in found for place in ([each] if is_literal else _each_of(each))]


def _each_of(place: str) -> list[str]:
    """The addresses that curl makes of {a,b} and [1-3] in one, while they are few."""
    found = _CHOICE.search(place)
    if found is None:
        return [place]
    if found[1] is not None:
        parts = found[1].split(",")
    else:
        first, last = int(found[2]), int(found[3])
        parts = [str(number).zfill(len(found[2])) for number in range(first, min(last, first + _MOST_PLACES) + 1)]
    before, after = place[: found.start()], _each_of(place[found.end() :])
    return [f"{before}{part}{rest}" for part in parts for rest in after][:_MOST_PLACES]


def _curl(words: Sequence[str]) -> str:
    method, data, as_get, at = "", False, False, 1
    while at < len(words):
        word = words[at]
        key, eq, value = word.partition("=")
        if word.startswith("--"):
            if len(key) > 4 and "--request".startswith(key):
                method = value if eq else "".join(words[at + 1 : at + 2])
            elif key in _CURL_DATA or any(len(key) > 5 and full.startswith(key) for full in _CURL_DATA):
                data = True
            elif key == "--get":
                as_get = True
        elif word.startswith("-") and len(word) > 1:
            for position, letter in enumerate(word[1:], 1):
                if letter == "X":
                    method = word[position + 1 :] or "".join(words[at + 1 : at + 2])
                    break
                if f"-{letter}" in _CURL_DATA:
                    data = True
                    break
                if letter == "G":
                    as_get = True
                elif letter not in _CURL_FLAGS:
                    break
        at += 1
    if method:
        return method.lstrip("=").upper()
    return "POST" if data and not as_get else "GET"


def _wget(words: Sequence[str]) -> str:
    for at, word in enumerate(words):
        key, eq, value = word.partition("=")
        if len(key) > 4 and "--method".startswith(key):
            return (value if eq else "".join(words[at + 1 : at + 2])).upper()
        if len(key) > 4 and any(full.startswith(key) for full in _WGET_DATA):
            return "POST"
        if re.match(r"(?:-e|--execute=?)?\s*(?:post_data|post_file|body_data|body_file|method)\s*=", word):
            return "POST"
    return "GET"


def _httpie(words: Sequence[str]) -> str:
    plain = [w for w in words[1:] if not w.startswith("-")]
    if plain and plain[0].upper() in _READS:
        return plain[0].upper()
    if plain and re.fullmatch(r"[A-Z]{3,10}|post|put|delete|patch", plain[0]):
        return plain[0].upper()
    has_body = any(re.match(r"[\w.\[\]-]+(:=@?|=@?(?!=)|@)", w) for w in plain[1:])
    return "POST" if has_body else "GET"


def _gh_api(words: Sequence[str]) -> str:
    for at, word in enumerate(words):
        if word in ("-X", "--method"):
            return "".join(words[at + 1 : at + 2]).upper()
        if word.startswith("--method="):
            return word[9:].upper()
        if re.fullmatch(r"-X[A-Za-z]+", word):
            return word[2:].upper()
    fields = [w for w in words if w in ("-f", "-F", "--field", "--raw-field", "--input") or re.match(r"-[fF].+=", w)]
    if _HARMLESS_GH & set(words):
        return "POST" if any("mutation" in w for w in words) else "GET"
    return "POST" if fields else "GET"


# -- databases -------------------------------------------------------------------

_CLIENTS: dict[str, tuple[str, ...]] = {
    "psql": ("-c", "--command"),
    "pgcli": ("-c", "--command"),
    "mysql": ("-e", "--execute"),
    "mariadb": ("-e", "--execute"),
    "mycli": ("-e", "--execute"),
    "sqlite3": (),
    "sqlite": (),
    "duckdb": ("-c", "-s"),
    "sqlcmd": ("-Q", "-q"),
    "clickhouse-client": ("-q", "--query"),
    "clickhouse": ("-q", "--query"),
    "cockroach": ("-e", "--execute"),
    "snowsql": ("-q", "--query"),
    "usql": ("-c", "--command"),
    "cqlsh": ("-e", "--execute"),
    "bq": (),
    "turso": (),
    "isql": (),
    "sqlplus": (),
    "mongosh": ("--eval",),
    "mongo": ("--eval",),
    "redis-cli": (),
    "valkey-cli": (),
    "prisma": (),
}
_SQL = re.compile(
    r"\b(DROP\s+\w+|TRUNCATE(?:\s+TABLE)?\s+[\w\"`.]+|DELETE\s+FROM\s+[\w\"`.]+|ALTER\s+\w+|UPDATE\s+[\w\"`.]+\s+SET|"
    r"REPLACE\s+INTO|MERGE\s+INTO|VACUUM\s+FULL|REINDEX\s+DATABASE|INSERT\s+OR\s+REPLACE)\b",
    re.IGNORECASE,
)
_MONGO = re.compile(r"\b(drop|dropDatabase|dropIndex(?:es)?|dropUser|deleteOne|deleteMany|remove|findOneAndDelete|"
                    r"updateOne|updateMany|replaceOne|renameCollection|bulkWrite)\s*\(")  # fmt: skip
_REDIS = named("FLUSHALL FLUSHDB DEL UNLINK SHUTDOWN RENAME EXPIRE RESTORE MIGRATE SWAPDB SET GETDEL HDEL LTRIM SREM "
                   "ZREM XDEL XTRIM EVAL DEBUG REPLICAOF SLAVEOF")  # fmt: skip


def is_client(name: str) -> bool:
    return name in _CLIENTS


def destroys(name: str, words: Sequence[str], stdin: str | None) -> str:
    """The statement by which a database client would destroy something; empty if none is seen."""
    if name in ("redis-cli", "valkey-cli"):
        said = [w.upper() for w in words[1:]] + (stdin or "").upper().split()
        return next((word for word in said if word in _REDIS), "")
    texts = list(words[1:]) + ([stdin] if stdin else [])
    if name in ("mongosh", "mongo"):
        return next((found[0].rstrip("( ") for text in texts if (found := _MONGO.search(text))), "")
    for text in texts:
        bare = re.sub(r"--[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
        bare = re.sub(r"'(?:[^']|'')*'", "''", bare)
        for statement in bare.split(";"):
            if re.match(r"\s*EXPLAIN\b(?!\s*\(?\s*ANALYZE)", statement, re.IGNORECASE):
                continue
            if (found := _SQL.search(statement)) is not None:
                return re.sub(r"\s+", " ", found[0])
    return ""


def sqlite_file(words: Sequence[str]) -> str:
    """The database that sqlite3 is given; empty for one in memory."""
    at = 1
    while at < len(words):
        if words[at] in ("-cmd", "-init", "-separator", "-nullvalue", "-newline", "-mmap", "-vfs"):
            at += 1
        elif not words[at].startswith("-"):
            return "" if words[at] in (":memory:", "") else words[at].removeprefix("file:").partition("?")[0]
        at += 1
    return ""
