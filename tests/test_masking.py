"""What others than the owner see of a difference: that a secret file changed, and never what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from secrets_to_plant import SHAPES
from takeback.model.thread_states import StateDifference
from takeback.privacy.masking import is_secret_file, mask_difference, mask_file, mask_state
from takeback.privacy.redact import MASK
from takeback.show.views import FileDiff
from takeback.workspace import Workspace

SECRET_FILES = [
    ".env", ".env.local", "app/.env.production", "prod.env", "server.pem", "tls.key", "id_rsa", ".ssh/config", ".npmrc",
    ".pypirc", ".netrc", "credentials.json", "config/credentials.yml.enc", ".aws/credentials", "secrets.yaml",
    "client_secret_123.json", "terraform.tfvars", "terraform.tfstate", "x.p12", ".git-credentials", "ID_ED25519",
    "deploy/kubeconfig", "my.keystore", ".docker/config.json", "secrets/anything.txt",
]  # fmt: skip
PLAIN_FILES = [
    "main.py", "environment.py", "env.ts", ".env.example", ".env.sample", "keys.py", "src/secret_santa.py", "README.md",
    "id_rsa.pub", "token.py", "tokens.css", "credentials.md", "keyboard.ts", "monkey.go", "package.json",
]  # fmt: skip


@pytest.mark.parametrize("path", SECRET_FILES)
def test_named_like_a_secret(path: str):
    assert is_secret_file(path) and is_secret_file(f"deep/down/{path}")


@pytest.mark.parametrize("path", PLAIN_FILES)
def test_not_named_like_a_secret(path: str):
    assert not is_secret_file(path)


def shown(file: FileDiff) -> str:
    return repr(file)


def test_a_secret_file_says_how_much_and_not_what(ws: Workspace, project: Path):
    (project / ".env").write_text("A=one\nB=two-and-three\n")
    (project / "id_rsa").write_bytes(b"\0binary")
    ws.checkpoint("before")
    (project / ".env").write_text("A=one\nB=four-and-five\nC=six\n")
    (project / "id_rsa").write_bytes(b"\0other binary")
    (project / "plain.txt").write_text("hello\n")
    masked = {f.path: mask_file(f) for f in ws.diff().files}
    assert masked[".env"].note == "+2 −1, contents masked" and masked[".env"].hunks == ()
    assert (masked[".env"].added, masked[".env"].removed) == (2, 1)
    assert "contents masked" in masked["id_rsa"].note
    assert masked["plain.txt"] == next(f for f in ws.diff().files if f.path == "plain.txt")
    assert "two-and" not in shown(masked[".env"]) and "four-and" not in shown(masked[".env"])


def test_a_rename_out_of_a_secret_name_stays_masked(ws: Workspace, project: Path):
    (project / ".env").write_text("PLAIN=one\n" * 20)
    ws.checkpoint("before")
    (project / ".env").rename(project / "notes.txt")
    (project / "notes.txt").write_text("PLAIN=one\n" * 20 + "MORE=two\n")
    (found,) = map(mask_file, ws.diff().files)
    assert found.old_path == ".env" and found.hunks == () and "masked" in found.note


def test_tokens_in_other_files_are_masked_and_the_rest_is_not(ws: Workspace, project: Path):
    ws.checkpoint("before")
    planted = "\n".join(f"line {n} = {shape.text}\nkept line {n}" for n, shape in enumerate(SHAPES.values()))
    (project / "config.py").write_text(f"x = 1\n{planted}\n")
    raw = ws.diff().files[0]
    masked = mask_file(raw)
    text = "\n".join(line.decode() for hunk in masked.hunks for line in hunk.lines)
    for name, shape in SHAPES.items():
        assert shape.secret.splitlines()[0] not in text and shape.secret.splitlines()[-1] not in text, name
    assert all(f"+kept line {n}" in text for n in range(len(SHAPES))) and "+x = 1" in text
    assert (masked.added, masked.removed) == (raw.added, raw.removed)
    assert [len(h.lines) for h in masked.hunks] == [len(h.lines) for h in raw.hunks]


def test_the_middle_of_a_private_key_is_masked_too(ws: Workspace, project: Path):
    body = [f"{n:02}" + "Ab3d" * 15 for n in range(40)]
    key = ["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----"]
    (project / "conf.txt").write_text("\n".join(["top", *key, "bottom", ""]))
    ws.checkpoint("before")
    for change in (36, 3):  # near its end, near its beginning: the hunk lacks the other one
        edited = list(key)
        edited[change] = "xX3" * 20 + "xx"
        (project / "conf.txt").write_text("\n".join(["top", *edited, "bottom", ""]))
        text = "\n".join(line.decode() for h in mask_file(ws.diff().files[0]).hunks for line in h.lines)
        assert "Ab3d" not in text and "xX3" not in text, change


@pytest.mark.parametrize("path", ["password", "config.password", "logins[2].api_key", "credentials.prod", "api.key"])
def test_state_is_masked_by_the_names_it_stands_under(path: str):
    assert mask_state("hunter2", path) == MASK and mask_state({"x": ["hunter2"]}, path) == {"x": [MASK]}
    found = mask_difference(StateDifference(path, "changed", None, "hunter2"))
    assert found == StateDifference(path, "changed", None, MASK)


@pytest.mark.parametrize("path", ["", "messages[3].content", "usage.tokens", "max_tokens", "token.type"])
def test_state_under_other_names_is_shown(path: str):
    assert mask_state("hunter2", path) == "hunter2" and mask_state(123, path) == 123
    assert mask_state({"password": "hunter2", "tokens": 123, "n": [1, None, True, 0.5]}, path) == {
        "password": MASK,
        "tokens": 123,
        "n": [1, None, True, 0.5],
    }
    assert "hunter2" not in str(mask_difference(StateDifference(f"{path}.x", "added", None, {"pwd": "hunter2"})))
