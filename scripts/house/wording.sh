set -e
sh scripts/house/redo.sh house2; 
python3 scripts/house/wording.py
for i in 1; do .venv/bin/ruff check -q --fix . >/dev/null || true; done
python3 scripts/house/screen.py
python3 scripts/house/tidy.py
V=.venv/bin
$V/ruff check -q --fix . >/dev/null || true; $V/ruff format -q .
git add -A; git commit -qm 'What all surfaces say alike is a package of its own'
