"""Real git repositories for tests, and what git itself says of them."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

PERSON = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


class Repo:
    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def new(cls, root: Path, *options: str) -> Repo:
        root.mkdir(parents=True, exist_ok=True)
        repo = cls(root)
        repo("init", "-q", "-b", "main", *options)
        return repo

    def __call__(self, *args: str, ok: bool = True, told: bytes = b"") -> str:
        environ = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | PERSON
        done = subprocess.run(["git", *args], cwd=self.root, env=environ, capture_output=True, input=told, check=False)
        assert not ok or done.returncode == 0, (args, done.stderr)
        return done.stdout.decode("utf-8", "surrogateescape")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, message: str, **files: str) -> str:
        for name, text in files.items():
            self.write(name, text)
            self("add", name)
        self("commit", "-q", "--allow-empty", "-m", message)
        return self("rev-parse", "HEAD").strip()

    # -- what git says -------------------------------------------------------

    def head(self) -> str:
        on = self("symbolic-ref", "-q", "HEAD", ok=False).strip()
        return f"ref: {on}" if on else self("rev-parse", "HEAD").strip()

    def refs(self) -> dict[str, str]:
        lines = self("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        found = dict(line.split(" ") for line in lines)
        return {n: o for n, o in found.items() if not n.startswith("refs/remotes/") and n != "refs/stash"}

    def staged(self) -> list[str]:
        flags = {line[2:]: line[0] for line in self("ls-files", "-z", "-v").split("\0") if line}
        told = [line for line in self("ls-files", "-z", "-s").split("\0") if line]
        return [f"{line} {flags.get(line.partition(chr(9))[2], '')}" for line in told]

    def stashes(self) -> list[str]:
        return self("stash", "list", "--format=%H %gs").splitlines()

    def merging(self) -> dict[str, str]:
        folder = Path(self("rev-parse", "--absolute-git-dir").strip())
        names = ("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "SQUASH_MSG")
        return {n: (folder / n).read_text() for n in names if (folder / n).exists()}

    def tree(self) -> dict[str, tuple[int, bytes]]:
        found = {}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if path.is_file() and not name.startswith(".git"):
                found[name] = (path.stat().st_mode, path.read_bytes())
        return found

    def all(self) -> tuple[object, ...]:
        """Everything that a take-back brings back."""
        status = self("status", "--porcelain=v2", "--branch", "--untracked-files=all")
        return (self.head(), self.refs(), self.staged(), self.stashes(), self.merging(), self.tree(), status)


def do_something(repo: Repo, chance: random.Random) -> None:
    """One of many things that people and agents do with git, if it can be done just now."""
    name = chance.choice(["a", "b", "dir/c", "dir/sub/d", "ü", "with space"])
    branch = chance.choice(["x", "y", "deep/z", "main"])
    what = chance.choice(
        [
            "write",
            "write",
            "add",
            "add",
            "commit",
            "commit",
            "branch",
            "tag",
            "annotated",
            "switch",
            "detach",
            "delete",
            "untag",
            "stash",
            "pop",
            "drop",
            "reset",
            "merge",
            "pack",
            "later",
            "assume",
            "skip",
            "remove",
            "mode",
            "rename",
            "notes",
            "unmerge",
            "version",
        ]
    )
    match what:
        case "write":
            repo.write(name, str(chance.random()))
        case "add":
            repo("add", "-A", ok=False)
        case "commit":
            repo("commit", "-qam", "more", ok=False)
        case "branch":
            repo("branch", "-f", branch, ok=False)
        case "tag":
            repo("tag", "-f", f"t{chance.randrange(3)}", ok=False)
        case "annotated":
            repo("tag", "-fam", "told", f"t{chance.randrange(3)}", ok=False)
        case "switch":
            repo("switch", "-q", branch, ok=False)
        case "detach":
            repo("checkout", "-q", "--detach", ok=False)
        case "delete":
            repo("branch", "-D", branch, ok=False)
        case "untag":
            repo("tag", "-d", f"t{chance.randrange(3)}", ok=False)
        case "stash":
            repo("stash", "push", "-q", ok=False)
        case "pop":
            repo("stash", "pop", "-q", ok=False)
        case "drop":
            repo("stash", "drop", "-q", f"stash@{{{chance.randrange(2)}}}", ok=False)
        case "reset":
            repo("reset", "-q", chance.choice(["--hard", "--mixed", "--soft"]), "HEAD~1", ok=False)
        case "merge":
            repo("merge", "-q", "-m", "m", branch, ok=False)
        case "pack":
            repo("pack-refs", "--all")
        case "later":
            repo("add", "-N", ".", ok=False)
        case "assume":
            repo("update-index", "--assume-unchanged", name, ok=False)
        case "skip":
            repo("update-index", "--skip-worktree", name, ok=False)
        case "remove":
            repo("rm", "-qf", name, ok=False)
        case "mode":
            repo("update-index", "--chmod=+x", name, ok=False)
        case "rename":
            repo("branch", "-m", branch, "renamed", ok=False)
        case "notes":
            repo("notes", "add", "-fm", "told", ok=False)
        case "unmerge":
            repo("merge", "--abort", ok=False)
        case "version":
            repo("update-index", "--index-version", chance.choice("234"), ok=False)
