"""Bash text → the simple commands it would run, each with its words resolved, seen through whatever wraps them.

The tree of tree-sitter is walked in the order the shell would run it, with the variables, folders, functions and files
that the text itself sets. What only the running shell could say is UNKNOWN; what is run that nobody can read is kept
in `Shell.unseen`. Both branches of a condition are walked, and a loop over words once for each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from takeback.gate import requests_and_statements
from takeback.gate.code import databases, git_inputs, inputs, other_languages, recipes, sending, taking
from takeback.gate.code.project import Project
from takeback.gate.deadline import Deadline, TooLate

from . import grammar
from .builtins import BUILTINS
from .state import ASSIGNMENT, Command, State, program, resolved
from .words import APART, UNKNOWN, Piece, ansi, bare, fields, in_quotes, loose, named
from .wrappers import KEYWORDS, SHELLS, WRAPPERS, Wrapper, is_setup

_DEEPEST = 16  # wrappers around wrappers
_MOST = 1500  # commands of one text
_MOST_IN_FILES = 1000  # with those in files of the project that it runs
_READING = 1.0  # seconds for all of these files
_GROUPS = re.compile(r"[{}!\s]+")  # tree-sitter takes braces behind a `!` or `time` for one word
_LOOPS = (24, 8, 3, 1)  # words of a loop that are gone through, by how deep it lies in others
_MOST_LISTED = 60  # names that ls prints and that are gone through
_LONGEST = 400_000  # characters of a command that are read
_LONGEST_VALUE = 20_000  # of a variable
_ASSIGNED = 3000  # assignments of one text
_NAMES_BELOW = frozenset({"ls", "fd", "fdfind", "rg", "grep", "git"})  # print names below where they run
_SCRIPT = re.compile(r"\.(?:sh|bash|py|js|mjs|cjs|ts|rb|pl|php)$")  # `uv run x.py`, and what lies on PATH
_LONGEST_READ = 100_000  # characters of a file that flow on to other commands
_PATTERN = re.compile(r"[*?\[]")
SYSTEM = re.compile(r"/(?:usr/|usr/local/|opt/homebrew/)?s?bin/[^/]+$")  # where programs of the machine lie
_SUBSTITUTES = re.compile(r"(?<!\\)(?:\$\(|`)")
_SUBSTITUTED = re.compile(r"(?<!\\)\$\(((?:[^()]|\([^()]*\))*)\)|(?<!\\)`([^`]*)`")
_SUBSCRIPT = re.compile(r"\w\[[^\]]*(?:\$\(|`)")
_TAKE_VARIABLES = named("test [ [[ printf read unset declare typeset local export readonly let mapfile readarray wait")
_OF_THE_SHELL = named(
    ". : [ [[ alias bg break builtin cd command continue declare echo eval exec exit export false fg getopts hash jobs "
    "kill let local mapfile popd printf pushd pwd read readarray readonly return set shift shopt source test trap "
    "true type typeset ulimit umask unalias unset wait"
)
_MACHINES = re.compile(r"/(?:usr/|usr/local/|opt/homebrew/)?s?bin/?")  # folders with programs of the machine
_OPENED = re.compile(r"<>\s*(/dev/(?:tcp|udp)/[^\s;&|)]+)")
_STATEMENTS = named(
    "program list subshell compound_statement do_group else_clause elif_clause if_statement while_statement "
    "case_statement case_item negated_command c_style_for_statement ERROR"
)


class Reaching(NamedTuple):
    """A call of a program in another language, and the file that has it; empty for code in the call itself."""

    kind: str
    what: str
    script: str


class Shell:
    """Walks a text and collects the commands in it."""

    def __init__(self, home: str, matters: Sequence[tuple[str, bool]] = (), project: Project | None = None) -> None:
        self.home = home
        self.project = project  # whose files are read where they are run
        self.sent: list[Reaching] = []  # calls of other languages that reach other machines
        self.unread: list[str] = []  # what is run and was not read, by name
        self._reading: list[str] = []  # the files that are walked just now
        self._script_time: Deadline | None = None
        self._taken: set[tuple[str, str]] = set()  # variables that were judged, with their values
        self.matters = matters  # paths that must not go, and whether each is a folder
        self.deadline = Deadline()
        self.written: dict[str, str] = {}  # by path: what is put into a file, as far as it is known
        self.commands: list[Command] = []
        self.unseen: list[str] = []  # what is run that nobody can read
        self.texts: list[str] = []  # programs in other languages that are run
        self.files: list[tuple[str, str]] = []  # the same in files of the project: what each says, and its name
        self.functions: set[str] = set()  # of the text itself, by name, that it calls
        self.running = ""  # the command that is looked at
        self.guessed = False  # no parser: read by words alone
        self._appended: dict[str, str] = {}  # what was in a file to which something is added
        self._depth = 0
        self._steps = 0
        self._loops = 0
        self._assigned = 0

    # -- text ------------------------------------------------------------------

    def run(self, text: str, state: State, stdin: str | None = None) -> str:
        """Walks a text; returns what it would print, as far as that is known."""
        text = text.replace(APART, " ")
        if self._depth >= _DEEPEST or len(text) > _LONGEST:
            self.cannot_see(text)
            return UNKNOWN
        if UNKNOWN in text and not text.strip(f"{UNKNOWN} \n"):
            self.cannot_see("code that something else prints")
            return UNKNOWN
        for address in _OPENED.findall(text):  # the grammar has no word for it
            self.sent.append(Reaching("http", f"<> {address}", self._reading[-1] if self._reading else ""))
        self._depth += 1
        try:
            parser = grammar.parser()
            if parser is None:
                self.guessed = True
                self.not_read("parts that its words alone do not show (tree-sitter-bash cannot be loaded)")
                return self._by_words(text, state)
            root = parser.parse(grammar.encoded(text.replace(UNKNOWN, "$__unknown__"))).root_node
            if root.has_error:
                self.not_read("a part that the parser makes no sense of")
                self._by_words(text, state.copy())
            return self._walk(root, state, stdin)
        except RecursionError:
            self.cannot_see(text)
            return UNKNOWN
        finally:
            self._depth -= 1

    def _by_words(self, text: str, state: State) -> str:
        for command in loose(text, self.deadline.check):
            words: list[str] = []
            for pieces in command.pieces:
                filled = [_filled(piece, state.variables) for piece in pieces]
                words += fields(filled, self.home)
            writes = [w for pieces in command.writes for w in fields(pieces, self.home)]
            self.simple(words, {}, None, state, writes)
        return UNKNOWN

    def cannot_see(self, what: str, piped: bool = False) -> None:
        """Something is run that cannot be read. In files of the project that is common, and not asked for, unless it
        comes from somewhere else by a pipe."""
        said = what.replace(UNKNOWN, "…").strip()[:200]
        if self._reading and not piped:
            self.unread.append(f"{said} in {self._reading[-1]}")
        else:
            self.unseen.append(said)

    def not_read(self, what: str) -> None:
        """Something is run of which the name is all that is known."""
        self.unread.append(what.replace(UNKNOWN, "…"))

    def content(self, path: str, state: State, missing: str = UNKNOWN) -> str:
        """What a file says when it is come to: as this text wrote it, or as it lies in the project."""
        if path == "/dev/null":
            return ""
        if (wrote := state.written.text(path)) is not None:
            return wrote
        origin = state.written.origin(path)
        if self.project is None or state.elsewhere or origin == UNKNOWN or state.written.is_edited(path):
            return UNKNOWN
        if not self.project.has(origin):
            return missing if self.project.real(origin) else UNKNOWN
        said = self.project.text(origin)
        return UNKNOWN if said is None or len(said) > _LONGEST_READ else said

    # -- statements --------------------------------------------------------------

    def _walk(self, node: Any, state: State, stdin: str | None) -> str:
        kind = node.type
        self.deadline.check()
        self._steps += 1
        if self._steps > 40 * _MOST:
            if self._steps == 40 * _MOST + 1:
                self.cannot_see("a command too long to read")
            return UNKNOWN
        if kind == "command":
            return self._command(node, state, stdin)
        if kind in ("variable_assignment", "variable_assignments", "declaration_command", "unset_command"):
            return self._assignments(node, state)
        if kind == "pipeline":
            return self._pipeline(_named(node), state, stdin)
        if kind == "redirected_statement":
            body, redirects = node.child_by_field_name("body"), node.children_by_field_name("redirect")
            return self._redirected(body, redirects, state, stdin)
        if kind == "list":
            before, first = state.cwd, _first(node)
            said = self._list(node, state, stdin)
            is_whole = node.parent is None or node.parent.type != "list"
            state.astray = state.astray or (is_whole and state.cwd != before and not first.startswith(("cd", "pushd")))
            return said
        if kind == "subshell":
            return self._each(node, state.copy(), stdin)
        if kind == "for_statement":
            return self._for(node, state, stdin)
        if kind in ("while_statement", "c_style_for_statement"):
            return self._while(node, state, stdin)
        if kind in ("if_statement", "case_statement"):
            return self._choice(node, state, stdin)
        if kind == "function_definition":
            name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            if name is not None and body is not None:
                state.functions[_text(name)] = body
            return ""
        if kind in ("comment", "heredoc_body", "heredoc_start", "heredoc_end"):
            return ""
        if kind in _STATEMENTS:
            return self._each(node, state, stdin)
        self._inside(node, state)
        return ""

    def _each(self, node: Any, state: State, stdin: str | None) -> str:
        return "".join([self._walk(child, state, stdin) for child in _named(node)])

    def _list(self, node: Any, state: State, stdin: str | None, redirects: Sequence[Any] = ()) -> str:
        said, operator, named, start = "", "", _named(node), len(self.commands)
        for child in node.children:
            if not child.is_named:
                operator = child.type
            elif redirects and child == named[-1]:
                said += self._redirected(child, redirects, state, stdin)
            elif operator == "||":
                other, instead = state.branch(), len(self.commands)
                said += self._walk(child, other, stdin)
                self._another_way(start, instead)
                other.variables = {k: v for k, v in other.variables.items() if k not in state.variables}
                state.join([other])
            else:
                said += self._walk(child, state, stdin)
        return said

    def _choice(self, node: Any, state: State, stdin: str | None) -> str:
        """Every branch, each from the same beginning."""
        branches, said = [], []
        mine, start = state.branch(), len(self.commands)
        for child in _named(node):
            if child.type in ("elif_clause", "else_clause", "case_item"):
                branches.append(state.branch())
                instead = len(self.commands)
                said.append(self._walk(child, branches[-1], stdin))
                self._another_way(start, instead)
            else:
                said.append(self._walk(child, mine, stdin))
        changed = {k: v for k, v in mine.variables.items() if state.variables.get(k) != v}
        state.variables |= changed
        state.functions |= mine.functions
        state.git |= mine.git
        state.written.become(mine.written)
        has_other = any(child.type == "else_clause" for child in _named(node))
        state.astray = state.astray or mine.astray or (mine.cwd != state.cwd and not has_other)
        state.cwd = mine.cwd
        state.join(branches)
        return "".join(said)

    def _another_way(self, start: int, instead: int) -> None:
        """The commands from one place on stand for those from a place before: what both have is done once."""
        others = Counter((c.words, c.cwd) for c in self.commands[start:instead] if not c.again)
        for at, command in enumerate(self.commands[instead:], instead):
            if others[same := (command.words, command.cwd)]:
                others[same] -= 1
                self.commands[at] = command._replace(again=True)

    def _for(self, node: Any, state: State, stdin: str | None) -> str:
        variable = node.child_by_field_name("variable")
        name = _text(variable) if variable is not None else ""
        values = node.children_by_field_name("value")
        items = [word for value in values for word in self._word(value, state)]
        if not values:  # over the words that it is given
            items = state.variables.get("@", UNKNOWN).split(APART)
        body = node.child_by_field_name("body")
        said = ""
        most = _LOOPS[min(self._loops, len(_LOOPS) - 1)]
        unique = list(dict.fromkeys(items)) or [UNKNOWN]
        self._loops += 1
        for item in unique[:most] + ([UNKNOWN] if len(unique) > most else []):
            self.assign(name, item, state)
            if body is not None:
                said += self._walk(body, state, stdin)
        self._loops -= 1
        return said

    def _while(self, node: Any, state: State, stdin: str | None) -> str:
        """Where it reads lines that are known, once for each; else as often as it finds other variables."""
        lines = stdin.splitlines() if stdin is not None else []
        condition = node.child_by_field_name("condition")
        if len(lines) < 2 or condition is None or not re.search(r"\bread\b", _text(condition)):
            return self._again(node, state, stdin)
        most, said = _LOOPS[min(self._loops, len(_LOOPS) - 1)], ""
        self._loops += 1
        for line in lines[:most] + ([UNKNOWN] if len(lines) > most else []):
            said += self._each(node, state, line)
        self._loops -= 1
        return said

    def _again(self, node: Any, state: State, stdin: str | None) -> str:
        """What a loop sets, it finds the next time; what it sets anew each time is not known in the end."""
        said, self._loops, start = "", self._loops + 1, len(self.commands)
        for turn in range(3 if self._loops < 3 else 1):
            before, instead = state.variables.copy(), len(self.commands)
            said += self._each(node, state, stdin)
            self._another_way(start, instead)
            changed = [name for name, value in state.variables.items() if before.get(name) != value]
            if not changed:
                break
            if turn == 1:
                state.variables |= dict.fromkeys(changed, UNKNOWN)
        self._loops -= 1
        return said

    def _pipeline(self, stages: Sequence[Any], state: State, stdin: str | None) -> str:
        if len(stages) == 1:
            return self._walk(stages[0], state, stdin)
        for stage in stages:
            # tree-sitter ends the body of `f() { ! { a; } | b; }` at its first brace, and takes f for a stage
            # or for a part of one
            inner = state if stage.type == "function_definition" else state.copy()
            stdin = self._walk(stage, inner, stdin)
            state.functions = {**inner.functions, **state.functions}
        return stdin or ""

    def _redirected(self, body: Any, redirects: Sequence[Any], state: State, stdin: str | None) -> str:
        if body is not None and body.type == "list":  # to the shell they belong to its last command alone
            return self._list(body, state, stdin, redirects)
        if body is not None and body.type == "pipeline":
            *stages, last = _named(body)
            for stage in stages:
                stdin = self._walk(stage, state.copy(), stdin)
            return self._redirected(last, redirects, state.copy(), stdin)
        writes, fed, more, after = self._redirects(redirects, state)
        stdin = stdin if fed is None else fed
        if body is None:
            self.commands.append(Command((), state.cwd, writes=tuple(writes), elsewhere=state.elsewhere))
            said = ""
        elif body.type == "command":
            said = self._command(body, state, stdin, writes, more)
        else:
            if writes:
                self.commands.append(Command((), state.cwd, writes=tuple(writes), elsewhere=state.elsewhere))
            said = self._walk(body, state, stdin)
            self._keep(writes, said, state)
        for stages, piped in after:  # tree-sitter hangs what follows a here-document below it
            if piped:
                inner: str | None = said
                for stage in stages:
                    inner = self._walk(stage, state.copy(), inner)
                said = inner or ""
            else:
                for stage in stages:
                    said = self._walk(stage, state, None)
        return "" if writes and not after else said

    def _redirects(
        self, nodes: Iterable[Any], state: State
    ) -> tuple[list[str], str | None, list[str], list[tuple[list[Any], bool]]]:
        """Files written, what is fed, further words, and what follows a here-document."""
        writes: list[str] = []
        fed: str | None = None
        more: list[str] = []
        after: list[tuple[list[Any], bool]] = []
        for node in nodes:
            if node.type == "file_redirect":
                operator = next((c.type for c in node.children if not c.is_named), ">")
                targets = [self._word(d, state) for d in node.children_by_field_name("destination")]
                first = targets[0][0] if targets and targets[0] else ""
                more += [word for target in targets[1:] for word in target]
                if operator.startswith("<") and operator != "<>":
                    fed = self.content(resolved(first, state.cwd), state)
                elif not (operator in (">&", "<&") and (first.isdecimal() or first == "-")):
                    writes.append(first)
                    if ">>" in operator:
                        path = resolved(first, state.cwd)
                        self._appended[path] = self.content(path, state, missing="")
            elif node.type == "herestring_redirect":
                fed = "".join(word for c in _named(node) for word in self._word(c, state, split=False))
            elif node.type == "heredoc_redirect":
                found = self._heredoc(node, state)
                fed = found if fed is None else fed
                inner_writes, inner_fed, inner_more, inner_after = self._redirects(
                    [c for c in _named(node) if c.type.endswith("_redirect")], state
                )
                writes += inner_writes
                fed = inner_fed if inner_fed is not None else fed
                more += [w for c in node.children_by_field_name("argument") for w in self._word(c, state)]
                more += inner_more
                operator = ""
                for child in node.children:
                    if child.type in ("&&", "||", ";", "&"):
                        operator = child.type
                    elif child.type == "pipeline":
                        after.append((_named(child), True))
                    elif child.is_named and child.type in _STATEMENTS | {"command", "redirected_statement"}:
                        after.append(([child], False))
                after += inner_after
        return writes, fed, more, after

    def _heredoc(self, node: Any, state: State) -> str:
        start = next((c for c in node.children if c.type == "heredoc_start"), None)
        body = next((c for c in node.children if c.type == "heredoc_body"), None)
        if body is None:
            return ""
        text = _text(body)
        if start is not None and _text(start)[:1] in "'\"\\":
            return text
        pieces = self._quoted(body, state, lambda said: said)
        said = "".join(piece.text for piece in pieces)
        for code in re.findall(r"`([^`]+)`", text):
            self.run(code, state.copy())
        return re.sub(r"\\([\\$`])", r"\1", said)

    # -- assignments -------------------------------------------------------------

    def _assignments(self, node: Any, state: State) -> str:
        if node.type == "unset_command":
            for word in [word for child in _named(node) for word in self._word(child, state)]:
                self._subscripts(word, state)
                state.variables.pop(word, None)
            return ""
        exports = node.type == "declaration_command" and node.children and (
            node.children[0].type in ("export", "typeset", "declare", "readonly", "local"))  # fmt: skip
        own = [node] if node.type == "variable_assignment" else []
        for child in own or _named(node):
            if child.type == "variable_assignment":
                name, value = self._assignment(child, state)
                self.assign(name, value, state, bool(exports))
            else:
                for word in self._word(child, state):
                    self._subscripts(word, state)
                    name, equals, value = word.partition("=")
                    if equals:
                        self.assign(name.rstrip("+"), value, state, bool(exports))
                    elif exports and name in state.variables:
                        state.exported[name] = state.variables[name]
        if exports and state.exported:
            self.commands.append(Command(("export",), state.cwd, dict(state.exported)))
            self.surrounded(state.exported, state)
        return ""

    def _assignment(self, node: Any, state: State) -> tuple[str, str]:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        called = _text(name).partition("[")[0] if name is not None else ""
        if name is not None:
            self._inside(name, state)
        if value is None:
            said = ""
        elif value.type == "array":
            said = APART.join(word for child in _named(value) for word in self._word(child, state))
        else:
            said = "".join(self._word(value, state, split=False))
        if any(child.type == "+=" for child in node.children):
            apart = APART if value is not None and value.type == "array" else ""
            said = state.variables.get(called, "") + apart + said
        return called, said if len(said) <= _LONGEST_VALUE else UNKNOWN

    def assign(self, name: str, value: str, state: State, exports: bool = False) -> None:
        """A variable is set; one of ours is told, whoever it would reach."""
        self._assigned += 1
        if self._assigned > _ASSIGNED:
            raise TooLate
        self._subscripts(value, state)
        state.variables[name] = value
        if exports or name in state.exported or inputs.is_code(name):  # those are exported as a rule
            state.exported[name] = value
        if name.startswith("TAKEBACK"):
            self.commands.append(Command((), state.cwd, {name: value}))

    # -- words ---------------------------------------------------------------------

    def _word(self, node: Any, state: State, split: bool = True) -> list[str]:
        self.deadline.check()
        pieces = self._pieces(node, state)
        if not split:
            pieces = [Piece(p.text, p.quoted or p.splits) for p in pieces]
            return ["".join(fields(pieces, self.home)) if not any("{" in p.text for p in pieces)
                    else "".join(p.text for p in pieces)]  # fmt: skip
        return fields(pieces, self.home, state.variables.get("IFS", ""))

    def _pieces(self, node: Any, state: State, quoted: bool = False) -> list[Piece]:
        kind = node.type
        if kind == "command_name" or kind == "concatenation":
            return self._joined(node, state, quoted)
        if kind == "raw_string":
            return [Piece(_text(node)[1:-1], quoted=True)]
        if kind == "ansi_c_string":
            return [Piece(ansi(_text(node)[2:-1]), quoted=True)]
        if kind in ("string", "translated_string"):
            return self._quoted(node, state, in_quotes)
        if kind == "string_content":
            return [Piece(in_quotes(_text(node)), quoted=True)]
        if kind in ("simple_expansion", "expansion"):
            return [Piece(self._expansion(node, state), quoted, not quoted)]
        if kind == "command_substitution":
            read = [child for child in _named(node) if child.type == "file_redirect"]
            if read and len(read) == len(_named(node)):  # $(<FILE)
                said = self._redirects(read, state)[1] or ""
            else:
                said = self._each(node, state.copy(), None)
            return [Piece(said.rstrip("\n"), quoted, not quoted)]
        if kind == "process_substitution":
            path = f"/dev/fd/takeback-{len(state.written.texts)}"
            fed = UNKNOWN if _text(node).startswith(">") else None
            state.written.put(path, self._each(node, state.copy(), fed))
            return [Piece(path, quoted=True)]
        if kind == "arithmetic_expansion":
            self._inside(node, state)
            return [Piece(UNKNOWN, quoted=True)]
        if node.child_count and kind not in ("word", "number", "brace_expression", "variable_name", "regex"):
            self._inside(node, state)
        return bare(_text(node)) if not quoted else [Piece(_text(node), quoted=True)]

    def _joined(self, node: Any, state: State, quoted: bool) -> list[Piece]:
        """The pieces of words that stand together."""
        if not node.child_count:
            return [Piece(_text(node), quoted)]
        found: list[Piece] = []
        for child in node.children:
            if child.is_named:
                found += self._pieces(child, state, quoted)
            elif (text := _text(child)) not in ('"', "$"):
                found.append(Piece(text, quoted))
        return found

    def _quoted(self, node: Any, state: State, unescape: Callable[[str], str]) -> list[Piece]:
        """The pieces of what is in double quotes or in a here-document. Much of its text has no node of its own."""
        found: list[Piece] = []
        data, start, at = node.text, node.start_byte, 0
        for child in node.children:
            begins, ends = child.start_byte - start, child.end_byte - start
            found.append(Piece(unescape(grammar.decoded(data[at:begins])), quoted=True))
            if child.is_named and child.type != "heredoc_content":
                found += self._pieces(child, state, quoted=True)
            elif child.type not in ('"', '$"'):
                found.append(Piece(grammar.decoded(data[begins:ends]), quoted=True))
            at = ends
        return [*found, Piece(unescape(grammar.decoded(data[at:])), quoted=True)]

    def _hidden(self, text: str, state: State) -> None:
        """Runs the substitutions in a text that the parser takes for plain."""
        found = [inner or quoted for inner, quoted in _SUBSTITUTED.findall(text)]
        for code in found:
            self.run(code, state.copy())
        if not found:
            self.not_read("a substitution in what looks plain")

    def _subscripts(self, word: str, state: State) -> None:
        """a[$(…)] is run by whatever takes it for a variable or a number, quoted or not."""
        if _SUBSCRIPT.search(word):
            self._hidden(word, state)

    def _inside(self, node: Any, state: State) -> None:
        """Runs the substitutions in what is no command itself."""
        for child in _named(node):
            if not child.child_count:
                text = _text(child)
                if child.type in ("raw_string", "string_content"):
                    self._subscripts(text, state)
                elif child.type != "comment" and _SUBSTITUTES.search(text):
                    self._hidden(text, state)
            if child.type in ("command_substitution", "process_substitution"):
                self._each(child, state.copy(), None)
            elif child.type in ("command", "pipeline", "redirected_statement"):
                self._walk(child, state.copy(), None)
            else:
                self._inside(child, state)

    def _expansion(self, node: Any, state: State) -> str:
        text = _text(node)
        self._inside(node, state)
        variables = state.variables
        if found := re.fullmatch(r"\$(\w+|[@*#?$!-])|\$\{(\w+|[@*])\}|\$\{(\w+)\[[^\]]*\]\}", text):
            return variables.get(found[1] or found[2] or found[3], UNKNOWN)
        if found := re.fullmatch(r"\$\{(\w+)(:?[-=+?])(.*)\}", text, re.DOTALL):
            value = variables.get(found[1])
            if "+" in found[2]:
                return found[3].strip("\"'") if value != "" else ""
            if value or (value == "" and ":" not in found[2]):
                return value
            named = _named(node)[1:]
            given = "".join(word for child in named for word in self._word(child, state, split=False))
            return given or found[3].strip("\"'")
        if (found := re.fullmatch(r"\$\{(\w+)@P\}", text)) and (value := variables.get(found[1])):  # as in a prompt
            if UNKNOWN in value:
                self.not_read(text)
            elif _SUBSTITUTES.search(value):
                self._hidden(value, state)
            return UNKNOWN
        if found := re.fullmatch(r"\$\{!(\w+)\}", text):
            return variables.get(variables.get(found[1], ""), UNKNOWN)
        if found := re.fullmatch(r"\$\{(\w+):(\d+)(?::(\d+))?\}", text):
            start, length = int(found[2]), found[3]
            value = variables.get(found[1], UNKNOWN)
            return value if UNKNOWN in value else value[start : start + int(length) if length else None]
        if found := re.fullmatch(r"\$\{(\w+)(//?)([^/]*)/(.*)\}", text, re.DOTALL):
            value = variables.get(found[1], UNKNOWN)
            if len(found[4]) > 200:
                return UNKNOWN
            return value.replace(found[3], found[4], -1 if found[2] == "//" else 1)
        if found := re.fullmatch(r"\$\{(\w+)(,,|\^\^)\}", text):
            value = variables.get(found[1], UNKNOWN)
            return value.lower() if found[2] == ",," else value.upper()
        if found := re.fullmatch(r"\$\{(\w+)(?:\[[^\]]*\])?%/\*\}", text):  # the folder of a path
            return variables.get(found[1], UNKNOWN).rpartition("/")[0] or "."
        if found := re.fullmatch(r"\$\{(\w+)(##?|%%?)([^*?\[]*)\}", text, re.DOTALL):
            value = variables.get(found[1], UNKNOWN)
            return value.removeprefix(found[3]) if found[2][0] == "#" else value.removesuffix(found[3])
        return UNKNOWN

    # -- commands --------------------------------------------------------------------

    def _command(
        self, node: Any, state: State, stdin: str | None, writes: Sequence[str] = (), more: Sequence[str] = ()
    ) -> str:
        words: list[str] = []
        assigned: dict[str, str] = {}
        own = [child for child in node.children if child.type.endswith("_redirect")]
        found, fed, further, after = self._redirects(own, state)
        for child in _named(node):
            if child.type == "variable_assignment":
                name, value = self._assignment(child, state)
                assigned[name] = value
            elif not child.type.endswith("_redirect"):
                words += self._word(child, state)
        said = self.simple([*words, *further, *more], assigned, stdin if fed is None else fed, state, [*writes, *found])
        for stages, piped in after:
            for stage in stages:
                said = self._walk(stage, state.copy() if piped else state, said if piped else None)
        return said

    def simple(
        self,
        words: Sequence[str],
        assigned: Mapping[str, str],
        stdin: str | None,
        state: State,
        writes: Sequence[str] = (),
    ) -> str:
        """One command, with its words known; returns what it prints."""
        words, assigned = list(words), dict(assigned)
        while words and (words[0] in KEYWORDS or _GROUPS.fullmatch(words[0]) or ASSIGNMENT.fullmatch(words[0])):
            if (found := ASSIGNMENT.fullmatch(words[0])) is not None:
                before = state.variables.get(found[1], "") if found[2] else ""
                assigned[found[1]] = before + found[3]
            words.pop(0)
        if not words:
            for name, value in assigned.items():
                self.assign(name, value, state)
            self.surrounded(state.exported, state)
            self.commands.append(Command((), state.cwd, assigned, tuple(writes), None, state.elsewhere))
            return ""
        if len(self.commands) >= (_MOST_IN_FILES if self._reading else _MOST) or self._depth >= _DEEPEST:
            self.cannot_see(" ".join(words))
            return UNKNOWN
        everything = {**state.exported, **assigned}
        if words[0] in _TAKE_VARIABLES:
            for word in words[1:]:
                self._subscripts(word, state)
        command = Command(tuple(words), state.cwd, everything, tuple(writes), stdin, state.elsewhere)
        self.commands.append(command)
        self.running = " ".join(words)
        self._depth += 1
        try:
            self.surrounded(everything, state)
            said = self._does(command, assigned, state)
        finally:
            self._depth -= 1
        state.written.after(command)
        said = said if len(said) <= _LONGEST else UNKNOWN
        self._keep(writes, said, state)
        return "" if writes else said

    def _keep(self, writes: Sequence[str], said: str, state: State) -> None:
        for path in writes:
            whole = resolved(path, state.cwd)
            text = self._appended.pop(whole, "") + said
            self.written[whole] = text
            state.written.put(whole, text)

    def surrounded(self, assigned: Mapping[str, str], state: State) -> None:
        """What programs run because of the variables around them; each once."""
        new = {name: value for name, value in assigned.items() if (name, value) not in self._taken}
        self._taken |= set(new.items())
        for given in inputs.environment(new):
            taking.take(self, given, state, None)

    def _does(self, command: Command, assigned: Mapping[str, str], state: State) -> str:
        name, words, stdin = command.name, list(command.words), command.stdin
        if name == UNKNOWN:
            self.cannot_see(" ".join(words))
            return UNKNOWN
        if words[0] in state.functions:
            self.functions.add(name)
            return self._called(words, assigned, state, stdin)
        if words[0] in state.aliases:
            expanded = state.aliases.pop(words[0])
            return self.run(f"{expanded} {' '.join(_quote(w) for w in words[1:])}", state, stdin)
        by_path = "/" in words[0]
        if (by_path and not SYSTEM.match(words[0])) or _SCRIPT.search(words[0]):
            taking.executed(self, words, state, stdin)
        elif not by_path:
            self._on_path(command, state)
        if (builtin := BUILTINS.get(name)) is not None and (not by_path or SYSTEM.match(words[0])):
            if "CDPATH" in assigned:  # for this one only
                state.variables["CDPATH"] = assigned["CDPATH"]
                said = builtin(self, words, state, stdin)
                del state.variables["CDPATH"]
                return said
            return builtin(self, words, state, stdin)
        if name in SHELLS:
            inner = self._with(assigned, state)
            return "".join([taking.take(self, given, inner, stdin) for given in inputs.shell(words)])
        if (language := other_languages.language_of(name)) in inputs.INTERPRETERS:
            self._interpreter(language, words, self._with(assigned, state), stdin)
            return UNKNOWN
        if is_setup(words):
            return ""
        if (wrapped := _wrapper(name, words)) is not None:
            return self._wrapped(*wrapped, command, assigned, state)
        inner = self._with(assigned, state)
        for line in other_languages.inner(name, words, stdin, command.assigned):
            self.run(line, inner.copy(), stdin)
        self._recipe(name, words, inner)
        if name == "git":
            git_inputs.take(self, command, state)
        if requests_and_statements.is_client(name):
            self._statements(command, state)
        for given in inputs.others(name, words):
            taking.take(self, given, inner, stdin)
        if name in ("at", "batch", "crontab") and stdin:
            self.run(stdin, state.copy())
        if name == "git" and words[1:3] == ["rev-parse", "--show-toplevel"] and self.project is not None:
            return f"{self.project.root}\n"
        if name not in _NAMES_BELOW:
            return UNKNOWN
        if name != "ls":
            return f"./{UNKNOWN}\n"
        there = self._there(words, state)
        return (f"./{UNKNOWN}\n" if there is None else there) + self._listed(words, state)

    # -- files of the project ------------------------------------------------------------

    def _statements(self, command: Command, state: State) -> None:
        """A database client is given statements in files, or is fed them: judged as if they stood in the command."""
        name, given = command.name, databases.given(command.name, command.words)
        texts = list(given.texts)
        for file in given.files:
            said = self.content(resolved(file, state.cwd), state)
            if UNKNOWN in said:
                self.not_read(file)
            else:
                texts.append(said)
        for said in texts:
            self.commands.append(command._replace(stdin=said))
        if command.stdin is not None and UNKNOWN in command.stdin:
            self.not_read(f"what {name} is fed")
        elif command.stdin is not None:
            texts.append(command.stdin)
        for said in texts:
            if not databases.is_understood(name, said):
                self.not_read(f"what {name} is told")
        for word in given.strange:
            self.not_read(f"{name} {word}")

    def _on_path(self, command: Command, state: State) -> None:
        """A program that the text itself puts on the way to programs: a file of the project by its name alone."""
        folders = command.assigned.get("PATH", state.variables.get("PATH", ""))
        if not folders or self.project is None or state.elsewhere or command.words[0] in _OF_THE_SHELL:
            return
        for folder in folders.split(":"):
            if UNKNOWN in folder:
                self.not_read("programs on the PATH that it sets")
                continue
            path = resolved(f"{folder or '.'}/{command.words[0]}", command.cwd)
            if state.written.text(path) is not None or self.project.has(state.written.origin(path)):
                taking.executed(self, [path, *command.words[1:]], state, command.stdin)
                return
            if folder and not _MACHINES.fullmatch(folder) and not self.project.real(path):
                self.not_read(f"programs in {folder}, which it puts on the PATH")

    def _recipe(self, name: str, words: Sequence[str], state: State) -> bool:
        """A makefile's targets, and what else stands behind a name; whether there is any."""
        if self.project is None or state.elsewhere:
            return False
        found, read = None, partial(taking.read, self, state)
        if name in ("make", "gmake"):
            known = {"HOME": self.home, **state.exported}
            found = recipes.make(words, state.cwd, known, read)
            if found is None and not recipes.only_tells(words):
                self.not_read(name)
        elif name in recipes.MANAGERS or name in recipes.GROUPS:
            found = recipes.scripts(name, words, state.cwd, read)
        elif name in recipes.RUNNERS:
            found = recipes.runner(name, words, state.cwd, read)
        if found is None:
            return False
        for name in found.unread:
            self.not_read(name)
        for line, by in zip(found.lines, found.shells or [()] * len(found.lines), strict=True):
            inner = state.copy()
            inner.cwd = inner.variables["PWD"] = found.folder
            if by:
                self.inside_file(found.file, partial(self.simple, [*by, "-c", line], {}, None, inner))
            else:
                self.inside_file(found.file, partial(self.run, line, inner))
        return True

    def inside_file(self, path: str, walk: Callable[[], str | None]) -> str:
        """Walks what a file of the project says. What takes too long there is not known; the call itself still is."""
        assert self.project is not None
        shown = self.project.shown(path)
        if self._reading.count(shown) > 1:  # it runs itself
            return UNKNOWN
        whole, steps, first, depth = self.deadline, self._steps, len(self.commands), self._depth
        self._depth = self._depth if self._reading else 0  # however deep the call that runs it
        self._script_time = self._script_time or whole.part(_READING)
        self.deadline = self._script_time
        self._reading.append(shown)
        try:
            return walk() or ""
        except TooLate:
            if len(self._reading) > 1:
                raise
            self.unread.append(shown)
            return UNKNOWN
        finally:
            self._reading.pop()
            self._steps, self._depth = steps, depth
            self.commands[first:] = [c if c.script else c._replace(script=shown) for c in self.commands[first:]]
            self.deadline = whole
            if not self._reading:
                whole.check()

    def judged(self, language: str, code: str, state: State) -> None:
        """A program in another language: the commands it starts, what it deletes, and the calls that reach out."""
        self.deadline.check()
        if self._reading:
            self.files.append((code, self._reading[-1]))
        else:
            self.texts.append(code)
        for inner in other_languages.commands_in(language, code):
            self.run(inner, state.copy())
        for path in sending.deletes(language, code):
            self.simple(["rm", "-rf", "--", path], {}, None, state.copy())
        script = self._reading[-1] if self._reading else ""
        self.sent += [Reaching(*found, script) for found in sending.sent(language, code)]

    def _there(self, words: Sequence[str], state: State) -> str | None:
        """The names that ls prints, where they are few and can be said."""
        plain = [word for word in words[1:] if not word.startswith("-")] or ["."]
        if self.project is None or any(
            re.fullmatch(r"-[1aAtrSX]*", word) is None for word in words[1:] if word[:1] == "-"
        ):
            return None
        found: list[str] = []
        hidden = _shows_hidden(words)
        for word in plain:
            path = resolved(word, state.cwd)
            wrote = state.written.below(path.rpartition("/")[0] if _PATTERN.search(path) else path)
            if wrote or wrote is None or UNKNOWN in path:
                return None
            if _PATTERN.search(path):
                matched = self.project.matching(path)
                if matched is None:
                    return None
                above = word.rpartition("/")[0]
                found += [
                    f"{above}/{each.rpartition('/')[2]}" if above else each.rpartition("/")[2] for each in matched
                ]
            elif (below := self.project.below(path, 1)) is not None:
                names = [each.rpartition("/")[2] for each, _ in below]
                found += [name for name in names if hidden or not name.startswith(".")]
            elif self.project.has(path):
                found.append(word)
            else:
                return None
        return "".join(f"{name}\n" for name in found) if len(found) <= _MOST_LISTED else None

    def _listed(self, words: list[str], state: State) -> str:
        """The names that ls prints among others and that matter."""
        hidden = _shows_hidden(words)
        folder = resolved(next((w for w in words[1:] if not w.startswith("-")), "."), state.cwd).rstrip("/") + "/"
        names = {path[len(folder) :].partition("/")[0] for path, _ in self.matters if path.startswith(folder)}
        return "".join(f"{name}\n" for name in sorted(names) if hidden or not name.startswith("."))

    def _with(self, assigned: Mapping[str, str], state: State) -> State:
        inner = state.copy()
        inner.variables |= assigned
        inner.exported |= assigned
        return inner

    def _called(self, words: list[str], assigned: Mapping[str, str], state: State, stdin: str | None) -> str:
        before = {k: state.variables.get(k) for k in ("@", "*", *map(str, range(1, 10)))}
        self.positional(words[1:], state)
        state.variables |= assigned
        said = "".join([self._walk(body, state, stdin) for body in _bodies(state.functions[words[0]])])
        for key, value in before.items():
            if value is None:
                state.variables.pop(key, None)
            else:
                state.variables[key] = value
        return said

    def positional(self, words: Sequence[str], state: State) -> None:
        state.variables["@"] = state.variables["*"] = APART.join(words)
        for number in range(1, 10):
            state.variables[str(number)] = words[number - 1] if number <= len(words) else ""

    def _interpreter(self, language: str, words: list[str], state: State, stdin: str | None) -> None:
        if self._recipe(language, words, state):
            return
        for given in inputs.of(language, words):
            taking.take(self, given, state, stdin)

    def _wrapped(
        self, wrapper: Wrapper, start: int, command: Command, assigned: Mapping[str, str], state: State
    ) -> str:
        words, inner = list(command.words), self._with(assigned, state)
        name, stdin = command.name, command.stdin
        if name == "command" and any(w in ("-v", "-V") for w in words[1:3]):
            return words[-1] + "\n"
        inner.elsewhere = inner.elsewhere or wrapper.elsewhere
        if wrapper.after:
            first = next((at for at, word in enumerate(words) if word in wrapper.after), len(words))
            return self.simple(words[first + 1 :], {}, stdin, inner) if words[first + 1 :] else ""
        at, skip, codes, replaced, argued = start, wrapper.skip, [], "", ""
        while at < len(words):
            word = words[at]
            if word == "--":
                at += 1
                break
            if word == "-" and name == "su":
                at += 1
                continue
            if len(word) > 1 and word[0] == "-":
                key, eq, value = word.partition("=") if word.startswith("--") else (word, "", "")
                takes = key if key in wrapper.values else _short_value(word, wrapper.values)
                if takes and not eq:
                    attached = word[word.index(takes[1]) + 1 :] if not word.startswith("--") and word != takes else ""
                    value = attached or (words[at + 1] if at + 1 < len(words) else "")
                    at += 0 if attached else 1
                if takes in wrapper.code:
                    codes.append(value)
                if takes in wrapper.folder:
                    inner.cwd = resolved(value, inner.cwd)
                if takes in ("-I", "--replace"):
                    replaced = value or "{}"
                if takes in ("-a", "--arg-file"):
                    argued = value
                at += 1
            elif ASSIGNMENT.fullmatch(word) and name in ("env", "sudo", "doas"):
                found = ASSIGNMENT.fullmatch(word)
                if found is not None:
                    inner.exported[found[1]] = inner.variables[found[1]] = found[3]
                at += 1
            elif skip:
                skip -= 1
                at += 1
            else:
                break
        for code in codes:
            rest = " ".join(_quote(w) for w in words[at:]) if name == "env" else ""
            self.run(f"{code} {rest}", inner, stdin)
        rest_words = words[at:]
        if skip and words[at - 1 : at] == ["--"]:
            rest_words = rest_words[skip:]
        if name == "xargs" and argued:
            stdin = self.content(resolved(argued, state.cwd), state)
        if name == "parallel" and rest_words:
            for line in _in_parallel(rest_words, stdin, replaced or "{}"):
                self.run(line, inner.copy())
            return UNKNOWN
        if not rest_words:
            if codes:
                return UNKNOWN
            return self.run(stdin, inner) if stdin and name in ("sudo", "su", "script", "chroot", "parallel") else ""
        if codes and name != "env":
            return UNKNOWN
        if name == "xargs":
            options = words[start:at]
            if any(re.fullmatch(r"-0|--null|-d.*|--delimiter.*|-[rtx0]*0[rtx]*", word) for word in options) and stdin:
                self.simple([*rest_words, stdin], {}, None, inner.copy())  # it may all be one word
            for made in _with_arguments(rest_words, stdin, replaced):
                self.simple(made, {}, None, inner)
            return UNKNOWN
        if wrapper.joins and (len(rest_words) == 1 or name == "watch"):
            return self.run(" ".join(rest_words), inner, stdin)
        if name == "hyperfine":
            for each in rest_words:
                self.run(each, inner.copy(), stdin)
            return UNKNOWN
        said = self.simple(rest_words, {}, stdin, inner)
        if name in ("exec", "builtin", "command", "time"):
            state.cwd, state.variables = inner.cwd, inner.variables
        return said


def _bodies(defined: Any) -> list[Any]:
    """Of a function that was defined in several ways, each."""
    return [body for each in defined for body in _bodies(each)] if isinstance(defined, tuple) else [defined]


def _first(node: Any) -> str:
    """The first command of a chain, as it is written."""
    while node.type == "list" and _named(node):
        node = _named(node)[0]
    return _text(node)


def _shows_hidden(words: Sequence[str]) -> bool:
    return any(re.fullmatch(r"-[A-Za-z0-9]*[aAf][A-Za-z0-9]*|--all|--almost-all", word) for word in words[1:])


def _wrapper(name: str, words: Sequence[str]) -> tuple[Wrapper, int] | None:
    """How a command wraps another, and where its options begin."""
    if name in WRAPPERS and name != "bun":
        return WRAPPERS[name], 1
    if name in _SUBCOMMANDS:
        plain = [at for at in range(1, min(len(words), 12)) if not words[at].startswith("-")]
        for count in (2, 1):
            called = " ".join([name, *(words[at] for at in plain[:count])])
            if len(plain) >= count and called in WRAPPERS:
                return WRAPPERS[called], plain[count - 1] + 1
        if name == "docker-compose":
            first = next((at for at in plain if words[at] in ("exec", "run")), 0)
            return (WRAPPERS["docker exec"], first + 1) if first else None
        if name in ("docker", "podman") and len(plain) > 1 and words[plain[0]] == "compose":
            if words[plain[1]] in ("exec", "run"):
                return WRAPPERS["docker exec"], plain[1] + 1
    return None


_SUBCOMMANDS = frozenset(key.partition(" ")[0] for key in WRAPPERS if " " in key)


def _short_value(word: str, values: frozenset[str]) -> str:
    """The option of a cluster such as -iu that takes a value."""
    if word.startswith("--"):
        return ""
    return next((f"-{letter}" for letter in word[1:] if f"-{letter}" in values), "")


def _with_arguments(words: list[str], stdin: str | None, replaced: str) -> list[list[str]]:
    """What xargs runs: the words it is fed are appended, or put in their place. A program that takes its code from a
    file may be given each of them as that file."""
    said = stdin if stdin is not None else UNKNOWN
    if replaced:
        if sum(word.count(replaced) for word in words) * len(said) > _LONGEST:
            return [[UNKNOWN]]
        return [[w.replace(replaced, line) for w in words] for line in _few(said.splitlines(), _LOOPS[0])]
    fed = _few(said.split(), 200)
    name = program(words[0])
    if (
        name in SHELLS
        or other_languages.language_of(name) in inputs.INTERPRETERS
        or name in BUILTINS
        or name in WRAPPERS
    ):
        return [[*words, *fed], *([*words, each] for each in _few(fed[1:], 2 * _LOOPS[0]) if len(fed) > 1)]
    return [[*words, *fed]]


def _in_parallel(words: list[str], stdin: str | None, replaced: str) -> list[str]:
    """The command lines of GNU parallel: for each word behind :::, or each line that it is fed."""
    cut = words.index(":::") if ":::" in words else len(words)
    items = words[cut + 1 :] if cut < len(words) else (stdin if stdin is not None else UNKNOWN).splitlines()
    line = " ".join(words[:cut])
    if line.count(replaced) * sum(map(len, items)) > _LONGEST:
        return [UNKNOWN]
    return [line.replace(replaced, each) if replaced in line else f"{line} {each}" for each in _few(items, _LOOPS[0])]


def _few(items: Sequence[str], most: int) -> list[str]:
    """The first ones; the rest is not known, and neither is nothing."""
    found = [each for each in items if each]
    return (found[:most] + ([UNKNOWN] if len(found) > most else [])) or [UNKNOWN]


def _filled(piece: Piece, variables: Mapping[str, str]) -> Piece:
    """A piece of a loose word with plain variables in it."""
    if "$" not in piece.text:
        return piece
    said = re.sub(r"\$\{?(\w+)\}?", lambda found: variables.get(found[1], UNKNOWN), piece.text)
    return Piece(said, piece.quoted, not piece.quoted)


def _quote(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _named(node: Any) -> list[Any]:
    return [child for child in node.children if child.is_named]


def _text(node: Any) -> str:
    return grammar.decoded(node.text)
