"""email: mail held as a draft, then released by a person, or cancelled."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from takeback.domains.email.outbox import draft
from takeback.errors import ApprovalNeeded, CredentialNeeded, TakebackError, UsageError
from takeback.surfaces.cli import approving
from takeback.surfaces.wording import paths
from takeback.surfaces.wording.mail import release_question, write_mail
from takeback.surfaces.wording.text import moment, safe

if TYPE_CHECKING:
    from takeback.model.outside import Act
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.workspace import Workspace

_WHAT = ("stage", "release", "cancel", "pending")
_STAGING = ("to", "cc", "bcc", "reply_to", "subject", "body", "body_file", "html_file", "attach", "provider", "delay")


def add(parser: Parser) -> None:
    parser.synopsis = "stage|release|cancel|pending [ID…]"
    parser.about = (
        "Holds mail as a draft instead of sending it: at Gmail, at Outlook, or in a local outbox that\n"
        "is released through your SMTP server. `cancel`, like any undo, drops the draft: a true unsend.\n"
        "`release` sends it, which nothing takes back: a person types yes, --yes does not answer for\n"
        "you, and it is refused where an agent is at work, unless your policy allows it. Without an ID\n"
        "release and cancel take the only mail that is held."
    )
    takes = parser.takes
    takes("stage", "what", nargs="?", default="", help="hold a mail: --to, --subject and a text")
    parser.listed += [
        ("release [ID…]", "send held mail: asks, since it cannot be undone"),
        ("cancel [ID…]", "drop held mail, which then never left"),
        ("pending", "what is held, and what is due"),
    ]
    parser.takes("ID", "names", nargs="*", help="how its id begins, or the provider's id of the draft")
    takes("--to ADDRESS", "--to", action="append", help="a recipient; several by commas or by more --to")
    takes("--cc ADDRESS", "--cc", action="append", help="in copy")
    takes("--bcc ADDRESS", "--bcc", action="append", help="in blind copy: in no header")
    takes("--reply-to ADDRESS", "--reply-to", help="where answers go")
    takes("--subject TEXT", "--subject", help="the subject, one line, in any script")
    takes("--body TEXT", "--body", help="the text")
    takes("--body-file FILE", "--body-file", help="the text from a file; - is standard input")
    takes("--html-file FILE", "--html-file", help="the same text as HTML, from a file")
    takes("--attach PATH", "--attach", action="append", help="a file of the project; may be given several times")
    takes("--provider NAME", "--provider", help="gmail, outlook or smtp; by default the one that is set up")
    takes("--delay TIME", "--delay", help="due after this long (30s, 5m); goes by itself if you type yes now")
    takes("--due", "--due", action="store_true", help="release: whatever is due")
    takes("--trash-copy", "--trash-copy", action="store_true", help="cancel: trash your own copy of what was sent")
    parser.examples = [
        ("takeback email stage --to bob@example.org --subject Hi --body Hello", "held"),
        ("takeback email pending", ""),
        ("takeback email release", "the only one held"),
        ("takeback email cancel kxvm", "it never left"),
        ("takeback email release --due", "what waited enough"),
    ]


def run(context: Context, args: Namespace) -> int:
    verbs = {"stage": _stage, "release": _release, "cancel": _cancel, "pending": _pending}
    if args.what not in verbs:
        what = f"email knows no {safe(args.what)!r}" if args.what else "say what to do with mail"
        raise UsageError(what, f"takeback email {', '.join(_WHAT[:-1])} or {_WHAT[-1]}")
    for option in _STAGING:
        if args.what != "stage" and getattr(args, option) is not None:
            raise UsageError(f"--{option.replace('_', '-')} is for takeback email stage", "leave it out")
    if args.due and args.what != "release":
        raise UsageError("--due is for takeback email release", "leave it out")
    if args.trash_copy and args.what != "cancel":
        raise UsageError("--trash-copy is for takeback email cancel", "leave it out")
    if args.names and args.what in ("stage", "pending"):
        raise UsageError(f"email {args.what} takes no {safe(args.names[0])!r}", "see takeback help email")
    with context.open() as workspace:
        return verbs[args.what](context, workspace, args)


# -- stage -------------------------------------------------------------------


def _stage(context: Context, workspace: Workspace, args: Namespace) -> int:
    if args.subject is None:
        raise UsageError("a mail needs a subject", "say --subject TEXT; it may be empty")
    if args.body is not None and args.body_file is not None:
        raise UsageError("the text is either --body or --body-file", "leave one out")
    body = args.body if args.body_file is None else _read(context, args.body_file)
    html = "" if args.html_file is None else _read(context, args.html_file)
    if body is None and not html:
        raise UsageError("a mail needs a text", "say --body TEXT or --body-file FILE")
    act = workspace.hold_email(
        args.to or (), args.subject, body or "", args.cc or (), args.bcc or (), args.reply_to or "", html,
        paths.all_inside(context, workspace, args.attach or (), present=True), args.provider or "", args.delay or "",
        approved=bool(args.delay) and _may_go_by_itself(context, workspace, args), by=_by(context),
    )  # fmt: skip
    if context.json:
        context.terminal.json({"draft": _shape(workspace, act)})
        return 0
    context.terminal.say(f"held {context.terminal.style(act.id[:8], 'bold')} {safe(act.summary)}")
    if act.did.get("approved"):
        context.terminal.hint(f"due {moment(act.did['due'])}; until then: takeback email cancel {act.id[:8]}")
    else:
        id = act.id[:8]
        context.terminal.hint(f"send it: takeback email release {id}; drop it: takeback email cancel {id}")
    return 0


def _may_go_by_itself(context: Context, workspace: Workspace, args: Namespace) -> bool:
    """A mail that goes by itself is approved when it is staged; if nobody can be asked, it waits for a yes."""
    if not context.terminal.interactive or context.json:
        return False
    try:
        approving.only_a_person(context, "letting mail go by itself", workspace)
    except ApprovalNeeded:
        return False
    return approving.typed_yes(context, f"Type yes to let it go by itself after {safe(args.delay)}; else it waits:")


def _read(context: Context, given: str) -> str:
    try:
        if given == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(os.path.join(context.cwd, given), "rb") as file:
                data = file.read()
        return data.decode()
    except OSError as error:
        raise UsageError(f"{safe(given)} cannot be read ({error.strerror})", "name a readable file, or -") from None
    except UnicodeDecodeError:
        raise UsageError(f"{safe(given)} is no UTF-8 text", "save it as UTF-8") from None


# -- release -----------------------------------------------------------------


def _release(context: Context, workspace: Workspace, args: Namespace) -> int:
    if args.due and args.names:
        raise UsageError("release either these or whatever is due", "leave out --due or the IDs")
    if args.due:
        return _release_due(context, workspace)
    acts = [workspace.find_email(name) for name in args.names or [""]]
    return _told(context, workspace, [_released(context, workspace, act) for act in acts])


def _release_due(context: Context, workspace: Workspace) -> int:
    """Those that may go by themselves go; for the others a person is asked, if there is one."""
    results: list[tuple[Act, TakebackError | None]] = []
    for act, error in workspace.release_due(_by(context)):
        asked = isinstance(error, ApprovalNeeded) and context.terminal.interactive and not context.json
        results.append(_released(context, workspace, act) if asked else (act, error))
    if not results and not context.json:
        context.terminal.say("no mail is due")
    return _told(context, workspace, results, several=True)


def _released(context: Context, workspace: Workspace, act: Act) -> tuple[Act, TakebackError | None]:
    try:
        return workspace.release_email(act.id, by=_by(context)), None
    except ApprovalNeeded as error:
        if not context.terminal.interactive or context.json or isinstance(error, CredentialNeeded):
            return act, error
    except TakebackError as error:
        return act, error
    approving.only_a_person(context, "releasing mail", workspace)
    write_mail(context.terminal, workspace, act)
    if not approving.typed_yes(context, release_question(act)):
        return act, ApprovalNeeded(f"{act.id[:8]} stays held", f"drop it with takeback email cancel {act.id[:8]}")
    try:
        return workspace.release_email(act.id, approved=True, by=_by(context)), None
    except TakebackError as error:
        return act, error


def _told(
    context: Context, workspace: Workspace, results: list[tuple[Act, TakebackError | None]], several: bool = False
) -> int:
    """What became of each; of a single one that failed, its error is the run's own."""
    failed = [error for _, error in results if error is not None]
    if len(results) == 1 and failed and not several:
        raise failed[0]
    if context.json:
        now = [(workspace.find_effect(act.id), error) for act, error in results]
        shapes = [{**_shape(workspace, act), "error": error.message if error else None} for act, error in now]
        context.terminal.json({"draft": shapes[0]} if len(shapes) == 1 and not several else {"drafts": shapes})
    for act, error in results if not context.json else ():
        if error is None:
            context.terminal.say(f"{act.id[:8]} {safe(str(act.did.get('left_to_do', 'sent')))}")
        else:
            context.terminal.warn(f"takeback: {safe(error.message)}")
            context.terminal.hint(f"  → {safe(error.hint)}")
    if not failed:
        return 0
    return failed[0].exit_code if len(failed) == len(results) else 3


# -- cancel, pending ---------------------------------------------------------


def _cancel(context: Context, workspace: Workspace, args: Namespace) -> int:
    if args.trash_copy and not args.names:
        raise UsageError("say whose copy to trash", "takeback email cancel --trash-copy ID")
    acts = [workspace.cancel_email(name, trash_copy=args.trash_copy) for name in args.names or [""]]
    if context.json:
        shapes = [_shape(workspace, act) for act in acts]
        context.terminal.json({"draft": shapes[0]} if len(shapes) == 1 else {"drafts": shapes})
        return 0
    for act in acts:
        what = str(act.did.get("left_to_do", "")) if args.trash_copy else f"cancelled, it never left: {act.summary}"
        context.terminal.say(f"{act.id[:8]} {safe(what)}")
    return 0


def _pending(context: Context, workspace: Workspace, args: Namespace) -> int:
    acts = workspace.pending_email()
    if context.json:
        context.terminal.json({"drafts": [_shape(workspace, act) for act in acts]})
        return 0
    for act in acts:
        state = act.shown_state
        if due := act.did.get("due"):
            state += ", due" if due <= workspace.clock() else f", due {moment(due)}"
        provider = safe(str(act.did.get("provider", "")))
        context.terminal.write(f"{act.id[:8]}  {state}  {provider}  {safe(act.summary)}")
    if not acts:
        context.terminal.say("no mail is held")
    return 0


def _shape(workspace: Workspace, act: Act) -> dict[str, object]:
    return draft(act, workspace.clock())


def _by(context: Context) -> dict[str, str]:
    actor = context.environ.get("TAKEBACK_ACTOR", "")
    return {"surface": "cli", **({"actor": actor} if actor else {})}
