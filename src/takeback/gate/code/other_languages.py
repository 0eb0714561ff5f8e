"""Commands inside programs of other languages: literal strings that they hand to a shell or start as a process."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from takeback.gate.bash.words import UNKNOWN, named

from .inputs import is_ssh

_STARTS = named(
    "system popen run call check_call check_output Popen spawn spawnl spawnlp spawnv spawnvp spawnve execl execlp "
    "execv "
    "execvp execve execvpe getoutput getstatusoutput create_subprocess_shell create_subprocess_exec posix_spawn "
    "posix_spawnp"
)
_LITERAL = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|`((?:[^`\\]|\\.)*)`", re.DOTALL)


def language_of(name: str) -> str:
    """A program's name without its version: python3.12 is python."""
    found = re.fullmatch(r"(python|pypy|perl|ruby|node|php|lua|tclsh|vim?|nvim)[\d.]*", name)
    return found[1] if found else name


_QUOTED = r"\s*['\"`]([^'\"`\n]+)['\"`]"
_LOADS: Mapping[str, re.Pattern[str]] = {
    "python": re.compile(r"\b(?:(?:run_path|execfile)\(|exec\(.{0,40}?open\()" + _QUOTED),
    "node": re.compile(r"(?:\b(?:require|import|fork|Worker)\s*\(?|\bfrom\b)" + _QUOTED),
    "ruby": re.compile(r"\b(?:load|require_relative|require)\s*\(?" + _QUOTED),
    "perl": re.compile(r"\b(?:do|require)\s*\(?" + _QUOTED),
    "php": re.compile(r"\b(?:require|include)(?:_once)?\s*\(?" + _QUOTED),
}
_ALIKE = {"pypy": "python", "nodejs": "node", "bun": "node", "deno": "node", "tsx": "node", "ts-node": "node"}


def loaded_by(language: str, code: str) -> list[str]:
    """Files that code in plain sight runs, where it writes their names out; a library's name is none."""
    known = _LOADS.get(_ALIKE.get(language, language))
    found = known.findall(code) if known is not None else []
    return [name for name in found if (name.startswith((".", "/")) or "." in name) and not name.endswith(".json")]


def commands_in(language: str, code: str) -> list[str]:
    """The command lines that a program starts, where it writes them out."""
    if language in ("python", "pypy"):
        found = _in_python(code)
        return found if found is not None else _in_text(code)
    if language in ("expect", "tclsh"):
        lines = re.split(r"[;\n]", code)
        spawned = [re.sub(r"^\s*(?:spawn|exec|eval\s+spawn)\s+(?:-\w+\s+)*", "", line) for line in lines
                   if re.match(r"\s*(?:spawn|exec|eval\s+spawn)\b", line)]  # fmt: skip
        sent = re.findall(r"send\s+(?:--\s+)?[\"{](.*?)(?:\\[rn])*[\"}]", code)
        return [*spawned, *sent]
    if language in ("vim", "vi", "nvim", "ex"):
        return [code.strip().lstrip(":").lstrip("!")] if code.strip().lstrip(":").startswith("!") else _in_text(code)
    if language in ("pwsh", "powershell"):
        return [code]
    if language == "sed":
        return _sed(["sed", "-e", code])
    return _in_text(code)


def _in_text(code: str) -> list[str]:
    """Strings after a word that starts processes, and strings in backticks; several are taken as one command too."""
    found = []
    for call in re.finditer(
        r"\b(?:system|exec\w*|spawn\w*|popen\w*|Popen|shell_exec|passthru|execute|script|run)\b|qx|%x", code
    ):
        rest = code[call.end() : call.end() + 2000]
        if re.match(r"\s*[\(\[{\"'` ]", rest):
            statement = re.split(r"\)\s*(?:;|\n|$)|;\s*\n|\n", rest, maxsplit=1)[0]
            literals = [a or b or c for a, b, c in _LITERAL.findall(statement)]
            if literals:
                found.append(literals[0])
                found.append(" ".join(literals))
            if inside := re.match(r"\s*[({\[](.*?)[)}\]]", rest, re.DOTALL):
                if not literals:
                    found.append(inside[1])
    found += re.findall(r"`([^`$]+)`", code)
    found += re.findall(r'"([^"\n]+)"\s*\|&?\s*getline', code) + re.findall(r'\|&?\s*"([^"\n]+)"', code)  # awk's
    return list(dict.fromkeys(re.sub(r"\\(.)", r"\1", text) for text in found))


def _in_python(code: str) -> list[str] | None:
    import ast

    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    known: dict[str, Any] = {}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            known[node.targets[0].id] = node.value
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in _STARTS:
            given = [*node.args, *(k.value for k in node.keywords if k.arg in ("args", "cmd"))]
            said = [_literal(ast, argument, known) for argument in given]
            words = [word for part in said for word in part]
            if len(words) == 1:
                found.append(words[0])
            elif words:
                skip = 1 if called.startswith(("exec", "spawn", "posix_spawn")) and len(given) > 1 else 0
                for start in {0, skip}:
                    found.append(" ".join("'" + w.replace("'", "'\\''") + "'" for w in words[start:]))
    return found


def _literal(ast: Any, node: Any, known: dict[str, Any], depth: int = 0) -> list[str]:
    """The strings that an expression is made of, as words."""
    if depth > 20:
        return []
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bytes):
            return [node.value.decode("utf-8", "replace")]
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.Name) and node.id in known:
        return _literal(ast, known[node.id], known, depth + 1)
    if isinstance(node, (ast.List, ast.Tuple)):
        return [word for each in node.elts for word in _literal(ast, each, known, depth + 1)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _literal(ast, node.left, known, depth + 1), _literal(ast, node.right, known, depth + 1)
        is_list = any(isinstance(side, (ast.List, ast.Tuple)) for side in (node.left, node.right))
        return [*left, *right] if is_list else ["".join([*left, *right])]
    if isinstance(node, ast.JoinedStr):
        return ["".join(word for part in node.values for word in _literal(ast, part, known, depth + 1))]
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("split", "join", "format"):
        text = _literal(ast, node.func.value, known, depth + 1)
        if node.func.attr == "split":
            return [word for line in text for word in line.split()]
        if node.func.attr == "join" and node.args:
            return [(text or [""])[0].join(_literal(ast, node.args[0], known, depth + 1))]
        return text
    return []


_GIT_RUNS = re.compile(
    r"core\.(?:pager|editor|sshcommand|fsmonitor|askpass|gitproxy)|sequence\.editor|diff\.external|interactive\.difffilter|"
    r"pager\..+|difftool\..+|mergetool\..+|gpg\.(?:.+\.)?program|filter\..+\.(?:clean|smudge|process)|"
    r"diff\..+\.(?:textconv|command)|merge\..+\.driver|trailer\..+\.(?:command|cmd)|tar\..+\.command|"
    r"(?:browser|man)\..+\.(?:cmd|path)|remote\..+\.(?:uploadpack|receivepack)|uploadpack\.packobjectshook|sendemail\.(?:smtpserver|tocmd|cccmd|headercmd)"
)
_GIT_SETS = re.compile(  # keys that set how git works, and run nothing
    r"(?:user|author|committer|color|column|advice|init|commit|http|https|log|rebase|fetch|push|pull|branch|remote|gc|pack|"
    r"i18n|format|grep|status|stash|submodule|tag|transfer|blame|feature|index|lfs|maintenance|notes|checkout|clean|apply|"
    r"safe|receive|rerere|help|showbranch|worktree|versionsort|url|credential|alias|am|bitmap|diff|merge|extensions)\..+|"
    r"core\.(?!attributesfile|excludesfile|worktree).+|protocol\.(?:version|file\.allow)"
)


def git_runs(key: str) -> bool:
    """Whether what git is told by a key is a command line."""
    return _GIT_RUNS.fullmatch(key) is not None


def git_sets(key: str) -> bool:
    """Whether a key is known to run nothing."""
    return _GIT_SETS.fullmatch(key) is not None


_SUBSTITUTES = re.compile(r"s([^\w\s\\])((?:\\.|(?!\1).)*)\1((?:\\.|(?!\1).)*)\1([a-zA-Z0-9]*)", re.DOTALL)
_SED_RUNS = re.compile(
    r"(?:^|[;{\n])\s*(?:\d+|\$|/[^/]*/)?(?:,(?:\d+|\$|/[^/]*/))?\s*!?\s*e(?:\s+([^\n]+)|\s*(?=$|[;}\n]))"
)


def _is_verb(words: Sequence[str], at: int) -> bool:
    return not words[at].startswith("-") and words[at - 1] not in (
        "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env")  # fmt: skip


def git_config(words: Sequence[str], assigned: Mapping[str, str]) -> dict[str, str]:
    """What git is told for this one command, by option or in its environment."""
    found = {}
    for number in range(100):
        if (key := assigned.get(f"GIT_CONFIG_KEY_{number}")) is None:
            break
        found[key.lower()] = assigned.get(f"GIT_CONFIG_VALUE_{number}", UNKNOWN)
    verb = next((at for at in range(1, len(words)) if _is_verb(words, at)), len(words))
    for at, word in enumerate(words[:-1]):
        if word == "-c" and (at < verb or words[verb : verb + 1] == ["clone"]):
            key, _, value = words[at + 1].partition("=")
            found[key.lower()] = value
        elif word.startswith("--config-env=") or word == "--config-env":
            key, _, variable = (word.partition("=")[2] or words[at + 1]).partition("=")
            found[key.lower()] = assigned.get(variable, UNKNOWN)
    return found


def _git(words: Sequence[str], assigned: Mapping[str, str]) -> list[str]:
    """Command lines that git is told to run: aliases, editors, pagers."""
    found: list[str] = []
    for key, value in git_config(words, assigned).items():
        if git_runs(key):
            if not (key == "core.fsmonitor" and value.lower() in ("true", "false")):
                found.append(value)
        elif value.startswith("!") and (key.startswith("credential") or (key[:6] == "alias." and key[6:] in words)):
            found.append(value[1:])
    found = [value for value in found if not is_ssh(value)]
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        if word.startswith("ext::"):
            parts = [part.replace("% ", " ") for part in re.split(r"(?<!%) ", word[5:])]
            found.append(" ".join("'" + part.replace("'", "'\\''") + "'" for part in parts))
        elif "grep" in words[:at] and (opened := re.fullmatch(r"(?:-O|--open-files-in-pager=)(.+)", word)) is not None:
            found.append(opened[1])
        if word in ("-x", "--exec", "--extcmd") and {"rebase", "difftool"} & set(words):
            found.append(following)
        elif word.startswith(("--exec=", "--extcmd=")) and {"rebase", "difftool"} & set(words):
            found.append(word.partition("=")[2])
        elif (served := re.fullmatch(r"(--(?:upload|receive)-\w*|--exec)(?:=(.*))?", word, re.DOTALL)) is not None:
            found.append(served[2] if served[2] is not None else following)
        elif (served := re.fullmatch(r"-u(.*)", word, re.DOTALL)) and {"clone", "ls-remote"} & set(words[1:at]):
            found.append(served[1] or following)
        elif "filter-branch" in words and re.fullmatch(r"--(?:\w+-filter|setup)", word):
            found.append(following)
        elif word == "foreach" and "submodule" in words:
            found.append(" ".join(w for w in words[at + 1 :] if w not in ("--recursive", "--quiet")))
    return found


def _sed(words: Sequence[str]) -> list[str]:
    """What GNU sed runs: its e command, and what a substitution with that flag leaves."""
    scripts: list[str] = []
    plain: list[str] = []
    at = 1
    while at < len(words):
        if words[at] in ("-e", "--expression") or re.fullmatch(r"-[nErsuz]+e", words[at]):
            scripts += words[at + 1 : at + 2]
            at += 1
        elif words[at].startswith("--expression="):
            scripts.append(words[at].partition("=")[2])
        elif not words[at].startswith("-"):
            plain.append(words[at])
        at += 1
    found = []
    for script in scripts or plain[:1]:
        if len(script) > 5000:
            return [UNKNOWN]
        for _, _, made, flags in _SUBSTITUTES.findall(script):
            if "e" in flags.partition("w")[0]:
                found.append(UNKNOWN if re.search(r"(?<!\\)&|\\\d", made) else made)
        found += [run or UNKNOWN for run in _SED_RUNS.findall(_SUBSTITUTES.sub("", script))]
    return found


def _make(words: Sequence[str], stdin: str | None) -> list[str]:
    """Recipes and $(shell …) of a makefile in its words or its input."""
    given = [w.partition("=")[2] for w in words if w.startswith("--eval=")]
    given += [words[at + 1] for at, w in enumerate(words[:-1]) if w in ("--eval", "-E")]
    found = re.findall(r"^\t@?-?(.+)", stdin or "", re.MULTILINE)
    for text in (*given, stdin or ""):
        found += re.findall(r"\$[({]shell\s+([^)}]*)", text)
        found += re.findall(r"\w[^:=\n]{0,200}:[^=;\n]{0,200};\s*@?([^\n]+)", text)
    for text in given:
        found += re.findall(r"(?:^|\n|\\n)\t?@?([^\n]+)", text)
    return found


def inner(name: str, words: Sequence[str], stdin: str | None, assigned: Mapping[str, str] = {}) -> list[str]:
    """Command lines in the words of programs that are no wrappers but start something on request."""
    found: list[str] = []
    if name == "git":
        found += _git(words, assigned)
    elif name in ("sed", "gsed"):
        found += _sed(words)
    elif name in ("tmux", "screen"):
        started = {"new", "new-session", "new-window", "neww", "split-window", "splitw", "send-keys", "send",
                   "run-shell",
                   "run", "respawn-pane", "stuff"}  # fmt: skip
        for at, word in enumerate(words):
            if word in started:
                found += [w.replace("\\n", "") for w in words[at + 1 :] if " " in w]
                found.append(
                    " ".join(w for w in words[at + 1 :] if not w.startswith("-") and w not in ("Enter", "C-m"))
                )
        if name == "screen":
            found.append(" ".join(w for w in words[1:] if not w.startswith("-")))
            found.append(" ".join([w for w in words[1:] if not w.startswith("-")][1:]))
    elif name == "socat":
        found += [m for word in words for m in re.findall(r"(?:EXEC|SYSTEM):\"?([^,\"]+)", word, re.IGNORECASE)]
    elif name in ("psql", "sqlite3", "mysql", "mariadb"):
        for text in (*words[1:], stdin or ""):
            found += re.findall(r"(?:^|\n)\s*(?:\\!|\.shell|\.system|system)\s+(.+)", text)
    elif name in ("nc", "ncat", "netcat"):
        found += [words[at + 1] for at, w in enumerate(words[:-1]) if w in ("-e", "-c", "--exec", "--sh-exec")]
    elif name == "make" or name == "gmake":
        found += _make(words, stdin)
    elif name == "tar":
        found += [w.partition("exec=")[2] for w in words if w.startswith("--checkpoint-action=exec=")]
    elif name in ("cmd", "cmd.exe"):
        lowered = [w.lower() for w in words]
        found += [" ".join(words[lowered.index(flag) + 1 :]) for flag in ("/c", "/k") if flag in lowered]
    return [text for text in found if text.strip()]
