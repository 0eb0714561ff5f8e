"""typing, json, hashlib and re in place of our own."""
import ast, re, subprocess
from pathlib import Path
SRC = Path("src/takeback")
files = [*SRC.rglob("*.py"), *Path("tests").rglob("*.py"), *Path("bench").rglob("*.py"), *Path("scripts").rglob("*.py")]
GONE = {"typed", "quickjson", "digests", "patterns"}
for p in files:
    if p.parent == SRC and p.stem in GONE: continue
    s = o = p.read_text()
    # hand-written TYPE_CHECKING
    if re.search(r"^TYPE_CHECKING = False\n", s, re.M):
        s = re.sub(r"^TYPE_CHECKING = False\n", "", s, flags=re.M)
        s = re.sub(r"^(from __future__ import annotations\n)", r"\1\nfrom typing import TYPE_CHECKING\n", s, count=1, flags=re.M)
        if "from typing import TYPE_CHECKING" not in s:
            s = re.sub(r'\A((?:"""(?:.|\n)*?"""\n)?)', r"\1\nfrom typing import TYPE_CHECKING\n", s, count=1)
    s = re.sub(r"from (?:takeback)?\.?typed import", "from typing import", s)
    s = re.sub(r"from takeback\.digests import ([\w, ]+)", lambda m: "from hashlib import sha256", s)
    s = re.sub(r"\bstream\(\)", "sha256()", s) if "hashlib import sha256" in s and "stream" in o and "digests import" in o else s
    s = re.sub(r"from takeback\.patterns import pattern\b", "import re", s)
    if "takeback.patterns import pattern" in o or "import patterns" in o:
        s = re.sub(r"\bpattern\(", "re.compile(", s) if "takeback.patterns import pattern" in o else s
        s = re.sub(r"^from takeback import patterns$", "import re", s, flags=re.M)
        s = re.sub(r"\bpatterns\.pattern\(", "re.compile(", s)
    s = re.sub(r"^( *)from takeback import ([\w, ]*)\bquickjson\b,? ?([\w, ]*)$", lambda m: (lambda rest: m[1] + "import json" + (f"\n{m[1]}from takeback import {rest}" if rest else ""))((m[2] + m[3]).strip().strip(",")), s, flags=re.M)
    s = re.sub(r"\bquickjson\.", "json.", s)
    s = re.sub(r"json\.dumps\((.*?), compact=True\)", r'json.dumps(\1, separators=(",", ":"))', s)
    if s != o: p.write_text(s)
for name in GONE:
    subprocess.run(["git", "rm", "-qf", str(SRC / f"{name}.py")], check=True)
for t in ("test_typed", "test_quickjson", "test_digests", "test_patterns"):
    if Path(f"tests/{t}.py").exists(): subprocess.run(["git", "rm", "-qf", f"tests/{t}.py"], check=True)
