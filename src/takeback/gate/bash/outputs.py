"""What programs write that else only read: by an option, or by a word that stands behind what they read.

A program counts as known (judging.py) if it only reads what it names, names no files, or is one whose words are known
here or in files.py: then what it writes outside the workspace is told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from .words import named

ONLY_READ = named(
    "ls cat more head tail du df stat file wc grep egrep fgrep rg test [ [[ diff cmp cut tr paste join comm nl tac rev "
    "fold fmt column jq sha256sum sha1sum md5sum cksum od hexdump strings sleep printenv uname whoami id ps kill true "
    "false seq expr let bc sync fd fdfind date hostname tput clear reset locale"
)
# What a shell does itself, or the gate judges by what it is told: their words are no files that they write.
NO_FILES = named(
    "env exit return break continue shift local typeset readonly unset wait jobs bg fg umask ulimit getopts hash type "
    "export declare mapfile readarray shopt select ssh nc sqlite3 redis-cli mongosh takeback"
)
_OUTPUTS = {
    "sort": named("-o --output"), "shuf": named("-o --output"), "iconv": named("-o --output"), "tree": named("-o"),
    "less": named("-o -O --log-file --LOG-FILE"), "unzip": named("-d"), "patch": named("-o --output -d -r "
    "--directory --reject-file"), "zip": named("-O --out -b --temp-path -lf --logfile-path"),
    "zstd": named("-o --output-dir-flat --output-dir-mirror"), "psql": named("-o --output -L --log-file"),
    "mysql": named("--tee"), "http": named("-o --output"), "https": named("-o --output"), "xh": named("-o --output"),
    "curl": named("--trace --trace-ascii --stderr --etag-save --libcurl --hsts --alt-svc"),
    "wget": named("-o --output-file -a --append-output --save-cookies --warc-file --rejected-log --hsts-file"),
    "rsync": named("--log-file --backup-dir --write-batch --partial-dir --temp-dir"),
    "uniq": frozenset[str](), "xxd": frozenset[str](), "yq": frozenset[str](), "sed": frozenset[str](),
}  # fmt: skip
# Options whose value is no file.
_NUMBERS = {
    "uniq": named("-f -s -w --skip-fields --skip-chars --check-chars"),
    "xxd": named("-c -g -l -o -s -R -n -cols -groupsize -len -seek -name"),
    "zip": named("-x -i -n -P -t -tt -s -sp -Z"),
    "yq": named("-o -p -I --output-format --input-format --indent"),
}
_SECOND = named("uniq xxd")  # IN OUT
# A packed file takes the place of the one that was packed.
_PACKERS = named("gzip gunzip bzip2 bunzip2 xz unxz lzma unlzma pigz unpigz pbzip2 compress uncompress lzip lzop")
_KEEPING_PACKERS = named("zstd unzstd lz4 unlz4 brotli")
_SUFFIXES = named("-S --suffix -p --processes -T --threads -b --bits -M --memory")
_TO_NOWHERE = named("--stdout --to-stdout --test --list --help --version")
_SED = re.compile(r"(?:^|[\s;/}\d$])[wW]\s+([^\s;}]+)")


class Output(NamedTuple):
    path: str
    deletes: bool = False


def outputs(name: str, words: Sequence[str]) -> list[Output]:
    """What a command writes or removes, as far as its words say."""
    if name in _PACKERS | _KEEPING_PACKERS:
        return [*_packed(name, words), *_by_option(name, words)]
    if name in ("sed", "gsed"):
        return [Output(found) for word in words[1:] for found in _SED.findall(word)]
    if name == "git":
        return _git(words)
    if name not in _OUTPUTS:
        return []
    found, plain = _by_option(name, words), _plain(name, words)
    if name in _SECOND:
        found += map(Output, plain[1:2])
    elif name == "zip":
        moves = any(re.fullmatch(r"-[a-zA-Z]*m[a-zA-Z]*|--move", word) for word in words)
        found += [*map(Output, plain[:1]), *(Output(path, deletes=True) for path in plain[1:] if moves)]
    elif name == "yq" and any(re.fullmatch(r"-[a-zA-Z]*i|--inplace|--in-place", word) for word in words):
        found += map(Output, plain[1:])
    return found


def _by_option(name: str, words: Sequence[str]) -> list[Output]:
    return [Output(value) for value in _values(words, _OUTPUTS.get(name, frozenset())) if value != "-"]


def _values(words: Sequence[str], options: frozenset[str]) -> list[str]:
    """What options are given: as the next word, after a sign of equality, or right behind a letter."""
    letters = "".join(option[1] for option in options if len(option) == 2)
    found = []
    for at, word in enumerate(words[1:], 1):
        key, equals, value = word.partition("=")
        cluster = re.fullmatch(rf"-[A-Za-z]*?[{letters}](.*)", word) if letters and word[:2] != "--" else None
        if key in options and equals:
            found.append(value)
        elif word in options or (cluster is not None and not cluster[1]):
            found += words[at + 1 : at + 2]
        elif cluster is not None:
            found.append(cluster[1])
    return found


def _plain(name: str, words: Sequence[str]) -> list[str]:
    """The words that are neither options nor their values."""
    takes = _OUTPUTS.get(name, frozenset()) | _NUMBERS.get(name, frozenset())
    found: list[str] = []
    at = 1
    while at < len(words):
        if words[at] == "--":
            return [*found, *words[at + 1 :]]
        if words[at].startswith("-") and len(words[at]) > 1:
            at += words[at] in takes
        else:
            found.append(words[at])
        at += 1
    return found


def _packed(name: str, words: Sequence[str]) -> list[Output]:
    options = [word for word in words[1:] if word.startswith("-")]
    letters = "".join(option[1:] for option in options if not option.startswith("--"))
    if _TO_NOWHERE & set(options) or set("ctl") & set(letters):
        return []
    keeps = "k" in letters or "--keep" in options or (name in _KEEPING_PACKERS and "--rm" not in options)
    taken = _SUFFIXES | _OUTPUTS.get(name, frozenset())
    plain = [word for before, word in pairwise(words) if not word.startswith("-") and before not in taken]
    return [Output(path, deletes=not keeps) for path in plain]


# -- git ---------------------------------------------------------------------


def git_words(words: list[str]) -> list[str]:
    """git's own verb and what follows it."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env") else 1
    return words[at:]


_GIT_OUTPUTS = named("-o --output --output-directory --prefix --export-marks --separate-git-dir --index-output")
# Options that name what is only read, or no file of this machine.
_GIT_READ = named(
    "--exclude-from --pathspec-from-file --ignore-revs-file --import-marks --reference --reference-if-able --template "
    "--git-dir --work-tree --exec-path --exec --upload-pack --receive-pack --remote --format --pretty --author --grep "
    "--message --file --src-prefix --dst-prefix --date --since --until --after --before --mailmap --contents --onto"
)
_NAMES_TREE = re.compile(r"/|~|\.\.(?:/|$)")


def _git(words: Sequence[str]) -> list[Output]:
    """An option that names a place, with a sign of equality, names what is written unless it is known to be read."""
    verb, *rest = *git_words(list(words)), ""
    rest = [word for word in rest if word]
    if verb in ("push", "clone", "grep"):  # the first is asked about; what a clone writes is its last word
        return []
    found = [*map(Output, _values(["", *rest], _GIT_OUTPUTS))]
    for word in rest:
        key, equals, value = word.partition("=")
        if equals and key.startswith("--") and key not in _GIT_READ | _GIT_OUTPUTS and _NAMES_TREE.match(value):
            found.append(Output(value))
    plain = [word for word in rest if not word.startswith("-")]
    if verb == "config" and (files := _values(["", *rest], named("-f --file"))):
        found += map(Output, files if _sets(rest, [word for word in plain if word not in files]) else ())
    if verb == "init":
        found += map(Output, plain[-1:])
    elif verb == "bundle" and plain[:1] == ["create"]:
        found += map(Output, plain[1:2])
    elif verb == "worktree" and plain[:1] in (["remove"], ["move"]):
        found += [Output(plain[1], deletes=True) for _ in plain[1:2]]
        found += map(Output, plain[2:3])
    return found


def _sets(rest: Sequence[str], plain: Sequence[str]) -> bool:
    """Whether git config changes something, and does not only show it."""
    if any(word in ("get", "list", "-l") or word.startswith(("--get", "--list")) for word in rest):
        return False
    return len(plain) > 1 or any(word.startswith(("--unset", "--remove", "--rename", "--edit", "-e")) for word in rest)
