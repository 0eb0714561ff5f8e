"""Secrets go, whatever shape they have and wherever they stand; ordinary text stays as it is."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import uuid
from base64 import b64encode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import takeback
from secrets_to_plant import SHAPES
from takeback.model.ids import new_id
from takeback.privacy import redact
from takeback.privacy.redact import MASK

SOURCE = Path(takeback.__file__).parent


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "before {} after",
        '"{}"',
        "'{}'",
        "line\n{}\nline",
        "x={}",
        "https://h/{}?x=1",
        "({})",
        "[{}]",
        "{},next",
    ],
)
def test_every_shape_is_masked_wherever_it_stands(name: str, around: str):
    shape = SHAPES[name]
    masked = redact.text(around.replace("{}", shape.text))
    assert shape.secret not in masked and MASK in masked
    assert redact.text(masked) == masked, "masking twice changes nothing"


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_a_literal_to_be_refused(name: str):
    assert redact.secret_in(SHAPES[name].text)
    assert redact.secret_at({"a": [1, {"b": SHAPES[name].text}]})
    assert redact.secret_at({SHAPES[name].text: 1}), "as a key, too"


def test_there_are_thirty_shapes_at_least():
    assert len({shape.name for shape in redact.shapes()}) >= 30 and len(SHAPES) >= 50


@pytest.mark.parametrize("name", SHAPES)
def test_a_reference_in_its_place_is_no_secret(name: str):
    shape = SHAPES[name]
    if shape.text == shape.secret:
        return
    said = shape.text.replace(shape.secret, "${env:MY_SECRET}")
    assert redact.text(said) == said and not redact.secret_in(said)


# -- what is no secret -------------------------------------------------------------

ORDINARY = [
    "0d2f7ab1c9e84f0e8a1b2c3d4e5f60718293a4b5",  # a commit
    hashlib.sha256(b"x").hexdigest(),
    hashlib.sha512(b"x").hexdigest(),
    hashlib.md5(b"x").hexdigest(),
    str(uuid.UUID(int=7**40)),
    "orqwkryyzkpmvnsxutlqwzkoyprvmnsx",
    "takeback-orqwkryyzkpmvnsxutlqwzkoyprvmnsx",
    "ch_3PxYzA2eZvKYlo2C1a2b3c4d, re_1, cus_N1b2c3d4, pi_3P, tok_visa",
    "def token(self, key: str) -> str: return self.tokens[key]",
    "password = getpass.getpass()",
    "password: str = ''",
    "api_key=os.environ['API_KEY'], token=token, secret=self.secret, passwd=None)",
    "max_tokens=4096&total_tokens=12&next_page_token=CAUQAA1234",
    '{"token_type": "bearer", "max_tokens": 4096, "nextPageToken": "abc123def456", "tokens": 7}',
    "the bearer of this letter; basic functionality; Basic authentication is supported",
    "Authorization: Bearer ${env:STRIPE_KEY}",
    "curl -H 'Authorization: Bearer ${env:KEY}' https://api.example.com/v1/charges?limit=3",
    "https://user@example.com:8443/path:with:colons?q=a@b",
    "git@github.com:owner/repo.git, ssh://git@host:22/x.git",
    "see https://example.com/a/b/c.html#token and mailto:ada@example.org",
    "sk-fading-circle-animation-delay sk-circle1 key-value npm_config_registry pypi-server glass-panel",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n-----BEGIN PUBLIC KEY-----",
    "AKIA is a prefix; AIza too; eyJ also; xoxo- hugs",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "2026-11-15T12:00:00Z 127.0.0.1:8080 ::1 1.2.3-rc.1+build.5",
    "a${env:NAME}b ${env:A}${env:B} [redacted]",
    "npx serve -p 8080; mkdir -p a/b; ssh -p 22 host; docker run -p 80:80 web; git log -p; tar -p; cp -a x y",
    "docker compose -p shop up && docker login -u ada --password-stdin && sshpass -e ssh -p 22 host",
    "mysql -u root -p shop && curl -u root https://h:8443/x -o a:b -L && redis-cli -h a --scan",
    'curl -u "$USER:$PASS" -H "Authorization: Bearer $TOKEN" -H "Content-Type: text/plain" https://h/x?a=1',
    'curl -u ada:"$PASS" -b jar.txt https://h; PGPASSWORD=$PW psql; docker login -p $TOKEN; redis-cli -a "$R" ping',
    "PWD=/home/user1/x OLDPWD=/home/user1 aws configure set region eu-west-1; openssl genrsa -out k.pem 2048",
    "make the password reset page; the token count is 5; the password is required; the token is expired",
    "password: at least 8 characters; token: AccessToken; secret: kubernetes; api key: see the docs",
    "fix the login and password fields on this machine; rename the secret to something better",
]


@pytest.mark.parametrize("said", ORDINARY)
def test_ordinary_text_stays(said: str):
    assert redact.text(said) == said
    assert not redact.secret_in(said)


def test_our_own_code_and_docs_stay():
    """Thousands of lines that talk of tokens, passwords and keys all the time."""
    changed = []
    for path in sorted([*SOURCE.rglob("*.py"), *(SOURCE.parent.parent / "docs").glob("*.md")]):
        said = path.read_text()
        masked = redact.text(said)
        changed += [a for a, b in zip(said.splitlines(), masked.splitlines()) if a != b]
    assert len(changed) <= 7, changed  # examples of what is masked


def test_the_standard_library_stays():
    folder = Path(hashlib.__file__).parent
    count = changed = 0
    for path in sorted(folder.glob("*.py"))[:120]:
        lines = path.read_text(errors="replace").splitlines()
        count += len(lines)
        changed += sum(redact.text(line) != line for line in lines if re.search("(?i)token|pass|secret|key|auth", line))
    assert count > 20_000 and changed <= 10


@given(st.text())
def test_any_text_is_masked_once(said: str):
    masked = redact.text(said)
    assert redact.text(masked) == masked


@given(st.binary(min_size=1))
def test_ids_and_hashes_are_no_secrets(data: bytes):
    for said in (new_id(), hashlib.sha1(data).hexdigest(), hashlib.sha256(data).hexdigest(), str(uuid.uuid4())):
        assert redact.text(f"{said} and {said}") == f"{said} and {said}"


# -- values, headers, nested -------------------------------------------------------


def test_values_go_however_they_are_written():
    value = 'p@ss "word"/é+1'
    said = [
        value, f"x{value}y", json.dumps({"k": value}), "p%40ss%20%22word%22%2F%C3%A9%2B1",
        b64encode(value.encode()).decode(), "p%40ss+%22word%22%2F%C3%A9%2B1",
    ]  # fmt: skip
    for each in said:
        masked = redact.text(each, [value])
        assert MASK in masked and "word" not in masked and "cEBzcy" not in masked, each
    assert redact.text("a cat", ["cat", ""]) == "a cat", "too short to be one"
    assert redact.text("abcdef abc4", ["abc4", "abcdef"]) == f"{MASK} {MASK}"


def test_headers_that_authenticate_go_and_references_stay():
    given_headers = {
        "Authorization": "Custom whatever", "cookie": "a=b", "Set-Cookie": "s=1; Path=/", "X-API-Key": "k",
        "Content-Type": "text/plain", "X-Note": "see ghp_" + "A1" * 20, "proxy-authorization": "Bearer ${env:P}",
        "X-Auth-Token": "abc ${env:T} def",
    }  # fmt: skip
    assert redact.headers(given_headers) == {
        "Authorization": MASK, "cookie": MASK, "Set-Cookie": MASK, "X-API-Key": MASK, "Content-Type": "text/plain",
        "X-Note": f"see {MASK}", "proxy-authorization": "Bearer ${env:P}", "X-Auth-Token": MASK,
    }  # fmt: skip


def test_nested_values_go_by_the_names_of_their_keys():
    found = {
        "user": {"name": "ada", "password": "correct horse", "apiKey": "x", "access-token": "y", "pin_code": 1234},
        "list": [{"client_secret": "z"}, {"max_tokens": 5, "token": ["p", "${env:T}"], "secret": "${env:S}"}],
        "headers": {"Authorization": "anything", "cookie": "a=b"},
        "AWS_SECRET_ACCESS_KEY": "w", "token": None, "secret": True, "empty_password": "",
        "deep": {"token": {"id": "tok_1", "value": "v"}},
    }  # fmt: skip
    assert redact.value(found) == {
        "user": {"name": "ada", "password": MASK, "apiKey": MASK, "access-token": MASK, "pin_code": MASK},
        "list": [{"client_secret": MASK}, {"max_tokens": 5, "token": [MASK, "${env:T}"], "secret": "${env:S}"}],
        "headers": {"Authorization": MASK, "cookie": MASK},
        "AWS_SECRET_ACCESS_KEY": MASK, "token": None, "secret": True, "empty_password": "",
        "deep": {"token": {"id": "tok_1", "value": MASK}},
    }  # fmt: skip


@pytest.mark.parametrize(
    "found",
    [
        {"password": 12345678},
        {"password": ["hunter2secret"]},
        {"card": {"cvc": 123}},
        {"auth": {"token": {"v": "abcdefgh12345"}}},
        {"secrets": [{"v": "abcdefgh12345"}]},
        {"Authorization": "${env:A}literalsecret123"},
        {"Authorization": "literalsecret123${env:A}"},
        {"Authorization": "Bearer ${env:A} literalsecret"},
        {"X-Auth": "abcdefgh123"},
    ],
)
def test_a_literal_under_a_secret_name_is_found_and_masked(found: dict[str, object]):
    assert redact.secret_at(found).startswith("the value of ")
    assert MASK in repr(redact.value(found)) and "secret" not in repr(list(redact.value(found).values()))


@pytest.mark.parametrize(
    "said",
    ["${env:A}", "Bearer ${env:A}", "Basic ${env:U}:${env:P}", "Token token=${env:A}", 'Token token="${env:A}"',
     "session=${env:S}; csrf=${env:C}", "sso-key ${env:K}:${env:S}", "GoogleLogin auth=${env:A}", "${env:A}${env:B}"],
)  # fmt: skip
def test_a_reference_may_have_a_scheme_and_a_name(said: str):
    found = {"Authorization": said, "token": {"type": "bearer", "value": said, "expires_in": 3600}}
    assert redact.secret_at(found) == "" and redact.value(found) == found


def test_whatever_comes_back_is_plain_json():
    nested: list[object] = []
    for _ in range(5000):
        nested = [nested]
    found = {"bytes": b"\xff ok", "set": {"a"}, "nan": float("nan"), "object": object(), 7: "seven", "deep": nested}
    clean = redact.value(found)
    assert json.loads(json.dumps(clean, allow_nan=False)) == clean and clean["7"] == "seven"


def test_the_values_of_referenced_names():
    args = {"url": "https://h/${env:A}", "headers": [{"x": "${env:B}${env:A}"}], "${env:C}": 1}
    assert redact.references(args) == {"A", "B", "C"}
    assert redact.values_of(args, {"A": "one", "B": "", "D": "four"}) == ("one",)


def test_long_text_takes_no_more_than_its_time():
    """Patterns that try again and again at every letter would never end here."""
    units = [
        "a",
        "=",
        "://",
        "token=",
        '"',
        "-",
        "eyJ.",
        "Bearer ",
        "A" * 40 + " ",
        "token1=(",
        "curl ",
        "curl -u ",
        "echo x ",
        "password: ",
        "x-",
        "a-b-token",
        "mysql '",
        "docker a login ",
    ]
    code = "import json, sys\nfrom takeback.privacy import redact\n"
    code += "for unit in json.load(sys.stdin):\n    redact.text(unit * (100_000 // len(unit)))"
    subprocess.run([sys.executable, "-c", code], input=json.dumps(units), text=True, check=True, timeout=120)
