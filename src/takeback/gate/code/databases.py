"""Database clients: what in their words is run, and whether all of it is known to read only.

Whatever is not understood is not known: an option, a command of the client itself, a function, a verb.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from takeback.gate.bash.words import UNKNOWN, named


class Given(NamedTuple):
    """What a client is given in its words."""

    texts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()  # options that nobody here knows, and what else could not be read


class _Client(NamedTuple):
    texts: frozenset[str]  # options whose value is run
    files: frozenset[str]  # options whose value is a file that is run
    values: frozenset[str]  # options with another value
    flags: frozenset[str]
    letters: str = ""  # one-letter options without a value, that may be written together
    rest: str = ""  # one-letter options to which only the rest of the word belongs


_PSQL = _Client(
    named("-c --command"),
    named("-f --file"),
    named(
        "-d -F -h -p -P -R -T -U -v --dbname --field-separator --host --port --pset --record-separator --table-attr "
        "--username --set --variable"
    ),
    named(
        "--echo-all --no-align --csv --echo-queries --echo-errors --echo-hidden --expanded --html --list --no-readline "
        "--no-psqlrc --quiet --single-transaction --tuples-only --version --no-password --password --help"
    ),
    "aAbeEHlnqtVwWxXz01",
)
_MYSQL = _Client(
    named("-e --execute --init-command"),
    frozenset(),
    named("-h -u -P -D -S --host --user --port --database --socket --default-character-set --protocol --ssl-mode "
          "--connect-timeout"),
    named("--batch --password --skip-column-names --table --silent --raw --vertical --force --verbose --html --xml "
          "--no-auto-rehash --compress --version --help --ssl --quick"),
    "ABbCEfHLnNoqrstvVwX",
    "p",
)  # fmt: skip
_SQLITE = _Client(
    named("-cmd"),
    named("-init"),
    named("-separator -nullvalue -newline -mmap -maxsize"),
    named("-header -noheader -csv -json -column -line -list -html -markdown -table -box -quote -tabs -batch -bail "
          "-echo -readonly -version -help -ascii -safe -stats"),
)  # fmt: skip
_REDIS = _Client(
    frozenset(),
    frozenset(),
    named("-h -p -s -a -u -n -r -i -d --user --pass --cacert --cert --key --pattern --count"),
    named("-c -2 -3 --raw --no-raw --csv --json --tls --scan --bigkeys --stat --no-auth-warning --latency --version"),
)
_MONGO = _Client(
    named("--eval"),
    named("-f --file"),
    named("--host --port --username -u --password -p --authenticationDatabase --apiVersion"),
    named("--quiet --norc --nodb --version --tls --help --shell --json"),
)
_CLIENTS = {
    "psql": _PSQL,
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "sqlite3": _SQLITE,
    "redis-cli": _REDIS,
    "mongosh": _MONGO,
}
_SQL = named("psql mysql mariadb")
_READS = named("SELECT WITH SHOW VALUES TABLE DESCRIBE DESC USE BEGIN START COMMIT ROLLBACK END HELP STATUS")
_CHANGES = re.compile(
    r"\s*(?:INSERT|CREATE|GRANT|REVOKE|CALL|COPY|EXECUTE|DO|VACUUM|REINDEX|NOTIFY|COMMENT|REFRESH|IMPORT|LOAD|RENAME|"
    r"SECURITY|REASSIGN|CLUSTER|SET\s+(?:GLOBAL|PERSIST|PASSWORD))\b[^\n]{0,30}",
    re.IGNORECASE,
)
_WRITES = re.compile(r"\b(?:INSERT|UPDATE|DELETE|MERGE|INTO|CALL|COPY|PROGRAM|ATTACH|PREPARE)\b", re.IGNORECASE)
_COPIES_OUT = re.compile(r"\s*COPY\s+(?:(?!\bPROGRAM\b)[^;])*\sTO\s+STDOUT\b[\w\s(),]*", re.IGNORECASE)
_CALLED = re.compile(r"([\w.\"]+)\s*\(")
_PURE = named(  # functions, and words before a parenthesis, that change nothing
    "IN AND OR NOT AS OVER USING ON EXISTS ANY ALL SOME FROM JOIN WHERE SELECT UNION EXCEPT INTERSECT VALUES BY HAVING "
    "FILTER CASE WHEN THEN ELSE DISTINCT LATERAL INTERVAL WITH MATERIALIZED LIKE BETWEEN LIMIT "
    "COUNT SUM AVG MIN MAX COALESCE NULLIF LOWER UPPER LENGTH TRIM LTRIM RTRIM SUBSTR SUBSTRING REPLACE ROUND ABS CEIL "
    "FLOOR NOW DATE TIME DATETIME STRFTIME DATE_TRUNC DATE_PART EXTRACT AGE TO_CHAR TO_DATE CAST CONCAT GROUP_CONCAT "
    "STRING_AGG ARRAY_AGG JSON_AGG JSON_EXTRACT JSON_OBJECT JSON_BUILD_OBJECT JSONB_BUILD_OBJECT ROW_NUMBER RANK LAG "
    "LEAD FIRST_VALUE LAST_VALUE GREATEST LEAST IF IFNULL IIF VERSION CURRENT_DATABASE CURRENT_USER DATABASE USER "
    "PG_SIZE_PRETTY PG_TOTAL_RELATION_SIZE PG_RELATION_SIZE PG_DATABASE_SIZE TYPEOF HEX UNNEST GENERATE_SERIES VARCHAR "
    "NUMERIC DECIMAL CHAR"
)
_PSQL_TELLS = re.compile(r"\\(?:d\S*|l\+?|x|timing|pset|echo|conninfo|q|encoding|a|t|h|\?)(?:\s[^\\|`]*)?")
_SQLITE_TELLS = re.compile(
    r"\.(?:tables|schema|headers?|mode|dump|indexes|indices|databases|quit|exit|width|timer|echo|nullvalue|separator|"
    r"help|show|fullschema|dbinfo)(?:\s[^|`]*)?"
)
_SQLITE_REACHES = re.compile(
    r"\b(?:ATTACH|VACUUM\s+(?:\w+\s+)?INTO)\b|\b(?:load_extension|writefile|edit|fts3_tokenizer)\s*\(", re.IGNORECASE
)
_REDIS_READS = named(
    "GET MGET KEYS SCAN HGET HGETALL HMGET HKEYS HVALS HLEN HSCAN HEXISTS LRANGE LLEN LINDEX SMEMBERS SCARD SISMEMBER "
    "SSCAN ZRANGE ZCARD ZSCORE ZCOUNT ZSCAN XRANGE XLEN XINFO TTL PTTL TYPE EXISTS STRLEN INFO PING DBSIZE TIME "
    "LASTSAVE ECHO RANDOMKEY SELECT MONITOR ROLE GETRANGE BITCOUNT PFCOUNT"
)
_MONGO_READS = named(
    "find findOne count countDocuments estimatedDocumentCount distinct aggregate limit sort skip toArray pretty "
    "explain getIndexes stats getCollectionNames getCollectionInfos getCollection getSiblingDB hello ping serverStatus "
    "version printjson print forEach map ObjectId ISODate hasNext next size dataSize getName getMongo getDBs"
)
_STRINGS = re.compile(r"'(?:[^'\\]|''|\\.)*'", re.DOTALL)
_COMMENTS = re.compile(r"--[^\n]*|/\*(?!!).*?\*/", re.DOTALL)


def given(name: str, words: Sequence[str]) -> Given:
    """What a client runs by its words; of one that is not known here, nothing is said."""
    client = _CLIENTS.get(name)
    if client is None:
        return Given()
    texts: list[str] = []
    files: list[str] = []
    strange: list[str] = []
    plain: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if plain and name == "redis-cli":
            plain.append(word)
            continue
        if word == "--":
            plain += rest
            break
        if not word.startswith("-") or len(word) < 2:
            plain.append(word)
            continue
        option, value = _option(client, word)
        if option in client.flags or not option:
            continue
        if option not in client.texts | client.files | client.values:
            strange.append(word)
            continue
        value = value if value is not None else next(rest, "")
        texts += [value] if option in client.texts else []
        files += [value] if option in client.files else []
    if name == "sqlite3":
        texts += plain[1:]
    elif name == "redis-cli":
        texts += [" ".join(plain)] if plain else []
    elif name == "mongosh":
        files += [word for word in plain if re.search(r"\.(?:js|mongodb)$", word)]
    if any(UNKNOWN in word for word in plain[:1]) and name == "sqlite3":
        strange.append(plain[0])
    return Given(tuple(texts), tuple(files), tuple(strange))


def _option(client: _Client, word: str) -> tuple[str, str | None]:
    """The option that a word has, and its value where that is written with it; no option where all are flags."""
    if word in client.texts | client.files | client.values | client.flags:
        return word, None
    if word.startswith("--"):
        key, equals, value = word.partition("=")
        return key, value if equals else None
    if not client.letters:
        return word, None
    for at, letter in enumerate(word[1:], 1):
        if letter in client.rest:
            return "", None
        if letter not in client.letters:
            return f"-{letter}", word[at + 1 :] or None
    return "", None


def changes(name: str, text: str) -> str:
    """The statement by which a database is changed, where it destroys nothing; empty if none is seen."""
    if name not in _SQL and not name.startswith("sqlite"):
        return ""
    for statement in _statements(text):
        if _COPIES_OUT.fullmatch(statement) is None and (found := _CHANGES.match(statement)) is not None:
            return " ".join(found[0].split())
    return ""


def is_understood(name: str, text: str) -> bool:
    """Whether all of what a client is told is known: it reads, or, in SQLite, works on the file that it is given."""
    if name not in _CLIENTS:
        return True
    if UNKNOWN in text:
        return False
    if name == "redis-cli":
        return all(line.split()[0].upper() in _REDIS_READS for line in text.splitlines() if line.split())
    if name == "mongosh":
        called = re.findall(r"([\w$\]'\"]+)\s*\(", text)
        return all(each in _MONGO_READS for each in called) and not re.search(r"\$(?:out|merge)\b|=(?!=)", text)
    if name == "sqlite3":
        lines = [line.strip() for line in text.splitlines() if line.strip().startswith(".")]
        tells = all(_SQLITE_TELLS.fullmatch(line) is not None for line in lines)
        return tells and _SQLITE_REACHES.search(_COMMENTS.sub(" ", text)) is None
    return all(map(_only_reads, _statements(text)))


def _statements(text: str) -> list[str]:
    """Each statement, its strings empty and without comments; a line with a command of the client stands alone."""
    bare = _COMMENTS.sub(" ", _STRINGS.sub("''", text))
    return re.split(r";|\\[gG]\b|\n(?=\s*\\)", bare)


def _only_reads(statement: str) -> bool:
    said = statement.strip()
    if not said or _PSQL_TELLS.fullmatch(said) or _COPIES_OUT.fullmatch(said):
        return True
    if re.search(r"\\|\$\$|/\*|(?<![:\w]):[\w'\"]", said):  # its own commands, variables, and what it may hide
        return False
    verb = re.split(r"[\s(]", said, maxsplit=1)[0].upper()
    if verb == "EXPLAIN":
        return re.match(r"EXPLAIN\s*\(?\s*ANALYZE", said, re.IGNORECASE) is None
    if verb not in _READS or _WRITES.search(said):
        return False
    return all(called.upper() in _PURE for called in _CALLED.findall(said))
