"""The settings of one run: what each may be, where it came from, and what a project may not lessen.

    default  <  your configuration  <  .takeback.toml, where it widens  <  environment  <  --off

The project's file may ask for more coverage and never for less: an agent can write it. What it asks
for in vain is said in `Settings.ignored`.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from takeback.errors import UsageError
from takeback.text.units import LARGEST, format_duration, format_size, parse_duration, parse_size

from . import policy, toml_file
from .policy import Policy
from .toml_file import did_you_mean, shown

PROJECT_FILE = ".takeback.toml"


class Kind(NamedTuple):
    """A kind of value: how it is described, read from TOML, taken from text, and shown."""

    expects: str
    read: Callable[[Any], Any]  # raises ValueError or UsageError
    from_text: Callable[[str], object] = str
    show: Callable[[Any], str] = str


def _read_switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _switch_from_text(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError


def _read_count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST:
        raise ValueError
    return value


def _read_port(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not (value == 0 or 1024 <= value <= 65535):
        raise ValueError
    return value


def _read_size(value: Any) -> int:
    return parse_size(value) if isinstance(value, str) else _read_count(value)


def _read_age(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError
    return math.ceil(parse_duration(value))


def _read_wait(value: Any) -> float:
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LARGEST:
        raise ValueError
    return float(value)


def _read_deadline(value: Any) -> float | None:
    if value == "none":
        return None
    seconds = _read_wait(value)
    if seconds == 0:
        raise ValueError
    return seconds


def _seconds_from_text(text: str) -> object:
    return float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else text


def _read_patterns(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(pattern, str) for pattern in value):
        raise ValueError
    return tuple(value)


def _read_home(value: Any) -> Path:
    if not Path(value).is_absolute():
        raise UsageError("it is not an absolute path", hint="write the whole path, from the root")
    return Path(value)


def _read_text_value(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _read_address(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"https?://[^/?#@\s]+(/[^?#\s]*)?", value):
        raise ValueError
    return value


def _origin(address: str) -> str:
    """As it is shown: the path of an address may be its owner's key."""
    return "/".join(address.split("/")[:3]) or "none"


def _read_absolute(value: Any) -> str:
    if not isinstance(value, str) or not os.path.isabs(value):
        raise ValueError
    return value


def _read_provider(value: Any) -> str:
    if value not in ("", "gmail", "outlook", "smtp"):
        raise ValueError
    return str(value)


def _one_of(*words: str) -> Kind:
    """One of a few words."""

    def read(value: Any) -> str:
        if value not in words:
            raise ValueError
        return str(value)

    return Kind(" or ".join(f'"{word}"' for word in words), read)


SWITCH = Kind("true or false", _read_switch, _switch_from_text, lambda on: "true" if on else "false")
COUNT = Kind("a whole number of at least 1", _read_count, int)
PORT = Kind("a port from 1024 to 65535, or 0 for none", _read_port, int)
SIZE = Kind('a size, such as "5GB"', _read_size, str, format_size)
AGE = Kind('a duration with its unit, such as "30d"', _read_age, str, format_duration)
WAIT = Kind('seconds, or a duration such as "1m"', _read_wait, _seconds_from_text, format_duration)
DEADLINE = Kind(
    'seconds, a duration such as "20s", or "none"',
    _read_deadline,
    _seconds_from_text,
    lambda seconds: "none" if seconds is None else format_duration(seconds),
)
PATTERNS = Kind(
    'a list of gitignore patterns, such as ["*.iso", "data/"]',
    _read_patterns,
    lambda text: [pattern for pattern in text.split(":") if pattern],
    lambda patterns: " ".join(patterns) or "none",
)
TEXT = Kind("text", _read_text_value, show=lambda value: value or "none")
SECRET = Kind("text", _read_text_value, show=lambda value: "set" if value else "none")
PROVIDER = Kind('"gmail", "outlook" or "smtp"', _read_provider, show=lambda value: value or "none")
ADDRESS = Kind('an address, such as "https://publisher.example.com"', _read_address, show=_origin)
FILE = Kind("an absolute path", _read_absolute, show=lambda path: path or "none")
POLICY = Kind(
    'a table such as [policy.http] with compensating = "allow", "ask" or "refuse"', policy.read, show=policy.shown
)
CALLS = Kind(
    'a table such as [policy.calls] with push = "allow", "ask" or "refuse"', policy.read_calls, show=policy.shown_calls
)
CREDENTIALS = Kind(
    'tables such as [credentials.STRIPE_KEY] with origins = ["https://api.stripe.com"]',
    policy.read_credentials,
    show=lambda bound: " ".join(f"{name}→{','.join(origins)}" for name, origins in bound.items()) or "none",
)
NAMES = Kind(
    'a list of names such as ["package.module:function"]', _read_patterns, show=lambda n: " ".join(n) or "none"
)
FOLDER = Kind("an absolute path", _read_home, show=lambda path: str(path or "the system's state folder"))


def _smaller(new: Any, old: Any) -> bool:
    return bool(new < old)


def _larger(new: Any, old: Any) -> bool:
    return bool(new > old)


def _turned_off(new: Any, old: Any) -> bool:
    return bool(old and not new)


def _always(new: Any, old: Any) -> bool:
    return bool(new != old)


def _never(new: Any, old: Any) -> bool:
    return False


def _sooner(new: float | None, old: float | None) -> bool:
    return new is not None and (old is None or new < old)


def _opened(new: str, old: str) -> bool:
    return new == "open" and old == "closed"


_SHOWN = (SECRET, ADDRESS, POLICY, CREDENTIALS)  # as a person reads them: no secret, no nested table
_NO_SOURCES: Mapping[str, str] = {}
_NO_CREDENTIALS: Mapping[str, tuple[str, ...]] = {}
_NO_CALLS: Mapping[str, str] = {}


class Settings(NamedTuple):
    """What holds for this run, each value with its source."""

    home: Path
    enabled: bool = True
    keep: int = 200
    max_age: int = 30 * 86400
    max_bytes: int = 10 * 1000**3
    max_file: int = 1000**3
    exclude: tuple[str, ...] = ()
    project_exclude: tuple[str, ...] = ()
    scan_deadline: float | None = None
    lock_timeout: float = 30.0
    portable: bool = False
    settle: float = 0.5
    busy: float = 5.0
    granularity: str = "turn"
    message: bool = True
    failure: str = "open"
    resident: bool = True
    idle: float = 1800.0
    http_port: int = 0
    git: bool = True
    policy: Policy = Policy()  # with the two below in it
    autopilot: bool = False
    calls: Mapping[str, str] = _NO_CALLS  # what agents may do that cannot be taken back, by kind
    credentials: Mapping[str, tuple[str, ...]] = _NO_CREDENTIALS  # names, and the origins they are bound to
    functions: tuple[str, ...] = ()  # what may be called to undo a harness's own act
    provider: str = ""
    smtp_url: str = ""
    smtp_from: str = ""
    gmail_access_token: str = ""
    gmail_api_base: str = "https://gmail.googleapis.com"
    outlook_access_token: str = ""
    outlook_api_base: str = "https://graph.microsoft.com/v1.0"
    threads_store: str = "local"
    walrus_publisher: str = "https://publisher.walrus-testnet.walrus.space"
    walrus_aggregator: str = "https://aggregator.walrus-testnet.walrus.space"
    walrus_epochs: int = 5
    walrus_deletable: bool = True
    walrus_key_file: str = ""
    sources: Mapping[str, str] = _NO_SOURCES
    ignored: tuple[str, ...] = ()
    broken: str = ""  # why the project's file does not count at all
    config: Path = Path()  # the user's own file that they were read from, whether or not it is there

    @property
    def off_source(self) -> str:
        """What turned takeback off, or nothing while it is on."""
        return "" if self.enabled else self.sources.get("checkpoints.enabled", "settings")

    def rows(self) -> list[tuple[str, Any, str]]:
        """Every setting as (key, value for JSON, source)."""
        rows = []
        for setting in SETTINGS:
            value = getattr(self, setting.attribute)
            value = setting.kind.show(value) if setting.kind in _SHOWN else _for_json(value)
            rows.append((setting.key, value, self.sources.get(setting.key, "default")))
            if setting.key == "checkpoints.exclude" and self.project_exclude:
                rows.append(("checkpoints.project_exclude", list(self.project_exclude), PROJECT_FILE))
        return rows


_DEFAULTS = Settings._field_defaults


class Setting(NamedTuple):
    """One setting: everything that reading, showing and documenting it needs."""

    key: str
    kind: Kind
    default: Any
    env: str
    doc: str
    # Whether a project's value would lessen what is protected (new, old). None: kept apart until a
    # person confirms.
    lessens: Callable[[Any, Any], bool] | None = None
    in_files: bool = True
    field: str = ""  # in Settings, where it is not called like the last part of the key

    @property
    def attribute(self) -> str:
        """The name of its field in Settings."""
        return self.field or self.key.rpartition(".")[2]


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "checkpoints.enabled",
        SWITCH,
        _DEFAULTS["enabled"],
        "TAKEBACK_CHECKPOINTS_ENABLED",
        "Whether anything is captured at all; TAKEBACK=on and TAKEBACK=off go before it.",
        _turned_off,
    ),
    Setting(
        "checkpoints.keep",
        COUNT,
        _DEFAULTS["keep"],
        "TAKEBACK_CHECKPOINTS_KEEP",
        "How many checkpoints are kept before the oldest are pruned, and of each thread how many states. What is "
        "younger than a day is never pruned by itself: until then there may be more, and takeback status says how "
        "many.",
        _smaller,
    ),
    Setting(
        "checkpoints.max_age",
        AGE,
        _DEFAULTS["max_age"],
        "TAKEBACK_CHECKPOINTS_MAX_AGE",
        "How long history is kept; never less than a day. Of a thread, the head stays however old it is.",
        _smaller,
    ),
    Setting(
        "checkpoints.max_bytes",
        SIZE,
        _DEFAULTS["max_bytes"],
        "TAKEBACK_CHECKPOINTS_MAX_BYTES",
        "How large the store of a workspace may grow before it is pruned. What is younger than a day is not pruned "
        "for it; where that is too much, files from 4 MB on are named and not captured.",
        _smaller,
    ),
    Setting(
        "checkpoints.max_file",
        SIZE,
        _DEFAULTS["max_file"],
        "TAKEBACK_CHECKPOINTS_MAX_FILE",
        "Files that take more than this on disk are named as not captured.",
        _smaller,
    ),
    Setting(
        "checkpoints.exclude",
        PATTERNS,
        _DEFAULTS["exclude"],
        "TAKEBACK_CHECKPOINTS_EXCLUDE",
        "What is not captured, in the syntax of .gitignore; separated by colons in the environment.",
    ),
    Setting(
        "checkpoints.scan_deadline",
        DEADLINE,
        _DEFAULTS["scan_deadline"],
        "TAKEBACK_CHECKPOINTS_SCAN_DEADLINE",
        "After this long a scan stops and the checkpoint is partial. By default never by hand, after 20 s in hooks.",
        _sooner,
    ),
    Setting(
        "lock_timeout",
        WAIT,
        _DEFAULTS["lock_timeout"],
        "TAKEBACK_LOCK_TIMEOUT",
        "How long a writer waits for another before it gives up with exit code 11.",
        _smaller,
    ),
    Setting(
        "watch.settle",
        WAIT,
        _DEFAULTS["settle"],
        "TAKEBACK_WATCH_SETTLE",
        "How long the tree has to be still before watch makes what changed one effect.",
        _larger,
    ),
    Setting(
        "watch.busy",
        WAIT,
        _DEFAULTS["busy"],
        "TAKEBACK_WATCH_BUSY",
        "How long watch waits for that: a tree that is never still is captured this often.",
        _larger,
    ),
    Setting(
        "hooks.granularity",
        _one_of("call", "turn", "session"),
        _DEFAULTS["granularity"],
        "TAKEBACK_HOOKS_GRANULARITY",
        "How often an agent's work gets a checkpoint: before each call, each turn, or once a session.",
        _always,
    ),
    Setting(
        "hooks.message",
        SWITCH,
        _DEFAULTS["message"],
        "TAKEBACK_HOOKS_MESSAGE",
        "Whether an agent that can show it says in a line which checkpoint lies before a call.",
        _never,
    ),
    Setting(
        "hooks.failure",
        _one_of("open", "closed"),
        _DEFAULTS["failure"],
        "TAKEBACK_HOOKS_FAILURE",
        "What a hook does that cannot capture: let the call go on, with a loud record, or stop it.",
        _opened,
    ),
    Setting(
        "hooks.resident",
        SWITCH,
        _DEFAULTS["resident"],
        "TAKEBACK_RESIDENT",
        "Whether hooks leave a process behind that keeps workspaces open and watched, so that the next one is fast.",
        _always,
    ),
    Setting(
        "hooks.idle",
        WAIT,
        _DEFAULTS["idle"],
        "TAKEBACK_HOOKS_IDLE",
        "How long that process waits for the next hook before it ends.",
        _always,
    ),
    Setting(
        "hooks.http_port",
        PORT,
        _DEFAULTS["http_port"],
        "TAKEBACK_HOOKS_HTTP_PORT",
        "The loopback port on which that process answers HTTP hooks; 0 for none. With one it does not end by itself.",
        _always,
    ),
    Setting(
        "git.enabled",
        SWITCH,
        _DEFAULTS["git"],
        "TAKEBACK_GIT_ENABLED",
        "Whether branches, tags, the index and the stash are recorded around an agent's calls and taken back.",
        _turned_off,
        field="git",
    ),
    Setting(
        "policy",
        POLICY,
        _DEFAULTS["policy"],
        "",
        "What may run, must be asked or is refused, per domain and verdict; a project may only tighten it.",
    ),
    Setting(
        "policy.autopilot",
        SWITCH,
        _DEFAULTS["autopilot"],
        "TAKEBACK_AUTOPILOT",
        "Whether what cannot be undone is refused instead of asked for; the environment can only turn it on.",
        _turned_off,
    ),
    Setting(
        "policy.calls",
        CALLS,
        _DEFAULTS["calls"],
        "",
        "What an agent's call may do that cannot be taken back, by kind; a project may only tighten it.",
    ),
    Setting(
        "credentials",
        CREDENTIALS,
        _DEFAULTS["credentials"],
        "",
        "Where the value of an environment variable may be sent by an inverse, without being asked each time.",
        _always,
    ),
    Setting(
        "python.functions",
        NAMES,
        _DEFAULTS["functions"],
        "",
        "Functions that may be called to take back what a harness did, as package.module:function.",
        _always,
    ),
    Setting(
        "email.provider",
        PROVIDER,
        _DEFAULTS["provider"],
        "EMAIL_PROVIDER",
        "How mail is held and sent: gmail, outlook or smtp.",
        _always,
    ),
    Setting(
        "email.smtp_url",
        SECRET,
        _DEFAULTS["smtp_url"],
        "TAKEBACK_SMTP_URL",
        "The server that releases mail of the local outbox: smtp://user:password@host:587, or smtps://.",
        _always,
    ),
    Setting(
        "email.smtp_from",
        TEXT,
        _DEFAULTS["smtp_from"],
        "TAKEBACK_SMTP_FROM",
        "The sender of mail released through the SMTP server.",
        _always,
    ),
    Setting(
        "email.gmail_access_token",
        SECRET,
        _DEFAULTS["gmail_access_token"],
        "GMAIL_ACCESS_TOKEN",
        "The OAuth token for Gmail drafts.",
        _always,
    ),
    Setting(
        "email.gmail_api_base",
        TEXT,
        _DEFAULTS["gmail_api_base"],
        "GMAIL_API_BASE",
        "Where Gmail's API is.",
        _always,
    ),
    Setting(
        "email.outlook_access_token",
        SECRET,
        _DEFAULTS["outlook_access_token"],
        "OUTLOOK_ACCESS_TOKEN",
        "The OAuth token for Microsoft 365 messages.",
        _always,
    ),
    Setting(
        "email.outlook_api_base",
        TEXT,
        _DEFAULTS["outlook_api_base"],
        "OUTLOOK_API_BASE",
        "Where Microsoft Graph is.",
        _always,
    ),
    Setting(
        "threads.store",
        _one_of("local", "walrus"),
        _DEFAULTS["threads_store"],
        "TAKEBACK_THREADS_STORE",
        "Where the values of threads go that are saved from now on, from whatever surface: into the store here, or to "
        "Walrus, encrypted.",
        _always,
        field="threads_store",
    ),
    Setting(
        "walrus.publisher",
        ADDRESS,
        _DEFAULTS["walrus_publisher"],
        "TAKEBACK_WALRUS_PUBLISHER",
        "Where state is uploaded to that is kept on Walrus, encrypted.",
        _always,
        field="walrus_publisher",
    ),
    Setting(
        "walrus.aggregator",
        ADDRESS,
        _DEFAULTS["walrus_aggregator"],
        "TAKEBACK_WALRUS_AGGREGATOR",
        "Where it is read from again.",
        _always,
        field="walrus_aggregator",
    ),
    Setting(
        "walrus.epochs",
        COUNT,
        _DEFAULTS["walrus_epochs"],
        "TAKEBACK_WALRUS_EPOCHS",
        "For how many of the network's epochs it is paid and kept; after them it is gone.",
        _always,
        field="walrus_epochs",
    ),
    Setting(
        "walrus.deletable",
        SWITCH,
        _DEFAULTS["walrus_deletable"],
        "TAKEBACK_WALRUS_DELETABLE",
        "Whether the owner of the publisher's wallet may delete it before that.",
        _always,
        field="walrus_deletable",
    ),
    Setting(
        "walrus.key_file",
        FILE,
        _DEFAULTS["walrus_key_file"],
        "TAKEBACK_WALRUS_KEY_FILE",
        "A file of mode 0600 with the key it is encrypted with; TAKEBACK_WALRUS_KEY goes before it. By default "
        "walrus.key beside your configuration, made at the first upload.",
        _always,
        field="walrus_key_file",
    ),
    Setting(
        "home",
        FOLDER,
        None,
        "TAKEBACK_HOME",
        "The folder of the store; by default takeback/ in the state folder of the system.",
        in_files=False,
    ),
    Setting(
        "portable",
        SWITCH,
        _DEFAULTS["portable"],
        "TAKEBACK_PORTABLE",
        "Use only what every system has: no folder descriptors, flock, openat2 or reflink.",
        in_files=False,
    ),
)

_BY_KEY = {setting.key: setting for setting in SETTINGS}


def load(
    root: Path | None, environ: Mapping[str, str], off: bool = False, config: Path | None = None, wary: bool = False
) -> Settings:
    """The settings that hold in this root; without a root the project's file is not read. `config` is the user's own
    file, where the environment must not say which; `wary` of an environment that an agent chose, nothing in it counts
    that protects less (setting_place.py)."""
    values = {setting.key: setting.default for setting in SETTINGS}
    sources = {setting.key: "default" for setting in SETTINGS}
    project_exclude: tuple[str, ...] = ()
    ignored = []

    user_file = config or user_config(environ)
    for setting, value in _read_file(user_file):
        values[setting.key], sources[setting.key] = value, str(user_file)
    ignored += _unknown_domains(values["policy"], str(user_file))

    from_project: list[tuple[Setting, Any]] = []
    broken = ""
    try:
        from_project = list(_read_file(root / PROJECT_FILE)) if root else []
    except UsageError as error:  # whoever writes there must not be able to stop an undo
        broken = f"{error.message}; nothing in that file counts until it is mended"
    for setting, value in from_project:
        old = values[setting.key]
        if setting.key == "policy.calls":
            calls, in_vain = Policy({}, values["policy.autopilot"], old).calls_tightened(value)
            values[setting.key], sources[setting.key] = calls, PROJECT_FILE if calls != old else sources[setting.key]
            ignored += [
                f"{PROJECT_FILE} sets {what} and does not count; to have it, set it in {user_file}" for what in in_vain
            ]
        elif setting.key == "policy":
            ignored += _unknown_domains(value, PROJECT_FILE)
            values["policy"], in_vain = old.tightened(value)
            sources["policy"] = PROJECT_FILE if values["policy"] != old else sources["policy"]
            ignored += [
                f"{PROJECT_FILE} sets {what} and does not count; to have it, set it in {user_file}" for what in in_vain
            ]
        elif setting.lessens is None:
            project_exclude = value
        elif setting.lessens(value, old):
            ignored.append(
                f"{PROJECT_FILE} sets {setting.key} to {setting.kind.show(value)}, which protects less than "
                f"{setting.kind.show(old)} ({sources[setting.key]}) and does not count; "
                f"to have it, set it in {user_file}"
            )
        elif value != old:
            values[setting.key], sources[setting.key] = value, PROJECT_FILE

    for setting, value in _read_environment(environ, ignored):
        if setting.key == "policy.autopilot" and not value:
            continue  # an agent chooses the environment of what it starts
        if wary and _is_less(setting, value, values[setting.key]):
            ignored.append(f"{setting.env} would protect less, and does not count where an agent is at work")
            continue
        values[setting.key], sources[setting.key] = value, f"environment {setting.env}"

    switch = environ.get("TAKEBACK", "").lower()
    if switch not in ("", "on", "off"):
        raise UsageError(f"TAKEBACK={environ['TAKEBACK']!r} means nothing", hint="set TAKEBACK to on or off")
    if switch:
        values["checkpoints.enabled"] = switch == "on"
        sources["checkpoints.enabled"] = "environment TAKEBACK"
    if off:
        values["checkpoints.enabled"], sources["checkpoints.enabled"] = False, "--off"

    if values["home"] is None:
        values["home"], sources["home"] = _default_home(environ)
    values["policy"] = values["policy"]._replace(autopilot=values["policy.autopilot"], calls=values["policy.calls"])
    fields = {setting.attribute: values[setting.key] for setting in SETTINGS}
    return Settings(**fields, project_exclude=project_exclude, sources=sources, ignored=tuple(ignored), broken=broken,
                    config=user_file)  # fmt: skip


def _is_less(setting: Setting, value: Any, old: Any) -> bool:
    """Whether a variable lessens what a command captures or keeps. TAKEBACK=off is no such: then the command does
    nothing at all, and says so."""
    return _may_lessen(setting) and (setting.lessens or _always)(value, old)


def lessens(environ: Mapping[str, str]) -> bool:
    """Whether a variable is set that may protect less than the files say."""
    return any(environ.get(setting.env) for setting in SETTINGS if _may_lessen(setting))


def _may_lessen(setting: Setting) -> bool:
    is_kind = setting.lessens in (None, _smaller, _larger, _sooner, _opened, _turned_off)
    return is_kind and setting.in_files and setting.key not in ("policy", "policy.autopilot")


def _unknown_domains(found: Policy, file: str) -> list[str]:
    """What a policy says about domains that nobody here knows, as a misspelt one is."""
    if not found.domains:
        return []
    from takeback.domains import known

    names = known(found.domains)
    strange = sorted(found.domains - names)
    if not strange:
        return []
    return [
        f"{file} has [policy.{name}], and no domain is called {name}{did_you_mean(name, names)}" for name in strange
    ]


def user_config(environ: Mapping[str, str]) -> Path:
    """Where the user's configuration is, whether or not the file exists."""
    folder, _ = _system_folder(environ, "XDG_CONFIG_HOME", ".config", "user_config_path")
    return folder / "config.toml"


def system_config() -> Path:
    """Where it is by what the system knows of the user, whatever the environment says."""
    if sys.platform == "win32":
        import platformdirs

        return Path(platformdirs.user_config_path("takeback", appauthor=False), "config.toml")
    import pwd

    try:
        folder = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:  # a user without an entry, as in some containers
        folder = "/"
    under = "Library/Application Support" if sys.platform == "darwin" else ".config"
    return Path(folder, under, "takeback/config.toml")


def home(environ: Mapping[str, str]) -> Path:
    """Where the stores are; no file says anything about it."""
    setting = _BY_KEY["home"]
    if text := environ.get(setting.env, ""):
        chosen: Path = _read_value(setting, text, setting.env, setting.kind.from_text)
        return chosen
    return default_home(environ)


def default_home(environ: Mapping[str, str]) -> Path:
    """Where the stores are when no setting says otherwise."""
    return _default_home(environ)[0]


def _default_home(environ: Mapping[str, str]) -> tuple[Path, str]:
    home, source = _system_folder(environ, "XDG_STATE_HOME", ".local/state", "user_state_path")
    if not home.is_absolute():
        raise UsageError(
            f"the store would be in {home}, which is no absolute path",
            hint="set TAKEBACK_HOME or HOME to one",
        )
    return home, source


def _system_folder(environ: Mapping[str, str], variable: str, under_home: str, name: str) -> tuple[Path, str]:
    """Our folder of one sort, and its source: the XDG variable's, or else the system's own."""
    chosen = environ.get(variable, "")
    if os.path.isabs(chosen):  # XDG: a relative one is to be ignored
        return Path(chosen, "takeback"), f"environment {variable}"
    if sys.platform == "linux":  # what platformdirs says here too, without its 20 ms
        return Path(environ.get("HOME") or os.path.expanduser("~"), under_home, "takeback"), "default"
    import platformdirs

    folder: Path = getattr(platformdirs, name)("takeback", appauthor=False)
    return folder, "default"


def _read_environment(environ: Mapping[str, str], ignored: list[str]) -> Iterator[tuple[Setting, Any]]:
    known = {setting.env for setting in SETTINGS}
    for name in environ:
        if name.startswith("TAKEBACK_CHECKPOINTS_") and name not in known:
            raise UsageError(
                f"unknown setting {name} in the environment{did_you_mean(name, known)}",
                hint="correct it or unset it",
            )
    for setting in SETTINGS:
        if setting.env and (text := environ.get(setting.env, "")):
            try:
                yield setting, _read_value(setting, text, setting.env, setting.kind.from_text)
            except UsageError as error:
                if setting.env.startswith("TAKEBACK"):
                    raise
                ignored.append(f"{error.message}, and does not count")  # other programs mean something by it, too


def _read_file(path: Path) -> Iterator[tuple[Setting, Any]]:
    """The settings in one TOML file; a missing file has none."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return
    except OSError:
        pass  # what reads it says why it cannot
    for key, value, place in toml_file.entries(path, _BY_KEY):
        yield _BY_KEY[key], _read_value(_BY_KEY[key], value, place)


def _read_value(setting: Setting, value: Any, place: str, prepare: Callable[[str], object] | None = None) -> Any:
    try:
        return setting.kind.read(prepare(value) if prepare else value)
    except (ValueError, UsageError) as error:
        hint = error.hint if isinstance(error, UsageError) else ""
        raise UsageError(
            f"{place} must be {setting.kind.expects}, not {shown(value)}",
            hint=hint or f"correct it or remove it; the default is {setting.kind.show(setting.default)}",
        ) from None


def _for_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value
