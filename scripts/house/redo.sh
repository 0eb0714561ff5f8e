set -e
# in a clean checkout
git reset -q --hard; git clean -fdq -e .venv -e .cache; 
find src -name __pycache__ -prune -exec rm -rf {} +
python3 scripts/house/move.py
find src -type d -empty -delete
python3 scripts/house/after.py
sed -i 's/^What is read goes through takeback.show.timeline; what is said through the words of the command line. All text gets into a$/What is read goes through takeback.show.timeline; what is said through the shared words. All text gets into a/' src/takeback/surfaces/web/__init__.py
V=.venv/bin
$V/ruff check -q --fix . >/dev/null || true; $V/ruff format -q . ; git add -A; git commit -qm "Every module in its room: the tree reads as the flow"
python3 scripts/house/ordinary.py
$V/ruff check -q --fix . >/dev/null || true; $V/ruff format -q . ; git add -A; git commit -qm "Ordinary Python: typing, json, hashlib and re"
python3 scripts/house/hoist.py > scripts/house/hoist.log
python3 scripts/house/after2.py
$V/ruff check -q --fix . >/dev/null || true; $V/ruff format -q . ; git add -A; git commit -qm "Imports stand at the top"
