"""completion: a script for the shell, generated from the verbs and their options."""

from __future__ import annotations

from ...effects import short_id
from ...errors import UsageError
from .terminal import counted, safe
from .verbs import VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...journal import Row
    from .context import Context
    from .parsing import Namespace, Parser

_GLOBAL = ("-C", "--json", "--yes", "--quiet", "--no-color", "--off", "--help")
_SHELLS = ("bash", "zsh", "fish")
_MOST = 200  # names offered, newest first
_NAMED = {  # verb → kinds of journal rows it can be given
    "show": ("checkpoint", "change", "act", "takeback", "turn", "open"),
    "diff": ("checkpoint",),
    "report": ("checkpoint", "change", "act", "takeback", "turn", "open"),
    "rollback": ("checkpoint", "change", "act", "turn", "open"),
    "revert": ("change", "act", "takeback", "turn", "open"),
    "restore": ("checkpoint",),
    "apply": ("plan",),
    "approve": ("plan", "note"),
    "resolve": ("act",),
    "pin": ("checkpoint",),
    "unpin": ("checkpoint",),
}
_AND_PATHS = ("diff", "revert", "restore")
_PATHS = "restore:"  # --names restore:CHECKPOINT: the paths it has, those that are gone among them
_SESSIONS = "session"  # --names session: of agents
_FORMATS = "html md json"  # of a report
_THREAD = "thread"  # --names thread: the threads; thread:NAME: its state checkpoints; adopt: what was handed over
_STATES = 2_000  # rows that are looked at for them


def add(parser: Parser) -> None:
    parser.synopsis = "bash|zsh|fish"
    parser.about = "Prints a completion script for your shell."
    parser.takes("SHELL", "shell", nargs="?", default="", help="bash, zsh or fish")
    parser.takes("--names VERB", "--names", help="the ids and labels VERB can be given; the scripts ask for these")
    parser.examples = [
        ('eval "$(takeback completion bash)"', "in ~/.bashrc"),
        ('eval "$(takeback completion zsh)"', "in ~/.zshrc, after compinit"),
        ("takeback completion fish | source", "in ~/.config/fish/config.fish"),
    ]


def run(context: Context, args: Namespace) -> int:
    if args.names is not None:
        _say_names(context, args.names, *args.after[:1])
        return 0
    makers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    if args.shell not in makers:
        raise UsageError("name a shell: " + ", ".join(_SHELLS), "takeback completion bash")
    context.terminal.write(makers[args.shell]())
    return 0


def _say_names(context: Context, verb: str, begun: str = "") -> None:
    """What a verb can be given, as the scripts ask for it: a name, a tab, what it is. Silent whatever fails."""
    from ... import store
    from ...journal import glimpse

    try:
        if verb.startswith(_PATHS):
            for path in _paths_of(context, verb.removeprefix(_PATHS), begun):
                context.terminal.write(path)
            return
        home = context.settings().home
        root = store.find_root(home, context.cwd)
        of_threads = verb == "adopt" or verb.partition(":")[0] == _THREAD
        if root is None or (verb not in _NAMED and verb != _SESSIONS and not of_threads):
            return
        journal = store.folder_of(home, root) / "journal.db"
        if verb == _SESSIONS:
            named = _sessions(glimpse(journal, ("turn",), _STATES))
        elif of_threads:
            kind = "thread" if verb == "adopt" else "state"
            named = _states(glimpse(journal, (kind,), _STATES), verb)
        else:
            rows = glimpse(journal, _NAMED[verb], _MOST)
            named = [pair for row in rows if row.body is not None for pair in _names(row)]
    except Exception:
        return
    for name, about in named:
        context.terminal.write(f"{name}\t{about}")


def _names(row: Row) -> list[tuple[str, str]]:
    """An entry by its id and, if it has one that can be typed, by its label."""
    body, id = row.body or {}, row.id[:8]
    if row.kind == "note":  # a call of an agent that was stopped
        stopped = body.get("what") in ("asked", "refused")
        return [(id, f"{safe(body['agent'])}: {safe(body['summary'])}")] if stopped else []
    label = body.get("label", "") if row.kind == "checkpoint" else ""
    if row.kind == "checkpoint":
        about = f'checkpoint "{safe(label)}"' if label else "checkpoint"
    elif row.kind == "change":
        about = f"effect, {counted(body['list']['count'], 'path')}"
    elif row.kind == "turn":
        about = f"{safe(body['agent'])} “{safe(body.get('prompt', ''))}”"
    elif row.kind == "open":
        about = f"{safe(body['agent'])}: {safe(body['summary'])}"
    elif row.kind == "act":
        about = f"{safe(body['domain'])}: {safe(body['summary'])}"
    else:
        about = body["request"]["verb"]
    return [(id, about), *([(label, f"checkpoint {id}")] if label and label == safe(label) else [])]


def _paths_of(context: Context, checkpoint: str, begun: str) -> list[str]:
    """Those that begin so, as they are typed where the shell is; what a script cannot say in a line is left out."""
    import os
    from itertools import islice

    with context.open(when_off=True, tell=False) as workspace:
        from ...views import tree_of

        below = os.path.relpath(context.cwd, workspace.root)
        found = (os.path.relpath(path, below) for path, *_ in tree_of(workspace, checkpoint))
        fit = (path for path in found if path.startswith(begun) and path == safe(path) and path[:2] != "..")
        return list(islice(fit, _STATES))


def _sessions(rows: list[Row]) -> list[tuple[str, str]]:
    named: dict[str, str] = {}
    for body in (row.body or {} for row in rows):
        session = body.get("session", "")
        if session and session == safe(session):
            named.setdefault(session, f"{safe(body['agent'])} “{safe(body.get('prompt', ''))}”")
    return list(named.items())[:_MOST]


def _states(rows: list[Row], asked: str) -> list[tuple[str, str]]:
    """Threads by their names, state checkpoints by their ids, handoffs, newest first."""
    named: dict[str, str] = {}
    _, _, thread = asked.partition(":")
    for body, id in ((row.body or {}, row.id) for row in rows):
        if asked == "adopt":
            if body.get("what") == "handoff":
                named[id[:8]] = f"{safe(body['thread'])} for {safe(body['to_agent'])}"
        elif thread and body.get("thread") == thread:
            named.setdefault(short_id(body["id"]), safe(body.get("summary", "")) or "state checkpoint")
        elif not thread and body.get("thread") and body["thread"] == safe(body["thread"]):
            named.setdefault(body["thread"], f"at {short_id(body['id'])}")
    return list(named.items())[:_MOST]


def _options(verb: str) -> list[str]:
    """The long options of one verb, beside those of all."""
    from .parsing import parser_of

    flags = [flag for option in parser_of(verb).options for flag in option.flags]
    return [f for f in flags if f.startswith("--") and f not in (*_GLOBAL, "--bare")]


def _bash() -> str:
    from .thread import TAKES

    cases = "\n".join(f'    {verb}) options="{" ".join(_options(verb))}" ;;' for verb in VERBS)
    return f"""\
_takeback() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} verb= options= after= i name
  local -a where=() words=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in
      -C) where+=(-C "${{COMP_WORDS[++i]}}") ;;
      --) after=1 ;;
      -*) ;;
      *) words+=("${{COMP_WORDS[i]}}") ;;
    esac
  done
  [[ ${{words[0]}} == plan && ${{#words[@]}} -gt 1 ]] && words=("${{words[@]:1}}")
  verb=${{words[0]}}
  if [[ ${{COMP_WORDS[COMP_CWORD-1]}} == -C ]]; then
    COMPREPLY=($(compgen -d -- "$word")); return
  fi
  if [[ $verb == report ]]; then
    case ${{COMP_WORDS[COMP_CWORD-1]}} in
      --format) COMPREPLY=($(compgen -W "{_FORMATS}" -- "$word")); return ;;
      --output) COMPREPLY=($(compgen -f -- "$word")); return ;;
      --session)
        COMPREPLY=()
        while IFS=$'\\t' read -r name _; do
          [[ $name == "$word"* ]] && COMPREPLY+=("$name")
        done < <(takeback "${{where[@]}}" completion --names {_SESSIONS} 2>/dev/null)
        return ;;
    esac
  fi
  case $verb in
{cases}
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options {" ".join(_GLOBAL)}" -- "$word"))
  elif [[ -z $verb ]]; then
    COMPREPLY=($(compgen -W "{" ".join(VERBS)}" -- "$word"))
  else
    case $verb in
      help) COMPREPLY=($(compgen -W "{" ".join(VERBS)}" -- "$word")) ;;
      plan) COMPREPLY=($(compgen -W "undo redo rollback revert restore compensate" -- "$word")) ;;
      record) COMPREPLY=($(compgen -W "http command note" -- "$word")) ;;
      policy) COMPREPLY=($(compgen -W "check" -- "$word")) ;;
      config) COMPREPLY=($(compgen -W "rules confirm" -- "$word")) ;;
      email) COMPREPLY=($(compgen -W "stage release cancel pending" -- "$word")) ;;
      completion) COMPREPLY=($(compgen -W "{" ".join(_SHELLS)}" -- "$word")) ;;
      thread)
        local asked=thread
        [[ ${{words[1]}} == adopt ]] && asked=adopt
        [[ ${{#words[@]}} -gt 2 ]] && asked="thread:${{words[2]}}"
        if [[ ${{#words[@]}} == 1 ]]; then
          COMPREPLY=($(compgen -W "{" ".join(TAKES)}" -- "$word"))
        else
          COMPREPLY=()
          while IFS=$'\\t' read -r name _; do
            [[ $name == "${{word//\\\\/}}"* ]] && COMPREPLY+=("$name")
          done < <(takeback "${{where[@]}}" completion --names "$asked" 2>/dev/null)
          [[ ${{words[1]}} == save && ${{#words[@]}} == 3 ]] && COMPREPLY=($(compgen -f -- "$word"))
        fi ;;
      {"|".join(_NAMED)})
        COMPREPLY=()
        [[ $verb != restore || ${{#words[@]}} == 1 ]] && [[ -z $after ]] && while IFS=$'\\t' read -r name _; do
          [[ $name == "${{word//\\\\/}}"* ]] && COMPREPLY+=("$name")
        done < <(takeback "${{where[@]}}" completion --names "$verb" 2>/dev/null)
        if [[ $verb == restore && ${{#words[@]}} -gt 1 ]]; then
          while IFS= read -r name; do
            [[ $name == "${{word//\\\\/}}"* ]] && COMPREPLY+=("$name")
          done < <(takeback "${{where[@]}}" completion --names "{_PATHS}${{words[1]}}" \
            -- "${{word//\\\\/}}" 2>/dev/null)
          return
        fi
        case $verb in {"|".join(_AND_PATHS)}) COMPREPLY+=($(compgen -f -- "$word")) ;; esac ;;
      *) COMPREPLY=($(compgen -f -- "$word")) ;;
    esac
  fi
}}
complete -o filenames -F _takeback takeback"""


def _zsh() -> str:
    from .thread import TAKES

    plain = str.maketrans({":": "", "'": "’"})  # in single quotes, before a colon that means something
    verbs = "\n".join(f"    '{verb}:{about.translate(plain)}'" for verb, (_, about) in VERBS.items())
    cases = "\n".join(f"      {verb}) options=({' '.join(_options(verb))}) ;;" for verb in VERBS)
    return f"""\
_takeback() {{
  local -a verbs options
  verbs=(
{verbs}
  )
  local verb=${{words[(r)({"|".join(VERBS)})]}}
  if [[ -z $verb || $verb == ${{words[CURRENT]}} ]] && [[ ${{words[CURRENT]}} != -* ]]; then
    _describe verb verbs
    return
  fi
  case $verb in
{cases}
  esac
  if [[ ${{words[CURRENT]}} == -* ]]; then
    compadd -- $options {" ".join(_GLOBAL)}
  elif [[ $verb == help ]]; then
    _describe verb verbs
  elif [[ $verb == report && ${{words[CURRENT-1]}} == --format ]]; then
    compadd -- {_FORMATS}
  elif [[ $verb == report && ${{words[CURRENT-1]}} == --output ]]; then
    _files
  elif [[ $verb == restore && $((CURRENT - words[(i)restore])) -gt 1 ]]; then
    compadd -f -- ${{(f)"$(takeback completion --names {_PATHS}${{words[$((words[(i)restore] + 1))]}} 2>/dev/null)"}}
  elif [[ $verb == thread && $((CURRENT - words[(i)thread])) == 1 ]]; then
    compadd -- {" ".join(TAKES)}
  elif [[ $verb == ({"|".join(_NAMED)}|thread) ]]; then
    local -a names
    local asked=$verb at=${{words[(i)thread]}}
    [[ $verb == report && ${{words[CURRENT-1]}} == --session ]] && asked={_SESSIONS}
    [[ $verb == thread && ${{words[at+1]}} == adopt ]] && asked=adopt
    [[ $verb == thread && $((CURRENT - at)) -gt 2 ]] && asked=thread:${{words[at+2]}}
    names=(${{(f)"$(takeback completion --names $asked 2>/dev/null)"}})
    names=("${{(@)names//:/\\\\:}}")
    names=("${{(@)names/$'\\t'/:}}")
    _describe name names
    [[ $verb == ({"|".join(_AND_PATHS)}) ]] && _files
  else
    _files
  fi
}}
compdef _takeback takeback"""


def _fish() -> str:
    from .thread import TAKES

    names = " ".join(VERBS)
    first = f"complete -c takeback -n 'not __fish_seen_subcommand_from {names}'"
    lines = [f"{first} -f"]
    for verb, (_, about) in VERBS.items():
        plain = about.replace("'", "")
        lines.append(f"{first} -a {verb} -d '{plain}'")
        lines += [
            f"complete -c takeback -n '__fish_seen_subcommand_from {verb}' -l {option[2:]}" for option in _options(verb)
        ]
    for verb in _NAMED:
        first_only = "; and test (count (commandline -opc)) -lt 3" if verb == "restore" else ""
        seen = f"-n '__fish_seen_subcommand_from {verb}{first_only}'"
        only = "" if verb in _AND_PATHS else " -f"
        lines.append(f"complete -c takeback {seen}{only} -a '(takeback completion --names {verb} 2>/dev/null)'")
    in_report = "-n '__fish_seen_subcommand_from report'"
    lines.append(f"complete -c takeback {in_report} -l format -x -a '{_FORMATS}'")
    lines.append(f"complete -c takeback {in_report} -l output -r -F")
    lines.append(f"complete -c takeback {in_report} -l session -x -a '(takeback completion --names {_SESSIONS})'")
    in_restore = "__fish_seen_subcommand_from restore; and test (count (commandline -opc)) -gt 2"
    paths = f"(takeback completion --names {_PATHS}(commandline -opc)[3] 2>/dev/null)"
    lines.append(f"complete -c takeback -n '{in_restore}' -f -a '{paths}'")
    in_thread = "__fish_seen_subcommand_from thread; and test (count (commandline -opc))"
    for count, offered in (
        ("-eq 2", " ".join(TAKES)),
        ("-eq 3", "(takeback completion --names thread 2>/dev/null)"),
        ("-gt 3", "(takeback completion --names thread:(commandline -opc)[4] 2>/dev/null)"),
    ):
        lines.append(f"complete -c takeback -n '{in_thread} {count}' -f -a '{offered}'")
    lines += [f"complete -c takeback -l {option[2:]}" for option in _GLOBAL if option.startswith("--")]
    return "\n".join(lines)
