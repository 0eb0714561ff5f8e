"""Every verb, by hand: its group and what it does in one line. The module of a verb has its name."""

from __future__ import annotations

GROUPS = {
    "start": "start",
    "see": "see",
    "back": "take back",
    "plan": "plan",
    "outside": "outside the files",
    "care": "care",
    "about": "about takeback",
}

VERBS: dict[str, tuple[str, str]] = {
    "protect": ("start", "set your coding agents up: each of their calls can be undone"),
    "init": ("start", "protect this folder and take the first checkpoint"),
    "checkpoint": ("start", "capture the whole tree, with a label if you like"),
    "track": ("start", "capture just these paths before they change, cheaply"),
    "watch": ("start", "follow the tree and capture each quiet moment, live"),
    "run": ("start", "run a command; all it changes is one turn to undo"),
    "status": ("see", "what changed since the checkpoint that one is at, and by whom"),
    "diff": ("see", "the changes line by line: a checkpoint to now, or to another"),
    "log": ("see", "turns, effects, checkpoints and take-backs, newest first"),
    "show": ("see", "one entry of the log in full, or an agent's turn or call"),
    "blame": ("see", "which turn, call and prompt last wrote each line of a file"),
    "ui": ("see", "the timeline in the terminal: look, and point at what to take back"),
    "web": ("see", "the same in a browser, on this machine alone"),
    "report": ("see", "an account of a session or a span, to hand to somebody"),
    "undo": ("back", "take back the last turn; again for the one before"),
    "redo": ("back", "bring back what the last take-back took"),
    "rollback": ("back", "go back to a checkpoint"),
    "revert": ("back", "take back one effect or path and keep the rest"),
    "restore": ("back", "bring single files back from any checkpoint"),
    "thread": ("back", "what agents remember: save it, go back in it, fork it, hand it over"),
    "plan": ("plan", "what a take-back would do, saved to be applied later"),
    "apply": ("plan", "carry out a saved plan exactly as seen, or refuse it as stale"),
    "resume": ("plan", "finish an interrupted take-back, or go back from it"),
    "record": ("outside", "journal a request, a command or a note, with what takes it back"),
    "email": ("outside", "hold mail as a draft, then release or cancel it"),
    "effects": ("outside", "the ledger: what was done outside the files, and what became of it"),
    "compensate": ("outside", "take back what stands outside the files, and nothing else"),
    "approve": ("outside", "a person's yes to a saved plan, or to a call that was stopped"),
    "resolve": ("outside", "say what came of an effect, or of its undo, that nobody heard of again"),
    "policy": ("outside", "what may run, is asked for or is refused, and why"),
    "hook": ("outside", "answer one event of an agent: what its configuration runs"),
    "resident": ("outside", "the process that makes hooks fast: whether it runs, start it, stop it"),
    "mcp": ("outside", "serve agents over the Model Context Protocol"),
    "prune": ("care", "forget old history and free its space"),
    "label": ("care", "call a checkpoint something else"),
    "pin": ("care", "keep a checkpoint for ever"),
    "unpin": ("care", "let a checkpoint be pruned again"),
    "verify": ("care", "check the journal's chain and everything stored"),
    "repair": ("care", "set damaged parts of the store aside; nothing is deleted"),
    "forget": ("care", "init's inverse: remove all that is known of this folder, for good"),
    "unprotect": ("care", "take takeback's hooks out of your agents' configuration"),
    "doctor": ("care", "check the set-up, each failure with its fix"),
    "config": ("care", "every setting with its source; the rules of what is captured"),
    "completion": ("about", "a completion script for bash, zsh or fish"),
    "help": ("about", "help on a verb, or on all of them"),
}

OVERVIEW = (
    "init",
    "protect",
    "watch",
    "run",
    "checkpoint",
    "status",
    "diff",
    "log",
    "ui",
    "undo",
    "redo",
    "rollback",
    "revert",
    "restore",
)


def overview() -> str:
    """What `takeback --help` prints: one screen, the verbs one needs first."""
    lines = [
        "takeback: undo for AI agents. It shows what changed and takes it back.",
        "usage: takeback [-C DIR] [--json] [--yes] [--quiet] [--no-color] [--off] VERB …",
    ]
    for group in ("start", "see", "back"):
        lines.append(GROUPS[group])
        lines += [f"  {verb:<12}{VERBS[verb][1]}" for verb in OVERVIEW if VERBS[verb][0] == group]
    lines += [
        "more",
        "  help --all  every verb          help VERB   one verb, with examples",
        "  effects     what was done outside the files          web   ui, in a browser",
        "Without a verb: the status and the likely next command.",
        "Exit: 0 done · 1 failed · 2 usage · 3 partly · 4 needs a yes · 10 no workspace",
    ]
    return "\n".join(lines)


def overview_of_all() -> str:
    """What `takeback help --all` prints."""
    lines = ["usage: takeback [OPTIONS] VERB …", ""]
    for group, title in GROUPS.items():
        lines.append(title)
        lines += [f"  {verb:<12}{about}" for verb, (of, about) in VERBS.items() if of == group]
        lines.append("")
    lines += ["options, before or after the verb"]
    lines += [f"  {name:<16}{about}" for name, about in OPTIONS.items()]
    lines += ["", "exit codes"]
    lines += [f"  {code:<4}{about}" for code, about in EXIT_CODES.items()]
    lines += ["", "takeback help VERB shows one verb with examples."]
    return "\n".join(lines)


OPTIONS = {
    "-C DIR": "work as if started in DIR",
    "--json": "report as JSON on standard output",
    "-y, --yes": "do it without asking; never what acts outside the files",
    "-q, --quiet": "say only what went wrong",
    "--no-color": "no colours; NO_COLOR in the environment means the same",
    "--off": "turn takeback off for this one run",
    "-h, --help": "this help",
    "--version": "the version",
}

EXIT_CODES = {
    0: "done",
    1: "failed; nothing was lost",
    2: "the request makes no sense",
    3: "partly: a step of the plan, or a path that should be covered, was not done, or uncertain work stayed",
    4: "a yes is needed (--yes, or a person's for what acts outside the files), the plan is stale, or a take-back that "
    "a person stopped waits for resume",
    10: "nothing is protected here",
    11: "another takeback is at work",
    70: "a bug, with a report to paste",
    130: "interrupted",
    143: "ended by SIGTERM",
}
