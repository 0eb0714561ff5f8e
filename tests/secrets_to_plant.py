"""Made-up secrets of every known shape, put together here so that no scanner takes them for real ones."""

from __future__ import annotations

from base64 import b64encode
from typing import NamedTuple


class Planted(NamedTuple):
    text: str  # as it would be found
    secret: str  # the part of it that must not be


def _whole(*parts: str) -> Planted:
    return Planted("".join(parts), "".join(parts))


def _in(before: str, secret: str, after: str = "") -> Planted:
    return Planted(before + secret + after, secret)


_MIX = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6"
_HEX = "0123456789abcdef" * 10
_KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA{}\n-----END RSA PRIVATE KEY-----"

SHAPES = {
    "stripe": _whole("sk_", "live_", _MIX[:24]),
    "stripe test": _whole("rk_", "test_", _MIX[:24]),
    "stripe webhook": _whole("wh", "sec_", _MIX[:32]),
    "github classic": _whole("gh", "p_", _MIX[:36]),
    "github fine-grained": _whole("github", "_pat_", _MIX[:22], "_", _MIX),
    "gitlab": _whole("gl", "pat-", _MIX[:20]),
    "slack bot": _whole("xo", "xb-", "123456789012-1234567890123-", _MIX[:24]),
    "slack app": _whole("xa", "pp-1-A0-", _MIX[:20]),
    "slack webhook": _in("hooks.slack.com/", "services/T00/B00/" + _MIX[:24]),
    "aws access key": _whole("AK", "IA", "IOSFODNN7EXAMPLF"),
    "aws secret key": _in("aws_secret_access_key = ", ("wJalrXUtnFEMI/K7MDENG" + "bPxRfiCYEXAMPLEKEYab")[:40]),
    "aws session token": _in("aws_session_token=", (_MIX * 3)[:100]),
    "google api": _whole("AI", "za", (_MIX + "-_")[:35]),
    "google oauth": _whole("ya", "29.", _MIX),
    "google client secret": _whole("GOC", "SPX-", _MIX[:28]),
    "google refresh": _whole("1", "//0", _MIX[:40]),
    "openai": _whole("sk", "-proj-", _MIX),
    "openai old": _whole("sk", "-", _MIX[:48]),
    "anthropic": _whole("sk", "-ant-api03-", _MIX),
    "groq": _whole("gs", "k_", _MIX[:52]),
    "hugging face": _whole("hf", "_", _MIX[:34]),
    "npm": _whole("np", "m_", _MIX[:36]),
    "pypi": _whole("py", "pi-AgEIcHlwaS5vcmc", _MIX),
    "rubygems": _whole("ruby", "gems_", _HEX[:48]),
    "docker": _whole("dckr", "_pat_", _MIX[:27]),
    "sendgrid": _whole("S", "G.", _MIX[:22], ".", _MIX[:43]),
    "twilio": _whole("S", "K", _HEX[:32]),
    "mailgun": _whole("key", "-", _HEX[:32]),
    "mailchimp": _whole(_HEX[:32], "-us", "12"),
    "digitalocean": _whole("do", "p_v1_", _HEX[:64]),
    "heroku": _whole("HR", "KU-", _MIX[:36]),
    "shopify": _whole("shp", "at_", _HEX[:32]),
    "square": _whole("sq", "0atp-", _MIX[:22]),
    "telegram": _whole("123456789", ":AA", (_MIX * 2)[:33]),
    "discord": _whole("M", _MIX[:23], ".", _MIX[:6], ".", _MIX[:30]),
    "discord webhook": _in("discord.com/api/webhooks/", "12345/" + _MIX),
    "jwt": _whole("ey", "J" + _MIX[:20], ".", "ey" + "J" + _MIX[:30], ".", _MIX[:40]),
    "private key": _whole(_KEY.format(_MIX)),
    "bearer": _in("Bearer ", _MIX[:40]),
    "basic": _in("Basic ", b64encode(b"ada:correct-horse").decode()),
    "authorization": _in("Authorization: Custom ", _MIX[:20] + "="),
    "cookie": _in("Cookie: ", "session=" + _MIX[:20]),
    "set-cookie": _in("Set-Cookie: ", "sid=" + _MIX[:12] + "; HttpOnly"),
    "url password": _in("postgres://ada:", "c0rrect-h0rse", "@db.example.com/shop"),
    "url token": _in("https://", _MIX[:30], "@git.example.com/x.git"),
    "azure storage": _in("AccountKey=", _MIX + _MIX[:34] + "=="),
    "azure sas": _in("?sv=2024&sig=", _MIX[:40] + "%3D"),
    "azure client": _whole("abc", "8Q~", _MIX[:34]),
    "aws presigned": _in("?X-Amz-Signature=", _HEX[:64]),
    "linear": _whole("lin", "_api_", _MIX[:40]),
    "notion": _whole("nt", "n_", _MIX[:46]),
    "notion old": _whole("sec", "ret_", _MIX[:43]),
    "vercel": _whole("vc", "p_", _MIX[:40]),
    "netlify": _whole("nf", "p_", _MIX[:40]),
    "supabase": _whole("sb", "p_", _HEX[:40]),
    "databricks": _whole("da", "pi", _HEX[:32]),
    "doppler": _whole("dp", ".pt.", _MIX[:43]),
    "cloudflare": _whole("cf", "ut_", _MIX[:40]),
    "atlassian": _whole("ATA", "TT3", _MIX[:40]),
    "airtable": _whole("pat", _MIX[:14], ".", _HEX[:64]),
    "grafana": _whole("gl", "sa_", _MIX[:32]),
    "new relic": _whole("NR", "AK-", "ABCDEFGHIJKLMNOPQRSTUVWXYZ0"),
    "postman": _whole("PM", "AK-", _HEX[:24], "-", _HEX[:34]),
    "planetscale": _whole("ps", "cale_tkn_", _MIX[:40]),
    "vault": _whole("hv", "s.", _MIX[:30]),
    "terraform": _whole(_MIX[:14], ".atlas", "v1.", (_MIX * 2)[:67]),
    "pulumi": _whole("pu", "l-", _HEX[:40]),
    "figma": _whole("fi", "gd_", _MIX[:40]),
    "plaid": _whole("access", "-sandbox-", "01234567-89ab-cdef-0123-456789abcdef"),
    "age": _whole("AGE-", "SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE"),
    "password in a query": _in("https://h/x?user=ada&password=", "correcthorse", "&page=2"),
    "token in a form": _in("user=ada&access_token=", "abcd1234efgh"),
    "variable": _in("STRIPE_API_KEY=", "s0meth1ng-secret"),
    "option": _in("deploy --api-key ", "s0meth1ngsecret"),
    "postgres variable": _in("PGPASSWORD=", "PgP4ssEnv", " psql"),
    "mysql variable": _in("MYSQL_PWD=", "correcthorse", " mysql"),
    "quoted variable": _in('DB_PASS="', "correct horse", '" ./migrate'),
    "curl": _in("curl -sSu ada:", "correcthorse", " https://api.example.com"),
    "curl quoted": _in("curl https://api.example.com --user 'ada:", "correct horse", "'"),
    "curl over lines": _in("curl -L \\\n  -u ada:", "correcthorse", " \\\n  https://api.example.com"),
    "curl cookie": _in("curl -b ", "sid=correcthorse", " https://api.example.com"),
    "mysql": _in("mysql -u root -p", "correcthorse", " shop"),
    "api key header": _in('curl -H "X-Api-Key: ', "correcthorse", '" https://api.example.com'),
    "auth token header": _in("curl -H 'X-Auth-Token: ", "correcthorse", "'"),
    "private token header": _in('curl --header "Private-Token: ', "correcthorse", '"'),
    "cookie header": _in("curl -H 'Cookie: ", "correcthorse", "'"),
    "any scheme": _in("curl -H 'Authorization: ", "Digest correct horse", "'"),
    "bare header": _in("X-Api-Key: ", "c0rrecthorse"),
    "sshpass": _in("sshpass -p ", "correcthorse", " ssh -p 22 host"),
    "docker login": _in("docker login -u ada -p ", "correcthorse", " registry.example.com"),
    "docker login long": _in("docker login --password ", "correcthorse", " registry.example.com"),
    "docker login stdin": _in("echo ", "correcthorse", " | docker login --password-stdin"),
    "redis": _in("redis-cli -h cache -a ", "correcthorse", " ping"),
    "openssl": _in("openssl rsa -in key.pem -passin pass:", "correcthorse"),
    "aws configure": _in("aws configure set aws_secret_access_key ", "correcthorse"),
    "netrc": _in("machine example.com login ada password ", "correcthorse"),
    "password told": _in("my password is ", "hunter22x"),
    "password with a colon": _in("password: ", "C0lonSecretABC"),
    "token told": _in("the token is ", "c0rrecthorse"),
    "key told": _in("api key: ", "c0rrecthorse"),
    "json field": _in('{"user": "ada", "password": "', "correct horse", '"}'),
}
