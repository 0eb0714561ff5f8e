"""Which environment a recorded command needs: what it names, and what chooses an account or a place for it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback import variables

TABLE = tomllib.loads(Path(variables.__file__).with_name("variables.toml").read_text())


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("psql $DB -f x.sql", ["DB"]),
        ('psql "${DB}" -f x.sql', ["DB"]),
        ("psql '$DB' -f x.sql", []),
        (r"echo \$DB", []),
        ("echo hi # $DB", []),
        ("echo a#$DB", ["DB"]),
        ("DB=x; psql $DB", []),
        ("DB=x psql -c y", []),
        ("export DB=$OTHER; psql $DB", ["OTHER"]),
        ("for f in *.sql; do psql $DB -f $f; done", ["DB"]),
        ("while read -r a b; do drop $a $b $C; done", ["C"]),
        ("awk '{print $NF}' x | xargs rm", []),
        ("bash -c 'psql $DB'", ["DB"]),
        ("eval 'psql $DB'", ["DB"]),
        ("echo $? $$ $! $# $1 $@ ${1} $PWD $RANDOM", []),
        ("psql ${DB:-shop}", []),
        ("psql ${SET:-shop}", ["SET"]),
        ("psql ${DB:?no}", ["DB"]),
        ("rm ${FILE%.sql} ${#LIST}", ["FILE", "LIST"]),
        ("aws s3 rb s3://$(whoami)-$BUCKET", ["BUCKET"]),
        ('echo "it\'s $X"', ["X"]),
    ],
)
def test_what_a_line_names(line: str, names: list[str]) -> None:
    assert variables.named({"shell": line}, {"SET": "1"}) == names


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (["psql", "$DB"], []),  # no shell reads it: the word is as it stands
        (["sh", "-c", "psql $DB"], ["DB"]),
        (["/bin/bash", "-euxc", "psql $DB"], ["DB"]),
        (["sh", "down.sh", "$DB"], []),
    ],
)
def test_what_words_name(argv: list[str], names: list[str]) -> None:
    assert variables.named({"argv": argv}, {}) == names


@given(st.lists(st.sampled_from(["$AA", "${BB}", "'", '"', "\\", " ", "x", "#", "\n"]), max_size=12))
def test_what_a_shell_would_miss_is_always_named(parts: list[str]) -> None:
    """With `set -u` a shell stops at a variable that is not set: of such a line we know that name."""
    line = "".join(["echo ", *parts])
    shell = shutil.which("sh")
    assert shell is not None
    ran = subprocess.run([shell, "-u", "-c", line], env={}, capture_output=True, text=True, check=False)
    missing = re.search(r"\b(AA|BB): (?:parameter not set|unbound variable)", ran.stderr)
    if missing:
        assert missing[1] in variables.named({"shell": line}, {})


def test_only_what_its_program_reads_is_chosen() -> None:
    here = {"AWS_PROFILE": "prod", "KUBECONFIG": "/k", "PGHOST": "db", "GH_TOKEN": "x", "DATABASE_URL": "postgres://x"}
    assert variables.chosen({"argv": ["aws", "s3", "rb", "s3://demo"]}, here) == ["AWS_PROFILE"]
    assert variables.chosen({"argv": ["/usr/bin/psql", "-f", "x"]}, here) == ["PGHOST"]
    assert variables.chosen({"shell": "cd x && kubectl delete pod y"}, here) == ["KUBECONFIG", "AWS_PROFILE"]
    assert variables.chosen({"argv": ["rm", "-r", "build"]}, here) == []
    assert variables.chosen({"argv": ["./down.sh"]}, here) == ["AWS_PROFILE", "KUBECONFIG", "PGHOST", "DATABASE_URL"]
    assert variables.chosen({"argv": ["aws", "s3", "ls"]}, {}) == []


def test_the_table_is_sound() -> None:
    names = [*TABLE["places"], *TABLE["any"], *(name for found in TABLE["programs"].values() for name in found)]
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]*", name) for name in names)
    assert len(set(TABLE["places"])) == len(TABLE["places"])
    secret = re.compile(r"(TOKEN|SECRET|PASSWORD|PASSWD|PWD|API_KEY|ACCESS_KEY|_URL|_URI|CONNECTION_STRING)$")
    harmless = {"AWS_ENDPOINT_URL", "PULUMI_BACKEND_URL", "OS_AUTH_URL", "TWINE_REPOSITORY_URL"}
    assert not [name for name in TABLE["places"] if secret.search(name) and name not in harmless], "never unasked"
    assert not set(TABLE["files_only"]) & set(TABLE["programs"])
