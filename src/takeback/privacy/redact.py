"""Secrets out, before anything is stored or said. Pure.

text(…)       known token shapes, URLs with credentials, fields called so, and the values of named variables
headers(…)    what authenticates, whatever it looks like
value(…)      the same all through a JSON value, and by the names of its keys
secret_in(…)  what a literal looks like that should have been a reference: ${env:NAME}
values_of(…)  the values of the variables that a text or a JSON value refers to

Masking twice changes nothing, and a reference is never masked: it is a name, not a secret.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from json import dumps
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import re

MASK = "[redacted]"
REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~"
_SHORTEST = 4  # of a variable's value: shorter ones would take half of any text with them
_DEEPEST = 100  # nobody answers deeper than this in earnest
_HEADERS = frozenset(
    ("authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "x-auth-token",
     "x-auth-key", "x-auth", "x-session", "x-key",
     "x-amz-security-token", "x-csrf-token", "x-xsrf-token", "x-vault-token", "private-token",
     "x-gitlab-token", "x-goog-api-key", "x-functions-key", "ocp-apim-subscription-key", "dd-api-key",
     "x-shopify-access-token", "x-hub-signature", "x-hub-signature-256", "www-authenticate", "authentication-info")
)  # fmt: skip

_HEADER = (
    r"(?P<q>[\"'])(?P<header>[A-Za-z][\w-]{1,60}):\s*"
    r"(?![A-Za-z-]+\s+[\"'])(?P<s>[^\s\"'$`\[][^\"'\n$`\[]*)(?=(?P=q))"
)
_IS = r"[\"'`]?(?:\s*:\s*|\s+(?:is|was|to)\s*:?\s+)[`]?"  # as people tell one: "my password is …", "token: …"
_MIXED = (
    r"[\"']?(?P<s>(?=[^\s\"']{0,200}\d)(?=[^\s\"']{0,200}[a-z])"
    r"[^\s\"'`<>()\[\]{}$,;:=/.][^\s\"'`<>()\[\]{}$,;:]{7,200})(?=[\s\"'`,;)\]}]|$)"
)

# A name, a word that must be in the text for the pattern to be tried at all (so that most are not), and the pattern.
# Where there is a group `s`, it alone is the secret. A number: in no shorter text, where the word is in most of them.
_SHAPES: tuple[tuple[str, str, str] | tuple[str, str, str, int], ...] = (
    ("a private key", "PRIVATE KEY", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
     r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"),
    ("an age key", "AGE-SECRET", r"AGE-SECRET-KEY-1[0-9A-Z]{40,}"),
    ("a Stripe key", "k_", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{10,}"),
    ("a webhook secret", "whsec_", r"\bwhsec_[0-9A-Za-z+/=]{16,}"),
    ("a GitHub token", "gh", r"\bgh[pousr]_[0-9A-Za-z]{20,}"),
    ("a GitHub token", "github_pat_", r"\bgithub_pat_[0-9A-Za-z_]{20,}"),
    ("a GitLab token", "gl", r"\bgl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent|oas)-[0-9A-Za-z_.-]{16,}"),
    ("a Slack token", "xox", r"\bxox[abeoprs](?:\.xox[a-z])?-[0-9A-Za-z-]{10,}"),
    ("a Slack token", "xapp-", r"\bxapp-\d-[0-9A-Za-z-]{10,}"),
    ("a Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/(?P<s>[a-z]+/[0-9A-Za-z/_-]{16,})"),
    ("an AWS access key", "A", r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    ("an AWS secret key", "~key", r"(?i)secret_?(?:access)?_?key[\"'\s:=,]{1,6}"
     r"(?P<s>[0-9A-Za-z/+]{40})(?![0-9A-Za-z/+])"),
    ("an AWS session token", "~token", r"(?i)session_?token[\"'\s:=,]{1,6}(?P<s>[0-9A-Za-z/+=]{60,})"),
    ("a Google key", "AIza", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("a Google token", "ya29.", r"\bya29\.[0-9A-Za-z_-]{20,}"),
    ("a Google refresh token", "1//0", r"(?<!\w)1//0[0-9A-Za-z_-]{20,}"),
    ("a Google client secret", "GOCSPX-", r"\bGOCSPX-[0-9A-Za-z_-]{20,}"),
    ("an Anthropic key", "sk-ant-", r"\bsk-ant-[0-9A-Za-z_-]{20,}"),
    ("an OpenAI key", "sk-", r"\bsk-(?:(?:proj|svcacct|admin|None)-[0-9A-Za-z_-]{20,}|[0-9A-Za-z]{20,})"),
    ("a Groq key", "gsk_", r"\bgsk_[0-9A-Za-z]{30,}"),
    ("an xAI key", "xai-", r"\bxai-[0-9A-Za-z]{40,}"),
    ("a Replicate token", "r8_", r"\br8_[0-9A-Za-z]{30,}"),
    ("a Hugging Face token", "hf_", r"\bhf_[0-9A-Za-z]{30,}"),
    ("an npm token", "npm_", r"\bnpm_[0-9A-Za-z]{30,}"),
    ("a PyPI token", "pypi-", r"\bpypi-A[0-9A-Za-z_-]{30,}"),
    ("a RubyGems key", "rubygems_", r"\brubygems_[0-9a-f]{40,}"),
    ("a crates.io token", "cio", r"\bcio[0-9A-Za-z]{32}\b"),
    ("a Docker token", "dckr_", r"\bdckr_(?:pat|oat)_[0-9A-Za-z_-]{20,}"),
    ("a SendGrid key", "SG.", r"\bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}"),
    ("a Twilio key", "SK", r"\bSK[0-9a-f]{32}\b"),
    ("a Mailgun key", "key-", r"\bkey-[0-9a-f]{32}\b"),
    ("a Mailchimp key", "-us", r"\b[0-9a-f]{32}-us\d{1,2}\b"),
    ("a DigitalOcean token", "_v1_", r"\bdo[opr]_v1_[0-9a-f]{40,}"),
    ("a Heroku key", "HRKU-", r"\bHRKU-[0-9A-Za-z_-]{20,}"),
    ("a Shopify token", "shp", r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ("a Square token", "sq0", r"\bsq0(?:atp|csp|idp)-[0-9A-Za-z_-]{22,}"),
    ("a Square token", "EAAA", r"\bEAAA[0-9A-Za-z_-]{56,}"),
    ("a PayPal token", "access_token$", r"\baccess_token\$(?:production|sandbox)\$[0-9a-z$]{20,}"),
    ("a Plaid token", "access-", r"\baccess-(?:sandbox|development|production)-[0-9a-f-]{36}"),
    ("a Razorpay key", "rzp_", r"\brzp_(?:live|test)_[0-9A-Za-z]{14,}"),
    ("a Telegram bot token", ":AA", r"(?<!\d)\d{8,10}:AA[0-9A-Za-z_-]{33}"),
    ("a Discord token", ".", r"\b[MNO][0-9A-Za-z_-]{23,27}\.[0-9A-Za-z_-]{6}\.[0-9A-Za-z_-]{27,}", 59),
    ("a Discord webhook", "/api/webhooks/", r"/api/webhooks/(?P<s>\d+/[0-9A-Za-z_-]{20,})"),
    ("a signed token", "eyJ", r"\beyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}(?:\.[0-9A-Za-z_-]*){1,3}"),
    ("an Azure storage key", "~accountkey=", r"(?i)accountkey=(?P<s>[0-9A-Za-z+/]{40,}={0,2})"),
    ("an Azure access key", "~sharedaccesskey=", r"(?i)sharedaccesskey=(?P<s>[0-9A-Za-z+/]{30,}={0,2})"),
    ("an Azure SAS", "sig=", r"[?&;]sig=(?P<s>[0-9A-Za-z%+/=_-]{20,})"),
    ("an Azure client secret", "8Q~", r"(?<![\w~.-])[0-9A-Za-z_~.-]{3}8Q~[0-9A-Za-z_~.-]{31,34}"),
    ("an Amazon signature", "X-Amz-", r"X-Amz-(?:Signature|Security-Token)=(?P<s>[0-9A-Za-z%+/=_-]{16,})"),
    ("a Linear key", "lin_", r"\blin_(?:api|oauth)_[0-9A-Za-z]{30,}"),
    ("a Notion token", "secret_", r"\bsecret_[0-9A-Za-z]{40,}"),
    ("a Notion token", "ntn_", r"\bntn_[0-9A-Za-z]{30,}"),
    ("a Vercel token", "vc", r"\bvc[acikpr]_[0-9A-Za-z]{24,}"),
    ("a Netlify token", "nf", r"\bnf[cpuo]_[0-9A-Za-z]{36,}"),
    ("a Supabase key", "sbp_", r"\bsbp_[0-9a-f]{40}"),
    ("a Supabase key", "sb_secret_", r"\bsb_secret_[0-9A-Za-z_-]{20,}"),
    ("a Databricks token", "dapi", r"\bdapi[0-9a-f]{32}"),
    ("a Doppler token", "dp.", r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[0-9A-Za-z._-]{20,}"),
    ("a Cloudflare token", "cf", r"\bcf(?:ut|at|k)_[0-9A-Za-z_-]{30,}"),
    ("a Cloudflare key", "v1.0-", r"\bv1\.0-[0-9a-f]{24}-[0-9a-f]{100,}"),
    ("an Atlassian token", "ATATT3", r"\bATATT3[0-9A-Za-z_=-]{20,}"),
    ("an Airtable token", "pat", r"\bpat[0-9A-Za-z]{14}\.[0-9a-f]{64}"),
    ("a Grafana token", "gl", r"\bgl(?:sa|c)_[0-9A-Za-z_=+/]{20,}"),
    ("a New Relic key", "NRAK-", r"\bNRAK-[0-9A-Z]{27}"),
    ("a Sentry token", "sntr", r"\bsntr[ysu]s?_[0-9A-Za-z_=+/]{30,}"),
    ("a Postman key", "PMAK-", r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("a PlanetScale secret", "pscale_", r"\bpscale_(?:tkn|pw|oauth)_[0-9A-Za-z_.-]{20,}"),
    ("a Vault token", "hv", r"\bhv[sbr]\.[0-9A-Za-z_-]{20,}"),
    ("a Terraform token", ".atlasv1.", r"\b[0-9A-Za-z]{14}\.atlasv1\.[0-9A-Za-z_-]{60,}"),
    ("a Pulumi token", "pul-", r"\bpul-[0-9a-f]{40}"),
    ("a Figma token", "fig", r"\bfig[dour]_[0-9A-Za-z_-]{30,}"),
    ("a Fly token", "FlyV1", r"\bFlyV1 (?P<s>fm[0-9A-Za-z_]+_[0-9A-Za-z+/=,_-]{20,})"),
    ("a bearer token", "~bearer", r"(?i)\bbearer\s+(?P<s>(?=[^\s]*[0-9_.~+/=-])[0-9A-Za-z._~+/=-]{12,})"),
    ("basic authentication", "~basic", r"(?i)\b(?P<basic>basic)\s+(?P<s>[0-9A-Za-z+/]{6,}={0,2})"),
    ("an authorization header", "~authorization", r"(?i)\bauthorization[\"']?:\s*[\"']?(?:[A-Za-z]+\s+)?"
     r"(?P<s>(?=[^\s\"']*[0-9=+/])[^\s\"'$\[,;()]{6,})"),
    ("a cookie", "~cookie", r"(?i)(?<![\w-])(?:set-)?cookie[\"']?:\s*[\"']?(?P<s>[^\s\"'=$\[]{1,200}=[^\"'\r\n$\[]+)"),
    ("a header that authenticates", "-H", rf"-H(?<!\S-H)\s*{_HEADER}"),
    ("a header that authenticates", "--header", rf"--header[ =]\s*{_HEADER}"),
    ("a password for OpenSSL", "pass:", r"-pass(?:in|out)?[ =]\s*[\"']?pass:(?P<s>[^\s\"'$`\[][^\s\"']*)"),
    ("a line of netrc", "~password", r"(?i)\b(?:machine\s+\S+|default)\s+login\s+\S+\s+(?:account\s+\S+\s+)?"
     r"password\s+(?P<s>[^\s\"'$\[][^\s\"']*)"),
    ("a password for standard input", "echo", r"\becho\s+(?:-n\s+)?"
     r"(?P<s>\"[^\"\n$]+\"|'[^'\n]+'|[^\s\"'$`|;&\[]+)\s*\|"
     r"(?=[^\n|;]{0,200}(?:--password-stdin|--passphrase-fd|sudo\s+-S|passwd\s+--stdin))"),
    ("a password", "~pass", rf"[Pp](?i:ass)(?<!\w.{{4}})(?i:word|phrase|code|wd){_IS}"
     r"(?P<s>\"[^\"\n$]{4,80}\"|'[^'\n$]{4,80}'|(?=[^\s\"']{0,80}[0-9!@#%^*?~+])[^\s\"'`<>()\[\]{}$,;]{6,80})"
     r"(?=[\s\"'`,;)\]}]|$)"),
    ("a token", "~token", rf"[Tt](?i:oken)(?<!\w.{{5}}){_IS}{_MIXED}"),
    ("a secret", "~secret", rf"[Ss](?i:ecret)(?<!\w.{{6}}){_IS}{_MIXED}"),
    ("a key", "~key", rf"[Kk](?i:ey)(?i:(?<=api.key)|(?<=apikey)|(?<=access.key)|(?<=secret.key)|(?<=private.key)"
     rf"|(?<=auth.key)|(?<=signing.key)|(?<=account.key)|(?<=functions.key)|(?<=subscription.key)){_IS}{_MIXED}"),
    ("a URL with a password", "://", r"://(?:\$\{env:\w+\}|[^/\s:@?#$])*:(?P<s>[^/\s@\[$][^/\s@]*)@"),
    ("a token in a URL", "://", r"://(?P<s>[0-9A-Za-z_-]{20,})@"),
)  # fmt: skip

# Names of fields whose values are secret: the last words of a key, whatever joins them.
_NAMES = frozenset(
    ("password", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "token", "apikey", "api key",
     "access key", "secret key", "private key", "signing key", "encryption key", "account key", "auth key",
     "authorization", "cookie", "set cookie", "credential", "credentials", "access token", "client secret", "jwt",
     "connection string", "bearer", "session id", "sessionid", "otp", "cvc", "cvv", "pin code", "walrus key")
)  # fmt: skip
_ENDINGS = ("password", "passwd", "passphrase", "apikey", "secretkey", "accesstoken", "authtoken")  # PGPASSWORD
_NO_SECRETS = frozenset(("page token", "cursor token", "continuation token", "sync token", "cancellation token"))
_ABOUT = frozenset(("type", "kind", "name", "id", "scheme", "format", "in", "at", "expires", "url", "scope", "count"))
_SCHEME = r"(?i:bearer|basic|bot|splunk|jwt|hawk|negotiate|discogs|[a-z-]{0,24}(?:token|key|auth|login|oauth))"
_REFERENCES = re.compile(
    rf"\s*(?:{_SCHEME}[ =]\s*)?(?:(?:[A-Za-z][\w-]{{0,40}}=)?[\"']?{REFERENCE.pattern}[\"']?\s*(?:[:;,.&]\s*)?)+"
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+")
_NAME = r"(?P<name>[A-Za-z_][\w.-]{1,60})"  # any: whether it is a secret's, `is_secret_name` says
_IN_URL = rf"[?&;]{_NAME}=(?P<s>[^\s&;\"'<>#\[$][^\s&;\"'<>#]*)"
_IN_TEXT = (
    rf"(?<![\w.?&;-])(?!PWD\b){_NAME}=(?P<q>[\"']?)"
    r"(?P<s>(?=[^\s&;\"'<>(]{0,200}\d)[^\s&;\"'<>()\[\]{}$,]{6,2000})(?P=q)(?=[\s&;\"',)\]}]|$)"
)
_AS_OPTION = rf"(?<!\S)--?{_NAME}(?:=|\s+)(?P<s>(?!-)[^\s\"'$\[]{{4,}}|\"[^\"$]+\"|'[^'$]+')"
_AS_VARIABLE = (
    r"(?<![\w.?&;-])(?P<name>(?!(?:OLD)?PWD\b)[A-Z][A-Z0-9_]{2,60})="
    r"(?P<s>\"[^\"\n$]{4,}\"|'[^'\n$]{4,}'|[^\s&;\"'<>()\[\]{}$,`]{4,2000})(?=[\s&;\"',)\]}]|$)"
)
_AS_JSON = r"\"(?P<name>[A-Za-z0-9_. -]{2,60})\"\s*:\s*\"(?P<s>(?:[^\"\\]|\\.)+)\""


# Options that hold a secret only after the program whose they are: a word that must be there, the program, the option.
# `s` is the secret; of a `pair`, what stands behind its first colon.
_ARGUMENT = r"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"';|&<>()])+"
_SECRET = rf"(?P<s>(?![$`]|\"[$`]){_ARGUMENT})"
_PAIR = rf"(?P<pair>{_ARGUMENT})"
_REST = r"(?P<rest>(?:[^\n;|&\"'\\]+|\\[\s\S]|&(?!&)|\"[^\"\n]*\"|'[^'\n]*'|[\"'\\])*)"  # of one command
_OPTIONS: tuple[tuple[str, str, str], ...] = (
    ("curl", "curl", rf"(?:(?:-[fsSLkvigGINjlOqRn#]{{0,8}}[uUE]|--(?:user|proxy-user|cert))(?:\s+|=)?{_PAIR}"
     rf"|(?:-b|--cookie)(?:\s+|=)?(?=[^\s=]*=){_SECRET})"),
    ("http ", "http", rf"(?:-a|--auth)(?:\s+|=)?{_PAIR}"),
    ("my", "mysql(?:dump|admin|import|check|show|sh)?", rf"-p{_SECRET}"),
    ("mariadb", "mariadb(?:-dump|-admin|-import)?", rf"-p{_SECRET}"),
    ("sshpass", "sshpass", rf"(?<=\A\s)-p\s*{_SECRET}"),
    (" login", r"(?:docker|podman|nerdctl|buildah|skopeo|oras|helm|az)(?:\s+[\w=-]+){0,3}?\s+login",
     rf"(?:-p\s*|--password[\s=]\s*){_SECRET}"),
    ("redis-cli", "redis-cli", rf"(?:-a|--pass)\s+{_SECRET}"),
    ("mongo", "mongo(?:sh|dump|restore|export|import)?", rf"-p(?:\s+|=)?(?!-){_SECRET}"),
    ("openssl", "openssl", rf"-[kK]\s+{_SECRET}"),
    ("sqlcmd", "sqlcmd", rf"-P\s*{_SECRET}"),
    ("ldap", "ldap(?:search|add|modify|delete|passwd|whoami)", rf"-w\s*{_SECRET}"),
    ("zip", "(?:un)?zip", rf"-P\s*{_SECRET}"),
    ("mosquitto", "mosquitto_(?:pub|sub)", rf"-P\s+{_SECRET}"),
    ("aws", r"aws(?:\s+--\S+\s+\S+)?\s+configure\s+set",
     rf"[\w.-]*(?:secret_access_key|session_token|password)\s+{_SECRET}"),
)  # fmt: skip


class Shape(NamedTuple):
    name: str
    word: str  # without which it cannot be there
    written: str
    least: int = 0  # letters of a text that may hold it

    @property
    def pattern(self) -> re.Pattern[str]:
        return _compiled(self.written)


@cache
def shapes() -> tuple[Shape, ...]:
    """Every known shape of a secret."""
    return tuple(Shape(*row) for row in _SHAPES)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Only when a text may hold it: all of them would cost every labelled checkpoint more than its look."""
    return re.compile(pattern)


_FIELDS = (("=", _IN_URL), ("=", _IN_TEXT), ("=", _AS_VARIABLE), ("-", _AS_OPTION), ('"', _AS_JSON))


# -- masking -------------------------------------------------------------------


def text(value: str, values: Iterable[str] = ()) -> str:
    """Free of everything that looks like a secret, and of these values, however they are written."""
    for secret in _written(values):
        value = value.replace(secret, MASK)
    lower = value.lower()
    for shape in shapes():
        if _may_hold(shape, value, lower):
            value = shape.pattern.sub(_masked, value)
    for word, pattern in _FIELDS:
        if word in value:
            value = _compiled(pattern).sub(_masked, value)
    for word, program, option in _OPTIONS:
        for start, end in reversed(_given(program, option, value)) if word in value else ():
            value = value[:start] + MASK + value[end:]
    return value


def _given(program: str, option: str, value: str) -> list[tuple[int, int]]:
    """Where in a text the secrets stand that programs are given as arguments."""
    found = []
    for command in _compiled(rf"(?<![\w.-])(?:{program})(?=\s){_REST}").finditer(value):
        for each in _compiled(rf"(?<!\S){option}").finditer(command["rest"]):
            kind = each.lastgroup or "s"
            start, end = each.span(kind)
            if kind == "pair":
                user, colon, _ = each[kind].partition(":")
                start, end = start + len(user + colon), end - (user[:1] in ("'", '"'))
            secret = command["rest"][start:end]
            if secret.lstrip('"')[:1] not in ("", "$", "`") and MASK not in secret and not _is_reference(secret):
                found.append((start + command.start("rest"), end + command.start("rest")))
    return found


def headers(found: Mapping[str, str], values: Iterable[str] = ()) -> dict[str, str]:
    """Headers without what authenticates; a reference to it stays."""
    known = tuple(values)
    return {
        name: MASK if _authenticates(name) and not _is_reference(value) else text(value, known)
        for name, value in found.items()
    }


def value(found: Any, values: Iterable[str] = ()) -> Any:
    """A JSON value without secrets: by shape, and by the names of keys. What JSON does not know becomes text."""
    known = tuple(values)
    return _walk(found, lambda said: text(said, known), 0)


def _walk(found: Any, clean: Callable[[str], str], depth: int) -> Any:
    if isinstance(found, str):
        return clean(found)
    if found is None or isinstance(found, (bool, int)):
        return found
    if isinstance(found, float):
        return found if found == found and abs(found) != float("inf") else str(found)
    if depth >= _DEEPEST:
        return "[too deep]"
    if isinstance(found, Mapping):
        return {clean(str(key)): _field(str(key), each, clean, depth) for key, each in found.items()}
    if isinstance(found, (list, tuple, set, frozenset)):
        return [_walk(each, clean, depth + 1) for each in found]
    if isinstance(found, (bytes, bytearray)):
        return clean(bytes(found).decode("utf-8", "replace"))
    return clean(str(found))


def _field(name: str, found: Any, clean: Callable[[str], str], depth: int) -> Any:
    if not (is_secret_name(name) or _authenticates(name)):
        return _walk(found, clean, depth + 1)
    if isinstance(found, (list, tuple)) and depth < _DEEPEST:
        return [_field(name, each, clean, depth + 1) for each in found]
    if isinstance(found, Mapping) and depth < _DEEPEST:
        inner = {str(key): key if _tells_about(str(key)) else name for key in found}
        return {clean(str(key)): _field(str(inner[str(key)]), each, clean, depth + 1) for key, each in found.items()}
    return MASK if _is_literal(found) else _walk(found, clean, depth + 1)


def _is_literal(found: Any) -> bool:
    """Whether what stands under a secret's name is the secret itself, and not a reference to it."""
    if isinstance(found, str):
        return found not in ("", MASK) and not _is_reference(found)
    return isinstance(found, (int, float)) and not isinstance(found, bool)


def _masked(found: re.Match[str]) -> str:
    whole = found.group()
    if "s" not in found.re.groupindex:
        return MASK
    if not _counts(found):
        return whole
    start, end = found.span("s")
    return whole[: start - found.start()] + MASK + whole[end - found.start() :]


def _counts(found: re.Match[str]) -> bool:
    """Whether what fits a loose shape is a secret after all."""
    groups = found.re.groupindex
    if "s" not in groups:
        return True
    if MASK in found["s"] or _is_reference(found["s"].strip("\"'")):
        return False
    if "basic" in groups:
        return _is_basic(found["s"])
    if "header" in groups:
        return is_secret_name(found["header"]) or _authenticates(found["header"])
    return "name" not in groups or is_secret_name(found["name"])


def _is_basic(secret: str) -> bool:
    """Whether it is user:password, as Basic writes it."""
    try:
        user, colon, _ = b64decode(secret + "=" * (-len(secret) % 4), validate=True).decode().partition(":")
    except ValueError:
        return False
    return bool(colon) and user.isprintable()


def _written(values: Iterable[str]) -> list[str]:
    """Values of variables as they may show up: plain, in a URL, in JSON, in base64; longest first."""
    if not values:
        return []
    found: set[str] = set()
    for each in values:
        if len(each) >= _SHORTEST:
            raw = each.encode("utf-8", "surrogateescape")
            in_url = _percent(raw, "")
            found |= {each, in_url, in_url.replace("%20", "+"), _percent(raw, "/"), dumps(each)[1:-1]}
            found |= {b64encode(raw).decode(), b64encode(raw).decode().rstrip("=")}
            found |= {line for line in each.splitlines() if len(line) >= 16}  # of a key, which may be cut up
    return sorted(found, key=len, reverse=True)


def _percent(raw: bytes, safe: str) -> str:
    """As a URL has it; without the library for it, which the capture of files does without."""
    plain = f"{_UNRESERVED}{safe}".encode()
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in raw)


def _may_hold(shape: Shape, value: str, lower: str) -> bool:
    word = shape.word
    return len(value) >= shape.least and (word[1:] in lower if word.startswith("~") else word in value)


# -- names ---------------------------------------------------------------------


@lru_cache(512)
def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a secret: `password`, `STRIPE_API_KEY`, `accessToken`; not `max_tokens`."""
    words = [word.lower() for word in _WORDS.findall(name[:200])]
    last, two = words[-1:], " ".join(words[-2:])
    if not last or two in _NO_SECRETS:
        return False
    return last[0] in _NAMES or two in _NAMES or last[0].endswith(_ENDINGS) or name.endswith(("_PASS", "_PW"))


def _authenticates(header: str) -> bool:
    return header.lower() in _HEADERS


def _tells_about(name: str) -> bool:
    """Whether a field beside a secret says something about it: `type`, `expires_in`."""
    words = _WORDS.findall(name[:200])
    return bool(words) and words[-1].lower() in _ABOUT


def _is_reference(value: str) -> bool:
    """Whether a value is nothing but references: a scheme may stand before them, a name and separators between."""
    return _REFERENCES.fullmatch(value) is not None


# -- refusing ------------------------------------------------------------------


def secret_in(value: str) -> str:
    """What a literal secret in a text looks like, as "a Stripe key"; empty if there is none."""
    alone = _compiled(rf"(?<!\S){REFERENCE.pattern}(?!\S)")
    plain = REFERENCE.sub("", alone.sub("$", value.replace(MASK, "")))  # else the next word would stand in its place
    lower = plain.lower()
    for shape in shapes():
        if _may_hold(shape, plain, lower):
            for found in shape.pattern.finditer(plain):
                if _counts(found):
                    return shape.name
    for word, pattern in _FIELDS:
        for found in _compiled(pattern).finditer(plain) if word in plain else ():
            if _counts(found):
                return f"the value of {found['name']}"
    for word, program, option in _OPTIONS:
        if word in value and _given(program, option, value):
            return "a password on a command line"
    return ""


def secret_at(found: Any, names: bool = True, depth: int = 0) -> str:
    """The same all through a JSON value and, unless told not to, by the names of its keys."""
    if isinstance(found, str):
        return secret_in(found)
    if isinstance(found, Mapping) and depth < _DEEPEST:
        for name, each in found.items():
            named = names and (is_secret_name(str(name)) or _authenticates(str(name)))
            if named and _holds_literal(each, depth):
                return f"the value of {name}"
            if told := secret_in(str(name)) or secret_at(each, names, depth + 1):
                return told
    if isinstance(found, (list, tuple)) and depth < _DEEPEST:
        return next(filter(None, (secret_at(each, names, depth + 1) for each in found)), "")
    return ""


def _holds_literal(found: Any, depth: int) -> bool:
    """Whether anything in what stands under a secret's name is the secret itself."""
    if isinstance(found, Mapping) and depth < _DEEPEST:
        return any(_holds_literal(each, depth + 1) for name, each in found.items() if not _tells_about(str(name)))
    if isinstance(found, (list, tuple)) and depth < _DEEPEST:
        return any(_holds_literal(each, depth + 1) for each in found)
    return _is_literal(found)


def references(found: Any, depth: int = 0) -> set[str]:
    """The names of variables that a text or a JSON value refers to."""
    if isinstance(found, str):
        return set(REFERENCE.findall(found))
    if depth >= _DEEPEST:
        return set()
    if isinstance(found, Mapping):
        return references([*map(str, found), *found.values()], depth)
    if isinstance(found, (list, tuple)):
        return set().union(*(references(each, depth + 1) for each in found))
    return set()


def values_of(found: Any, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The values of those variables, to be kept out of everything that is stored or said."""
    return tuple(environ[name] for name in sorted(references(found)) if environ.get(name))
