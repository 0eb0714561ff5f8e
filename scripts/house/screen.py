from pathlib import Path
import re
S = Path("src/takeback"); W = S/"surfaces/wording"
(W/"screen.py").write_text('''"""Where words go: a terminal, a page of a browser, an answer to an agent. Each surface has its own kind of screen.

What is said alike everywhere is written to a `Screen`; only the surface knows what becomes of the lines.
"""

from __future__ import annotations

from collections.abc import Iterable

from .ways import typed

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36", "magenta": "35"}


class Screen:
    """Takes lines: results, prose about them, hints and warnings."""

    below = ""  # the folder below the project's root that commands are typed in
    quiet = False  # leaves out prose and hints
    color = False
    out_is_tty = False  # whether lines are cut to the width

    @property
    def width(self) -> int:
        """How many columns a line may take."""
        return 120

    @property
    def height(self) -> int:
        """How many lines are seen at once."""
        return 50

    def style(self, text: str, *names: str) -> str:
        """The text in these colours, where there are any."""
        if not self.color or not names or not text:
            return text
        return f"\\x1b[{';'.join(_STYLES[n] for n in names)}m{text}\\x1b[0m"

    def typed(self, path: bytes) -> str:
        """A path of the project as a word of a command that is typed here."""
        return typed(path, self.below)

    def write(self, line: str = "") -> None:
        """A result."""
        raise NotImplementedError

    def say(self, line: str = "") -> None:
        """Prose about a result, which a quiet screen leaves out."""
        if not self.quiet:
            self.write(line)

    def hint(self, line: str) -> None:
        """What to do next."""
        raise NotImplementedError

    def warn(self, line: str) -> None:
        """Something that should not be missed, quiet or not."""
        raise NotImplementedError

    def page(self, lines: Iterable[str]) -> None:
        """Many lines, which a terminal shows one screenful after another."""
        for line in lines:
            self.write(line)
''')
def sub(path, *pairs):
    p = S/path; t = p.read_text()
    for a, b in pairs:
        assert a in t, (path, a); t = t.replace(a, b)
    p.write_text(t)
t = (S/"surfaces/cli/terminal.py").read_text()
t = t.replace('''class Terminal:
    """Where this run prints and asks. Results go to standard output, hints and progress to standard error."""

    below = ""  # the folder below the project's root that commands are typed in
''', '''class Terminal(Screen):
    """Where this run prints and asks. Results go to standard output, hints and progress to standard error."""

''')
for a in ['''    def typed(self, path: bytes) -> str:
        """A path of the project as a word of a command that is typed here."""
        from takeback.surfaces.wording.ways import typed

        return typed(path, self.below)

''', '''    def style(self, text: str, *names: str) -> str:
        if not self.color or not names or not text:
            return text
        return f"\\x1b[{';'.join(_STYLES[n] for n in names)}m{text}\\x1b[0m"

''', '''    def say(self, line: str = "") -> None:
        """Prose about a result, which --quiet leaves out."""
        if not self.quiet:
            self.write(line)

''']:
    assert a in t, a; t = t.replace(a, "")
t = re.sub(r"_STYLES = \{.*\}\n+", "", t)
t = t.replace("import sys\nfrom typing import TYPE_CHECKING\n", "import sys\nfrom typing import TYPE_CHECKING\n\nfrom takeback.surfaces.wording.screen import Screen\n")
t = t.replace('''"""The terminal: colours, safe names, width, pager, questions and progress.

Whatever comes from outside (names, labels, links, file contents) goes through `safe` before it is printed, so
that no name can move the cursor, recolour the screen or turn the text round.
"""''', '''"""The terminal: its streams, width, pager, questions and progress."""''')
(S/"surfaces/cli/terminal.py").write_text(t)
p = W/"text.py"; p.write_text(p.read_text().replace('"""TODO."""', '''"""Text that is fit to be shown: safe names, cut to a width, counted and dated.

Whatever comes from outside (names, labels, links, file contents) goes through `safe` before it is printed, so
that no name can move the cursor, recolour the screen or turn the text round.
"""'''))
sub("surfaces/wording/page.py", ("from takeback.surfaces.cli.terminal import Terminal\n", "from .screen import Screen\n"), ("class Page(Terminal):\n    def __init__(self) -> None:\n        self.lines: list[str] = []\n        self.quiet = self.color = self.interactive = False\n        self.out_is_tty = self.err_is_tty = False\n        self.environ = {}\n\n    @property\n    def width(self) -> int:\n        return 120\n\n    @property\n    def height(self) -> int:\n        return 50\n", "class Page(Screen):\n    def __init__(self) -> None:\n        self.lines: list[str] = []\n"),
   ("Where the command line's own words go instead of a screen: for the surfaces that say the same elsewhere.", "A screen that collects its lines, for surfaces that say the same elsewhere than on a terminal."))
sub("surfaces/tui/paper.py", ("from takeback.surfaces.cli.terminal import Terminal\n", "from takeback.surfaces.wording.screen import Screen\n"), ("class Paper(Terminal):", "class Paper(Screen):"),
  ('''    def __init__(self, width: int, environ: Mapping[str, str] = {}) -> None:  # no stream is touched: super is not asked
        self.quiet = False
        self.environ = environ
        self.out_is_tty = True  # so that lines are cut to the width
        self.err_is_tty = False
        self.color = True
        self._err_color = True
        self.interactive = False
        self.written''', '''    color = True
    out_is_tty = True

    def __init__(self, width: int) -> None:
        self.written'''))
for p in W.glob("*.py"):
    t = p.read_text()
    if "Terminal" in t and p.name != "screen.py":
        t = re.sub(r"^( *)from takeback\.surfaces\.cli\.terminal import Terminal\n", r"\1from takeback.surfaces.wording.screen import Screen\n", t, flags=re.M)
        t = re.sub(r"\bTerminal\b", "Screen", t)
        p.write_text(t)
t = (S/"agents/setup/found.py").read_text(); t = re.sub(r"\\w*\\.?place_of\\(environ, root, user\\)", "place_of(environ, root, user)", t); t = re.sub(r"from takeback.surfaces.cli.verbs.start import agents_configured\n", "", t); (S/"agents/setup/found.py").write_text(t)
for f in ("planning", "picker"):
    p = S/f"surfaces/tui/{f}.py"; p.write_text(re.sub(r"Paper\(([\w.]+), [\w.]+environ\)", r"Paper(\1)", p.read_text()))
heads = {"approvals": "What a person is asked to say yes to: every step outside the files in full, and where a credential goes.",
 "checkpoints": "A checkpoint in one line.", "take_backs": "A take-back as it was asked for, its plan and what came of it, in words.",
 "threads": "Threads, their states and what differs between two of them, in lines.", "mail": "A held mail as a person reads it before it goes.",
 "typed_json": "JSON that a person typed, or named a file of.", "log": "The log in lines: turns, effects, checkpoints and take-backs, newest first.",
 "entry": "One entry of the log in full, in lines and as JSON.", "status": "What changed since the checkpoint that one is at, and what needs attention, in lines."}
for n, d in heads.items():
    p = W/f"{n}.py"; t = p.read_text(); assert '"""TODO."""' in t, n; p.write_text(t.replace('"""TODO."""', f'"""{d}"""'))
for f, d in (("surfaces/cli/ledger.py", "The ledger on the command line."), ("surfaces/cli/failures.py", "A failure on the command line: its message, its hint and its exit code; a report where it is a bug of ours."), ("agents/setup/found.py", "Which hooks of ours an agent's configuration holds, and which agents have lost them.")):
    sub(f, ('"""TODO."""', f'"""{d}"""'))
for f in (W/"effects_outside.py", W/"outcomes.py"): pass
