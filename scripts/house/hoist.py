"""Function-level imports go to the top, where that makes no cycle. Prints what it leaves."""
import ast, sys
from pathlib import Path
SRC = Path("src/takeback")
STAY_STD = {"fcntl", "pwd", "grp", "resource", "termios", "tty", "msvcrt", "winreg", "_winapi", "ctypes", "readline", "curses", "posix", "nt"}
STAY_FILES = {"surfaces/resident/client.py", "surfaces/resident/start.py", "surfaces/resident/command.py", "__init__.py", "surfaces/resident/alone.py"}
HEAVY_INTERNAL = ("takeback.surfaces.tui", "takeback.surfaces.web", "takeback.surfaces.mcp", "takeback.surfaces.report", "takeback.integrations", "takeback.surfaces.resident.server")
STD = set(sys.stdlib_module_names)
mods = {}
for p in SRC.rglob("*.py"):
    rel = p.relative_to(SRC)
    parts = rel.parent.parts if rel.name == "__init__.py" else rel.with_suffix("").parts
    mods[".".join(["takeback", *parts])] = p
def resolve(name, node, is_pkg):
    base = name.split(".") if is_pkg else name.split(".")[:-1]
    if node.level:
        base = base[: len(base) - node.level + 1]
        return ".".join([*base, *([node.module] if node.module else [])])
    return node.module or ""
def targets(name, node, is_pkg):
    """Modules of ours that a statement loads."""
    out = set()
    if isinstance(node, ast.Import):
        for a in node.names:
            if a.name in mods: out.add(a.name)
    else:
        m = resolve(name, node, is_pkg)
        for a in node.names:
            full = f"{m}.{a.name}"
            if full in mods: out.add(full)
            elif m in mods: out.add(m)
    more = set()
    for t in out:  # packages above it are loaded, too
        parts = t.split(".")
        for n in range(2, len(parts)): more.add(".".join(parts[:n]))
    return (out | more) - {name}
graph = {m: set() for m in mods}
trees = {}
def type_only(tree):
    return {id(n) for b in ast.walk(tree) if isinstance(b, ast.If) and "TYPE_CHECKING" in ast.unparse(b.test) for s in b.body for n in ast.walk(s)}
for m, p in mods.items():
    trees[m] = tree = ast.parse(p.read_text())
    only = type_only(tree)
    inner = {id(n) for f in ast.walk(tree) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) for n in ast.walk(f) if n is not f}
    for n in ast.walk(tree):
        if isinstance(n, (ast.Import, ast.ImportFrom)) and id(n) not in only and id(n) not in inner:
            graph[m] |= targets(m, n, p.name == "__init__.py")
def reaches(a, b):
    seen, todo = set(), [a]
    while todo:
        x = todo.pop()
        if x == b: return True
        if x in seen: continue
        seen.add(x); todo += graph.get(x, ())
    return False
left, done = [], 0
for m, p in sorted(mods.items()):
    rel = str(p.relative_to(SRC))
    if rel in STAY_FILES: continue
    text = p.read_text(); tree = trees[m]; is_pkg = p.name == "__init__.py"
    lines = text.splitlines(keepends=True)
    funcs = [f for f in ast.walk(tree) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))]
    top_names = {}
    for n in tree.body:
        if isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)): top_names[n.name] = "def"
        elif isinstance(n, (ast.Import, ast.ImportFrom)):
            for a in n.names: top_names[(a.asname or a.name).split(".")[0]] = ast.unparse(n)
        elif isinstance(n, (ast.Assign, ast.AnnAssign)):
            for t in (n.targets if isinstance(n, ast.Assign) else [n.target]):
                for x in ast.walk(t):
                    if isinstance(x, ast.Name): top_names[x.id] = "assign"
    sources = {}
    for n in ast.walk(tree):
        if isinstance(n, ast.ImportFrom):
            for a in n.names: sources.setdefault(a.asname or a.name, set()).add((resolve(m, n, is_pkg), a.name))
        elif isinstance(n, ast.Import):
            for a in n.names: sources.setdefault((a.asname or a.name).split(".")[0], set()).add((a.name.split(".")[0] if not a.asname else a.name, ""))
    only = type_only(tree)
    only_names = {(a.asname or a.name).split(".")[0] for n in ast.walk(tree) if id(n) in only and isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
    all_args = {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)} | {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} | {g.name for f in funcs for g in ast.walk(f) if g is not f and isinstance(g, (ast.FunctionDef, ast.AsyncFunctionDef))}
    hoisted, remove = [], []
    for f in funcs:
        for n in ast.walk(f):
            if not isinstance(n, (ast.Import, ast.ImportFrom)) or n.lineno in {r[0] for r in remove}: continue
            parent_ok = any(n in getattr(x, "body", []) for x in ast.walk(f) if isinstance(getattr(x, "body", None), list)) or any(n in getattr(x, "orelse", []) for x in ast.walk(f) if isinstance(getattr(x, "orelse", None), list))
            in_try = any(isinstance(x, ast.Try) and any(n is y for b in x.body for y in ast.walk(b)) and any("ImportError" in ast.unparse(h.type or ast.Name("")) or "ModuleNotFound" in ast.unparse(h.type or ast.Name("")) for h in x.handlers) for x in ast.walk(f))
            bound = [(a.asname or a.name).split(".")[0] for a in n.names]
            why = ""
            if in_try or not parent_ok: why = "try"
            root = (n.names[0].name if isinstance(n, ast.Import) else (n.module or "")).split(".")[0] if not getattr(n, "level", 0) else "takeback"
            if root == "takeback":
                t = targets(m, n, is_pkg)
                if any(x.startswith(HEAVY_INTERNAL) and not m.startswith(x.rsplit(".", 1)[0] if x.count(".") > 2 else x) for x in t): why = why or "surface"
                elif any(reaches(x, m) for x in t): why = why or "cycle"
            elif root not in STD: why = why or "third"
            elif root in STAY_STD: why = why or "platform"
            if not why and any(b in all_args for b in bound): why = "name taken"
            if not why and any(top_names.get(b, ast.unparse(n)) != ast.unparse(n) and not (top_names.get(b) or "").startswith(("import", "from")) for b in bound): why = "name taken"
            if not why and any(len(sources[b]) > 1 for b in bound): why = "name taken"
            if why:
                left.append((why, rel, ast.unparse(n))); continue
            remove.append((n.lineno, n.end_lineno)); hoisted.append(ast.unparse(n)); done += 1
            if root == "takeback":
                graph[m] |= targets(m, n, is_pkg)
    if not remove: continue
    # a body that would be empty keeps a pass
    for a, b in sorted(remove, reverse=True):
        indent = lines[a-1][: len(lines[a-1]) - len(lines[a-1].lstrip())]
        del lines[a-1:b]
        # drop the blank line after it
        if a-1 < len(lines) and not lines[a-1].strip(): del lines[a-1]
    # into the import block: after the last top-level import statement that is not in TYPE_CHECKING
    tree2 = ast.parse("".join(lines))
    at = 0
    for n in tree2.body:
        if isinstance(n, (ast.Import, ast.ImportFrom)): at = n.end_lineno
        elif isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) and at == 0: at = n.end_lineno
        elif isinstance(n, (ast.Import, ast.ImportFrom, ast.Expr)): pass
        else:
            break
    new = sorted(set(hoisted))
    lines[at:at] = ["\n", *[x + "\n" for x in new]]
    p.write_text("".join(lines))
from collections import Counter
print(done, "hoisted;", Counter(w for w, *_ in left))
for x in sorted(left):
    if x[0] in ("cycle", "name taken", "try"): print(*x)
