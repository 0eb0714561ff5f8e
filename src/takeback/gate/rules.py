"""What takeback cannot undo, by program, as data.

A pattern is the program and the words after it that are no options; `a|b` is either, `delete-*` a beginning, and `…`
skips any number of words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import NamedTuple

from takeback.gate.bash.words import UNKNOWN, named

PUSH, PUBLISH, FORGE = "push", "publish", "forge"
INFRASTRUCTURE, CLUSTER, CLOUD = "infrastructure", "cluster", "cloud"
HTTP, DATABASE, REMOTE, SEND = "http", "database", "remote", "send"
DELETE, OUTSIDE, SYSTEM, ERASE = "delete", "outside", "system", "erase"
UNREAD = "unknown"

_HARMLESS = frozenset({"--help", "-help", "--version"})
_SETS = re.compile(r"-[uR]*s.*|--set(?:=.*)?")
_VALUED = re.compile(r"-[uR]*[dfrv]")
_CLOCK = re.compile(r"\d{8}(?:\d\d){0,2}(?:\.\d\d)?")  # the month first
_DRY = frozenset({"--dry-run", "--dryrun", "--dry-run=client", "--dry-run=server", "--dry-run=true"})


class Rule(NamedTuple):
    kind: str
    programs: frozenset[str]
    words: tuple[frozenset[str], ...]
    why: str
    undo: str
    unless: frozenset[str]  # options with which it does nothing
    only: frozenset[str]  # options of which it needs one


def _r(kind: str, pattern: str, why: str, undo: str = "", unless: str = "", only: str = "") -> Rule:
    first, *rest = pattern.split()
    words = tuple(frozenset(word.split("|")) for word in rest)
    harmless = _HARMLESS | _DRY | frozenset(unless.split())
    if words and kind != DATABASE:  # there, and where no further word is needed, -h may be a host, or "halt"
        harmless |= {"-h"}
    return Rule(kind, frozenset(first.split("|")), words, why, undo, harmless, frozenset(only.split()))


_SENT = "what was sent to another repository cannot be called back"
_PUBLISHED = "what is published can be fetched by anybody from then on"
_SEEN = "others see it at once, and are told of it"
_GONE = "what is deleted there is not captured here"
_LIVE = "it changes running infrastructure, which is not captured"
_LOST = "what a database loses is not captured"
_MIGRATES = "it changes a database, which is not captured unless it is a file in the workspace"
_FORGETS = "with it git forgets commits that undo may need"
_THERE = "what is done on another machine is not captured"
_PACKAGES = "it changes packages outside the workspace"
_MAILED = "a mail that has left cannot be called back"
_BELOW = "it writes to a disk below all files"
_BY_ITSELF = "it changes what the machine runs by itself"
_STOPS = "it stops the machine"

RULES: tuple[Rule, ...] = (
    # other repositories
    _r(PUSH, "git push", _SENT, "", "-n"),
    _r(PUSH, "git subtree push", _SENT),
    _r(PUSH, "git lfs push", _SENT),
    _r(PUSH, "git svn dcommit", _SENT, "", "-n"),
    _r(PUSH, "git p4 submit", _SENT, "", "-n"),
    _r(PUSH, "git send-pack", _SENT),
    _r(PUSH, "git http-push", _SENT),
    _r(PUSH, "git annex sync|copy|move", _SENT),
    _r(PUSH, "git flow … publish", _SENT),
    _r(PUSH, "git-push|git-send-pack|git-lfs-push", _SENT, "", "-n"),
    _r(PUSH, "hub push|sync", _SENT),
    _r(PUSH, "hg push", _SENT),
    _r(PUSH, "svn commit|ci|delete|mkdir|copy|import", _SENT),
    _r(PUSH, "jj git push", _SENT),
    _r(PUSH, "gt submit|ss", _SENT),
    _r(PUSH, "git-town sync|ship", _SENT),
    _r(SEND, "git send-email", _MAILED),
    _r(SEND, "git imap-send", _MAILED),
    _r(SEND, "mail|mailx|mutt|sendmail|swaks|msmtp|ssmtp", _MAILED),
    # objects that git's own undo needs
    _r(ERASE, "git gc", _FORGETS, "", "", "--prune=now --prune=all --aggressive"),
    _r(ERASE, "git prune", _FORGETS, "", "-n"),
    _r(ERASE, "git reflog expire|delete", _FORGETS, "", "-n"),
    _r(ERASE, "git filter-repo", "it rewrites history and forgets what was there"),
    # forges
    _r(FORGE, "gh repo delete", "a repository that is deleted is gone for everybody"),
    _r(FORGE, "gh repo create|archive|unarchive|rename|edit|sync|fork", _SEEN),
    _r(FORGE, "gh pr merge", _SEEN, "git revert -m 1 MERGE && git push"),
    _r(FORGE, "gh pr create|new|close|comment|review|edit|ready|reopen|lock|unlock|update-branch", _SEEN),
    _r(FORGE, "gh issue create|new|close|delete|comment|edit|reopen|transfer|lock|unlock|pin|unpin|develop", _SEEN),
    _r(FORGE, "gh release create|new|delete|upload|edit|delete-asset", _SEEN, "gh release delete TAG"),
    _r(FORGE, "gh gist create|new|delete|edit|rename", _SEEN),
    _r(FORGE, "gh workflow run|enable|disable", _SEEN),
    _r(FORGE, "gh run cancel|delete|rerun", _SEEN),
    _r(FORGE, "gh secret|variable set|delete|remove", _SEEN),
    _r(FORGE, "gh label|cache|ssh-key|gpg-key|ruleset|project|codespace create|delete|add|edit|clone|close|copy|rm|"
              "item-add|item-delete|item-edit|item-create|stop|field-delete", _SEEN),
    _r(FORGE, "glab mr|issue|release|repo|variable|label|snippet create|new|merge|close|delete|update|note|approve|"
              "reopen|upload|set|fork|archive|rebase", _SEEN),
    _r(FORGE, "hub create|delete|release|pull-request|fork|merge|issue", _SEEN),
    _r(FORGE, "tea pr|pulls|issues|releases|repos create|merge|close|delete|reopen", _SEEN),
    # packages
    _r(PUBLISH, "npm|pnpm|yarn|bun|lerna|jsr|deno publish", _PUBLISHED, "npm deprecate NAME@VERSION MESSAGE"),
    _r(PUBLISH, "npm pub|publ|publi|publis|unp|unpu|unpub|unpubl|unpubli|unpublis", _PUBLISHED),
    _r(PUBLISH, "npm|pnpm unpublish|deprecate|dist-tag|owner|access|token|team|org", "it changes what others fetch"),
    _r(PUBLISH, "yarn npm publish|tag", _PUBLISHED),
    _r(PUBLISH, "pnpm -r publish", _PUBLISHED),
    _r(PUBLISH, "changeset publish", _PUBLISHED),
    _r(PUBLISH, "semantic-release|release-it|np", _PUBLISHED),
    _r(PUBLISH, "twine upload", _PUBLISHED, "yank the release at the index"),
    _r(PUBLISH, "uv|poetry|hatch|flit|pdm|rye|maturin publish|upload", _PUBLISHED, "yank the release at the index"),
    _r(PUBLISH, "setup.py upload|register", _PUBLISHED, "yank the release at the index"),
    _r(PUBLISH, "cargo publish|yank|owner", _PUBLISHED, "cargo yank --version VERSION"),
    _r(PUBLISH, "cargo release", _PUBLISHED, "cargo yank --version VERSION", "", "--execute -x"),
    _r(PUBLISH, "gem push|yank", _PUBLISHED, "gem yank NAME -v VERSION"),
    _r(PUBLISH, "bundle|rake release", _PUBLISHED),
    _r(PUBLISH, "mvn|mvnw … deploy|release:perform|nexus-staging:release", _PUBLISHED),
    _r(PUBLISH, "gradle|gradlew … publish|uploadArchives|publishToMavenCentral|publishPlugins", _PUBLISHED),
    _r(PUBLISH, "sbt … publish|publishSigned|release", _PUBLISHED),
    _r(PUBLISH, "dotnet nuget push|delete", _PUBLISHED),
    _r(PUBLISH, "nuget push|delete", _PUBLISHED),
    _r(PUBLISH, "dart|flutter pub publish", _PUBLISHED),
    _r(PUBLISH, "mix hex.publish", _PUBLISHED),
    _r(PUBLISH, "pod trunk push|delete", _PUBLISHED),
    _r(PUBLISH, "vsce|ovsx publish|unpublish", _PUBLISHED),
    _r(PUBLISH, "docker|podman|nerdctl|buildah|finch push", _PUBLISHED),
    _r(PUBLISH, "docker|podman image|manifest push", _PUBLISHED),
    _r(PUBLISH, "docker|podman buildx build|bake", _PUBLISHED, "", "", "--push"),
    _r(PUBLISH, "docker|podman build", _PUBLISHED, "", "", "--push"),
    _r(PUBLISH, "docker compose push", _PUBLISHED),
    _r(PUBLISH, "docker-compose push", _PUBLISHED),
    _r(PUBLISH, "skopeo|crane|oras|regctl copy|push|delete|sync|attach", _PUBLISHED),
    _r(PUBLISH, "helm push|cm-push", _PUBLISHED),
    _r(PUBLISH, "goreleaser release", _PUBLISHED, "", "--snapshot --skip=publish --skip-publish"),
    _r(PUBLISH, "huggingface-cli|hf upload|repo|repo-files", _PUBLISHED),
    _r(PUBLISH, "conda|anaconda upload", _PUBLISHED),
    # what is deployed
    _r(INFRASTRUCTURE, "terraform|tofu|terragrunt|terramate destroy|apply|import|taint|untaint|force-unlock|run-all",
       _LIVE, "terraform apply with the configuration of before"),
    _r(INFRASTRUCTURE, "terraform|tofu|terragrunt state rm|mv|push|replace-provider", _LIVE),
    _r(INFRASTRUCTURE, "terraform|tofu|terragrunt workspace delete", _LIVE),
    _r(INFRASTRUCTURE, "pulumi destroy|up|update|cancel|import", _LIVE, "pulumi up with the program of before"),
    _r(INFRASTRUCTURE, "pulumi stack|state rm|delete|import|rename", _LIVE),
    _r(INFRASTRUCTURE, "cdk|cdktf|sst|serverless|sls|sam|amplify|copilot deploy|destroy|remove|delete|push", _LIVE),
    _r(INFRASTRUCTURE, "ansible-playbook", _LIVE, "", "--check -C --syntax-check --list-hosts --list-tasks"),
    _r(INFRASTRUCTURE, "ansible", _LIVE, "", "--check -C", "-m -a --module-name --args"),
    _r(INFRASTRUCTURE, "vagrant destroy", _LIVE),
    _r(INFRASTRUCTURE, "packer build", _LIVE),
    _r(INFRASTRUCTURE, "vercel|now deploy|remove|rm|rollback|promote|alias|env", _LIVE),
    _r(INFRASTRUCTURE, "vercel", _LIVE, "", "", "--prod -p --production"),
    _r(INFRASTRUCTURE, "netlify|ntl deploy|sites:delete|env:set|env:unset", _LIVE),
    _r(INFRASTRUCTURE, "wrangler deploy|publish|delete|rollback|pages|secret", _LIVE),
    _r(INFRASTRUCTURE, "wrangler d1|r2|kv … execute|delete|put|create|deploy", _LIVE),
    _r(INFRASTRUCTURE, "firebase deploy|hosting:disable|firestore:delete|database:remove|database:set|functions:delete",
       _LIVE),
    _r(INFRASTRUCTURE, "fly|flyctl deploy|destroy|scale|secrets|restart", _LIVE),
    _r(INFRASTRUCTURE, "fly|flyctl apps|machine|machines|volumes destroy|create|delete|stop|restart|kill", _LIVE),
    _r(INFRASTRUCTURE, "heroku apps:destroy|pg:reset|releases:rollback|ps:scale|config:set|config:unset|"
                       "addons:destroy|run|container:push|container:release|git:push", _LIVE),
    _r(INFRASTRUCTURE, "railway up|down|delete|deploy", _LIVE),
    _r(INFRASTRUCTURE, "render deploys|services create|delete|restart", _LIVE),
    _r(INFRASTRUCTURE, "supabase db reset|push", _LIVE),
    _r(INFRASTRUCTURE, "supabase functions|projects|secrets|branches deploy|delete|set|unset|create", _LIVE),
    _r(INFRASTRUCTURE, "cap|eb|dokku|kamal|caprover|nomad|waypoint … deploy|terminate|destroy|apps:destroy|remove|stop",
       _LIVE),
    # clusters
    _r(CLUSTER, "kubectl|oc|k3s|microk8s|kubecolor delete|apply|replace|patch|edit|drain|scale|create|set|label|"
                "annotate|taint|cordon|uncordon|expose|autoscale|run|evict", _LIVE,
       "kubectl apply -f with what was there"),
    _r(CLUSTER, "kubectl|oc rollout restart|undo|pause|resume", _LIVE),
    _r(CLUSTER, "kubectl|oc|microk8s kubectl delete|apply|replace|patch", _LIVE),
    _r(CLUSTER, "oc adm|project|new-project|new-app … drain|prune", _LIVE),
    _r(CLUSTER, "helm install|upgrade|uninstall|delete|del|rollback", _LIVE, "helm rollback RELEASE"),
    _r(CLUSTER, "helmfile apply|sync|destroy|delete", _LIVE),
    _r(CLUSTER, "flux|argocd delete|uninstall|sync|suspend|bootstrap|reconcile", _LIVE),
    _r(CLUSTER, "argocd app|proj|cluster|repo delete|sync|create|set|rm|terminate-op|rollback", _LIVE),
    _r(CLUSTER, "kind|minikube|k3d|eksctl|kops … delete", _LIVE),
    _r(CLUSTER, "docker|podman stack|service|swarm rm|deploy|update|leave|scale|create", _LIVE),
    _r(CLUSTER, "docker|podman system|volume|image|container|builder|network prune", _GONE),
    _r(CLUSTER, "docker|podman volume|network rm|remove", _GONE),
    _r(CLUSTER, "docker|podman compose down", _GONE, "", "", "-v --volumes"),
    _r(CLUSTER, "docker-compose down", _GONE, "", "", "-v --volumes"),
    # clouds
    _r(CLOUD, "aws s3 rm|rb|mv", _GONE, "aws s3api list-object-versions, where versioning is on"),
    _r(CLOUD, "aws s3 cp|sync", "it overwrites what lies there"),
    _r(CLOUD, "aws s3 mb", _LIVE, "aws s3 rb BUCKET"),
    _r(CLOUD, "aws * delete-*|terminate-*|remove-*|purge-*|destroy-*|deregister-*|disable-*|reset-*|revoke-*|detach-*|"
              "stop-*|reboot-*|put-*|create-*|update-*|modify-*|run-*|start-*|invoke|send-*|publish|deploy|restore-*|"
              "cancel-*|release-*|schedule-*|batch-*|execute-*|set-*|attach-*|associate-*|disassociate-*|copy-*|"
              "tag-*|untag-*|add-*|import-*|register-*|enable-*", _LIVE),
    _r(CLOUD, "gcloud … delete|create|update|deploy|remove-*|add-*|set-*|reset|stop|start|resize|destroy|import|patch|"
              "rollback|promote|migrate|disable|enable|ssh|scp", _LIVE),
    _r(CLOUD, "gsutil|gs rm|rb|mv|cp|rsync|mb|acl|iam|setmeta", _GONE),
    _r(CLOUD, "gcloud storage rm|mv|cp|rsync|buckets", _GONE),
    _r(CLOUD, "bq rm|cp|insert|load|update|mk", _GONE),
    _r(CLOUD, "az … delete|create|update|purge|remove|stop|deallocate|restart|start|set|deploy|up|reset|import|"
              "invoke|upload|upload-batch|delete-batch|add", _LIVE),
    _r(CLOUD, "azcopy remove|rm|copy|cp|sync", _GONE),
    _r(CLOUD, "doctl … delete|rm|create|update|d|destroy|restart|remove", _LIVE),
    _r(CLOUD, "linode-cli|hcloud|scw|vultr-cli|ibmcloud|oci|exo|civo … delete|rm|remove|create|update|reset|rebuild|"
              "terminate|destroy|reboot|poweroff|shutdown", _LIVE),
    _r(CLOUD, "rclone delete|purge|sync|move|moveto|copy|copyto|deletefile|rmdir|rmdirs|cleanup|bisync|dedupe", _GONE),
    _r(CLOUD, "s3cmd|s4cmd|s5cmd|mc del|rm|rb|mv|sync|put|mirror|cp", _GONE),
    _r(CLOUD, "stripe … create|delete|update|cancel|post|refund|trigger|confirm|capture|pay|void", _SEEN),
    _r(CLOUD, "vault delete|write|kv|destroy|lease|token|secrets|auth", _LIVE, "", "get list read lookup"),
    _r(CLOUD, "consul kv delete|put", _LIVE),
    _r(CLOUD, "etcdctl del|put", _LIVE),
    _r(CLOUD, "kafka-topics|kafka-topics.sh", _LIVE, "", "", "--delete --create --alter"),
    # databases
    _r(DATABASE, "dropdb|dropuser", _LOST),
    _r(DATABASE, "mysqladmin … drop|flush-*|shutdown", _LOST),
    _r(DATABASE, "pg_restore", _LOST, "", "", "-c --clean -C --create"),
    _r(DATABASE, "prisma migrate reset|deploy|dev", _LOST),
    _r(DATABASE, "prisma db push|execute|seed", _LOST),
    _r(DATABASE, "rails|rake|bin/rails db:drop|db:reset|db:schema:load|db:migrate:reset|db:purge|db:truncate_all",
       _LOST),
    _r(DATABASE, "manage.py|django-admin flush|reset_db|sqlflush", _LOST),
    _r(DATABASE, "manage.py|django-admin migrate", _MIGRATES, "manage.py migrate APP MIGRATION", "--plan --check"),
    _r(DATABASE, "manage.py|django-admin loaddata|dbshell", _MIGRATES),
    _r(DATABASE, "artisan migrate:fresh|migrate:reset|migrate:refresh|db:wipe", _LOST),
    _r(DATABASE, "artisan migrate|migrate:rollback|db:seed", _MIGRATES, "artisan migrate:rollback", "--pretend"),
    _r(DATABASE, "alembic downgrade", _LOST, "", "--sql"),
    _r(DATABASE, "alembic upgrade|stamp", _MIGRATES, "alembic downgrade REVISION", "--sql"),
    _r(DATABASE, "flask db upgrade|downgrade|stamp", _MIGRATES, "flask db downgrade", "--sql"),
    _r(DATABASE, "rails|rake|bin/rails db:migrate|db:rollback|db:setup|db:seed|db:migrate:up|db:migrate:down|"
                 "db:prepare|db:structure:load|data:migrate", _MIGRATES, "rails db:rollback"),
    _r(DATABASE, "flyway clean|undo", _LOST),
    _r(DATABASE, "flyway migrate|repair|baseline", _MIGRATES),
    _r(DATABASE, "liquibase rollback|drop-all|dropAll", _LOST),
    _r(DATABASE, "liquibase update|migrate", _MIGRATES),
    _r(DATABASE, "dbmate|goose|tern|sqlx|diesel|sqitch|yoyo|aerich|piccolo … up|down|drop|migrate|rollback|redo|reset|"
                 "run|revert|deploy|apply|upgrade|downgrade", _MIGRATES),
    _r(DATABASE, "migrate … up|down|drop|goto|force", _MIGRATES),
    _r(DATABASE, "atlas schema|migrate apply|clean|down", _MIGRATES),
    _r(DATABASE, "mix ecto.migrate|ecto.rollback|ecto.drop|ecto.reset|ecto.setup", _MIGRATES),
    _r(DATABASE, "dotnet ef database update|drop", _MIGRATES),
    _r(DATABASE, "sequelize|knex|typeorm|drizzle-kit|mikro-orm … db:migrate|db:seed:all|migrate:latest|migrate:up|"
                 "migration:run|migration:revert|migration:up|migrate|schema:sync", _MIGRATES),
    _r(DATABASE, "sequelize|knex|typeorm|drizzle-kit … db:drop|db:migrate:undo|migrate:rollback|schema:drop|drop|push",
       _LOST),
    _r(DATABASE, "mongorestore", _LOST, "", "", "--drop"),
    # other machines
    _r(REMOTE, "ssh|mosh|telnet|sftp|lftp|ftp|ncftpput|autossh|sshpass", _THERE,
       "", "-V -G -Q"),
    _r(REMOTE, "nc|ncat|netcat|socat", _THERE, "", "-z -l -lk -kl -lp -zv -vz -zvw -U --listen -V"),
    _r(REMOTE, "adb uninstall|push|shell|install", _THERE),
    # the machine itself
    _r(SYSTEM, "shutdown|reboot|halt|poweroff|init|telinit", _STOPS),
    _r(SYSTEM, "systemctl poweroff|reboot|halt|kexec|suspend|hibernate", _STOPS),
    _r(SYSTEM, "mkfs|mkfs.*|mke2fs|mkswap|wipefs|fdisk|sfdisk|parted|sgdisk|cfdisk|blkdiscard|hdparm|cryptsetup|"
               "lvremove|vgremove|pvremove|zpool|mdadm", _BELOW, "", "-l --list list status"),
    _r(SYSTEM, "diskutil eraseDisk|eraseVolume|partitionDisk|apfs", _BELOW),
    _r(SYSTEM, "zfs destroy|rollback", _BELOW),
    _r(SYSTEM, "btrfs subvolume delete", _BELOW),
    _r(SYSTEM, "userdel|groupdel|deluser|passwd|chpasswd|visudo", "it changes who may use the machine"),
    _r(SYSTEM, "iptables|ip6tables|nft|ufw|firewall-cmd", "it changes what the machine lets through", "",
       "-L -S list status"),
    _r(SYSTEM, "hostname *", "it changes the name of the machine"),
    _r(SYSTEM, "hostname", "it changes the name of the machine", "", "", "-F --file -b --boot"),
    _r(SYSTEM, "crontab", _BY_ITSELF, "", "-l"),
    _r(SYSTEM, "launchctl unload|remove|bootout|load|bootstrap", _BY_ITSELF),
    # the machine, in ways that are only told
    _r(OUTSIDE, "apt|apt-get|dnf|yum|apk|zypper|brew|port|snap|flatpak|choco|winget|scoop|nix-env|pkg "
                "install|remove|purge|upgrade|uninstall|autoremove|add|del|update|dist-upgrade|full-upgrade|reinstall",
       _PACKAGES, "", "-s --simulate"),
    _r(OUTSIDE, "pacman", _PACKAGES, "", "-Q -Ss -Si -Qs -Qi -Ql", ""),
    _r(OUTSIDE, "npm|pnpm|yarn|bun install|i|add|uninstall|remove|rm|update|link", _PACKAGES,
       "", "", "-g --global --location=global"),
    _r(OUTSIDE, "yarn global add|remove|upgrade", _PACKAGES),
    _r(OUTSIDE, "cargo|go|gem install|uninstall", _PACKAGES),
    _r(OUTSIDE, "pipx|uv install|uninstall|upgrade|inject", _PACKAGES),
    _r(OUTSIDE, "uv tool|python install|uninstall|upgrade", _PACKAGES),
    _r(OUTSIDE, "systemctl|service start|stop|restart|enable|disable|mask|unmask|reload|daemon-reload",
       "it changes what the machine runs, outside the workspace"),
    _r(OUTSIDE, "git config", "it changes git's configuration outside the workspace", "", "--get --list -l --get-all",
       "--global --system"),
)  # fmt: skip

ENDERS = named("kill pkill killall killall5 skill xkill")  # of processes

PROGRAMS: frozenset[str] = frozenset(name for rule in RULES for name in rule.programs if "*" not in name) | named(
    "curl wget http https xh rm mv cp psql mysql sqlite3 mongosh redis-cli dd rsync scp takeback tee"
)
# Programs that do nothing that matters without a further word: one that nobody can read is unknown.
SUBCOMMANDED = named("git gh npm pnpm yarn kubectl terraform tofu pulumi helm aws gcloud docker cargo twine")

# Options before the subcommand that take the next word.
VALUES: dict[str, frozenset[str]] = {
    "git": named(
        "-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix --attr-source "
        "-o --push-option --receive-pack"
    ),
    "gh": named("-R --repo"),
    "glab": named("-R --repo"),
    "kubectl": named(
        "-n --namespace --context --cluster --user -s --server --token --kubeconfig --as --as-group --request-timeout "
        "--cache-dir --certificate-authority --client-certificate --client-key -v --v --tls-server-name -l --selector "
        "-f --filename -k --kustomize -o --output"
    ),
    "helm": named("-n --namespace --kube-context --kubeconfig --registry-config --repository-config"),
    "aws": named(
        "--profile --region --endpoint-url --output --query --color --ca-bundle --cli-read-timeout "
        "--cli-connect-timeout --cli-binary-format"
    ),
    "gcloud": named("--project --account --configuration --zone --region --format --verbosity --filter"),
    "az": named("--subscription -o --output --query -g --resource-group -n --name"),
    "docker": named("-H --host -c --context --config -l --log-level --tlscacert --tlscert --tlskey -f --file"),
    "podman": named("-c --connection --url --log-level --root --runroot"),
    "docker-compose": named("-f --file -p --project-name --profile --env-file --project-directory"),
    "npm": named("--prefix -w --workspace --registry --userconfig --loglevel --tag --access --otp --cache -C"),
    "pnpm": named("-C --dir -F --filter --registry --tag --access --otp"),
    "yarn": named("--cwd --registry --tag --access --otp"),
    "bun": named("--cwd --tag --access --otp"),
    "uv": named("--directory --project --config-file --cache-dir --index-url --token --publish-url"),
    "poetry": named("-C --directory -P --project -r --repository -u --username -p --password"),
    "hatch": named("-e --env -p --project --data-dir --cache-dir --config"),
    "cargo": named("-C --manifest-path --color --config -Z --registry --token --target-dir"),
    "pulumi": named("-C --cwd -s --stack --color --profiling --tracing -v --verbose"),
    "make": named("-C -f --directory --file -j"),
    "mvn": named("-f --file -P -s --settings -pl -rf -T"),
    "gradle": named("-p --project-dir -b -c -g -I --init-script"),
    "gradlew": named("-p --project-dir -b -c -g -I --init-script"),
    "systemctl": named("-H --host -M --machine -t --type -p --property"),
    "doctl": named("-t --access-token -c --config --context -o --output"),
    "wrangler": named("-c --config -e --env"),
    "fly": named("-a --app -c --config -t --access-token"),
    "flyctl": named("-a --app -c --config -t --access-token"),
    "heroku": named("-a --app -r --remote"),
}


def is_known(name: str, words: Sequence[str]) -> bool:
    """Whether rules say what a program does that cannot be taken back, so that the rest of it can be. Some run what
    they are given, or what others added to them: of these a few words are known."""
    if name in _VERBS and (found := plain(name, words)[0]):
        return found[0] in _VERBS[name] or matching(name, words) is not None
    return name in SUBCOMMANDED - _RUN_ANYTHING


_VERBS = {
    "kubectl": named(
        "delete apply replace patch edit drain scale create set label annotate taint cordon uncordon expose autoscale "
        "get describe logs top explain api-resources api-versions version config cluster-info diff wait auth events "
        "rollout kustomize completion options help"
    ),
    "gh": named(
        "pr issue repo release run workflow gist search status auth api browse label secret variable cache ruleset "
        "project org ssh-key gpg-key config completion help version attestation"
    ),
}
_RUN_ANYTHING = named("npm pnpm yarn docker cargo")


def plain(name: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a command that are no options, and those that are."""
    values = VALUES.get(name, frozenset())
    found: list[str] = []
    options: list[str] = []
    at = 1
    while at < len(words):
        word = words[at]
        if word == "--":
            found += words[at + 1 :]
            break
        if word.startswith("-") and len(word) > 1:
            options.append(word)
            if word in values:
                at += 1
        else:
            found.append(word)
        at += 1
    return found, options


def matching(name: str, words: Sequence[str]) -> Rule | None:
    """The first rule that a command falls under."""
    found, options = plain(name, words)
    given = set(options) | {o.partition("=")[0] for o in options}
    for rule in RULES:
        if not any(fnmatchcase(name, program) if "*" in program else name == program for program in rule.programs):
            continue
        if not _fits(rule.words, found) or (rule.only and not (rule.only & given or _clustered(rule.only, options))):
            continue
        if not rule.unless & (_meant(options) | set(found)):
            return rule
    return None


def _meant(options: Sequence[str]) -> set[str]:
    """Options that are given and not taken back: --dry-run=none is no dry run, and --no-dry-run ends one."""
    denied = {f"--{option[5:]}" for option in options if option.startswith("--no-")}
    found = set()
    for option in options:
        name, equals, value = option.partition("=")
        if not (equals and value.lower() in ("none", "false", "no", "0", "off")) and name not in denied:
            found |= {option, name}
    return found


def is_download(rule: Rule, name: str, words: Sequence[str]) -> bool:
    """Whether something is only fetched from a cloud: what it writes is here."""
    found, _ = plain(name, words)
    copies = {"cp", "copy", "copyto", "sync", "rsync"} & set(found)
    return rule.kind == CLOUD and bool(copies) and len(found) > 1 and ":" not in found[-1] and UNKNOWN not in found[-1]


def is_greeting(name: str, words: Sequence[str]) -> bool:
    """`ssh -T git@github.com`: a forge says who you are, and runs nothing."""
    found, options = plain(name, words)
    return name == "ssh" and set(options) <= {"-T", "-v", "-q"} and len(found) == 1 and found[0].startswith("git@")


def _fits(pattern: Sequence[frozenset[str]], words: Sequence[str]) -> bool:
    if not pattern:
        return True
    if "…" in pattern[0]:
        return any(_fits(pattern[1:], words[at:]) for at in range(len(words)))
    if not words:
        return False
    if not any(_like(words[0], each) for each in pattern[0]):
        return False
    return _fits(pattern[1:], words[1:])


def _like(word: str, pattern: str) -> bool:
    if pattern == "*":
        return True
    return fnmatchcase(word, pattern) if "*" in pattern else word == pattern


def _clustered(wanted: frozenset[str], options: Sequence[str]) -> bool:
    """-xvg has -g in it."""
    letters = {option[1] for option in wanted if len(option) == 2}
    return any(letters & set(option[1:]) for option in options if not option.startswith("--"))


def is_unreadable(name: str, words: Sequence[str]) -> bool:
    """Whether the word that says what a program does is not known."""
    found, _ = plain(name, words)
    return name in SUBCOMMANDED and bool(found) and UNKNOWN in found[0]


def sets_clock(name: str, words: Sequence[str]) -> bool:
    """`date -s now`, `date 01020304`; in `date -d 20200101` it is a value."""
    said = pairwise(words)
    return name == "date" and any(
        _SETS.fullmatch(word) or (_CLOCK.fullmatch(word) and not _VALUED.fullmatch(before)) for before, word in said
    )


def signalled(name: str, words: Sequence[str]) -> list[str]:
    """To which processes a command sends a signal, as its words name them; to none with -l, or signal 0."""
    if name not in ENDERS:
        return []
    rest = list(words[1:])
    if name != "kill":
        return rest or [name]
    signal = rest.pop(0) if rest and rest[0].startswith("-") and rest[0] != "--" else ""
    if signal in ("-s", "-n", "--signal") and rest:
        signal = f"-{rest.pop(0)}"
    if signal in ("-0", "-l", "-L", "--list", "--table", "--help", "--version"):
        return []
    return [word for word in rest if word != "--"]


def ends_all(name: str, words: Sequence[str]) -> bool:
    """`kill -9 -1` is every process that one may end; 1 is the first of them, without which there is none."""
    return name == "killall5" or (name == "kill" and not {"-1", "1"}.isdisjoint(signalled(name, words)))


def push_undo(words: Sequence[str]) -> str:
    """What would take a push back, as far as its words say."""
    found, options = plain("git", words)
    given = found[found.index("push") + 1 :] if "push" in found else []
    remote = given[0] if given and UNKNOWN not in given[0] else "REMOTE"
    spec = given[1].lstrip("+") if len(given) > 1 and UNKNOWN not in given[1] else "BRANCH"
    source, colon, target = spec.partition(":")
    branch = target if colon else source
    if "--delete" in options or "-d" in options or (colon and not source):
        return f"git push {remote} OLD:refs/heads/{branch}"
    return f"git push --force-with-lease {remote} OLD:{branch}"
