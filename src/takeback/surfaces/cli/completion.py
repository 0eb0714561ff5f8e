"""completion: a script for the shell, generated from the verbs and their options."""

from __future__ import annotations

from ...errors import UsageError
from .verbs import VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from .context import Context
    from .parsing import Parser

_GLOBAL = ("-C", "--json", "--yes", "--quiet", "--no-color", "--off", "--help")
_SHELLS = ("bash", "zsh", "fish")


def add(parser: Parser) -> None:
    parser.synopsis = "bash|zsh|fish"
    parser.about = "Prints a completion script for your shell."
    parser.takes("SHELL", "shell", nargs="?", default="", help="bash, zsh or fish")
    parser.examples = [
        ('eval "$(takeback completion bash)"', "in ~/.bashrc"),
        ('eval "$(takeback completion zsh)"', "in ~/.zshrc, after compinit"),
        ("takeback completion fish | source", "in ~/.config/fish/config.fish"),
    ]


def run(context: Context, args: Namespace) -> int:
    makers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    if args.shell not in makers:
        raise UsageError("name a shell: " + ", ".join(_SHELLS), "takeback completion bash")
    context.terminal.write(makers[args.shell]())
    return 0


def _options(verb: str) -> list[str]:
    """The long options of one verb, beside those of all."""
    from .parsing import parser_of

    flags = [flag for action in parser_of(verb)._actions for flag in action.option_strings]
    return [f for f in flags if f.startswith("--") and f not in (*_GLOBAL, "--bare")]


def _bash() -> str:
    cases = "\n".join(f'    {verb}) options="{" ".join(_options(verb))}" ;;' for verb in VERBS)
    return f"""\
_takeback() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} verb= options= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in
      -C) ((i++)) ;;
      -*) ;;
      *) verb=${{COMP_WORDS[i]}}; break ;;
    esac
  done
  if [[ ${{COMP_WORDS[COMP_CWORD-1]}} == -C ]]; then
    COMPREPLY=($(compgen -d -- "$word")); return
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
      plan) COMPREPLY=($(compgen -W "undo redo rollback revert restore" -- "$word")) ;;
      config) COMPREPLY=($(compgen -W "rules confirm" -- "$word")) ;;
      completion) COMPREPLY=($(compgen -W "{" ".join(_SHELLS)}" -- "$word")) ;;
      *) COMPREPLY=($(compgen -f -- "$word")) ;;
    esac
  fi
}}
complete -o filenames -F _takeback takeback"""


def _zsh() -> str:
    verbs = "\n".join(f"    '{verb}:{about.replace(':', '')}'" for verb, (_, about) in VERBS.items())
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
  else
    _files
  fi
}}
compdef _takeback takeback"""


def _fish() -> str:
    names = " ".join(VERBS)
    first = f"complete -c takeback -n 'not __fish_seen_subcommand_from {names}'"
    lines = [f"{first} -f"]
    for verb, (_, about) in VERBS.items():
        plain = about.replace("'", "")
        lines.append(f"{first} -a {verb} -d '{plain}'")
        lines += [
            f"complete -c takeback -n '__fish_seen_subcommand_from {verb}' -l {option[2:]}" for option in _options(verb)
        ]
    lines += [f"complete -c takeback -l {option[2:]}" for option in _GLOBAL if option.startswith("--")]
    return "\n".join(lines)
