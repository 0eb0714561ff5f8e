"""refactor.py names OLD NEW Name…   moves top-level definitions (with private helpers only they use) and fixes references.
   refactor.py module OLD NEW         moves a module.   Dotted names below takeback. Run in the checkout's root."""
import ast, re, subprocess, sys
from pathlib import Path
SRC = Path("src/takeback")
def path_of(mod):
    p = SRC / (mod.replace(".", "/") + ".py")
    return p if p.exists() or not (SRC / mod.replace(".", "/") / "__init__.py").exists() else SRC / mod.replace(".", "/") / "__init__.py"
def pyfiles():
    for root in ("src", "tests", "scripts", "bench", "examples"):
        yield from Path(root).rglob("*.py")
def module_name(p):
    if not p.is_relative_to(SRC): return None, False
    rel = p.relative_to(SRC)
    return (".".join(rel.parent.parts), True) if rel.name == "__init__.py" else (".".join(rel.with_suffix("").parts), False)
def base_of(mod, is_pkg, node):
    if not node.level:
        if node.module == "takeback": return ""
        return node.module[9:] if (node.module or "").startswith("takeback.") else None
    if mod is None: return None
    pk = mod.split(".") if is_pkg else mod.split(".")[:-1]
    pk = [x for x in pk if x]
    pk = pk[: len(pk) - node.level + 1]
    return ".".join([*pk, *([node.module] if node.module else [])])
def spelled(mod, is_pkg, target):
    """How `from X import` names module `target` in module `mod`."""
    if mod is not None:
        here = mod if is_pkg else mod.rpartition(".")[0]
        if target.rpartition(".")[0] == here and here: return "." + target.rpartition(".")[2]
    return "takeback." + target if target else "takeback"
class Text:
    def __init__(self, text):
        self.data = text.encode(); self.offs = [0]
        for l in text.splitlines(keepends=True): self.offs.append(self.offs[-1] + len(l.encode()))
        self.edits = []
    def pos(self, line, col): return self.offs[line - 1] + col
    def put(self, node, new): self.edits.append((self.pos(node.lineno, node.col_offset), self.pos(node.end_lineno, node.end_col_offset), new.encode()))
    def done(self):
        d = self.data
        for s, e, n in sorted(self.edits, reverse=True): d = d[:s] + n + d[e:]
        return d.decode()
def add_import(text, line):
    tree = ast.parse(text); at = 0
    for n in tree.body:
        if isinstance(n, (ast.Import, ast.ImportFrom)): at = n.end_lineno
        elif isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) and not at: at = n.end_lineno
        else: break
    lines = text.splitlines(keepends=True); lines[at:at] = [line + "\n"]
    return "".join(lines)
def strings(old_pat, new, texts=True):
    pat = re.compile(old_pat)
    tracked = subprocess.run(["git", "ls-files"], capture_output=True, text=True).stdout.split("\n")
    for name in filter(None, tracked):
        p = Path(name)
        if name.startswith("CHANGELOG") or not p.exists() or p.suffix in (".png", ".svg", ".gif"): continue
        try: t = p.read_text()
        except UnicodeDecodeError: continue
        n = pat.sub(new, t)
        if n != t: p.write_text(n)
def names(old, new, wanted):
    op, np = path_of(old), SRC / (new.replace(".", "/") + ".py")
    otext = op.read_text(); tree = ast.parse(otext); lines = otext.splitlines(keepends=True)
    defs = {}
    for i, n in enumerate(tree.body):
        got = []
        if isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)): got = [n.name]
        elif isinstance(n, ast.Assign): got = [x.id for t in n.targets for x in ast.walk(t) if isinstance(x, ast.Name)]
        elif isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name): got = [n.target.id]
        for g in got: defs[g] = n
    stay = {w[1:] for w in wanted if w.startswith("-")}; wanted = [w for w in wanted if not w.startswith("-")]
    missing = [w for w in wanted if w not in defs]
    assert not missing, missing
    def refs(n):
        out = {x.id for x in ast.walk(n) if isinstance(x, ast.Name)}
        for x in ast.walk(n):
            if isinstance(x, ast.Constant) and isinstance(x.value, str) and x.value.isidentifier(): pass
        return out & defs.keys()
    moved = set(wanted)
    # closure of private helpers
    grew = True
    while grew:
        grew = False
        need = {r for m in moved for r in refs(defs[m])} - moved
        for r in need:
            if not r.startswith("_") and r not in stay: moved.add(r); grew = True; print("  moves too:", r)
            elif r.startswith("_"):
                users = {d for d, n in defs.items() if d != r and r in refs(n)}
                outside = {u for u in users - moved if defs[u] is not defs[r]}
                # helpers used only by moved ones move
                if not outside: moved.add(r); grew = True
    shared = {r for m in moved for r in refs(defs[m])} - moved
    back = {r for d, n in defs.items() if d not in moved for r in refs(n)} & moved
    for n in tree.body:
        if not any(n is x for x in defs.values()) and not isinstance(n, (ast.Import, ast.ImportFrom)):
            back |= {x.id for x in ast.walk(n) if isinstance(x, ast.Name)} & moved
    if shared: print("  needs from", old, ":", sorted(shared))
    if back: print("  still used in", old, ":", sorted(back))
    nodes = sorted({id(defs[m]): defs[m] for m in moved}.values(), key=lambda n: n.lineno)
    chunks = []
    for n in nodes:
        start = min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", []))])
        s = start - 1
        while s > 0 and lines[s - 1].startswith("#"): s -= 1
        chunks.append((s, n.end_lineno))
    body = "\n\n".join("".join(lines[s:e]) for s, e in chunks)
    imports = []
    omod, opkg = old, op.name == "__init__.py"
    only = ""
    for n in tree.body:
        if isinstance(n, (ast.Import, ast.ImportFrom)): imports.append(n)
    def absolute(n):
        if isinstance(n, ast.ImportFrom):
            b = base_of(omod, opkg, n)
            if b is not None and (n.level or n.module.startswith("takeback")):
                c = ast.ImportFrom(module="takeback" + ("." + b if b else ""), names=n.names, level=0); return ast.unparse(c)
        return ast.unparse(n)
    head = [absolute(n) for n in imports]
    types = [n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
    tlines = [absolute(x) if isinstance(x, (ast.Import, ast.ImportFrom)) else ast.unparse(x) for n in types for x in n.body]
    # remove from old
    for s, e in sorted(chunks, reverse=True): del lines[s:e]
    rest = "".join(lines)
    if back: rest = add_import(rest, f"from {spelled(omod, opkg, new)} import {', '.join(sorted(back))}")
    op.write_text(rest)
    head = [h for h in head if not h.startswith(f"from takeback.{new} import")]
    tlines = [l for l in tlines if not l.startswith(f"from takeback.{new} import")]
    npkg, nleaf = "takeback." + new.rpartition(".")[0], new.rpartition(".")[2]
    block = "\n".join(h for h in head if h != "from __future__ import annotations")
    if shared: block += f"\nfrom takeback.{old} import {', '.join(sorted(shared))}"
    tblock = ("\nif TYPE_CHECKING:\n" + "\n".join("    " + l.replace("\n", "\n    ") for l in tlines)) if tlines else ""
    if np.exists():
        t = np.read_text()
        ttree = ast.parse(t)
        for h in reversed([x for x in block.split("\n") if x.strip()]):
            t = add_import(t, h) if "(" not in h else t
        if tlines:
            t = add_import(t, "from typing import TYPE_CHECKING")
            tree3 = ast.parse(t)
            at = 0
            for n in tree3.body:
                if isinstance(n, (ast.Import, ast.ImportFrom)): at = n.end_lineno
                elif isinstance(n, ast.Expr) and not at: at = n.end_lineno
                elif isinstance(n, ast.If): at = n.end_lineno; break
                else: break
            ls = t.splitlines(keepends=True); ls[at:at] = [tblock + "\n"]; t = "".join(ls)
        np.write_text(t.rstrip("\n") + "\n\n\n" + body)
    else:
        np.parent.mkdir(parents=True, exist_ok=True)
        if not (np.parent / "__init__.py").exists(): (np.parent / "__init__.py").write_text("")
        np.write_text('"""TODO."""\n\nfrom __future__ import annotations\n\n' + block + "\n" + tblock + "\n\n\n" + body)
    # references elsewhere
    for p in pyfiles():
        mod, is_pkg = module_name(p)
        if p == np: continue
        text = p.read_text()
        if not any(w in text for w in moved): continue
        tr = ast.parse(text); T = Text(text); modnames = set(); add = set()
        for n in ast.walk(tr):
            if isinstance(n, ast.ImportFrom):
                b = base_of(mod, is_pkg, n)
                if b is None: continue
                if b == old and any(a.name in moved for a in n.names):
                    keep = [a for a in n.names if a.name not in moved]; go = [a for a in n.names if a.name in moved]
                    ind = " " * n.col_offset
                    f = lambda al: ", ".join(a.name + (f" as {a.asname}" if a.asname else "") for a in al)
                    out = f"from {spelled(mod, is_pkg, new)} import {f(go)}"
                    if keep: out = f"from {('.' * n.level) + (n.module or '')} import {f(keep)}\n{ind}" + out
                    T.put(n, out)
                elif f"{b}.{'x'}".lstrip("."):
                    for a in n.names:
                        if (f"{b}.{a.name}" if b else a.name) == old: modnames.add(a.asname or a.name)
        if modnames:
            used_new = None
            leaf = new.rpartition(".")[2]
            allnames = {x.id for x in ast.walk(tr) if isinstance(x, ast.Name)} | {a.arg for a in ast.walk(tr) if isinstance(a, ast.arg)}
            imported = {}
            for n in ast.walk(tr):
                if isinstance(n, ast.ImportFrom):
                    b = base_of(mod, is_pkg, n)
                    for a in n.names:
                        if b is not None and (f"{b}.{a.name}" if b else a.name) == new: imported[new] = a.asname or a.name
            for n in ast.walk(tr):
                if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id in modnames and n.attr in moved:
                    alias = imported.get(new) or (leaf if leaf not in allnames else f"{leaf}_of_{new.split('.')[-2]}")
                    T.put(n.value, alias)
                    if new not in imported: add.add((alias, leaf))
        t = T.done()
        for alias, leaf in add:
            parent = new.rpartition(".")[0]
            here = (mod if is_pkg else mod.rpartition(".")[0]) if mod is not None else None
            src = "." if here == parent and here else "takeback" + ("." + parent if parent else "")
            t = add_import(t, f"from {src} import {leaf}" + (f" as {alias}" if alias != leaf else ""))
        if t != text: p.write_text(t)
    for w in moved: strings(rf"\btakeback\.{re.escape(old)}\.{w}\b", f"takeback.{new}.{w}")
def module(old, new):
    op = path_of(old); np = SRC / (new.replace(".", "/") + ".py")
    np.parent.mkdir(parents=True, exist_ok=True)
    if not (np.parent / "__init__.py").exists(): (np.parent / "__init__.py").write_text("")
    oleaf, nleaf = old.rpartition(".")[2], new.rpartition(".")[2]
    for p in pyfiles():
        mod, is_pkg = module_name(p); text = p.read_text()
        if oleaf not in text and p != op: continue
        tr = ast.parse(text); T = Text(text); rename = {}
        names_all = {x.id for x in ast.walk(tr) if isinstance(x, ast.Name)} | {a.arg for a in ast.walk(tr) if isinstance(a, ast.arg)}
        here_new = new if p == op else mod
        for n in ast.walk(tr):
            if isinstance(n, ast.ImportFrom):
                b = base_of(mod, is_pkg, n)
                if b is None: continue
                ind = " " * n.col_offset
                f = lambda al: ", ".join(a.name + (f" as {a.asname}" if a.asname else "") for a in al)
                if b == old:
                    T.put(n, f"from {spelled(here_new, is_pkg, new)} import {f(n.names)}")
                    continue
                hit = [a for a in n.names if (f"{b}.{a.name}" if b else a.name) == old]
                if hit:
                    keep = [a for a in n.names if a not in hit]
                    a = hit[0]; local = a.asname or a.name
                    alias = a.asname or (nleaf if nleaf == oleaf or nleaf not in names_all else oleaf)
                    if not a.asname and alias == nleaf and nleaf != oleaf: rename[oleaf] = nleaf
                    parent = new.rpartition(".")[0]
                    here = (here_new if is_pkg else here_new.rpartition(".")[0]) if here_new is not None else None
                    src = "." if here == parent and here else "takeback" + ("." + parent if parent else "")
                    out = f"from {src} import {nleaf}" + (f" as {alias}" if alias != nleaf else "")
                    if keep:
                        bb = ('.' * n.level) + (n.module or '')
                        if p == op and n.level: bb = "takeback" + ("." + b if b else "")
                        out = f"from {bb} import {f(keep)}\n{ind}" + out
                    T.put(n, out)
                elif p == op and n.level:
                    T.put(n, f"from takeback{'.' + b if b else ''} import {f(n.names)}")
            elif isinstance(n, ast.Import):
                for a in n.names:
                    if a.name == f"takeback.{old}": T.put(n, f"import takeback.{new}" + (f" as {a.asname}" if a.asname else ""))
        if rename:
            for n in ast.walk(tr):
                if isinstance(n, ast.Name) and n.id in rename: T.put(n, rename[n.id])
        t = T.done()
        if t != text: p.write_text(t)
    subprocess.run(["git", "mv", "-f", str(op), str(np)], check=True)
    strings(rf"\btakeback\.{re.escape(old)}\b", f"takeback.{new}")
    strings(rf"\btakeback/{re.escape(old.replace('.', '/'))}\.py\b", f"takeback/{new.replace('.', '/')}.py")
if __name__ == "__main__":
    kind, old, new, *rest = sys.argv[1:]
    (names(old, new, rest) if kind == "names" else module(old, new))
