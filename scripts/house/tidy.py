"""Relative imports inside a room; one TYPE_CHECKING block."""
import ast, re
from pathlib import Path
SRC = Path("src/takeback")
for p in SRC.rglob("*.py"):
    rel = p.relative_to(SRC)
    room = ".".join(["takeback", *rel.parent.parts])
    t = o = p.read_text()
    if room != "takeback":
        t = re.sub(rf"^( *)from {re.escape(room)} import ", r"\1from . import ", t, flags=re.M)
        t = re.sub(rf"^( *)from {re.escape(room)}\.(\w+) import ", r"\1from .\2 import ", t, flags=re.M)
    tree = ast.parse(t)
    blocks = [n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING" and not n.orelse]
    if len(blocks) > 1:
        lines = t.splitlines(keepends=True)
        extra = []
        for b in blocks[1:]:
            extra += lines[b.body[0].lineno - 1 : b.end_lineno]
        for b in reversed(blocks[1:]): del lines[b.lineno - 1 : b.end_lineno]
        at = blocks[0].end_lineno
        lines[at:at] = extra
        t = "".join(lines)
    if t != o: p.write_text(t)
