"""What is captured: everything, but for .git, regenerable heaps, and what a rule leaves out.

The rules are read in this order, and the last one that matches a path decides:

    built in  →  .takeback.toml  →  .takebackignore  →  your configuration

so that `!node_modules/` brings a heap back in, and the user has the last word over the project.
A pattern is asked about the path itself only: callers descend from the root and never ask about
what lies in an excluded folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from takeback.errors import UsageError

if TYPE_CHECKING:
    import re

    from takeback.config.settings import Settings

Reason = str
GIT: Reason = "git"
REGENERABLE: Reason = "regenerable"
BY_USER: Reason = "excluded by your configuration"
BY_IGNORE_FILE: Reason = "excluded by .takebackignore"
BY_PROJECT: Reason = "excluded by .takeback.toml"

_SOURCES = {
    BY_USER: "your configuration",
    BY_IGNORE_FILE: ".takebackignore",
    BY_PROJECT: ".takeback.toml",
}

# Left out when they are folders, because one command makes them again. Names under which people also
# keep sources (build, dist, vendor, env, bin, out) are not here: better too much in the store than
# someone's work missing from it.
DEFAULT_FOLDERS: frozenset[bytes] = frozenset(
    {
        b"node_modules",  # npm, pnpm, yarn
        b"bower_components",
        b".pnpm-store",
        b".parcel-cache",
        b".turbo",
        b".next",
        b".nuxt",
        b".svelte-kit",
        b".angular",
        b".venv",  # Python
        b"venv",
        b"__pycache__",
        b"__pypackages__",
        b".eggs",
        b".tox",
        b".nox",
        b".mypy_cache",
        b".ruff_cache",
        b".pytest_cache",
        b".hypothesis",
        b".ipynb_checkpoints",
        b"target",  # Rust, Maven
        b".gradle",
        b".dart_tool",
        b".terraform",
        b".direnv",
        b".cache",
    }
)


class _Pattern(NamedTuple):
    """One line of gitignore syntax, compiled to match a path itself and never what lies below it."""

    text: str
    reason: Reason
    excludes: bool
    folders_only: bool
    regex: re.Pattern[str]

    def matches(self, path: str, is_folder: bool) -> bool:
        if not self.folders_only:
            return self.regex.search(path) is not None
        return is_folder and self.regex.search(path + "/") is not None


class Rules:
    """The rules of one workspace; without patterns a question is one look into a set."""

    def __init__(
        self,
        user: Sequence[str] = (),
        project: Sequence[str] = (),
        ignore_file: Sequence[str] = (),
        user_source: str = "your configuration",
    ) -> None:
        self._patterns = (
            *_compile(project, BY_PROJECT, ".takeback.toml, checkpoints.exclude, pattern"),
            *_compile(ignore_file, BY_IGNORE_FILE, ".takebackignore, line"),
            *_compile(user, BY_USER, f"{user_source}, checkpoints.exclude, pattern"),
        )

    def excluded(self, path: bytes, is_folder: bool) -> Reason | None:
        """Why this path is left out, or None if it is covered; the path is relative to the root."""
        name = path[path.rfind(b"/") + 1 :]
        if name == b".git":
            return GIT
        if self._patterns and (pattern := self._last_match(path, is_folder)):
            return pattern.reason if pattern.excludes else None
        return REGENERABLE if is_folder and name in DEFAULT_FOLDERS else None

    def by_project(self, path: bytes, is_folder: bool) -> bool:
        """Whether only the project's own files leave this path out, which counts once a person confirms."""
        if self.excluded(path, is_folder) not in (BY_PROJECT, BY_IGNORE_FILE):
            return False
        return not (is_folder and path[path.rfind(b"/") + 1 :] in DEFAULT_FOLDERS)

    def listing(self) -> list[tuple[str, str]]:
        """Every rule with where it comes from, in the order in which they are read."""
        built_in = [(f"{os.fsdecode(name)}/", "built in") for name in sorted(DEFAULT_FOLDERS)]
        written = [(pattern.text, _SOURCES[pattern.reason]) for pattern in self._patterns]
        return [(".git", "built in, always"), *built_in, *written]

    @cached_property
    def fingerprint(self) -> str:
        """Changes when any rule does, so that a cache can tell."""
        return _digest(self.listing())

    @cached_property
    def project_fingerprint(self) -> str:
        """Changes when the project's own rules do, so that a confirmation counts for what was confirmed."""
        project = (_SOURCES[BY_PROJECT], _SOURCES[BY_IGNORE_FILE])
        return _digest([rule for rule in self.listing() if rule[1] in project])

    @property
    def has_patterns(self) -> bool:
        return bool(self._patterns)

    @property
    def has_project_patterns(self) -> bool:
        return any(pattern.reason in (BY_PROJECT, BY_IGNORE_FILE) for pattern in self._patterns)

    def _last_match(self, path: bytes, is_folder: bool) -> _Pattern | None:
        text = os.fsdecode(path)
        return next((p for p in reversed(self._patterns) if p.matches(text, is_folder)), None)


def load_rules(settings: Settings, ignore_text: bytes | None) -> Rules:
    """The rules that hold under these settings and this text of .takebackignore, if there is one."""
    lines = os.fsdecode((ignore_text or b"").removeprefix(b"\xef\xbb\xbf")).split("\n")
    return Rules(
        user=settings.exclude,
        project=settings.project_exclude,
        ignore_file=[line.removesuffix("\r") for line in lines],
        user_source=settings.sources.get("checkpoints.exclude", "your configuration"),
    )


def _compile(lines: Sequence[str], reason: Reason, place: str) -> list[_Pattern]:
    """The patterns among these lines, each reduced to match a path itself."""
    written = [(number, line) for number, line in enumerate(lines, 1) if _is_rule(line)]
    if not written:
        return []
    from pathspec import GitIgnoreSpec

    patterns = []
    for number, line in written:
        # pathspec reads `a/**/` as `a/`; git means the folders inside a, and so do we.
        exact = f"{line.rstrip()}*/" if line.rstrip().endswith("/**/") else line
        try:
            parsed = GitIgnoreSpec.from_lines([exact]).patterns[0]
        except (ValueError, re.error):
            parsed = None
        if parsed is None or parsed.regex is None:
            raise UsageError(
                f"{place} {number}: {line!r} is not a gitignore pattern",
                hint="correct or remove it; the syntax is the one of .gitignore",
            )
        # The one group in pathspec's expressions is the slash after a name that matched. Tied to the
        # end, the expression no longer matches what lies below that name.
        end = r"\Z" if parsed.regex.groups else ""
        patterns.append(
            _Pattern(
                text=line.rstrip(),
                reason=reason,
                excludes=bool(parsed.include),
                folders_only=line.rstrip().endswith("/"),
                regex=re.compile(parsed.regex.pattern + end, re.DOTALL),
            )
        )
    return patterns


def _is_rule(line: str) -> bool:
    """Blank lines and comments are no rules; nor is a bare slash, which matches nothing."""
    return line.strip() not in ("", "/", "!/") and not line.startswith("#")


def _digest(rules: list[tuple[str, str]]) -> str:
    return sha256(repr(rules).encode()).hexdigest()
