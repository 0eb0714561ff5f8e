from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.config.settings import Settings
from takeback.errors import UsageError
from takeback.look.coverage import DEFAULT_FOLDERS, Rules, load_rules
from takeback.workspace import Workspace

USER = "excluded by your configuration"
IGNORE = "excluded by .takebackignore"
PROJECT = "excluded by .takeback.toml"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (b"src/main.py", None),
        (b".env", None),
        (b".git", "git"),
        (b".git/", "git"),
        (b"vendored/lib/.git", "git"),
        (b".gitignore", None),
        (b".github/", None),
        (b"x.git/", None),
        (b"node_modules/", "regenerable"),
        (b"web/node_modules/", "regenerable"),
        (b"node_modules", None),
        (b"my_node_modules/", None),
        (b".venv/", "regenerable"),
        (b"target/", "regenerable"),
        (b"target", None),
        (b"build/", None),
        (b"dist/", None),
        (b"vendor/", None),
        (b"env/", None),
        (b"bin/", None),
        (b"out/", None),
        (b"\xff\xfe/", None),
    ],
)
def test_built_in_rules(path: bytes, reason: str | None) -> None:
    rules = Rules()
    assert rules.excluded(path.rstrip(b"/"), path.endswith(b"/")) == reason
    assert not rules.by_project(path.rstrip(b"/"), path.endswith(b"/"))


# A path that ends in a slash is a folder.
@pytest.mark.parametrize(
    ("user", "project", "ignore_file", "path", "reason", "only_project"),
    [
        (["*.iso"], [], [], b"a/big.iso", USER, False),
        ([], ["*.iso"], [], b"a/big.iso", PROJECT, True),
        ([], [], ["*.iso"], b"a/big.iso", IGNORE, True),
        ([], [], ["*.iso"], b"a/big.img", None, False),
        # The last match decides, and the user comes last.
        (["!*.iso"], ["*.iso"], ["*.iso"], b"big.iso", None, False),
        (["*.iso"], ["!*.iso"], ["!*.iso"], b"big.iso", USER, False),
        ([], ["*.iso"], ["!big.iso"], b"big.iso", None, False),
        ([], ["!big.iso"], ["*.iso"], b"big.iso", IGNORE, True),
        (["*.iso"], [], ["*.iso"], b"big.iso", USER, False),
        # A heap comes back in, and stays what it is when the project names it again.
        ([], [], ["!node_modules/"], b"node_modules/", None, False),
        (["!node_modules"], [], [], b"web/node_modules/", None, False),
        (["!/node_modules"], [], [], b"web/node_modules/", "regenerable", False),
        ([], [], ["!node_modules/"], b"node_modules/left-pad/", None, False),
        ([], [], ["!node_modules/"], b"node_modules/x/node_modules/", None, False),
        (["!node_modules/"], [], ["node_modules/"], b"node_modules/", None, False),
        (["node_modules/"], [], ["!node_modules/"], b"node_modules/", USER, False),
        ([], [], ["node_modules/"], b"node_modules/", IGNORE, False),
        # git cannot be brought back in.
        (["!.git", "!.git/"], [], ["!.git"], b".git/", "git", False),
        ([], [], ["!*"], b"sub/.git", "git", False),
        # Only the path itself is asked about, never a folder above it.
        ([], [], ["target/debug/", "!target/"], b"target/debug/", IGNORE, True),
        ([], [], ["logs"], b"logs/today", None, False),
        ([], [], ["logs/**", "!logs/keep"], b"logs/", None, False),
        ([], [], ["logs/**", "!logs/keep"], b"logs/keep", None, False),
        ([], [], ["logs/**", "!logs/keep"], b"logs/old/", IGNORE, True),
        ([], [], ["logs/**/"], b"logs/", None, False),
        ([], [], ["logs/**/"], b"logs/a", None, False),
        ([], [], ["logs/**/"], b"logs/a/", IGNORE, True),
        # The rest of the syntax.
        ([], [], ["/top"], b"top", IGNORE, True),
        ([], [], ["/top"], b"sub/top", None, False),
        ([], [], ["data/"], b"data", None, False),
        ([], [], ["data/"], b"sub/data/", IGNORE, True),
        ([], [], ["a/**/z"], b"a/b/c/z", IGNORE, True),
        ([], [], ["# no", "", "  ", "/", "!/"], b"no", None, False),
        ([], [], ["\\#yes", "\\!yes"], b"#yes", IGNORE, True),
        ([], [], ["\\#yes", "\\!yes"], b"!yes", IGNORE, True),
        ([], [], ["space\\ "], b"space ", IGNORE, True),
        ([], [], ["trailing   "], b"trailing", IGNORE, True),
        # Names are bytes: not all are text, and some have line ends in them.
        ([], [], ["*.bin"], b"\xff\xfe.bin", IGNORE, True),
        ([], [], ["caf\u00e9"], "caf\u00e9".encode(), IGNORE, True),
        ([], [], ["foo"], b"a\nb/foo", IGNORE, True),
        ([], [], ["foo"], b"foo\n", None, False),
        ([], [], ["*"], b"\n", IGNORE, True),
    ],
)
def test_patterns(
    user: list[str],
    project: list[str],
    ignore_file: list[str],
    path: bytes,
    reason: str | None,
    only_project: bool,
) -> None:
    rules = Rules(user, project, ignore_file)
    name, is_folder = path.removesuffix(b"/"), path.endswith(b"/")
    assert rules.excluded(name, is_folder) == reason
    assert rules.by_project(name, is_folder) is only_project


def test_the_defaults_are_regenerable_and_few() -> None:
    assert not DEFAULT_FOLDERS & {
        b"build",
        b"dist",
        b"vendor",
        b"env",
        b"bin",
        b"out",
        b"lib",
        b"tmp",
        b".git",
    }
    assert 20 <= len(DEFAULT_FOLDERS) <= 30


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"ignore_file": ["ok", "[z-a]"]}, ".takebackignore, line 2: '[z-a]'"),
        ({"ignore_file": ["# first", "", "!"]}, ".takebackignore, line 3: '!'"),
        ({"project": ["ok", "\\"]}, ".takeback.toml, checkpoints.exclude, pattern 2: "),
        (
            {"user": ["["], "user_source": "/c/config.toml"},
            "/c/config.toml, checkpoints.exclude, pattern 1: '['",
        ),
    ],
)
def test_a_bad_pattern_is_named(rules: dict[str, list[str]], said: str) -> None:
    with pytest.raises(UsageError) as error:
        Rules(**rules)  # type: ignore[arg-type]
    assert said in error.value.message and error.value.hint


def test_load_rules_reads_the_settings_and_the_file() -> None:
    settings = Settings(home=Path("/h"), exclude=("mine",), project_exclude=("theirs",))
    rules = load_rules(settings, b"\xef\xbb\xbfignored\r\nraw\xff\n\n# a comment\nlast")
    assert rules.excluded(b"mine", False) == USER
    assert rules.excluded(b"theirs", False) == PROJECT
    assert rules.excluded(b"ignored", False) == IGNORE
    assert rules.excluded(b"raw\xff", False) == IGNORE
    assert rules.excluded(b"last", False) == IGNORE
    assert rules.listing()[-5:] == [
        ("theirs", ".takeback.toml"),
        ("ignored", ".takebackignore"),
        (os.fsdecode(b"raw\xff"), ".takebackignore"),
        ("last", ".takebackignore"),
        ("mine", "your configuration"),
    ]
    assert load_rules(settings, None).excluded(b"ignored", False) is None


def test_a_bad_pattern_from_the_environment_is_named_by_its_source() -> None:
    sources = {"checkpoints.exclude": "environment TAKEBACK_CHECKPOINTS_EXCLUDE"}
    with pytest.raises(UsageError, match="environment TAKEBACK_CHECKPOINTS_EXCLUDE"):
        load_rules(Settings(home=Path("/h"), exclude=("!",), sources=sources), None)


def test_the_listing_shows_the_built_in_rules() -> None:
    listing = Rules().listing()
    assert listing[0] == (".git", "built in, always")
    assert ("node_modules/", "built in") in listing
    assert len(listing) == len(DEFAULT_FOLDERS) + 1


def test_fingerprints_tell_what_changed() -> None:
    plain, user, project = Rules(), Rules(user=["a"]), Rules(project=["a"])
    ignore = Rules(ignore_file=["a"])
    every = [plain, user, project, ignore, Rules(ignore_file=["a", "!a"]), Rules(ignore_file=["!a", "a"])]
    assert len({rules.fingerprint for rules in every}) == len(every)
    assert len({rules.project_fingerprint for rules in every}) == len(every) - 1
    assert plain.project_fingerprint == user.project_fingerprint
    assert ignore.fingerprint == Rules(ignore_file=["# why", "", "a"]).fingerprint
    assert len(plain.fingerprint) == 64
    assert load_rules(Settings(home=Path("/h")), b"raw\xff").fingerprint != plain.fingerprint


@given(st.binary(min_size=1).filter(lambda name: b"\0" not in name), st.booleans(), st.lists(st.text(max_size=8)))
def test_any_name_gets_an_answer(name: bytes, is_folder: bool, lines: list[str]) -> None:
    try:
        rules = Rules(ignore_file=lines)
    except UsageError:
        return
    assert rules.excluded(name, is_folder) in (None, "git", "regenerable", IGNORE)
    assert rules.excluded(b"sub/.git", is_folder) == "git"


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")
def test_patterns_mean_what_they_mean_to_git(tmp_path: Path) -> None:
    tree = _plant(tmp_path)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    parts = [
        "a",
        "b",
        "ab",
        "foo",
        "*",
        "**",
        "a*",
        "?",
        "[ab]",
        "[!a]",
        "[a-b]*",
        "f*o",
        "*.py",
        "x\\ y",
        "x y",
        "\\a",
    ]
    chance = random.Random(7)
    for _ in range(150):
        lines = [_random_pattern(chance, parts) for _ in range(chance.randint(1, 4))]
        (tmp_path / ".gitignore").write_text("\n".join(lines) + "\n")
        asked = subprocess.run(
            ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "--stdin", "-z"],
            input=b"\0".join(path for path, _ in tree),
            stdout=subprocess.PIPE,
        )
        rules, left_out = Rules(ignore_file=lines), set()
        for path, is_folder in tree:
            if path.rpartition(b"/")[0] in left_out or rules.excluded(path, is_folder):
                left_out.add(path)
        assert left_out == set(asked.stdout.split(b"\0")) - {b""}, lines


def _plant(folder: Path, depth: int = 2, prefix: bytes = b"") -> list[tuple[bytes, bool]]:
    """A small tree with every name at every level; parents come before what is in them."""
    tree: list[tuple[bytes, bool]] = []
    for name in ("a", "b", "foo", "x y", "ab", "foo.py"):
        path, is_folder = prefix + name.encode(), depth > 0 and name not in ("ab", "foo.py")
        tree.append((path, is_folder))
        if is_folder:
            (folder / name).mkdir()
            tree += _plant(folder / name, depth - 1, path + b"/")
        else:
            (folder / name).touch()
    return tree


def _random_pattern(chance: random.Random, parts: list[str]) -> str:
    middle = "/".join(chance.choices(parts, k=chance.choice([1, 1, 2, 2, 3])))
    return chance.choice(["", "", "!"]) + chance.choice(["", "", "/"]) + middle + chance.choice(["", "", "/"])


def test_rules_that_are_mended_are_no_longer_called_broken(ws: Workspace, project: Path):
    """Also in a process that lives on."""
    (project / ".takebackignore").write_text("[z-a]\n")
    assert any("[z-a]" in told for told in ws.status().ignored)
    (project / ".takebackignore").write_text("*.log\n")
    assert not ws.status().ignored
