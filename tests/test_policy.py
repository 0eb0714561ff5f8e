"""What may run, is asked for, is refused; and that a project's file can only tighten it."""

from __future__ import annotations

from pathlib import Path

import pytest

from takeback.config.policy import ALLOW, ASK, REFUSE, VERDICTS, Policy, read, read_credentials, shown
from takeback.config.settings import load
from takeback.errors import UsageError


def test_by_default_a_person_is_asked_for_everything_but_dropping_a_mail_that_never_left():
    allowed = [(d, v) for d in ("http", "command", "email", "python", "else") for v in VERDICTS
               if Policy().decide(d, v).decision != ASK]  # fmt: skip
    assert allowed == [("email", "held")]


def test_a_domain_goes_before_all_and_all_before_the_default():
    policy = read({"http": {"compensating": "allow"}, "all": {"compensating": "refuse"}})
    assert policy.decide("http", "compensating") == (ALLOW, "[policy.http] compensating")
    assert policy.decide("command", "compensating") == (REFUSE, "[policy.all] compensating")
    assert policy.decide("command", "irreversible") == (ASK, "default")


def test_autopilot_refuses_what_cannot_be_undone_unless_a_line_says_otherwise():
    policy = read({"autopilot": True})
    assert policy.decide("email", "irreversible") == (REFUSE, "autopilot")
    assert policy.decide("http", "unknown") == (REFUSE, "autopilot")
    assert policy.decide("http", "compensating") == (ASK, "default")
    asked = read({"autopilot": True, "email": {"irreversible": "ask"}})
    assert asked.decide("email", "irreversible").decision == ASK


@pytest.mark.parametrize(
    "value",
    [
        1,
        {"autopilot": 1},
        {"http": 1},
        {"http": {"compensating": "yes"}},
        {"http": {"lost": "allow"}},
        {"http": {"exact": 1}},
    ],
)
def test_what_makes_no_sense_is_refused(value: object):
    with pytest.raises(ValueError):
        read(value)


@pytest.mark.parametrize(
    "value", [1, {"KEY": 1}, {"KEY": {}}, {"KEY": {"origins": "https://x"}}, {"KEY": {"origins": ["x"]}}]
)
def test_credentials_that_make_no_sense_are_refused(value: object):
    with pytest.raises(ValueError):
        read_credentials(value)


@pytest.mark.parametrize("mine", [ALLOW, ASK, REFUSE, None])
@pytest.mark.parametrize("theirs", [ALLOW, ASK, REFUSE])
def test_the_stricter_of_both_holds(mine: str | None, theirs: str):
    order = [ALLOW, ASK, REFUSE]
    own = Policy({"http.compensating": mine} if mine else {})
    both, in_vain = own.tightened(Policy({"http.compensating": theirs}))
    was = mine or ASK
    assert both.decide("http", "compensating").decision == max(was, theirs, key=order.index)
    assert bool(in_vain) == (order.index(theirs) < order.index(was))


def test_all_of_a_project_cannot_loosen_what_a_line_of_mine_tightens():
    """[policy.all] of a project stands behind [policy.http] of the user's, whichever way it points."""
    own = Policy({"http.compensating": REFUSE})
    both, _ = own.tightened(Policy({"all.compensating": ASK}))
    assert both.decide("http", "compensating").decision == REFUSE


def test_a_project_tightens_a_domain_that_i_allow_by_all():
    own = Policy({"all.compensating": ALLOW})
    both, in_vain = own.tightened(Policy({"http.compensating": ASK}))
    assert both.decide("http", "compensating").decision == ASK and not in_vain
    assert both.decide("command", "compensating").decision == ALLOW


def test_all_of_a_project_tightens_what_i_allow_for_one_domain():
    own = Policy({"http.compensating": ALLOW})
    both, _ = own.tightened(Policy({"all.compensating": REFUSE}))
    assert both.decide("http", "compensating").decision == REFUSE


def test_a_projects_domain_line_cannot_hide_a_stricter_all_of_mine():
    own = Policy({"all.irreversible": REFUSE})
    both, in_vain = own.tightened(Policy({"email.irreversible": ASK}))
    assert both.decide("email", "irreversible").decision == REFUSE
    assert in_vain


def test_autopilot_of_a_project_is_not_undone_by_its_own_line():
    both, _ = Policy().tightened(Policy({"email.irreversible": ASK}, autopilot=True))
    assert both.autopilot
    mine, in_vain = Policy({}, autopilot=True).tightened(Policy({"email.irreversible": ASK}))
    assert mine.decide("email", "irreversible").decision == REFUSE and in_vain


def test_only_the_users_own_file_loosens(tmp_path: Path):
    root, config = tmp_path / "project", tmp_path / "config/takeback/config.toml"
    root.mkdir()
    config.parent.mkdir(parents=True)
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path)}
    (root / ".takeback.toml").write_text('[policy.http]\ncompensating = "allow"\nexact = "refuse"\n')
    settings = load(root, environ)
    assert settings.policy.decide("http", "compensating").decision == ASK
    assert settings.policy.decide("http", "exact").decision == REFUSE
    assert 'policy.http.compensating = "allow", which is looser than "ask"' in settings.ignored[0]
    config.write_text('[policy.http]\ncompensating = "allow"\n')
    assert load(root, environ).policy.decide("http", "compensating").decision == ALLOW


def test_a_project_binds_no_credential_and_names_no_function(tmp_path: Path):
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path)}
    text = '[credentials.KEY]\norigins = ["https://evil.example"]\n[python]\nfunctions = ["os:system"]\n'
    (tmp_path / ".takeback.toml").write_text(text)
    settings = load(tmp_path, environ)
    assert not settings.credentials and not settings.functions
    assert len(settings.ignored) == 2


def test_shown_in_words():
    assert shown(Policy()) == "ask before every act outside the files"
    assert shown(Policy({"http.exact": ALLOW}, True)) == "autopilot http.exact=allow"


def test_a_domain_that_nobody_knows_is_told_of(tmp_path: Path):
    mine = tmp_path / "config/takeback/config.toml"
    mine.parent.mkdir(parents=True)
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path / "state")}
    known = "".join(f'[policy.{name}]\nunknown = "refuse"\n' for name in ("http", "email", "all", "files"))
    mine.write_text(known)
    assert load(tmp_path, environ).ignored == ()
    mine.write_text(known + '[policy.htttp]\ncompensating = "refuse"\n')
    (said,) = load(tmp_path, environ).ignored
    assert "[policy.htttp]" in said and "did you mean http?" in said and str(mine) in said
    (tmp_path / ".takeback.toml").write_text('[policy.comand]\ncompensating = "refuse"\n')
    assert ".takeback.toml has [policy.comand]" in load(tmp_path, environ).ignored[1]


def test_an_origin_is_one_place(tmp_path: Path):
    with pytest.raises(UsageError, match=r"place with \*"):
        read_credentials({"KEY": {"origins": ["https://*.example.com"]}})
    mine = tmp_path / "takeback/config.toml"
    mine.parent.mkdir()
    mine.write_text('[credentials.KEY]\norigins = ["https://*"]\n')
    with pytest.raises(UsageError) as raised:
        load(None, {"XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)})
    assert "without *" in raised.value.hint
