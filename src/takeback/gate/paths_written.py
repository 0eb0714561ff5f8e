"""Which paths a command writes or deletes, as far as its words say."""

from __future__ import annotations

import re
from typing import NamedTuple

from takeback.gate.bash.find_command import parted
from takeback.gate.bash.outputs import git_words, outputs
from takeback.gate.bash.state import Command
from takeback.gate.bash.words import named


class Touched(NamedTuple):
    path: str
    deletes: bool = False
    recursive: bool = False
    sources: tuple[str, ...] = ()  # what is put there: below it, where it is a folder


FOUND = "find -delete"  # not a program: what find would delete that matters
_DELETES = named("rm unlink rmdir shred srm grm trash trash-put rimraf del") | {FOUND}
_EDITORS = named("ed red ex vim vi nvim emacs joe nano micro")
_WRITES_ALL = named("mkdir touch tee truncate gtouch gmkdir sponge mkfifo mknod fallocate")
_WRITES_LATER = named("chmod chown chgrp chattr setfacl xattr gchmod")  # the first word says what
_TO_LAST = named("cp mv ln install gcp gmv gln ginstall rsync ditto scp link symlink")
_VALUES = {
    "truncate": named("-s --size -r --reference"),
    "touch": named("-d --date -r --reference -t"),
    "mkdir": named("-m --mode -Z --context"),
    "shred": named("-n --iterations -s --size"),
    "install": named("-m --mode -o --owner -g --group -S --suffix"),
    "cp": named("-S --suffix"),
    "mv": named("-S --suffix"),
    "ln": named("-S --suffix"),
    "rsync": named("-e --rsh --exclude --include --filter -f --exclude-from --include-from --files-from --chmod "
                       "--chown --bwlimit --port --timeout --password-file --rsync-path --log-file --max-size"),
    "scp": named("-P -i -o -c -F -l -S -J"),
    "tee": frozenset(),
}  # fmt: skip
_TAR_VALUES = "fCTXbgHVLKNI"
_TAR_LONG = {
    "--file": "f", "--directory": "C", "--cd": "C", "--extract": "x", "--get": "x", "--create": "c", "--append": "r",
    "--update": "u", "--catenate": "A", "--concatenate": "A", "--files-from": "T", "--exclude-from": "X",
}  # fmt: skip
# Programs of which `touched` knows which of their words name what they write.
WRITERS = named(
    "rm mv cp ln mkdir rmdir touch chmod chown chgrp truncate tee sed gsed dd tar zip unzip gzip gunzip bzip2 xz zstd "
    "patch install sort uniq yq xxd less tree psql mysql curl wget http https xh scp rsync"
)


def touched(command: Command) -> list[Touched]:
    found = [Touched(path) for path in command.writes if path]
    words = list(command.words)
    name = command.name
    if not words:
        return found
    plain, options = _split(name, words)
    recursive = any(re.fullmatch(r"-[a-zA-Z]*[rR][a-zA-Z]*|--recursive", option) for option in options)
    if name in _DELETES:
        found += [Touched(path, True, recursive or name in ("rimraf", "trash", "trash-put")) for path in plain]
    elif name in _WRITES_ALL:
        found += [Touched(path) for path in plain]
    elif name in _WRITES_LATER:
        skip = 0 if any(o.startswith("--reference") for o in options) else 1
        found += [Touched(path) for path in plain[skip:]]
    elif name in _TO_LAST:
        found += _to_last(name, words, plain, options)
    elif name in ("sed", "gsed", "perl", "ruby") and _in_place(name, words):
        found += [Touched(path) for path in (plain if _has_script(words) else plain[1:])]
    elif name == "dd":
        found += [Touched(word[3:]) for word in words if word.startswith("of=")]
    elif name in ("find", "gfind") and "-delete" in words:
        found += [Touched(f"{place.rstrip('/')}/*", True, True) for place in parted(words)[0]]
    elif name in ("find", "gfind"):
        found += [Touched(words[at + 1]) for at, w in enumerate(words[:-1]) if w.startswith("-fprint") or w == "-fls"]
    elif name in ("curl", "wget"):
        found += [Touched(path) for path in _downloads(name, words)]
    elif name in ("tar", "bsdtar", "gtar"):
        found += _tar(words)
    elif name == "git" and (git := git_words(words))[:1] in (["rm"], ["mv"]):
        paths = [word for word in git[1:] if not word.startswith("-")]
        if not any(word in ("--cached", "-n", "--dry-run") for word in git):
            found += [Touched(path, True) for path in (paths if git[0] == "rm" else paths[:-1])]
    elif name in _EDITORS:
        found += [Touched(path) for path in plain if not path.startswith("+")]
    elif (name == "git" and "clone" in plain[:1] and len(plain) > 2) or (
        name == "git" and "worktree" in plain[:1] and plain[1:2] == ["add"] and len(plain) > 2
    ):
        found.append(Touched(plain[2]))
    elif name == "patch":
        found += [Touched(plain[0])] if plain else []
    return found + [Touched(path, deletes) for path, deletes in outputs(name, words)]


def _split(name: str, words: list[str]) -> tuple[list[str], list[str]]:
    values = _VALUES.get(name.removeprefix("g") if name not in _VALUES else name, frozenset())
    plain, options, at = [], [], 1
    while at < len(words):
        word = words[at]
        if word == "--":
            plain += words[at + 1 :]
            break
        if word.startswith("-") and len(word) > 1:
            options.append(word)
            at += word in values
        else:
            plain.append(word)
        at += 1
    return plain, options


def _to_last(name: str, words: list[str], plain: list[str], options: list[str]) -> list[Touched]:
    target = ""
    for at, word in enumerate(words):
        if word in ("-t", "--target-directory") and name not in ("rsync", "scp") and at + 1 < len(words):
            target = words[at + 1]
            plain = [path for path in plain if path != target]
        elif word.startswith("--target-directory="):
            target = word.partition("=")[2]
    if name in ("install", "ginstall") and "-d" in options:
        return [Touched(path) for path in plain]
    if not target:
        if len(plain) < 2:
            return []
        *plain, target = plain
    removes = name in ("mv", "gmv") or (name == "rsync" and "--remove-source-files" in options)
    erases = name == "rsync" and any(option.startswith("--del") for option in options)
    sources = [Touched(path, True, True) for path in plain if not is_remote(path)] if removes else []
    return [*sources, *([] if is_remote(target) else [Touched(target, erases, erases, tuple(plain))])]


def is_remote(path: str) -> bool:
    """host:path or rsync://, but no path with a colon somewhere in it."""
    return bool(re.match(r"(?:[\w.-]+@)?[\w.-]+:(?!\\)|rsync://|sftp://|scp://", path)) and not path.startswith("/")


def _in_place(name: str, words: list[str]) -> bool:
    if name in ("perl", "ruby"):
        return any(
            re.fullmatch(r"-[a-zA-Z]*i.*", word) and not word.startswith(("-I", "-e", "-M")) for word in words[1:]
        )
    return any(re.fullmatch(r"-[nErsuz]*i.*|--in-place(=.*)?", word) for word in words[1:])


def _has_script(words: list[str]) -> bool:
    return any(w in ("-e", "--expression", "-f") or re.fullmatch(r"-[a-z]*e", w) for w in words[1:])


def _downloads(name: str, words: list[str]) -> list[str]:
    options = {"curl": ("-o", "--output", "--output-dir", "-c", "--cookie-jar", "-D", "--dump-header"),
               "wget": ("-O", "--output-document", "-P", "--directory-prefix")}[name]  # fmt: skip
    found = []
    for at, word in enumerate(words[1:], 1):
        key, eq, value = word.partition("=")
        if word in options and at + 1 < len(words):
            found.append(words[at + 1])
        elif eq and key in options:
            found.append(value)
        elif not word.startswith("--") and len(word) > 2 and word[:2] in options:
            found.append(word[2:])
        elif re.fullmatch(r"-[a-zA-Z]+[oO]", word) and f"-{word[-1]}" in options and at + 1 < len(words):
            found.append(words[at + 1])
    return [path for path in (found or _by_address(name, words)) if path != "-"]


def _by_address(name: str, words: list[str]) -> list[str]:
    """Files that are called as the last part of their address."""
    if name == "curl" and not any(re.fullmatch(r"-[a-zA-Z]*O[a-zA-Z]*|--remote-name(-all)?", word) for word in words):
        return []
    addresses = [word.partition("?")[0].partition("#")[0].rstrip("/") for word in words[1:] if "://" in word]
    return [last for address in addresses if (last := address.partition("://")[2].rpartition("/")[2])]


def _tar(words: list[str]) -> list[Touched]:
    given, plain = _tar_words(words)
    modes = given.keys()
    found = [Touched(path, True, True) for path in plain if "--remove-files" in words]
    if "x" in modes:
        return [*found, Touched(given.get("C") or ".")]
    archive = given.get("f", "-")
    if modes & set("cruA") or "--delete" in words:
        return [*found, *([Touched(archive)] if archive != "-" else [])]
    return found


def _tar_words(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The options by their letters, with what each is given, and the other words."""
    given: dict[str, str] = {}
    plain: list[str] = []
    rest = words[1:]
    is_first = True
    while rest:
        word = rest.pop(0)
        if word.startswith("--"):
            key, equals, value = word.partition("=")
            letter = _TAR_LONG.get(key, "")
            if letter in _TAR_VALUES and letter and not equals:
                value = rest.pop(0) if rest else ""
            given[letter or key] = value
        elif (word.startswith("-") and len(word) > 1) or is_first:
            cluster = word.removeprefix("-")
            for at, letter in enumerate(cluster):
                is_old = not word.startswith("-")  # what its letters are given follows, in their order
                value = cluster[at + 1 :] if letter in _TAR_VALUES and not is_old else ""
                if letter in _TAR_VALUES and not value:
                    value = rest.pop(0) if rest else ""
                given[letter] = value
                if value and letter in _TAR_VALUES and not is_old:
                    break
        else:
            plain.append(word)
        is_first = False
    return given, plain
