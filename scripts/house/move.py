"""Moves every module to its room and rewrites imports and dotted names. Run in a checkout's root."""
import ast, os, re, subprocess, sys
from pathlib import Path
sys.path.insert(0, "scripts/house")
from map import MAP, DATA
SRC = Path("src/takeback")
MODS = {}  # old dotted (without takeback.) -> is package
for p in SRC.rglob("*.py"):
    rel = p.relative_to(SRC)
    if rel.name == "__init__.py":
        MODS[".".join(rel.parent.parts)] = True
    else:
        MODS[".".join(rel.with_suffix("").parts)] = False

def new_of(old):
    """New dotted name of a module; by the longest mapped prefix for packages."""
    if old in MAP: return MAP[old]
    parts = old.split(".")
    for n in range(len(parts) - 1, 0, -1):
        head = ".".join(parts[:n])
        if head in MAP and MODS.get(head):
            return MAP[head] + "." + ".".join(parts[n:])
    return old

def package_of(mod, is_pkg):
    return mod if is_pkg else mod.rpartition(".")[0]

def names_used(tree):
    out = set()
    for n in ast.walk(tree):
        if isinstance(n, ast.Name): out.add(n.id)
        elif isinstance(n, ast.arg): out.add(n.arg)
        elif isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)): out.add(n.name)
        elif isinstance(n, ast.alias): out.add((n.asname or n.name).split(".")[0])
        elif isinstance(n, ast.ExceptHandler) and n.name: out.add(n.name)
    return out

PY_ROOTS = ["src", "tests", "scripts", "bench", "examples"]
RESERVED = {"http", "ids", "html", "json", "calls", "outside", "turns", "look", "apply", "state", "web"}  # too plain as a bare name in other modules

def rewrite(path, text, module, is_pkg):
    """`module`: old dotted name below takeback, or None for a file outside the package."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    offs = [0]
    for l in lines: offs.append(offs[-1] + len(l.encode()))
    data = text.encode()
    def pos(line, col): return offs[line - 1] + col
    edits = []
    renames = {}  # old bare name -> new bare name
    used = names_used(tree)
    new_module = new_of(module) if module is not None else None
    here = package_of(new_module, is_pkg) if new_module is not None else None
    old_here = package_of(module, is_pkg) if module is not None else None
    def ref(new_mod):  # how a module is spelled after `from`
        pkg, _, leaf = new_mod.rpartition(".")
        return pkg, leaf
    def from_line(new_mod_parent, name, asname):
        """from <parent> import name"""
        a = f" as {asname}" if asname and asname != name else ""
        if here is not None and new_mod_parent == here:
            return f"from . import {name}{a}"
        full = "takeback" + ("." + new_mod_parent if new_mod_parent else "")
        return f"from {full} import {name}{a}"
    def from_names(new_mod, names):
        if here is not None and package_of(new_mod, False) == here and new_mod != here:
            base = "." + new_mod.rpartition(".")[2]
        elif here is not None and new_mod == here:
            base = "."
        else:
            base = "takeback" + ("." + new_mod if new_mod else "")
        return f"from {base} import {', '.join(names)}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            out, changed = [], False
            for a in node.names:
                if a.name.startswith("takeback."):
                    old = a.name[9:]
                    if old in MODS:
                        out.append("import takeback." + new_of(old) + (f" as {a.asname}" if a.asname else "")); changed = new_of(old) != old or changed
                        continue
                out.append("import " + a.name + (f" as {a.asname}" if a.asname else ""))
            if changed:
                edits.append((pos(node.lineno, node.col_offset), pos(node.end_lineno, node.end_col_offset), out, node.col_offset))
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                if module is None: continue
                base = old_here.split(".") if old_here else []
                base = base[: len(base) - node.level + 1]
                old = ".".join([*base, *([node.module] if node.module else [])])
            elif node.module == "takeback" or (node.module or "").startswith("takeback."):
                old = node.module[9:]
            else:
                continue
            out, plain = [], []
            for a in node.names:
                sub = f"{old}.{a.name}" if old else a.name
                if sub in MODS:  # a module
                    new = new_of(sub)
                    parent, leaf = ref(new)
                    if a.asname or leaf == a.name:
                        out.append(from_line(parent, leaf, a.asname))
                    else:
                        ok = leaf not in used and leaf not in RESERVED and a.name not in renames
                        if ok:
                            renames[a.name] = leaf
                            out.append(from_line(parent, leaf, None))
                        elif renames.get(a.name) == leaf:
                            out.append(from_line(parent, leaf, None))
                        else:
                            out.append(from_line(parent, leaf, a.name))
                else:
                    plain.append(a.name + (f" as {a.asname}" if a.asname else ""))
            if plain:
                out.insert(0, from_names(new_of(old) if old else "", plain))
            edits.append((pos(node.lineno, node.col_offset), pos(node.end_lineno, node.end_col_offset), out, node.col_offset))
    # takeback.effects.X in code
    extra = set()
    for n in ast.walk(tree):
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "takeback" and n.attr in MODS and new_of(n.attr) != n.attr:
            new = new_of(n.attr)
            edits.append((pos(n.lineno, n.col_offset), pos(n.end_lineno, n.end_col_offset), "takeback." + new, 0)); extra.add(new)
    # usages of renamed module names
    assigned = set()
    for n in ast.walk(tree):
        if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del)): assigned.add(n.id)
        if isinstance(n, ast.arg): assigned.add(n.arg)
    for old_name in list(renames):
        if old_name in assigned:  # shadowed somewhere: keep the old name as alias
            new_leaf = renames.pop(old_name)
            edits = [(s, e, [re.sub(rf"import {new_leaf}$", f"import {new_leaf} as {old_name}", l) for l in o], c) for s, e, o, c in edits]
    for n in ast.walk(tree):
        if isinstance(n, ast.Name) and n.id in renames:
            edits.append((pos(n.lineno, n.col_offset), pos(n.end_lineno, n.end_col_offset), renames[n.id], 0))
    for s, e, out, col in sorted(edits, reverse=True, key=lambda x: x[0]):
        if isinstance(out, list):
            before = data[:s].rpartition(b"\n")[2]
            if before.strip():  # "import x; import y" or "if …: import x"
                new = "; ".join(out)
            else:
                new = ("\n" + before.decode()).join(out)
            new = new.encode()
        else:
            new = out.encode()
        data = data[:s] + new + data[e:]
    text = data.decode()
    for new in extra:
        text = re.sub(r"^import takeback$", f"import takeback\nimport takeback.{new}", text, count=1, flags=re.M)
    return text

DOTTED = re.compile(r"\btakeback\.((?:[a-z_]\w*\.)*[a-z_]\w*)")
def dotted(match):
    parts = match.group(1).split(".")
    for n in range(len(parts), 0, -1):
        head = ".".join(parts[:n])
        if head in MODS:
            new = new_of(head)
            return "takeback." + ".".join([new, *parts[n:]]) if new != head else match.group(0)
    return match.group(0)
SLASHED = re.compile(r"\b(src/takeback/|takeback/)((?:\w+/)*\w+)\.py\b")
def slashed(match):
    old = match.group(2).replace("/", ".")
    if old in MODS and not MODS[old]:
        new = new_of(old)
        return match.group(1) + new.replace(".", "/") + ".py"
    if old.endswith(".__init__") and old[:-9] in MODS:
        return match.group(1) + new_of(old[:-9]).replace(".", "/") + "/__init__.py"
    return match.group(0)
FROM_IN_STRING = re.compile(r"from takeback import ([\w, ]+)")
def from_string(match):
    names = [n.strip() for n in match.group(1).split(",")]
    out, plain = [], []
    for n in names:
        word, _, alias = n.partition(" as ")
        if word in MODS and new_of(word) != word:
            parent, _, leaf = new_of(word).rpartition(".")
            a = alias or (word if leaf != word else "")
            out.append(f"from takeback{'.' + parent if parent else ''} import {leaf}" + (f" as {a}" if a else ""))
        else:
            plain.append(n)
    if plain: out.insert(0, "from takeback import " + ", ".join(plain))
    return "; ".join(out)

FROM_PKG = re.compile(r"from takeback\.([\w.]+) import (\w+(?: as \w+)?)")
def from_pkg(match):
    sub = f"{match[1]}.{match[2].split(' ')[0]}"
    if sub in MODS and new_of(sub) != sub:
        parent, _, leaf = new_of(sub).rpartition(".")
        word, _, alias = match[2].partition(" as ")
        a = alias or (word if leaf != word else "")
        return f"from takeback.{parent} import {leaf}" + (f" as {a}" if a else "")
    return match[0]
def in_text(s):
    s = FROM_PKG.sub(from_pkg, s)
    out = []
    for part in re.split(r"(from takeback[\w.]* import [\w, ]+)", s):  # statements are done: only other names are left
        if part.startswith("from takeback"):
            if part.startswith("from takeback import"): part = FROM_IN_STRING.sub(from_string, part)
            elif (m := re.match(r"from takeback\.([\w.]+) import", part)) and m[1] in MODS and not MODS[m[1]]: part = part.replace(f"takeback.{m[1]}", f"takeback.{new_of(m[1])}", 1)
            elif m and m[1] in MODS and new_of(m[1]) != m[1]: part = part.replace(f"takeback.{m[1]}", f"takeback.{new_of(m[1])}", 1)
            out.append(part)
        else: out.append(SLASHED.sub(slashed, DOTTED.sub(dotted, part)))
    return "".join(out)
def in_strings(text):
    import io, tokenize
    lines = text.splitlines(keepends=True)
    offs = [0]
    for l in lines: offs.append(offs[-1] + len(l))
    out, at = [], 0
    for t in tokenize.generate_tokens(io.StringIO(text).readline):
        if t.type in (tokenize.STRING, tokenize.COMMENT) and "takeback" in t.string:
            s, e = offs[t.start[0]-1] + t.start[1], offs[t.end[0]-1] + t.end[1]
            out += [text[at:s], in_text(text[s:e])]; at = e
    return "".join([*out, text[at:]])
tracked = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
for name in filter(None, tracked):
    p = Path(name)
    if not p.exists() or p.suffix in {".png", ".svg", ".gif", ".bin"} or name.startswith("CHANGELOG"): continue
    try: text = p.read_text(encoding="utf-8")
    except UnicodeDecodeError: continue
    new = text
    if p.suffix == ".py" and "takeback" in text:
        new = in_strings(text)
        text_for_ast = new
    if p.suffix == ".py":
        module = is_pkg = None
        if p.is_relative_to(SRC):
            rel = p.relative_to(SRC)
            is_pkg = rel.name == "__init__.py"
            module = ".".join(rel.parent.parts if is_pkg else rel.with_suffix("").parts)
        new = rewrite(p, new, module, is_pkg)
    elif "takeback" in new:
        new = in_text(new)
    if new != text: p.write_text(new, encoding="utf-8")
# move
def git_mv(a, b):
    Path(b).parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "mv", str(a), str(b)], check=True)
moves = []
for old, is_pkg in sorted(MODS.items()):
    new = new_of(old)
    if new == old or not old: continue
    a = SRC / old.replace(".", "/") / "__init__.py" if is_pkg else SRC / (old.replace(".", "/") + ".py")
    b = SRC / new.replace(".", "/") / "__init__.py" if is_pkg else SRC / (new.replace(".", "/") + ".py")
    moves.append((a, b))
# two steps, as a file may take the place of another
for a, b in moves: git_mv(a, str(a) + ".moving")
for a, b in moves: git_mv(str(a) + ".moving", b)
for a, b in DATA.items(): git_mv(SRC / a, SRC / b)
for old in ["capture", "mail", "state_stores", "safefs"]:
    d = SRC / old
    if (d / "__init__.py").exists() and not any(x.suffix == ".py" and x.name != "__init__.py" for x in d.iterdir()):
        subprocess.run(["git", "rm", "-qf", str(d / "__init__.py")], check=True)
for d in sorted({p.parent for p in SRC.rglob("*.py")}):
    while d != SRC.parent:
        if not (d / "__init__.py").exists(): (d / "__init__.py").write_text(""); subprocess.run(["git", "add", str(d / "__init__.py")], check=True)
        d = d.parent
