"""What is shown of files and state to anybody but the owner at a terminal: secrets are not. Pure, on values.

.env, keys, credentials      "+3 −1, contents masked": that it changed, not what it says
any other file               token shapes masked in its lines, and its note says so
state of a thread            token shapes masked, and what stands under a name like password
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from takeback.text.linediff import Hunk

from . import redact

if TYPE_CHECKING:
    from takeback.model.thread_states import StateDifference
    from takeback.show.views import FileDiff

_MASKED = "contents masked"
_MASK = redact.MASK.encode()
_PLAIN = ("*.example", "*.sample", "*.template", "*.dist", "*.md")  # an .env.example is there to be read
_NAMES = (
    ".env", ".env.*", "*.env", ".envrc", ".flaskenv", ".dev.vars", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc",
    ".netrc", "_netrc", ".pgpass", ".my.cnf", ".mylogin.cnf", ".htpasswd", ".git-credentials", ".dockercfg",
    ".dockerconfigjson", ".s3cfg", ".boto", ".terraformrc", "terraform.rc", ".vault-token", ".vault_pass*",
    "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdbx", "*.gpg", "*.age", "*.asc", "*.ovpn",
    "*.tfvars", "*.tfvars.json", "*.tfstate", "*.tfstate.*", "*.mobileprovision", "*.agekey",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "credentials", "credentials.*", "credentials-*",
    "*-credentials.json", "*_credentials.json", "client_secret*.json", "service-account*.json",
    "service_account*.json", "secrets", "secrets.*", "secret.*", "*.secret", "*.secrets", "master.key",
    "kubeconfig", "*.kubeconfig", "htpasswd",
    "auth.json", "token", "token.json", "tokens.json", ".token", "application_default_credentials.json",
)  # fmt: skip
# A line as keys are written, where another one is beside it.
_DENSE = re.compile(rb"(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])(?=[^0-9]*[0-9])[0-9A-Za-z+/]{60,}={0,2}")
_FOLDERS = frozenset((".ssh", ".gnupg", ".aws", ".kube", ".docker", ".azure", "secrets", ".secrets", "gcloud"))


def is_secret_file(path: str) -> bool:
    """Whether a file of this name is there to hold secrets."""
    *folders, name = path.lower().split("/")
    if any(fnmatchcase(name, pattern) for pattern in _PLAIN) or name.endswith(".pub"):
        return False
    return any(folder in _FOLDERS for folder in folders) or any(fnmatchcase(name, pattern) for pattern in _NAMES)


def mask_file(file: FileDiff) -> FileDiff:
    """A file's difference as others may see it: how much changed is told, secrets are not."""
    if is_secret_file(file.path) or is_secret_file(file.old_path):
        note = "; ".join(filter(None, (_summary(file), file.note if file.kind != "symlink" else "")))
        return file._replace(hunks=(), note=note)
    hunks = tuple(map(_mask_hunk, file.hunks))
    told = "tokens masked" if hunks != file.hunks else ""
    return file._replace(hunks=hunks, note="; ".join(filter(None, (redact.text(file.note), told))))


def mask_lines(path: str, lines: Iterable[bytes]) -> list[bytes]:
    """A file's lines as others may see them; of a file that holds secrets, none."""
    if is_secret_file(path):
        return [_MASK if line.strip() else line for line in lines]
    return _mask_lines(lines, 0)


def mask_state(value: Any, path: str = "") -> Any:
    """A value of a thread's state as others may see it: by its shape, and by the names it stands under there, such as
    config.password or keys[3].token."""
    names = [name for name in re.sub(r"\[\d+\]", "", path).split(".") if name]
    names[-1:] = [".".join(names[-2:])] if redact.is_secret_name(".".join(names[-2:])) else names[-1:]  # api.key
    for name in reversed(names):
        value = {name: value}
    value = redact.value(value)
    for _ in names:
        (value,) = value.values()
    return value


def mask_difference(found: StateDifference) -> StateDifference:
    """What differs between two states, as others may see it."""
    before, after = (mask_state(value, found.path) for value in (found.before, found.after))
    return found._replace(path=redact.text(found.path), before=before, after=after)


def _summary(file: FileDiff) -> str:
    if file.kind != "file":
        return _MASKED
    if file.binary or not (file.added or file.removed):
        return f"{file.old_size} → {file.new_size} bytes, {_MASKED}"
    return f"+{file.added} −{file.removed}, {_MASKED}"


def _mask_hunk(hunk: Hunk) -> Hunk:
    return hunk._replace(lines=tuple(_mask_lines(hunk.lines, 1)))


def _mask_lines(lines: Iterable[bytes], mark: int) -> list[bytes]:
    """Each line by itself, its mark (+, − or blank) kept; a private key from its first line to its last. A hunk may
    begin or end in the middle of one, or show nothing else."""
    told = list(lines)
    inside = _starts_inside(told)
    dense = [_DENSE.fullmatch(line[mark:].strip()) is not None for line in told]
    out = []
    above = b""  # lines of a command that goes on in this one
    for at, line in enumerate(told):
        head, said = line[:mark], line[mark:]
        begins, ends = _is_edge(said, b"BEGIN"), _is_edge(said, b"END")
        if inside or begins or (dense[at] and any(dense[max(0, at - 1) : at] + dense[at + 1 : at + 2])):
            out.append(head + _MASK if said else line)
        else:
            out.append(head + _mask_line(said, above))
        inside = (inside or begins) and not ends
        above = above + said.rstrip(b"\r\n") + b"\n" if said.rstrip().endswith(b"\\") else b""
    return out


def _mask_line(line: bytes, above: bytes = b"") -> bytes:
    said = line.decode("utf-8", "surrogateescape")
    masked = redact.text(said)
    if above:
        whole = redact.text(above.decode("utf-8", "surrogateescape") + said)
        masked = redact.text(whole.split("\n", above.count(b"\n"))[-1])
    return line if masked == said else masked.encode("utf-8", "surrogateescape")


def _starts_inside(lines: list[bytes]) -> bool:
    for line in lines:
        if _is_edge(line, b"BEGIN") or _is_edge(line, b"END"):
            return _is_edge(line, b"END") and not _is_edge(line, b"BEGIN")
    return False


def _is_edge(line: bytes, which: bytes) -> bool:
    return b"-----" + which in line and b"PRIVATE KEY" in line
