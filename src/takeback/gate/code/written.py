"""Files that a command line itself writes before it runs them: what is in each, as far as that can be said."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from takeback.gate.bash.outputs import git_words, outputs
from takeback.gate.bash.state import Command, resolved
from takeback.gate.bash.words import UNKNOWN, named
from takeback.gate.paths_written import Touched, is_remote, touched

_KEEPS = named("chmod chown chgrp chattr setfacl xattr gchmod mkdir gmkdir touch gtouch mkfifo mknod")  # no new text
_COPIES = named("cp mv ln install gcp gmv gln ginstall rsync scp ditto link symlink")
_EDITS = named("sed gsed perl ruby patch ed red ex vim vi nvim emacs joe nano micro")  # in place: much stays as it is
_SED = named("sed gsed")
_UNPACKS = named("tar bsdtar gtar unzip")
_TREE = named("checkout switch pull merge rebase reset restore stash cherry-pick revert am apply read-tree")
_PATTERN = re.compile(r"[*?\[]")


class Written:
    """What the text did to files so far. It holds for all shells of the text: a file outlives a subshell."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}  # by path: what was put into it; UNKNOWN where nobody can say
        self.origins: dict[str, str] = {}  # what lies at a path, and below it, came from there; UNKNOWN: from elsewhere
        self.edited: set[str] = set()  # changed in place: read as it is now, and told
        self.filled: set[str] = set()  # folders into which something was unpacked
        self.folders: set[str] = set()  # made by this text

    def copy(self) -> Written:
        other = Written()
        other.become(self)
        for name, value in vars(self).items():
            setattr(other, name, value.copy())
        return other

    def join(self, other: Written) -> None:
        """After a choice: where two ways left different things, nobody knows which."""
        for mine, others in ((self.texts, other.texts), (self.origins, other.origins)):
            for path, value in others.items():
                mine[path] = value if mine.get(path, value) == value else UNKNOWN
        self.edited |= other.edited
        self.filled |= other.filled
        self.folders |= other.folders

    def become(self, other: Written) -> None:
        """The way that was taken is the one that counts."""
        vars(self).update(vars(other))

    def put(self, path: str, text: str) -> None:
        self.texts[path] = text
        self.edited.discard(path)

    def text(self, path: str) -> str | None:
        """What the text put into a file; None where it did not."""
        return self.texts.get(path)

    def origin(self, path: str) -> str:
        """Where what lies at a path lay before the text began; UNKNOWN where it did not."""
        for above, rest in _ways(path):
            if above in self.origins:
                origin = self.origins[above]
                return origin if origin == UNKNOWN else origin + rest
        return path

    def below(self, folder: str) -> list[str] | None:
        """Files below a folder that the text wrote; None where other ones may have come there."""
        inside = folder.rstrip("/") + "/"
        came = {*self.origins, *self.filled}
        if any(path == folder or path.startswith(inside) or folder.startswith(path + "/") for path in came):
            return None
        return [path for path in self.texts if path.startswith(inside)]

    def is_edited(self, path: str) -> bool:
        if "/.git/" in path:  # what git changes in a tree is not there
            return path in self.edited
        return any(above in self.edited for above, _ in _ways(path))

    def after(self, command: Command) -> None:
        """A command has run: what it leaves where."""
        if command.elsewhere or not command.words:
            return
        name, cwd = command.name, command.cwd
        if name == "git":
            self._git(command)
            return
        if name in ("mkdir", "gmkdir"):
            self.folders |= {resolved(word, cwd) for word in command.words[1:] if not word.startswith("-")}
        if name in _KEEPS or name == "tee":
            return
        put = {path for path, deletes in outputs(name, command.words) if not deletes} | _unpacked(name, command.words)
        for path in put if name not in _UNPACKS and name != "patch" else ():
            self.put(resolved(path, cwd), UNKNOWN)
        if name == "patch" and not [word for word in command.words[1:] if not word.startswith("-")]:
            self.edited.add(cwd)
        if name == "unzip" and "-d" not in command.words:
            self._from_elsewhere(cwd)
        for each in touched(command._replace(writes=())):
            path = resolved(each.path, cwd)
            if each.deletes or path == UNKNOWN or _PATTERN.search(path) or (name in _SED and each.path in put):
                continue
            if name in _COPIES:
                self._copied(each, path, cwd, name)
            elif name in _EDITS:
                self.edited.add(path)
            elif name in _UNPACKS:
                self._from_elsewhere(path)
            else:
                self.put(path, UNKNOWN)

    def _copied(self, each: Touched, target: str, cwd: str, name: str) -> None:
        is_folder = target in self.folders or os.path.isdir(target)
        into = each.path.endswith("/") or len(each.sources) > 1 or is_folder
        for source in each.sources:
            path = resolved(source, cwd)
            below = into or (name == "rsync" and os.path.isdir(path))
            to = f"{target.rstrip('/')}/{re.split('[/:]', path)[-1]}" if below else target
            contents = source.endswith(("/", "/."))
            to = target if contents else to
            if is_remote(source):
                self.put(to, UNKNOWN)
                continue
            if path == UNKNOWN or _PATTERN.search(path):
                self._from_elsewhere(target)
                continue
            self._forget(to)
            text = self.text(path)
            inside = {to + key[len(path) :]: value for key, value in self.texts.items() if key.startswith(path + "/")}
            if text is not None:
                self.texts[to] = text
            else:
                self.texts |= inside
                self.origins[to] = self.origin(path)

    def _from_elsewhere(self, path: str) -> None:
        """Files come that nobody knows. In a folder that is there already much stays as it is."""
        if os.path.isdir(path):
            self.edited.add(path)
            self.filled.add(path)
        else:
            self.origins[path] = UNKNOWN

    def may_have_come(self, path: str) -> bool:
        """Whether a file that is not there may have been unpacked."""
        return any(above in self.filled for above, _ in _ways(path))

    def _forget(self, path: str) -> None:
        for known in (self.texts, self.origins):
            for key in [key for key in known if key == path or key.startswith(path + "/")]:
                del known[key]

    def _git(self, command: Command) -> None:
        words = [*git_words(list(command.words)), "", ""]
        verb, rest = words[0], words[1:]
        plain = [word for word in rest if word and not word.startswith("-")]
        if verb == "clone" and plain:
            folder = plain[1] if len(plain) > 1 else re.sub(r"\.git$", "", plain[0].rstrip("/")).rpartition("/")[2]
            self._from_elsewhere(resolved(folder, command.cwd))
        elif verb == "mv" and len(plain) == 2:
            self._copied(Touched(plain[1], sources=(plain[0],)), resolved(plain[1], command.cwd), command.cwd, "mv")
        elif verb in _TREE and not (verb == "stash" and rest[0] in ("list", "show")):
            self.edited.add(command.cwd)


def _unpacked(name: str, words: Sequence[str]) -> set[str]:
    """Files that take the place of packed ones."""
    if name not in ("gunzip", "bunzip2", "unxz", "unzstd"):
        return set()
    return {re.sub(r"\.(?:gz|bz2|xz|zst)$", "", word) for word in words[1:] if not word.startswith("-")}


def _ways(path: str) -> Iterator[tuple[str, str]]:
    """A path and the folders above it, each with what follows it."""
    above, rest = path, ""
    while above and above != "/":
        yield above, rest
        above, _, last = above.rpartition("/")
        rest = f"/{last}{rest}"
