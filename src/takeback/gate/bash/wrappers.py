"""Commands that run another command, as data: how the inner one is found in their words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .words import named


class Wrapper(NamedTuple):
    """The inner command begins after the options and so many further words."""

    values: frozenset[str] = frozenset()  # options that take the next word
    skip: int = 0
    code: frozenset[str] = frozenset()  # options whose value is a command line of its own
    elsewhere: bool = False  # it runs in a container: its paths are not ours
    joins: bool = False  # its words, joined, are a command line
    folder: frozenset[str] = frozenset()  # options whose value is where it runs
    after: frozenset[str] = frozenset()  # the inner command begins behind one of these, and there is none without


def _w(values: str = "", skip: int = 0, code: str = "", elsewhere: bool = False, joins: bool = False,
       folder: str = "") -> Wrapper:  # fmt: skip
    return Wrapper(named(f"{values} {code} {folder}"), skip, named(code), elsewhere, joins, named(folder))


_RUN = _w("-p --package --with --python -c --directory --project --env-file -n --name --group --extra")
_CONTAINER = _w(
    "-e --env -u --user -w --workdir -v --volume --name --network --entrypoint -p --publish --mount --env-file -h "
    "--hostname --platform -l --label -m --memory --cpus --add-host --index --profile",
    skip=1,
    elsewhere=True,
)

WRAPPERS: dict[str, Wrapper] = {
    "sudo": _w(
        "-u --user -g --group -p --prompt -h --host -C --close-from -T --command-timeout -R --chroot -r --role -t "
        "--type -U --other-user -a",
        folder="-D --chdir",
    ),
    "doas": _w("-u -C -a"),
    "env": _w("-u --unset -P", code="-S --split-string", folder="-C --chdir"),
    "timeout": _w("-s --signal -k --kill-after", skip=1),
    "gtimeout": _w("-s --signal -k --kill-after", skip=1),
    "nice": _w("-n --adjustment"),
    "ionice": _w("-c --class -n --classdata -p --pid"),
    "chrt": _w("-T -P -D", skip=1),
    "taskset": _w(skip=1),
    "nohup": _w(),
    "setsid": _w(),
    "stdbuf": _w("-i --input -o --output -e --error"),
    "unbuffer": _w(),
    "rlwrap": _w("-H -f -s -P -S -b"),
    "time": _w("-f --format -o --output"),
    "gtime": _w("-f --format -o --output"),
    "coproc": _w(),
    "command": _w(),
    "builtin": _w(),
    "exec": _w("-a"),
    "busybox": _w(),
    "toybox": _w(),
    "strace": _w("-o -e -p -s -u -E -P -I -O -S -a -b --trace --output"),
    "ltrace": _w("-o -e -p -s -u -l -n -a"),
    "caffeinate": _w("-t -w"),
    "watch": _w("-n --interval", joins=True),
    "chroot": _w("--userspec --groups", skip=1, elsewhere=True),
    "unshare": _w("-S -G -R -w --setuid --setgid --root --wd --map-user --map-group"),
    "nsenter": _w("-t --target -S -G"),
    "setpriv": _w("--reuid --regid --groups --inh-caps --ambient-caps --bounding-set"),
    "systemd-run": _w("-p --property -u --unit --slice -E --setenv -M --machine --description --uid --gid"),
    "systemd-inhibit": _w("--what --who --why --mode"),
    "xvfb-run": _w("-n -s -e -f -w --server-num --server-args"),
    "dbus-run-session": _w("--config-file"),
    "faketime": _w("-f", skip=1),
    "proxychains": _w("-f"),
    "proxychains4": _w("-f"),
    "torsocks": _w("-P -a -u -p"),
    "pkexec": _w("--user -u"),
    "ssh-agent": _w("-a -t -E -P"),
    "gosu": _w(skip=1),
    "su-exec": _w(skip=1),
    "firejail": _w(),
    "bwrap": _w("--bind --ro-bind --dev-bind --proc --dev --tmpfs --chdir --setenv"),
    "flock": _w("-w --timeout -E --conflict-exit-code", skip=1, code="-c --command"),
    "script": _w(
        "-I -O -B -T -E -m -o --log-in --log-out --log-io --log-timing --echo --logging-format --output-limit",
        skip=1,
        code="-c --command",
    ),
    "su": _w("-s --shell -g --group -G --supp-group -w", skip=1, code="-c --command --session-command"),
    "runuser": _w("-u --user -g -G -s --shell", code="-c --command"),
    "nix-shell": _w("-p --packages -I -A --attr", skip=99, code="--run --command"),
    "npx": _w("-p --package", code="-c --call"),
    "bunx": _w("-p --package"),
    "pnpx": _w("-p --package"),
    "uvx": _w("--from --with --python -p --index-url"),
    "dotenv": _w("-e -f -v -c"),
    "hyperfine": _w("-w --warmup -r --runs -m -M -n --export-json --export-markdown", joins=True),
    "entr": _w(),
    "direnv exec": _w(skip=1),
    "mise exec": _w(),
    "mise x": _w(),
    "asdf exec": _w(),
    "uv run": _RUN,
    "uv tool run": _RUN,
    "poetry run": _RUN,
    "pdm run": _RUN,
    "rye run": _RUN,
    "hatch run": _RUN,
    "pipenv run": _RUN,
    "pipx run": _w("--spec --python"),
    "pixi run": _RUN,
    "conda run": _w("-n --name -p --prefix --cwd"),
    "mamba run": _w("-n --name -p --prefix --cwd"),
    "bundle exec": _w(),
    "npm exec": _w("-p --package", code="-c --call"),
    "npm x": _w("-p --package", code="-c --call"),
    "pnpm exec": _w(),
    "pnpm dlx": _w("--package"),
    "yarn exec": _w(),
    "yarn dlx": _w("-p --package"),
    "bun x": _w(),
    "op run": _w("--env-file"),
    "doppler run": _w("-p --project -c --config", code="--command"),
    "aws-vault exec": _w("-d --duration", skip=1),
    "nix develop": Wrapper(after=named("-c --command")),
    "nix shell": Wrapper(after=named("-c --command")),
    "docker-compose exec": _CONTAINER,
    "docker-compose run": _CONTAINER,
    "takeback run": _w("-C"),
    "docker exec": _CONTAINER,
    "podman exec": _CONTAINER,
    "docker run": _CONTAINER,
    "podman run": _CONTAINER,
    "kubectl exec": _w("-n --namespace -c --container --context", skip=1, elsewhere=True),
    "git bisect run": _w(),
    "xargs": _w("-I -i -n -P -L -s -d -E -a --replace --max-args --max-procs --max-lines --delimiter --arg-file"),
    "parallel": _w("-j --jobs -I -a --arg-file -N -n -d --delimiter --colsep --joblog --results --tmpdir", joins=True),
}

SHELLS = named("sh bash dash zsh ksh mksh ash fish rbash yash")
KEYWORDS = named("{ } ! then do else fi done elif if while until")

# Programs that print what a shell's start-up files evaluate: known to set variables and functions, and no more.
_SETUP = named(
    "pyenv rbenv nodenv jenv goenv plenv tfenv starship zoxide direnv mise rtx asdf fnm opam conda mamba micromamba "
    "brew atuin mcfly dircolors gdircolors lesspipe keychain luarocks register-python-argcomplete thefuck tmuxifier"
)
_SETS_UP = named("init hook shellenv activate env shell.bash shell.zsh shell.posix path --alias -b")


def is_setup(words: Sequence[str]) -> bool:
    """`pyenv init -`, `kubectl completion bash`: what they print may be evaluated."""
    program, *rest = words
    if not re.fullmatch(r"[\w.-]+|/[\w./-]+", program):
        return False
    name, verb = program.rpartition("/")[2], rest[0] if rest else ""
    if verb in ("completion", "completions") and len(rest) < 4:
        return re.fullmatch(r"[\w-]+", name) is not None
    return name in _SETUP and (verb in _SETS_UP or name in ("dircolors", "gdircolors", "lesspipe", "keychain"))
