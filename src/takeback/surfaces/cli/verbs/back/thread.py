"""thread: what agents remember, as chains of state checkpoints. Each verb below it is in threads_seen.py (looking),
threads_kept.py (saving, forking, handing over) or threads_tended.py (verify, prune).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.errors import UsageError
from takeback.surfaces.cli import take_back_flow, who_is_looking
from takeback.surfaces.cli.verbs.back.threads.append import opened
from takeback.surfaces.wording.text import safe

from .threads import append, see, tend

if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.workspace import Workspace

    Run = Callable[[Context, Workspace, Namespace, list[str]], int]

# What each takes: its words, how many at least, how many at most (0: any number).
TAKES = {
    "save": ("THREAD [FILE]", 1, 2),
    "load": ("THREAD [CHECKPOINT]", 1, 2),
    "list": ("[THREAD]", 0, 1),
    "show": ("THREAD [CHECKPOINT]", 1, 2),
    "resume": ("THREAD [CHECKPOINT]", 1, 2),
    "diff": ("THREAD A [B]", 2, 3),
    "search": ("WORD…", 1, 0),
    "fork": ("THREAD CHECKPOINT NEW", 3, 3),
    "rollback": ("THREAD CHECKPOINT", 2, 2),
    "handoff": ("THREAD [CHECKPOINT] --to AGENT", 1, 2),
    "adopt": ("HANDOFF [NEW]", 1, 2),
    "verify": ("[THREAD]", 0, 1),
    "prune": ("[THREAD…]", 0, 0),
}
_LOOKS = ("load", "list", "show", "resume", "diff", "search", "verify")  # these work while takeback is off
_OPTIONS = {  # option → whose it is
    "given": ("--state", ("save",)),
    "summary": ("--summary", ("save",)),
    "parent": ("--parent", ("save",)),
    "state_only": ("--state-only", ("save",)),
    "agent": ("--agent", ("save", "fork", "handoff", "adopt")),
    "to": ("--to", ("handoff",)),
    "note": ("--note", ("handoff",)),
    "handoffs": ("--handoffs", ("list",)),
    "limit": ("--limit", ("list", "search")),
    "thread": ("--thread", ("search",)),
    "unmasked": ("--unmasked", ("show", "diff", "search")),
    "with_files": ("--with-files", ("rollback",)),
    "everything": ("--all", ("rollback",)),
    "merge": ("--merge", ("rollback",)),
    "markers": ("--markers", ("rollback",)),
    "force": ("--force", ("rollback",)),
    "all_steps": ("--all-steps", ("rollback",)),
    "dry_run": ("--dry-run", ("rollback", "prune")),
    "keep": ("--keep", ("prune",)),
    "older_than": ("--older-than", ("prune",)),
    "delete": ("--delete", ("prune",)),
}


def add(parser: Parser) -> None:
    parser.synopsis = "VERB [THREAD] [CHECKPOINT] …"
    parser.about = (
        "What an agent remembers, kept beside the files it changed. A thread is a chain of state\n"
        "checkpoints; nothing in it is rewritten. Going back makes an old state the new head, and\n"
        "`takeback redo` reverses that; forking begins another thread. Files stay where they are,\n"
        "unless --with-files takes back all that was done since, in one plan."
    )
    takes = parser.takes
    takes("save THREAD [FILE]", "what", nargs="?", default="", help="a JSON object as its new head; - is stdin")
    parser.listed += [
        ("load THREAD [CHECKPOINT]", "the state as JSON, whole"),
        ("list [THREAD]", "threads, or the states of one, newest first"),
        ("show THREAD [CHECKPOINT]", "one state: when, by whom, from where"),
        ("resume THREAD [CHECKPOINT]", "where to go on: the id and the state"),
        ("diff THREAD A [B]", "what differs, by path; B: the head"),
        ("search WORD…", "in summaries and states"),
        ("fork THREAD CHECKPOINT NEW", "a new thread that begins there"),
        ("rollback THREAD CHECKPOINT", "that state as the new head, after a yes"),
        ("handoff THREAD [CHECKPOINT]", "pass it to another agent: --to AGENT"),
        ("adopt HANDOFF [NEW]", "take it over, as a new thread"),
        ("verify [THREAD]", "each state: PASS, or FAIL and what is lost"),
        ("prune [THREAD…]", "forget old ones: --keep, --older-than, --delete"),
    ]
    parser.words[-1] = parser.words[-1]._replace(shown="VERB")
    takes("CHECKPOINT", "names", nargs="*", help="how its id begins; the head if left out")
    takes("--state JSON", "--state", dest="given", help="save: the state itself")
    takes("--summary TEXT", "--summary", help="save: one line about it")
    takes("--parent ID", "--parent", help="save: the head you saw; if it moved, exit 1")
    takes("--agent NAME", "--agent", help="who does it; TAKEBACK_ACTOR if left out")
    takes("--state-only", "--state-only", action="store_true", help="save: look at no file, and need no init")
    takes("--to AGENT", "--to", help="handoff: for whom")
    takes("--note TEXT", "--note", help="handoff: what to know")
    takes("--handoffs", "--handoffs", action="store_true", help="list: what was handed over")
    takes("--limit N", "-n", "--limit", help="list, search: N at most")
    takes("--thread THREAD", "--thread", help="search: in this thread alone")
    takes("--with-files", "--with-files", action="store_true", help="rollback: files, git, outside effects too")
    takes("--all", "--all", dest="everything", action="store_true", help="rollback --with-files: whoever did it")
    take_back_flow.add_options(parser, whose=False)
    takes("--keep N", "--keep", help="prune: keep the newest N of each thread")
    takes("--older-than AGE", "--older-than", help="prune: forget what is older, such as 30d")
    takes("--delete", "--delete", action="store_true", help="prune: remove the named threads whole")
    who_is_looking.add_option(parser)
    parser.examples = [
        ("takeback thread save main state.json", ""),
        ("takeback thread list main", "its chain, with rollbacks and forks"),
        ("takeback thread resume main --json", "checkpoint_id and state"),
        ("takeback thread rollback main kxvm", "its memory alone"),
        ("takeback thread rollback main kxvm --with-files", "memory and world"),
        ("takeback thread fork main kxvm other", "try something else"),
        ("takeback thread prune main --keep 50", ""),
    ]


def run(context: Context, args: Namespace) -> int:
    words = args.names
    if args.what not in TAKES:
        what = f"thread knows no {safe(args.what)!r}" if args.what else "say what to do with threads"
        raise UsageError(what, f"takeback thread {', '.join(list(TAKES)[:-1])} or {list(TAKES)[-1]}")
    shown, least, most = TAKES[args.what]
    if len(words) < least or (most and len(words) > most):
        found = "nothing" if not words else " ".join(map(safe, words))
        raise UsageError(f"thread {args.what} takes {shown}, not {found}"[:300], f"takeback thread {args.what} {shown}")
    for name, (option, whose) in _OPTIONS.items():
        if getattr(args, name) not in (None, False) and args.what not in whose:
            raise UsageError(f"{option} is for takeback thread {' and '.join(whose)}", "leave it out")
    run = _loaded(args.what)
    if args.what == "save":
        with opened(context, args) as workspace:
            return run(context, workspace, args, words)
    with context.open(when_off=args.what in _LOOKS) as workspace:
        return run(context, workspace, args, words)


def _loaded(what: str) -> Run:
    """Only what is asked for is imported."""
    if what in ("save", "fork", "rollback", "handoff", "adopt"):
        return append.VERBS[what]
    if what in ("verify", "prune"):
        return tend.VERBS[what]
    return see.VERBS[what]
