"""Programs of other languages: the calls in them that reach other machines or send mail, by name; and what they delete.

Python is read as the tree that it is, others by their words. A request that only reads passes, as curl's does. What a
program does by a name that nobody knows, or builds while it runs, is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from takeback.gate import rules
from takeback.gate.bash.words import named
from takeback.gate.requests_and_statements import destroys

from . import javascript
from .javascript import WRITES


class Sent(NamedTuple):
    """One call by which a program reaches out."""

    kind: str
    what: str


_HTTP = named("requests httpx aiohttp urllib3 niquests httplib2 http.client urllib.request urllib2")
_MAIL = named("smtplib yagmail sendgrid mailgun postmarker mailjet_rest aiosmtplib")
_REMOTE = named("paramiko fabric asyncssh telnetlib ftplib pysftp websocket websockets asyncio.open_connection")
_CLOUDS = named("boto3 botocore stripe twilio slack_sdk google.cloud azure kubernetes")
_CHANGES = re.compile(
    r"(?:put|delete|create|update|terminate|send|publish|invoke|start|stop|run|copy|upload|modify|cancel|refund|"
    r"capture|confirm|pay|patch|remove|chat_postMessage|post)(?:_\w+)?|upload_file(?:obj)?|chat_\w+"
)
_DATABASES = named(
    "psycopg psycopg2 pymysql MySQLdb mysql asyncpg sqlalchemy oracledb cx_Oracle pyodbc clickhouse_driver"
)
_DELETES = named("shutil.rmtree os.remove os.unlink os.rmdir os.removedirs")

_BY_WORDS: Mapping[str, tuple[tuple[str, re.Pattern[str]], ...]] = {
    "node": (
        (rules.HTTP, re.compile(r"(?:\bjQuery|\$)\s*\.\s*(?:post|put|patch|delete)\s*\(")),
        (rules.HTTP, re.compile(r"\.open\s*\(\s*['\"`]" + WRITES + r"['\"`]\s*,")),
        (rules.HTTP, re.compile(r"\bnew\s+WebSocket\s*\(|\bnet\.(?:connect|createConnection)\s*\(|\btls\.connect\s*\(|"
                             r"\bdgram\.createSocket\s*\(")),
        (rules.SEND, re.compile(r"\.sendMail\s*\(|\bnodemailer\.createTransport\s*\(|\bsgMail\.send\s*\(")),
    ),
    "ruby": (
        (rules.HTTP, re.compile(r"Net::HTTP(?:\.|::)(?:post|post_form|put|delete|patch|Post|Put|Patch|Delete)\b|"
                             r"\b(?:Faraday|HTTParty|RestClient|HTTP|Excon|Typhoeus)\.(?:post|put|patch|delete)\b|"
                             r"\b(?:TCPSocket|UDPSocket)\.(?:new|open)\b")),
        (rules.SEND, re.compile(r"Net::SMTP|\bMail\.deliver\b|\.deliver_(?:now|later)\b")),
    ),
    "perl": (
        (rules.HTTP, re.compile(r"->\s*(?:post|put|delete|patch)\s*\(|HTTP::Request->new\(\s*['\"]?" + WRITES
                             + r"|->request\(\s*['\"]" + WRITES + r"|IO::Socket::\w+->new")),
        (rules.SEND, re.compile(r"Net::SMTP|Mail::Sendmail|MIME::Lite|Email::Sender")),
    ),
    "php": (
        (rules.HTTP, re.compile(r"CURLOPT_(?:POST|POSTFIELDS|CUSTOMREQUEST|PUT|UPLOAD)\b|['\"]method['\"]\s*=>\s*['\"]"
                             + WRITES + r"|\b(?:fsockopen|stream_socket_client)\s*\(|->(?:post|put|patch)\s*\(")),
        (rules.SEND, re.compile(r"(?<![\w>:])mail\s*\(|PHPMailer|Swift_Mailer")),
    ),
    "go": (
        (rules.HTTP, re.compile(r"\bhttp\.(?:Post|PostForm)\s*\(|\bhttp\.NewRequest(?:WithContext)?\s*\([^)]*?(?:\""
                             + WRITES + r"\"|http\.Method(?:Post|Put|Patch|Delete))|\bnet\.Dial\w*\s*\(")),
        (rules.SEND, re.compile(r"\bsmtp\.SendMail\s*\(")),
    ),
    "pwsh": (
        (rules.HTTP, re.compile(r"\b(?:Invoke-RestMethod|Invoke-WebRequest|irm|iwr)\b[^\n|;]*-Method\s+['\"]?" + WRITES
                             + r"|Net\.Sockets\.TcpClient")),
        (rules.SEND, re.compile(r"\bSend-MailMessage\b")),
    ),
    "lua": ((rules.HTTP, re.compile(r"\bhttps?\.request\s*\{|\bsocket\.(?:tcp|udp|connect)\b")),),
    "Rscript": ((rules.HTTP, re.compile(r"\bhttr2?::(?:POST|PUT|PATCH|DELETE)\b|(?<![\w.])(?:POST|PUT|PATCH)\s*\(")),),
    "awk": ((rules.HTTP, re.compile(r"/inet[46]?/(?:tcp|udp)/")),),
    "python": (  # one that does not parse
        (rules.HTTP, re.compile(r"\b(?:requests|httpx)\.(?:post|put|patch|delete)\s*\(|\burlopen\s*\([^)\n]*,|"
                             r"\bsocket\.create_connection\s*\(")),
        (rules.SEND, re.compile(r"\bsmtplib\b")),
    ),
}  # fmt: skip
_SAME = {
    **dict.fromkeys(("nodejs", "bun", "deno", "tsx", "ts-node"), "node"),
    **dict.fromkeys(("gawk", "mawk", "nawk"), "awk"),
    "pypy": "python",
    "powershell": "pwsh",
}


def sent(language: str, code: str) -> list[Sent]:
    """The calls by which a program reaches out, each once."""
    language = _SAME.get(language, language)
    if language == "python":
        tree = _tree(code)
        found = list(_Reading(tree).sent()) if tree is not None else list(_by_words(language, code))
    else:
        found = list(_by_words(language, re.sub(r"(?m)^\s*(?://|\*|#).*$|/\*.*?\*/", "", code)))
    return list(dict.fromkeys(found))


def deletes(language: str, code: str) -> list[str]:
    """Paths that a Python program deletes, where it writes them out."""
    tree = _tree(code) if _SAME.get(language, language) == "python" else None
    return list(_Reading(tree).deleted()) if tree is not None else []


def _by_words(language: str, code: str) -> Iterator[Sent]:
    for kind, known in _BY_WORDS.get(language, ()):
        for found in known.finditer(code):
            yield Sent(kind, " ".join(found[0].split())[:80])
    if language == "node":
        for call in javascript.sent(code):
            yield Sent(rules.HTTP, call[:80])


# -- Python ------------------------------------------------------------------------


def _tree(code: str) -> Any:
    import ast

    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Reading:
    """A program's imports, what its names stand for, and its calls."""

    def __init__(self, tree: Any) -> None:
        import ast

        self._ast = ast
        self._names: dict[str, str] = {}
        self._bound: dict[str, Any] = {}
        self._imports: set[str] = set()
        self._calls: list[Any] = []
        for node in ast.walk(tree):
            self._learn(node)

    def _learn(self, node: Any) -> None:
        ast = self._ast
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._imports.add(alias.name)
                self._names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            self._imports.add(node.module or "")
            for alias in node.names:
                self._imports.add(f"{node.module}.{alias.name}")
                self._names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self._bound[node.targets[0].id] = node.value
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for each in node.items:
                if isinstance(each.optional_vars, ast.Name):
                    self._bound[each.optional_vars.id] = each.context_expr
        elif isinstance(node, ast.Call):
            self._calls.append(node)

    def _has(self, libraries: frozenset[str]) -> bool:
        return any(name in libraries or name.partition(".")[0] in libraries for name in self._imports)

    def _dotted(self, node: Any, depth: int = 0) -> str:
        """requests.Session().post, however its parts are called here."""
        ast = self._ast
        if depth > 20:
            return ""
        if isinstance(node, ast.Attribute):
            return f"{self._dotted(node.value, depth + 1)}.{node.attr}"
        if isinstance(node, ast.Call):
            called = self._dotted(node.func, depth + 1)
            if called == "__import__" and node.args:
                return str(getattr(node.args[0], "value", "")).partition(".")[0]
            return f"{called}()"
        if isinstance(node, ast.Await):
            return self._dotted(node.value, depth + 1)
        if isinstance(node, ast.Name):
            if node.id in self._names:
                return self._names[node.id]
            bound = self._bound.pop(node.id, None)  # no name stands for itself
            if bound is None:
                return str(node.id)
            try:
                return self._dotted(bound, depth + 1)
            finally:
                self._bound[node.id] = bound
        return ""

    def sent(self) -> Iterator[Sent]:
        for call in self._calls:
            name = self._dotted(call.func)
            if (kind := self._kind(name, call)) is not None:
                yield Sent(kind, name[:80])

    def _kind(self, name: str, call: Any) -> str | None:
        top, last = name.partition(".")[0].rstrip("()"), name.rpartition(".")[2]
        begins = {top, ".".join(name.split(".")[:2]).replace("()", "")}
        if begins & _MAIL or name.startswith("django.core.mail.send") or name == "django.core.mail.EmailMessage":
            return rules.SEND
        if begins & _REMOTE:
            return rules.REMOTE
        if name in ("socket.create_connection", "asyncio.open_connection") or (
            top == "socket" and last in ("connect", "connect_ex", "sendto")
        ):
            return rules.HTTP
        if last == "urlopen" and self._given(call, 1, "data"):
            return rules.HTTP
        if last == "Request" and self._has(_HTTP) and (self._given(call, 1, "data") or self._method(call, -1)):
            return rules.HTTP
        if begins & _HTTP or (top not in self._names.values() and self._has(_HTTP)):
            if last in ("post", "put", "patch") or (last == "delete" and begins & _HTTP):
                return rules.HTTP
            if last == "request" and self._method(call, 0):
                return rules.HTTP
        if self._has(_CLOUDS) and _CHANGES.fullmatch(last) and top not in set(self._names.values()) - _CLOUDS:
            return rules.CLOUD
        if last in ("execute", "executemany", "executescript", "fetch", "text") and self._has(_DATABASES):
            if any(destroys("psql", ["psql", said], None) for said in self._strings(call)):
                return rules.DATABASE
        return None

    def _given(self, call: Any, at: int, keyword: str) -> bool:
        """Whether an argument is there that is not None."""
        value = next((k.value for k in call.keywords if k.arg == keyword), None)
        if value is None and 0 <= at < len(call.args):
            value = call.args[at]
        return value is not None and not (isinstance(value, self._ast.Constant) and value.value is None)

    def _method(self, call: Any, at: int) -> bool:
        """Whether the method that a request is given writes; one that nobody can read may."""
        value = next((k.value for k in call.keywords if k.arg == "method"), None)
        if value is None and 0 <= at < len(call.args):
            value = call.args[at]
        if value is None:
            return False
        said = getattr(value, "value", None)
        return not isinstance(said, str) or re.fullmatch(WRITES, said) is not None

    def _strings(self, call: Any) -> list[str]:
        ast = self._ast
        found = [n.value for n in ast.walk(call) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        for argument in call.args:
            if isinstance(argument, ast.Name) and isinstance(self._bound.get(argument.id), ast.Constant):
                found.append(str(self._bound[argument.id].value))
        return found

    def deleted(self) -> Iterator[str]:
        ast = self._ast
        for call in self._calls:
            name = self._dotted(call.func)
            path = name.startswith("pathlib.Path()") and name.rpartition(".")[2] in ("unlink", "rmdir")
            if name in _DELETES or path:
                where = call.func.value if path else call
                for found in ast.walk(where):
                    if isinstance(found, ast.Constant) and isinstance(found.value, str) and "/" in found.value:
                        yield found.value
