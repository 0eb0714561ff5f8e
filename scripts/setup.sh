# Sourced by the scripts here, in the checkout: makes .venv with the package (editable) and the dev group, once.
# Made again when pyproject.toml, this file, the interpreter or the checkout's place changes. PYTHON=… chooses the interpreter.

find_python() {
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            # An absolute path: a shim may cost a quarter of a second at each call.
            "$candidate" -c 'import sys; print(sys.executable)'
            return 0
        fi
    done
    echo "takeback needs Python 3.11 or newer, and there is none on PATH." >&2
    echo "Install one (for example: apt-get install python3.12 python3.12-venv), or set PYTHON to one." >&2
    return 1
}

stamp_of() {
    "$1" -c 'import hashlib, os, sys
print(sys.version.split()[0], os.getcwd(), hashlib.sha256(b"".join(open(f, "rb").read() for f in sys.argv[1:])).hexdigest())' \
        pyproject.toml scripts/setup.sh
}

make_venv() {
    if ! "$1" -c 'import venv, ensurepip' 2>/dev/null; then
        version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        echo "Python $version here cannot make environments. Install one package and run this again:" >&2
        echo "    apt-get install python$version-venv" >&2
        return 1
    fi
    echo "Setting up .venv (once) …" >&2
    log=$(mktemp)
    if "$1" -m venv --clear .venv >"$log" 2>&1 && install_all >>"$log" 2>&1; then
        rm -f "$log"
    else
        cat "$log" >&2
        rm -f "$log"
        echo "Setting up .venv failed; the reason is above." >&2
        return 1
    fi
}

install_all() {
    # An old pip knows no dependency groups, so the list is read here.
    .venv/bin/python -c 'import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))
print("\n".join(project["build-system"]["requires"] + project["dependency-groups"]["dev"]))' >.venv/dev.txt
    .venv/bin/python -m pip install --disable-pip-version-check --quiet -r .venv/dev.txt -e . || return 1
    # Not built for every system: tests that need them say so and are skipped.
    .venv/bin/python -c 'import tomllib
groups = tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]
print("\n".join(groups["databases"] + groups["integrations"] + groups["browser"]))' >.venv/optional.txt
    .venv/bin/python -m pip install --disable-pip-version-check --quiet -r .venv/optional.txt && return 0
    while read -r package; do
        .venv/bin/python -m pip install --disable-pip-version-check --quiet "$package" ||
            echo "$package cannot be installed here: tests that need it are skipped" >&2
    done <.venv/optional.txt
}

if ! command -v git >/dev/null 2>&1; then
    echo "git is needed: apt-get install git" >&2
    exit 1
fi
takeback_python=$(find_python) || exit 1
takeback_stamp=$(stamp_of "$takeback_python")
if [ ! -x .venv/bin/python ] || [ "$(cat .venv/stamp 2>/dev/null)" != "$takeback_stamp" ]; then
    make_venv "$takeback_python" || exit 1
    echo "$takeback_stamp" >.venv/stamp
fi
unset takeback_python takeback_stamp
