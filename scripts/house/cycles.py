"""Imports that point upward in the order of rooms; and pairs of rooms that import each other."""
import ast, sys
from pathlib import Path
from collections import defaultdict
ORDER = "errors system model text privacy config journal store threads look plan domains apply run care agents gate show workspace_locks aio workspace harness integrations surfaces".split()
SRC = Path("src/takeback")
mods = {}
for p in SRC.rglob("*.py"):
    rel = p.relative_to(SRC)
    mods[".".join(["takeback", *(rel.parent.parts if rel.name == "__init__.py" else rel.with_suffix("").parts)])] = p
def room(m): return m.split(".")[1] if "." in m else ""
up = defaultdict(list)
for m, p in mods.items():
    tree = ast.parse(p.read_text()); is_pkg = p.name == "__init__.py"
    only = {id(n) for b in ast.walk(tree) if isinstance(b, ast.If) and "TYPE_CHECKING" in ast.unparse(b.test) for s in b.body for n in ast.walk(s)}
    inner = {id(n) for f in ast.walk(tree) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)) for n in ast.walk(f)}
    for n in ast.walk(tree):
        if isinstance(n, ast.ImportFrom):
            base = (m.split(".") if is_pkg else m.split(".")[:-1])
            b = ".".join([*base[: len(base) - n.level + 1], *([n.module] if n.module else [])]) if n.level else n.module
            names = [f"{b}.{a.name}" if f"{b}.{a.name}" in mods else b for a in n.names]
        elif isinstance(n, ast.Import): names = [a.name for a in n.names]
        else: continue
        for t in set(names):
            if t in mods and room(m) and room(t) and room(m) in ORDER and room(t) in ORDER and ORDER.index(room(t)) > ORDER.index(room(m)):
                kind = "type" if id(n) in only else "lazy" if id(n) in inner else "run"
                up[(room(m), room(t))].append(f"{kind:4} {m[9:]} → {t[9:]}")
for k in sorted(up): print(f"{k[0]} → {k[1]}: {len(up[k])}"); [print("     ", x) for x in sorted(up[k])]
print(sum(map(len, up.values())))
