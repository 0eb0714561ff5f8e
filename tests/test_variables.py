"""Which environment a recorded command needs: what it names, and what chooses an account or a place for it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from takeback.config import settings, variables
from takeback.errors import ApprovalNeeded, CredentialNeeded, Stale
from takeback.privacy.value_marks import Marks
from takeback.workspace import Workspace, open_workspace

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
        ("cat > x <<'EOF'\n$A ${B}\nEOF\npsql $DB", ["DB"]),
        ('cat > x <<"EOF"\n$A\nEOF', []),
        ("cat > x <<\\EOF\n$A\nEOF", []),
        ("cat > x <<-'EOF'\n\t$A\n\tEOF\npsql $DB", ["DB"]),
        ("cat > x <<EOF\nit's $A and \\$B\nEOF\npsql '$C'", ["A"]),
        ("cat <<'A' <<B\n$X\nA\n$Y\nB", ["Y"]),
        ("cat <<'EOF' && psql $DB\n$A\nEOF", ["DB"]),
        ("bash <<'EOF'\npsql $DB\nEOF", ["DB"]),
        ("cat <<'EOF' | sh -s\npsql $DB\nEOF", ["DB"]),
        ("ssh host <<'EOF'\necho $THERE\nEOF", []),
        ("psql <<< $DB", ["DB"]),
        ("f() { local a b=1; echo $a $b $C; }; f", ["C"]),
        ("declare -a list; typeset -i n; echo ${list[0]} $n", []),
        ("select x in a b; do echo $x $Y; break; done", ["Y"]),
        ("printf -v stamp %s 1; echo $stamp", []),
        ("printf %s $stamp", ["stamp"]),
        ("mapfile -t rows < x; echo ${rows[0]}", []),
        ("readarray -d '' -t rows < x; echo $rows", []),
        ('read -r -p "Which DB now? " answer; psql $DB $answer', ["DB"]),
        ("while IFS= read -r line; do echo $line; done < x", []),
        ("read -a words <<< x; echo ${words[1]}", []),
        ("read -t 5 -n 1 key; echo $key", []),
        ("while getopts 'ab:' flag; do echo $flag $OPTARG; done", []),
        ("for ((i=0; i<3; i++)); do echo $i; done", []),
        ("echo read DB; psql $DB", ["DB"]),
        ("export DB; psql $DB", ["DB"]),
        ("list[0]=x; echo ${list[0]}", []),
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


def log_at_host(ws: Workspace) -> str:
    return ws.record_command("made db", shell='echo "drop $DB at $PGHOST" >> log').id


def workspace(tmp_path: Path, environ: dict[str, str]) -> Workspace:
    """As another process would open it, with its own environment."""
    root = tmp_path / "project"
    root.mkdir(exist_ok=True)
    return open_workspace(root, settings.load(None, {"TAKEBACK_HOME": str(tmp_path / "store")}), True, environ=environ)


@given(
    then=st.fixed_dictionaries({"DB": st.sampled_from(["a", "b"]), "PGHOST": st.sampled_from(["x", "y"])}),
    now=st.fixed_dictionaries({"DB": st.sampled_from(["a", "b", ""]), "PGHOST": st.sampled_from(["x", "y", ""])}),
)
@examples(12, 100)
def test_what_was_approved_runs_with_the_values_that_were_seen_or_not_at_all(
    then: dict[str, str], now: dict[str, str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        environ = {"PATH": os.environ["PATH"], **then}
        with workspace(Path(folder), environ) as ws:
            id = log_at_host(ws)
            plan = ws.plan("revert", id, save=True)
            ws.approve(plan, ws.unapproved(plan)[1])
        log = Path(folder) / "project" / "log"
        with workspace(Path(folder), {**environ, **now}) as ws:
            if now == then:
                ws.apply(plan.id)
                assert log.read_text() == f"drop {now['DB']} at {now['PGHOST']}\n"
                return
            with pytest.raises(ApprovalNeeded) as refused:
                ws.apply(plan.id)
        assert not log.exists()
        if all(now.values()):
            assert isinstance(refused.value, Stale)
            assert {name for name, _, _ in refused.value.differing} == {n for n in now if now[n] != then[n]}


def test_a_value_that_changes_between_a_plan_and_its_apply_makes_it_stale(tmp_path: Path) -> None:
    """In one process, as between the plan at a prompt and the yes."""
    environ = {"PATH": os.environ["PATH"], "DB": "shop", "PGHOST": "localhost"}
    with workspace(tmp_path, environ) as ws:
        plan = ws.plan("revert", log_at_host(ws))
        environ["PGHOST"] = "prodhost"
        ws.approve(plan, ws.unapproved(plan)[1])
        with pytest.raises(Stale, match="PGHOST has another value"):
            ws.apply(plan)
        assert not (tmp_path / "project" / "log").exists()
        environ["PGHOST"] = "localhost"
        ws.apply(plan)
    assert (tmp_path / "project" / "log").read_text() == "drop shop at localhost\n"


def test_a_yes_given_while_a_variable_was_not_set_says_that_it_does_not_cover_its_value(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "DB": "shop", "PGHOST": "localhost"}
    with workspace(tmp_path, environ) as ws:
        id = log_at_host(ws)
        del environ["DB"]
        plan = ws.plan("revert", id)
        ws.approve(plan, ws.unapproved(plan)[1])
        with pytest.raises(CredentialNeeded, match="run the same again, which needs a new approval: the one that was"):
            ws.apply(plan)
        environ["DB"] = "shop"
        with pytest.raises(ApprovalNeeded, match="the one that was given is for another value of DB than is here"):
            ws.apply(plan)
    assert not (tmp_path / "project" / "log").exists()


def test_a_home_that_the_line_names_is_part_of_what_is_approved(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    with workspace(tmp_path, environ) as ws:
        plan = ws.plan("revert", ws.record_command("made it", shell='echo x > "$HOME/gone"').id, save=True)
        ws.approve(plan)
        environ["HOME"] = str(tmp_path / "project")
        with pytest.raises(Stale, match="HOME"):
            ws.apply(plan.id)
    assert not list(tmp_path.rglob("gone"))


def test_marks_tell_same_from_other_and_need_the_key(tmp_path: Path) -> None:
    here, again = Marks(tmp_path), Marks(tmp_path)
    assert here.of({"A": "x"}) == again.of({"A": "x"}) != here.of({"A": "y"})
    assert here.of({"A": "x"})["A"] != here.of({"B": "x"})["B"], "equal values of two variables do not show"
    assert here.of({"A": ""}) == {"A": ""}
    (tmp_path / "marks.key").unlink()
    assert Marks(tmp_path).of({"A": "x"}) != here.of({"A": "x"})
    assert Marks(None).of({"A": "x"}) != Marks(None).of({"A": "x"})
    (tmp_path / "marks.key").write_bytes(b"cut")
    assert Marks(tmp_path).of({"A": "x"}) == Marks(tmp_path).of({"A": "x"}), "what is no key is made anew"
    assert [p.name for p in tmp_path.iterdir()] == ["marks.key"]
