"""The completion scripts of bash, zsh and fish, made from the verbs and their options. They ask `takeback completion
--names` for whatever a project holds; none of it is ever evaluated, whatever it is called.
"""

from __future__ import annotations

from takeback.surfaces.cli.parsing import parser_of
from takeback.surfaces.cli.verb_list import VERBS
from takeback.surfaces.cli.verbs.back.thread import TAKES

from .nameable import AND_PATHS, NAMED, PATHS, SESSIONS

_GLOBAL = ("-C", "--json", "--yes", "--quiet", "--no-color", "--off", "--help")
_FORMATS = "html md json"  # of a report


def _options(verb: str) -> list[str]:
    """The long options of one verb, beside those of all."""
    flags = [flag for option in parser_of(verb).options for flag in option.flags]
    return [f for f in flags if f.startswith("--") and f not in (*_GLOBAL, "--bare")]


def bash() -> str:
    """Names are quoted here, as they are to stand in the line: what readline does for files leaves $ and ) as they are
    after a slash."""
    cases = "\n".join(f'    {verb}) options="{" ".join(_options(verb))}" ;;' for verb in VERBS)
    return f"""\
_takeback_plain() {{ # a word as it was meant, without the quotes it was typed with
  case $1 in
    \\"*) REPLY=${{1#\\"}} REPLY=${{REPLY%\\"}} ;;
    \\'*) REPLY=${{1#\\'}} REPLY=${{REPLY%\\'}} ; return ;;
    *) REPLY=$1 ;;
  esac
  REPLY=${{REPLY//\\\\/}}
}}
_takeback_offer() {{ # a name, if it begins as the word does, so that the shell reads it back as it is
  [[ $1 == "$begun"* ]] || return
  local name=$1
  case $word in
    \\"*) [[ $name == *[\\!\\\\]* ]] && return
      name=${{name//\\"/\\\\\\"}} name=${{name//\\$/\\\\$}} name=${{name//\\`/\\\\\\`}} ;;
    \\'*) [[ $name == *[\\!\\']* ]] && return ;;
    *) printf -v name %q "$name"
      [[ $name == \\$* ]] || name=${{name//:/\\\\:}} name=${{name//=/\\\\=}} ;;
  esac
  COMPREPLY+=("$name")
}}
_takeback_names() {{
  local name
  while IFS=$'\\t' read -r name _; do _takeback_offer "$name"; done \\
    < <(takeback "${{where[@]}}" completion --names "$@" 2>/dev/null)
}}
_takeback_files() {{ # by readline; where names are offered beside them, or it cannot be asked, by their names
  local name
  [[ ${{#COMPREPLY[@]}} == 0 ]] && compopt -o default 2>/dev/null && return
  while IFS= read -r name; do
    [[ -d $name ]] && name+=/
    _takeback_offer "$name"
  done < <(compgen -f -- "$begun")
  [[ ${{#COMPREPLY[@]}} == 1 && ${{COMPREPLY[0]}} == */ ]] && compopt -o nospace 2>/dev/null
}}
_takeback() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} verb= options= after= begun REPLY i
  local -a where=() words=()
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    _takeback_plain "${{COMP_WORDS[i]}}"
    case $REPLY in
      -C) _takeback_plain "${{COMP_WORDS[++i]}}"; where+=(-C "${{REPLY/#\\~/$HOME}}") ;;
      --) after=1 ;;
      -*) ;;
      *) words+=("$REPLY") ;;
    esac
  done
  _takeback_plain "$word"; begun=$REPLY
  [[ ${{words[0]}} == plan && ${{#words[@]}} -gt 1 ]] && words=("${{words[@]:1}}")
  verb=${{words[0]}}
  if [[ ${{COMP_WORDS[COMP_CWORD-1]}} == -C ]]; then
    compopt -o dirnames 2>/dev/null || _takeback_files; return
  fi
  if [[ $verb == report ]]; then
    case ${{COMP_WORDS[COMP_CWORD-1]}} in
      --format) COMPREPLY=($(compgen -W "{_FORMATS}" -- "$word")); return ;;
      --output) _takeback_files; return ;;
      --session) _takeback_names {SESSIONS}; return ;;
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
      completion) COMPREPLY=($(compgen -W "{" ".join(SCRIPTS)}" -- "$word")) ;;
      thread)
        if [[ ${{#words[@]}} == 1 ]]; then
          COMPREPLY=($(compgen -W "{" ".join(TAKES)}" -- "$word"))
        elif [[ ${{words[1]}} == save && ${{#words[@]}} == 3 ]]; then
          _takeback_files
        elif [[ ${{words[1]}} == adopt ]]; then
          _takeback_names adopt
        else
          _takeback_names "thread${{words[2]:+:${{words[2]}}}}"
        fi ;;
      {"|".join(NAMED)})
        if [[ $verb == restore && ${{#words[@]}} -gt 1 ]]; then
          _takeback_names "{PATHS}${{words[1]}}" -- "$begun"; return
        fi
        [[ -z $after ]] && _takeback_names "$verb"
        case $verb in {"|".join(AND_PATHS)}) _takeback_files ;; esac ;;
      *) _takeback_files ;;
    esac
  fi
}}
complete -F _takeback takeback"""


def zsh() -> str:
    """Of what is described, _describe reads backslashes, and ends a name at a colon. No comments: an interactive zsh
    takes them for commands."""
    plain = str.maketrans({":": "", "'": "’"})  # in single quotes, before a colon that means something
    verbs = "\n".join(f"    '{verb}:{about.translate(plain)}'" for verb, (_, about) in VERBS.items())
    cases = "\n".join(f"      {verb}) options=({' '.join(_options(verb))}) ;;" for verb in VERBS)
    return f"""\
_takeback() {{
  local -a verbs options where names
  local at=${{words[(i)-C]}}
  (( at + 1 < CURRENT )) && where=(-C ${{${{(Q)words[at+1]}}/#\\~/$HOME}})
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
    at=${{words[(i)restore]}}
    names=(${{(f)"$(takeback $where completion --names {PATHS}${{(Q)words[at+1]}} -- "${{(Q)PREFIX}}" 2>/dev/null)"}})
    compadd -f -a names
  elif [[ $verb == thread && $((CURRENT - words[(i)thread])) == 1 ]]; then
    compadd -- {" ".join(TAKES)}
  elif [[ $verb == ({"|".join(NAMED)}|thread) ]]; then
    local asked=$verb
    at=${{words[(i)thread]}}
    [[ $verb == report && ${{words[CURRENT-1]}} == --session ]] && asked={SESSIONS}
    [[ $verb == thread && ${{words[at+1]}} == adopt ]] && asked=adopt
    [[ $verb == thread && $((CURRENT - at)) -gt 2 ]] && asked=thread:${{(Q)words[at+2]}}
    names=(${{(f)"$(takeback $where completion --names $asked 2>/dev/null)"}})
    names=("${{(@)names//\\\\/\\\\\\\\}}")
    names=("${{(@)names//:/\\\\:}}")
    names=("${{(@)names/$'\\t'/:}}")
    _describe name names
    [[ $verb == ({"|".join(AND_PATHS)}) ]] && _files
  else
    _files
  fi
}}
compdef _takeback takeback"""


_FISH = """\
function __takeback_words # the verb and what it was given
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case -C
                set -q words[2]; and set -e words[1]
            case '-*'
            case '*'
                echo -- $words[1]
        end
        set -e words[1]
    end
end
function __takeback_names
    set -l words (commandline -opc)
    set -l where
    if set -l at (contains -i -- -C $words); and test $at -lt (count $words)
        set where -C (string replace -r '^~' $HOME -- $words[(math $at + 1)])
    end
    takeback $where completion --names $argv 2>/dev/null
end"""


def fish() -> str:
    names = " ".join(VERBS)
    first = f"complete -c takeback -n 'not __fish_seen_subcommand_from {names}'"
    lines = [_FISH, f"{first} -f"]
    for verb, (_, about) in VERBS.items():
        plain = about.replace("'", "")
        lines.append(f"{first} -a {verb} -d '{plain}'")
        lines += [
            f"complete -c takeback -n '__fish_seen_subcommand_from {verb}' -l {option[2:]}" for option in _options(verb)
        ]
    for verb in NAMED:
        first_only = "; and test (count (__takeback_words)) -lt 2" if verb == "restore" else ""
        seen = f"-n '__fish_seen_subcommand_from {verb}{first_only}'"
        only = "" if verb in AND_PATHS else " -f"
        lines.append(f"complete -c takeback {seen}{only} -a '(__takeback_names {verb})'")
    in_report = "-n '__fish_seen_subcommand_from report'"
    lines.append(f"complete -c takeback {in_report} -l format -x -a '{_FORMATS}'")
    lines.append(f"complete -c takeback {in_report} -l output -r -F")
    lines.append(f"complete -c takeback {in_report} -l session -x -a '(__takeback_names {SESSIONS})'")
    in_restore = "__fish_seen_subcommand_from restore; and test (count (__takeback_words)) -gt 1"
    paths = f"(__takeback_names {PATHS}(__takeback_words)[2] -- (string unescape -- (commandline -ct)))"
    lines.append(f"complete -c takeback -n '{in_restore}' -f -a '{paths}'")
    in_thread = "__fish_seen_subcommand_from thread; and test (count (__takeback_words))"
    for count, offered in (
        ("-eq 1", " ".join(TAKES)),
        ("-eq 2; and not __fish_seen_subcommand_from adopt", "(__takeback_names thread)"),
        ("-eq 2; and __fish_seen_subcommand_from adopt", "(__takeback_names adopt)"),
        ("-gt 2", "(__takeback_names thread:(__takeback_words)[3])"),
    ):
        lines.append(f"complete -c takeback -n '{in_thread} {count}' -f -a '{offered}'")
    lines += [f"complete -c takeback -l {option[2:]}" for option in _GLOBAL if option.startswith("--")]
    return "\n".join(lines)


SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
