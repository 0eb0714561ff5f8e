"""Generated trees: source-like files in small folders, or a few large files. The same bytes every time."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path

_SEED = 20240607
_PER_FOLDER = 10
_CORPUS = 4 << 20
_SUFFIXES = (".py", ".ts", ".go", ".md", ".json", ".c", ".h", ".css")
_SHAPES = (
    "def {a}_{b}({c}, {d}={n}):",
    "    {c} = {a}.{b}({d}, {c}[{n}])",
    "    if {c} is not None and {d} > {n}:",
    "        return {a}({b}.{c}, {d})",
    "    for {c} in {a}.{b}_{d}():",
    "        self._{a}.append({b}({c}={d}))",
    "class {A}{B}({C}):",
    '    """{A} {b} the {c} when {d} {e} {f}."""',
    "    # {a} {b} {c} {d}: {e} {f}",
    "import {a}.{b} as {c}",
    '    raise {A}Error(f"{b} {{{c}}} is not {d}")',
    '        "{a}-{b}": ["{c}", {n}, "{d}/{e}.{f}"],',
    "    {a}_{b} = {{{c}: {d} for {c}, {d} in {e}.items() if {c} != {n}}}",
    "        assert {a}({b}) == {n}, {c}",
    "    with {a}.open({b}, '{c}') as {d}:",
    "",
    "",
)
_SYLLABLES = [
    "re",
    "con",
    "tent",
    "ing",
    "pa",
    "th",
    "list",
    "er",
    "val",
    "in",
    "set",
    "ma",
    "de",
    "co",
    "st",
]
_OFTEN = [1 / rank for rank in range(1, 17)]  # few words make most of a text


@dataclass(frozen=True)
class Size:
    """One tree: how it is called, how many files it has, and how often its operations are repeated."""

    name: str
    files: int
    bulk_rounds: int
    small_rounds: int
    large: bool = False

    @property
    def title(self) -> str:
        return "1 GB in 20 large files" if self.large else f"{self.files:,} files".replace(",", " ")


SIZES = {
    "1k": Size("1k", 1_000, 5, 15),
    "10k": Size("10k", 10_000, 3, 15),
    "big": Size("big", 20, 2, 3, large=True),
    "100k": Size("100k", 100_000, 2, 9),
}


def make(size: Size, root: Path) -> None:
    """Writes the tree of this size into a new folder."""
    chance = random.Random(_SEED)
    corpus = _code(chance)
    root.mkdir()
    if size.large:
        _large_files(root, corpus, chance)
        return
    for number in range(0, size.files, _PER_FOLDER):
        folder = _folder(root, number // _PER_FOLDER)
        for i in range(number, min(number + _PER_FOLDER, size.files)):
            name = f"{_word(chance)}_{i}{chance.choice(_SUFFIXES)}"
            (folder / name).write_bytes(_file(i, corpus, chance))
    _age(root)


def change(tree: Path, paths: list[str], round_: int) -> None:
    """What an agent does: each of these files gets a line more, in its middle."""
    for path in paths:
        with open(tree / path, "r+b") as file:
            file.seek(0, os.SEEK_END)
            middle = file.tell() // 2
            file.seek(middle)
            rest = file.read(4000)
            file.seek(middle)
            file.write(b"\n# changed in round %d\n" % round_ + rest)


def pick(paths: list[str], count: int, round_: int) -> list[str]:
    """Some files, spread over the tree, others in each round."""
    return random.Random(round_).sample(paths, min(count, len(paths)))


def _folder(root: Path, number: int) -> Path:
    """About ten files to a folder and about ten folders in it, three levels deep."""
    folder = root / f"pkg{number // 100:03d}" / f"mod{number // 10 % 10}" / f"part{number % 10}"
    folder.mkdir(parents=True)
    return folder


def _file(number: int, corpus: bytes, chance: random.Random) -> bytes:
    """Most are small and few are large, as in a project: 7 kB on average."""
    size = min(200_000, max(80, int(chance.lognormvariate(8.35, 1.05))))
    parts = [b"# module %d\n" % number]
    while size > 0:
        length = min(size, chance.randrange(800, 8000))
        start = chance.randrange(len(corpus) - length)
        parts.append(corpus[start : start + length])
        size -= length
    return b"".join(parts)


def _large_files(root: Path, corpus: bytes, chance: random.Random) -> None:
    for number in range(20):
        with open(root / f"data{number:02d}.{'log' if number % 2 else 'bin'}", "wb") as file:
            for _ in range(50):
                if number % 2:
                    start = chance.randrange(len(corpus) - (1 << 20))
                    file.write(corpus[start : start + (1 << 20)])
                else:
                    file.write(chance.randbytes(1 << 20))
    _age(root)


def _code(chance: random.Random) -> bytes:
    """Lines that look, and compress, like code: few words often, many words seldom, one topic at a time."""
    words = [_word(chance) for _ in range(4000)]
    weights = [1 / (rank + 4) for rank in range(len(words))]
    lines: list[str] = []
    size = 0
    while size < _CORPUS:
        topic = chance.choices(words, weights, k=len(_OFTEN))
        for _ in range(120):
            if len(lines) > 40 and chance.random() < 0.18:
                line = lines[-chance.randrange(1, 40)]  # code repeats itself
            else:
                line = _line(topic, chance)
            lines.append(line)
            size += len(line) + 1
    return "\n".join(lines).encode()


def _line(topic: list[str], chance: random.Random) -> str:
    a, b, c, d, e, f = chance.choices(topic, _OFTEN, k=6)
    n = chance.choice((0, 1, 2, 10, 64, chance.randrange(1000)))
    upper = {"A": a.title(), "B": b.title(), "C": c.title()}
    return chance.choice(_SHAPES).format(a=a, b=b, c=c, d=d, e=e, f=f, n=n, **upper)


def _word(chance: random.Random) -> str:
    return "".join(chance.choices(_SYLLABLES, k=chance.randrange(1, 4)))


def _age(root: Path) -> None:
    """An hour old, so that no time stamp is too fresh to be trusted."""
    then = 1_700_000_000_123_456_789
    for path in sorted(root.rglob("*"), reverse=True):  # what is in a folder before the folder
        os.utime(path, ns=(then, then))
