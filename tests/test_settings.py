from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from takeback.config.policy import Policy
from takeback.config.settings import SETTINGS, Settings, load, user_config
from takeback.errors import UsageError


class Place:
    """A home of one's own: a user's configuration, a project, and an environment that points to them."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.config = folder / "config" / "takeback" / "config.toml"
        self.state = folder / "state"
        self.root.mkdir()
        self.config.parent.mkdir(parents=True)
        self.environ = {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(self.state)}

    def user(self, text: str) -> None:
        self.config.write_text(text)

    def project(self, text: str) -> None:
        (self.root / ".takeback.toml").write_text(text)

    def load(self, off: bool = False, **environ: str) -> Settings:
        return load(self.root, self.environ | environ, off=off)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# The table

# An agent chooses the environment of what it starts.
IN_FILES_ONLY = ("policy", "policy.calls", "credentials", "python.functions")


def test_the_table_and_the_class_agree(place: Place) -> None:
    in_table = {setting.attribute for setting in SETTINGS}
    in_class = set(Settings._fields) - {"project_exclude", "sources", "ignored", "broken", "config"}
    assert in_table == in_class
    assert len(in_table) == len(SETTINGS)
    for setting in SETTINGS:
        assert setting.doc.endswith(".") and setting.kind.show(setting.default)
        shared = setting.key.startswith("email.")  # named as other programs name them
        assert setting.env.startswith("TAKEBACK_") or shared or setting.key in IN_FILES_ONLY, setting.key


def test_defaults(place: Place) -> None:
    settings = place.load()
    assert settings == Settings(home=place.state / "takeback", sources=settings.sources, config=place.config)
    assert settings.keep == 200 and settings.max_bytes == 10_000_000_000 and settings.max_file == 1_000_000_000
    assert settings.max_age == 30 * 86400 and settings.lock_timeout == 30.0 and settings.scan_deadline is None
    assert settings.off_source == "" and settings.ignored == ()
    assert settings.rows() == [
        ("checkpoints.enabled", True, "default"),
        ("checkpoints.keep", 200, "default"),
        ("checkpoints.max_age", 2592000, "default"),
        ("checkpoints.max_bytes", 10_000_000_000, "default"),
        ("checkpoints.max_file", 1_000_000_000, "default"),
        ("checkpoints.exclude", [], "default"),
        ("checkpoints.scan_deadline", None, "default"),
        ("lock_timeout", 30.0, "default"),
        ("watch.settle", 0.5, "default"),
        ("watch.busy", 5.0, "default"),
        ("hooks.granularity", "turn", "default"),
        ("hooks.message", True, "default"),
        ("hooks.failure", "open", "default"),
        ("hooks.resident", True, "default"),
        ("hooks.idle", 1800.0, "default"),
        ("hooks.http_port", 0, "default"),
        ("git.enabled", True, "default"),
        ("policy", "ask before every act outside the files", "default"),
        ("policy.autopilot", False, "default"),
        ("policy.calls", {}, "default"),
        ("credentials", "none", "default"),
        ("python.functions", [], "default"),
        ("email.provider", "", "default"),
        ("email.smtp_url", "none", "default"),
        ("email.smtp_from", "", "default"),
        ("email.gmail_access_token", "none", "default"),
        ("email.gmail_api_base", "https://gmail.googleapis.com", "default"),
        ("email.outlook_access_token", "none", "default"),
        ("email.outlook_api_base", "https://graph.microsoft.com/v1.0", "default"),
        ("threads.store", "local", "default"),
        ("walrus.publisher", "https://publisher.walrus-testnet.walrus.space", "default"),
        ("walrus.aggregator", "https://aggregator.walrus-testnet.walrus.space", "default"),
        ("walrus.epochs", 5, "default"),
        ("walrus.deletable", True, "default"),
        ("walrus.key_file", "", "default"),
        ("home", str(place.state / "takeback"), "environment XDG_STATE_HOME"),
        ("portable", False, "default"),
    ]


EVERYTHING = """
lock_timeout = 5
[checkpoints]
enabled = false
keep = 7
max_age = "1w"
max_bytes = "2GB"
max_file = 1000
exclude = ["*.iso", "!a/"]
scan_deadline = "1m"
[watch]
settle = 2
busy = "1m"
[hooks]
granularity = "call"
message = false
failure = "closed"
resident = false
idle = "1m"
http_port = 2000
[git]
enabled = false
[policy]
autopilot = true
[policy.calls]
push = "allow"
[policy.http]
compensating = "allow"
[credentials.STRIPE_KEY]
origins = ["https://api.stripe.com/"]
[python]
functions = ["shop.stock:put_back"]
[email]
provider = "smtp"
smtp_url = "smtp://me:secret@mail.example:587"
smtp_from = "me@example.com"
gmail_access_token = "ya29.secret"
gmail_api_base = "http://127.0.0.1:1"
outlook_access_token = "eyJ.secret"
outlook_api_base = "http://127.0.0.1:2"
[threads]
store = "walrus"
[walrus]
publisher = "https://publisher.example/my-key"
aggregator = "https://aggregator.example"
epochs = 53
deletable = false
key_file = "/home/ada/walrus.key"
"""
OUTSIDE = {
    "policy": Policy({"http.compensating": "allow"}, True, {"push": "allow"}),
    "autopilot": True,
    "calls": {"push": "allow"},
    "credentials": {"STRIPE_KEY": ("https://api.stripe.com",)},
    "functions": ("shop.stock:put_back",),
    "provider": "smtp",
    "smtp_url": "smtp://me:secret@mail.example:587",
    "smtp_from": "me@example.com",
    "gmail_access_token": "ya29.secret",
    "gmail_api_base": "http://127.0.0.1:1",
    "outlook_access_token": "eyJ.secret",
    "outlook_api_base": "http://127.0.0.1:2",
    "threads_store": "walrus",
    "walrus_publisher": "https://publisher.example/my-key",
    "walrus_aggregator": "https://aggregator.example",
    "walrus_epochs": 53,
    "walrus_deletable": False,
    "walrus_key_file": "/home/ada/walrus.key",
}


def test_the_users_file_sets_everything(place: Place) -> None:
    place.user(EVERYTHING)
    settings = place.load()
    assert settings == Settings(
        home=place.state / "takeback",
        enabled=False,
        keep=7,
        max_age=7 * 86400,
        max_bytes=2_000_000_000,
        max_file=1000,
        exclude=("*.iso", "!a/"),
        scan_deadline=60.0,
        lock_timeout=5.0,
        settle=2.0,
        busy=60.0,
        granularity="call",
        message=False,
        failure="closed",
        resident=False,
        idle=60.0,
        http_port=2000,
        git=False,
        sources=settings.sources,
        config=place.config,
        **OUTSIDE,
    )
    assert settings.off_source == str(place.config)
    assert {source for key, _, source in settings.rows() if key not in ("home", "portable")} == {str(place.config)}


def test_the_environment_sets_everything_and_beats_the_files(place: Place) -> None:
    place.user(EVERYTHING)
    place.project("[checkpoints]\nkeep = 500\n")
    settings = place.load(
        TAKEBACK_CHECKPOINTS_ENABLED="yes",
        TAKEBACK_CHECKPOINTS_KEEP="3",
        TAKEBACK_CHECKPOINTS_MAX_AGE="2d",
        TAKEBACK_CHECKPOINTS_MAX_BYTES="1MB",
        TAKEBACK_CHECKPOINTS_MAX_FILE="5",
        TAKEBACK_CHECKPOINTS_EXCLUDE="*.log:tmp/:",
        TAKEBACK_CHECKPOINTS_SCAN_DEADLINE="none",
        TAKEBACK_LOCK_TIMEOUT="0.25",
        TAKEBACK_WATCH_SETTLE="0.1",
        TAKEBACK_WATCH_BUSY="9s",
        TAKEBACK_HOOKS_GRANULARITY="session",
        TAKEBACK_HOOKS_MESSAGE="1",
        TAKEBACK_HOOKS_FAILURE="open",
        TAKEBACK_RESIDENT="1",
        TAKEBACK_HOOKS_IDLE="2m",
        TAKEBACK_HOOKS_HTTP_PORT="3000",
        TAKEBACK_GIT_ENABLED="1",
        TAKEBACK_AUTOPILOT="1",
        TAKEBACK_HOME=str(place.root),
        TAKEBACK_PORTABLE="1",
        EMAIL_PROVIDER="gmail",
        TAKEBACK_SMTP_URL="smtps://other",
        TAKEBACK_SMTP_FROM="you@example.com",
        GMAIL_ACCESS_TOKEN="g",
        GMAIL_API_BASE="http://g",
        OUTLOOK_ACCESS_TOKEN="o",
        OUTLOOK_API_BASE="http://o",
        TAKEBACK_THREADS_STORE="local",
        TAKEBACK_WALRUS_PUBLISHER="http://127.0.0.1:3",
        TAKEBACK_WALRUS_AGGREGATOR="http://127.0.0.1:4/",
        TAKEBACK_WALRUS_EPOCHS="2",
        TAKEBACK_WALRUS_DELETABLE="1",
        TAKEBACK_WALRUS_KEY_FILE="/k",
    )
    assert settings == Settings(
        home=place.root,
        enabled=True,
        keep=3,
        max_age=2 * 86400,
        max_bytes=1_000_000,
        max_file=5,
        exclude=("*.log", "tmp/"),
        scan_deadline=None,
        lock_timeout=0.25,
        settle=0.1,
        busy=9.0,
        granularity="session",
        idle=120.0,
        http_port=3000,
        portable=True,
        sources=settings.sources,
        config=place.config,
        policy=OUTSIDE["policy"],
        autopilot=True,
        calls=OUTSIDE["calls"],
        credentials=OUTSIDE["credentials"],
        functions=OUTSIDE["functions"],
        provider="gmail",
        smtp_url="smtps://other",
        smtp_from="you@example.com",
        gmail_access_token="g",
        gmail_api_base="http://g",
        outlook_access_token="o",
        outlook_api_base="http://o",
        threads_store="local",
        walrus_publisher="http://127.0.0.1:3",
        walrus_aggregator="http://127.0.0.1:4/",
        walrus_epochs=2,
        walrus_deletable=True,
        walrus_key_file="/k",
    )
    for setting, (_, _, source) in zip(SETTINGS, settings.rows()):
        assert source == (str(place.config) if setting.key in IN_FILES_ONLY else f"environment {setting.env}")


def test_what_is_private_is_shown_as_set(place: Place) -> None:
    place.user(EVERYTHING)
    place.project('[email]\nsmtp_url = "smtp://stolen:hunter2@x"\n')
    settings = place.load()
    shown = repr(settings.rows()) + repr(settings.ignored)
    assert "secret" not in shown and "hunter2" not in shown
    assert ("email.smtp_url", "set", str(place.config)) in settings.rows()
    assert settings.smtp_url == OUTSIDE["smtp_url"], "the project's file says nothing about where mail goes"
    assert ("walrus.publisher", "https://publisher.example", str(place.config)) in settings.rows(), (
        "a path may be a key"
    )


@pytest.mark.parametrize(
    "line",
    [
        'publisher = "https://evil.example"',
        'aggregator = "https://evil.example"',
        "epochs = 1",
        "deletable = false",
        'key_file = "/tmp/known.key"',
        'threads/ store = "walrus"',
    ],
)
def test_a_project_says_nothing_about_where_state_goes(place: Place, line: str) -> None:
    table, _, line = line.rpartition("/ ")
    place.project(f"[{table or 'walrus'}]\n{line}\n")
    settings = place.load()
    assert settings._replace(ignored=()) == Settings(settings.home, sources=settings.sources, config=place.config)
    assert f"{table or 'walrus'}.{line.split()[0]}" in settings.ignored[0]


@pytest.mark.parametrize(
    "line",
    [
        'publisher = "publisher.example"',
        'publisher = "ftp://publisher.example"',
        'publisher = "https://user:password@publisher.example"',
        'publisher = "https://publisher.example/?epochs=1"',
        "epochs = 0",
        'key_file = "walrus.key"',
    ],
)
def test_what_walrus_cannot_be_set_to(place: Place, line: str) -> None:
    place.user(f"[walrus]\n{line}\n")
    with pytest.raises(UsageError, match="must be"):
        place.load()


def test_a_variable_that_others_use_too_stops_nothing(place: Place) -> None:
    settings = place.load(EMAIL_PROVIDER="sendgrid")
    assert settings.provider == ""
    assert "EMAIL_PROVIDER must be" in settings.ignored[0]


def test_an_empty_variable_is_none_at_all(place: Place) -> None:
    names = [setting.env for setting in SETTINGS if setting.env]
    assert load(None, place.environ | dict.fromkeys(("TAKEBACK", *names), "")).keep == 200


# Off and on


@pytest.mark.parametrize(
    ("config", "environ", "flag", "off_source"),
    [
        (True, {}, False, ""),
        (True, {}, True, "--off"),
        (True, {"TAKEBACK": "off"}, False, "environment TAKEBACK"),
        (True, {"TAKEBACK": "OFF"}, False, "environment TAKEBACK"),
        (True, {"TAKEBACK_CHECKPOINTS_ENABLED": "false"}, False, "environment TAKEBACK_CHECKPOINTS_ENABLED"),
        (True, {"TAKEBACK_CHECKPOINTS_ENABLED": "false", "TAKEBACK": "on"}, False, ""),
        (False, {}, False, "CONFIG"),
        (False, {"TAKEBACK": "on"}, False, ""),
        (False, {"TAKEBACK": "on"}, True, "--off"),
    ],
)
def test_off(place: Place, config: bool, environ: dict[str, str], flag: bool, off_source: str) -> None:
    if not config:
        place.user("checkpoints.enabled = false\n")
    settings = place.load(off=flag, **environ)
    assert settings.off_source == off_source.replace("CONFIG", str(place.config))
    assert settings.enabled is (off_source == "")


def test_takeback_is_on_or_off(place: Place) -> None:
    with pytest.raises(UsageError, match="TAKEBACK='maybe'"):
        place.load(TAKEBACK="maybe")


# What a project may ask for


@pytest.mark.parametrize(
    ("line", "attribute", "value"),
    [
        ("checkpoints.keep = 1000", "keep", 1000),
        ('checkpoints.max_age = "90d"', "max_age", 90 * 86400),
        ('checkpoints.max_bytes = "20GB"', "max_bytes", 20 * 1000**3),
        ('checkpoints.max_file = "2GB"', "max_file", 2 * 1000**3),
        ("lock_timeout = 60", "lock_timeout", 60.0),
    ],
)
def test_a_project_may_widen(place: Place, line: str, attribute: str, value: object) -> None:
    place.project(line)
    settings = place.load()
    assert getattr(settings, attribute) == value
    assert settings.ignored == ()
    assert settings.sources[line.partition(" ")[0]] == ".takeback.toml"


@pytest.mark.parametrize(
    ("line", "attribute"),
    [
        ("checkpoints.enabled = false", "enabled"),
        ("checkpoints.keep = 1", "keep"),
        ('checkpoints.max_age = "1s"', "max_age"),
        ("checkpoints.max_bytes = 1", "max_bytes"),
        ("checkpoints.max_file = 1", "max_file"),
        ("checkpoints.scan_deadline = 3600", "scan_deadline"),
        ("lock_timeout = 0", "lock_timeout"),
    ],
)
def test_a_project_may_not_lessen(place: Place, line: str, attribute: str) -> None:
    place.project(line)
    settings = place.load()
    assert getattr(settings, attribute) == Settings._field_defaults[attribute]
    (sentence,) = settings.ignored
    assert line.partition(" ")[0] in sentence and str(place.config) in sentence
    assert settings.sources[line.partition(" ")[0]] == "default"


def test_widening_is_judged_against_the_users_values(place: Place) -> None:
    place.user("[checkpoints]\nenabled = false\nkeep = 10\nscan_deadline = 5\n")
    place.project('[checkpoints]\nenabled = true\nkeep = 20\nscan_deadline = "none"\n')
    settings = place.load()
    assert (settings.enabled, settings.keep, settings.scan_deadline) == (True, 20, None)
    assert settings.ignored == ()


def test_the_same_value_keeps_its_source(place: Place) -> None:
    place.project("checkpoints.keep = 200")
    assert place.load().sources["checkpoints.keep"] == "default"


def test_a_projects_excludes_are_kept_apart(place: Place) -> None:
    place.user('checkpoints.exclude = ["mine"]')
    place.project('checkpoints.exclude = ["theirs"]')
    settings = place.load()
    assert settings.exclude == ("mine",) and settings.project_exclude == ("theirs",)
    assert ("checkpoints.exclude", ["mine"], str(place.config)) in settings.rows()
    assert ("checkpoints.project_exclude", ["theirs"], ".takeback.toml") in settings.rows()


def test_without_a_root_no_project_file_is_read(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.project("nonsense")
    monkeypatch.chdir(place.root)
    assert load(None, place.environ).keep == 200


# Where things are


def test_home_must_be_absolute(place: Place) -> None:
    with pytest.raises(UsageError, match="TAKEBACK_HOME must be an absolute path, not 'here'"):
        place.load(TAKEBACK_HOME="here")


def test_a_relative_xdg_folder_is_ignored(place: Place) -> None:
    settings = load(None, {"XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "HOME": "/home/ada"})
    assert settings.home.is_absolute() and settings.home.name == "takeback"


@pytest.mark.skipif(sys.platform != "linux", reason="what Linux does")
def test_the_folders_are_those_platformdirs_names(monkeypatch: pytest.MonkeyPatch) -> None:
    import platformdirs

    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    assert load(None, {"HOME": "/home/ada"}).home == platformdirs.user_state_path("takeback", appauthor=False)
    assert user_config({"HOME": "/home/ada"}).parent == platformdirs.user_config_path("takeback", appauthor=False)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere platformdirs is asked")
def test_start_up_loads_nothing_heavy(place: Place) -> None:
    program = (
        "import sys, pathlib; from takeback.config import settings; from takeback.look import coverage as rules; "
        "rules.load_rules(settings.load(pathlib.Path('/'), {'HOME': '/nowhere'}), None); "
        "print(sorted({'platformdirs', 'pathspec', 'sqlite3'} & set(sys.modules)))"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# Bad input


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[checkpoints]\nkeep = \n", "FILE, line 2, keep: Invalid value"),
        ("[checkpoints]\nkeep = 1\nkeep = 2\n", "FILE, line 3, keep: Cannot overwrite a value"),
        ("[checkpoints\n", "FILE, line 1: Expected ']'"),
        ('a = "x', "FILE, line 1, a: Unterminated string"),
        ("a = " + "[" * 5000, "FILE, line 1"),
        ("a = " + "1" * 5000, "FILE, line 1"),
        ("[checkpoints]\nkep = 1\n", "unknown setting checkpoints.kep in FILE, line 2 (did you mean keep?)"),
        ("[checkpoint]\nkeep = 1\n", "unknown setting checkpoint in FILE, line 1"),
        ("lock_timeuot = 1\n", "unknown setting lock_timeuot in FILE, line 1 (did you mean lock_timeout?)"),
        ("checkpoints.zebra = 1\n", "unknown setting checkpoints.zebra in FILE, line 1"),
        ("[nonsense]\nx = 1\n", "unknown setting nonsense in FILE, line 1"),
        ("[policy]\nx = 1\n", "FILE, line 1: policy must be a table"),
        ('[policy.http]\ncompensating = "maybe"\n', "FILE, line 1: policy must be a table"),
        ('[credentials.KEY]\norigins = "https://x"\n', "FILE, line 1: credentials must be tables"),
        ('[email]\nprovider = "pigeon"\n', 'email.provider must be "gmail", "outlook" or "smtp"'),
        (
            "\n[checkpoints]\n# keep = 1\nkeep = '5'\n",
            "FILE, line 4: checkpoints.keep must be a whole number",
        ),
        ("checkpoints = { keep = '5' }\n", "FILE: checkpoints.keep must be a whole number"),
        ("checkpoints.keep = 0", "FILE, line 1: checkpoints.keep must be"),
        ("checkpoints.keep = true", "checkpoints.keep must be a whole number of at least 1, not true"),
        ("checkpoints.keep = 1.5", "checkpoints.keep must be"),
        ("checkpoints.keep = [1]", "checkpoints.keep must be"),
        ("checkpoints.keep = 9223372036854775808", "checkpoints.keep must be"),
        ("checkpoints.enabled = 1", "checkpoints.enabled must be true or false, not 1"),
        ("checkpoints.max_age = 30", "checkpoints.max_age must be a duration with its unit"),
        ("checkpoints.max_age = '30 moons'", "checkpoints.max_age must be"),
        ("checkpoints.max_bytes = '-1GB'", "checkpoints.max_bytes must be a size"),
        ("checkpoints.max_file = 2026-01-01", "checkpoints.max_file must be a size"),
        ("checkpoints.exclude = '*.iso'", "checkpoints.exclude must be a list of gitignore patterns"),
        ("checkpoints.exclude = [1]", "checkpoints.exclude must be a list"),
        ("checkpoints.scan_deadline = 0", "checkpoints.scan_deadline must be"),
        ("lock_timeout = -1", "lock_timeout must be seconds"),
        ("lock_timeout = nan", "lock_timeout must be seconds"),
        ("lock_timeout = inf", "lock_timeout must be seconds"),
        ("[[checkpoints]]\nkeep = 1", "FILE, line 1: checkpoints must be a table"),
        ("checkpoints = 5", "FILE, line 1: checkpoints must be a table, not 5"),
        ("home = '/x'", "FILE, line 1: home cannot be set in a file"),
    ],
)
def test_a_bad_file_is_named_with_line_and_key(place: Place, text: str, said: str) -> None:
    place.config.write_text(text)
    with pytest.raises(UsageError) as error:
        place.load()
    assert said.replace("FILE", str(place.config)) in error.value.message
    assert error.value.hint
    place.config.unlink()
    file = place.root / ".takeback.toml"
    file.write_text(text)  # the project's own does not count then, and does not stop an undo either
    settings = place.load()
    assert said.replace("FILE", str(file)) in settings.broken
    assert settings.keep == Settings._field_defaults["keep"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("TAKEBACK_CHECKPOINTS_ENABLED", "perhaps"),
        ("TAKEBACK_CHECKPOINTS_KEEP", "many"),
        ("TAKEBACK_CHECKPOINTS_KEEP", "-1"),
        ("TAKEBACK_CHECKPOINTS_MAX_AGE", "30"),
        ("TAKEBACK_CHECKPOINTS_MAX_BYTES", "lots"),
        ("TAKEBACK_CHECKPOINTS_SCAN_DEADLINE", "0"),
        ("TAKEBACK_LOCK_TIMEOUT", "soon"),
        ("TAKEBACK_PORTABLE", "2"),
        ("TAKEBACK_CHECKPOINTS_KEP", "1"),
    ],
)
def test_a_bad_variable_is_named(place: Place, name: str, text: str) -> None:
    with pytest.raises(UsageError, match=name) as error:
        load(None, place.environ | {name: text})
    assert error.value.hint


def test_text_that_is_not_utf8(place: Place) -> None:
    place.config.write_bytes(b"lock_timeout = 1\n# caf\xe9\n")
    with pytest.raises(UsageError, match="line 2: not UTF-8"):
        place.load()


def test_a_byte_order_mark_is_no_error(place: Place) -> None:
    place.config.write_bytes(b"\xef\xbb\xbflock_timeout = 1\r\n")
    assert place.load().lock_timeout == 1.0


def test_a_link_to_nowhere(place: Place) -> None:
    place.config.symlink_to("gone")
    with pytest.raises(UsageError, match="is a link to nowhere"):
        place.load()


def test_a_folder_or_a_pipe_is_no_file(place: Place) -> None:
    place.config.mkdir()
    with pytest.raises(UsageError, match=r"is not a regular file|cannot read"):
        place.load()
    place.config.rmdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(place.root / ".takeback.toml")
        assert "is not a regular file" in place.load().broken


def test_a_configuration_is_never_large(place: Place) -> None:
    place.config.write_text("#" * 2_000_000)
    with pytest.raises(UsageError, match="larger than any configuration"):
        place.load()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file(place: Place) -> None:
    place.user("")
    place.config.chmod(0)
    with pytest.raises(UsageError, match=r"cannot read .*Permission denied"):
        place.load()


def test_a_file_in_place_of_a_folder(place: Place) -> None:
    place.config.parent.rmdir()
    place.config.parent.write_text("")
    with pytest.raises(UsageError, match="cannot read"):
        place.load()


# What agents may do


def test_autopilot_has_an_address_and_is_part_of_the_policy(place: Place) -> None:
    place.user("[policy]\nautopilot = true\n")
    settings = place.load()
    assert ("policy.autopilot", True, str(place.config)) in settings.rows()
    assert settings.policy.autopilot and settings.autopilot


def test_the_environment_turns_autopilot_on_and_never_off(place: Place) -> None:
    settings = place.load(TAKEBACK_AUTOPILOT="1")
    assert settings.policy.autopilot
    assert ("policy.autopilot", True, "environment TAKEBACK_AUTOPILOT") in settings.rows()
    place.user("[policy]\nautopilot = true\n")
    settings = place.load(TAKEBACK_AUTOPILOT="0")
    assert settings.policy.autopilot
    assert ("policy.autopilot", True, str(place.config)) in settings.rows()


def test_a_project_turns_autopilot_on_and_never_off(place: Place) -> None:
    place.project("[policy]\nautopilot = true\n")
    assert place.load().autopilot
    place.user("[policy]\nautopilot = true\n")
    place.project("[policy]\nautopilot = false\n")
    settings = place.load()
    assert settings.autopilot and "policy.autopilot" in settings.ignored[0]


def test_a_project_only_tightens_what_agents_may_do(place: Place) -> None:
    place.user('[policy.calls]\nhttp = "allow"\n')
    place.project('[policy.calls]\npush = "refuse"\nhttp = "ask"\noutside = "ask"\npublish = "allow"\n')
    settings = place.load()
    assert settings.policy.call("push").decision == "refuse"
    assert settings.policy.call("http").decision == "ask"
    assert settings.policy.call("outside").decision == "ask"
    assert settings.policy.call("publish").decision == "ask"
    assert len(settings.ignored) == 1 and "policy.calls.publish" in settings.ignored[0]
    assert settings.sources["policy.calls"] == ".takeback.toml"


def test_a_project_cannot_loosen_all_at_once(place: Place) -> None:
    place.user('[policy.calls]\npush = "refuse"\n')
    place.project('[policy.calls]\nall = "allow"\n')
    settings = place.load()
    assert settings.policy.call("push").decision == "refuse" and settings.policy.call("http").decision == "ask"
    place.project('[policy.calls]\nall = "refuse"\n')
    assert place.load().policy.call("http").decision == "refuse"


def test_a_kind_of_call_that_does_not_exist_is_named(place: Place) -> None:
    place.user('[policy.calls]\npsuh = "refuse"\n')
    with pytest.raises(UsageError) as raised:
        place.load()
    assert "the kinds are push" in raised.value.hint


def test_domains_and_calls_stand_side_by_side(place: Place) -> None:
    place.user('[policy]\nautopilot = true\n[policy.http]\ncompensating = "allow"\n[policy.calls]\nall = "ask"\n')
    policy = place.load().policy
    assert policy.decide("http", "compensating").decision == "allow"
    assert policy.decide("http", "irreversible").decision == "refuse"
    assert policy.call("push") == ("ask", "[policy.calls] all")
    assert policy.call("outside").decision == "allow"
