"""One entry of the log in full, in lines and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from takeback.domains.git.repository import amount
from takeback.model.effects import DONE, KEPT, STATES, UNKNOWN, domain_of, raw, short_id, text, thread_of
from takeback.text.units import format_size

from . import diffs, effects_outside, json_shapes
from .log import mark
from .text import clip, counted, moment, safe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from takeback.model.effects import Abandoned
    from takeback.model.outside import Act, Stopped, Undo
    from takeback.show.turns import TurnSeen
    from takeback.show.views import Shown

    from .screen import Screen


_NAMED = 5  # paths of a turn that are not only its own


_NOT_TOLD = ("actor", "above", "owner", "among")  # of by whom an effect is: said elsewhere, or for programs


def lines(terminal: Screen, found: Shown, when: str, stat: bool) -> Iterator[str]:
    row = found.row
    label = f' "{safe(row.label)}"' if row.label else ""
    number = f" {row.number}" if row.number else ""
    yield f"{mark(terminal, row)} {terminal.style(f'{row.kind}{number}{label}', 'bold')}"
    yield f"  id       {row.id}"
    yield f"  at       {when}"
    if row.actor:
        is_doubted = row.uncertain and row.kind == "effect" and found.act is None
        yield f"  actor    {safe(row.actor)}{terminal.style(' (uncertain)', 'yellow') * is_doubted}"
    yield from _work(terminal, found)
    if row.kind not in ("turn", "call"):
        yield f"  summary  {safe(row.summary)}"
    if row.redone:
        yield f"  since    {row.redone}"
    if found.stopped is not None:
        yield from _stopped(terminal, found.stopped)
    elif found.act is not None:
        yield from _outside(terminal, found, found.act)
    elif row.kind == "effect" or found.effects:
        yield f"  live     {'yes' if row.live else 'no, taken back'}"
    for id in found.undone_by:
        yield f"  taken by {id[:8]}"
    for thread, was, now in found.threads:
        yield f"  thread   {safe(thread)}: {safe(short_id(was)) or 'not there'} → {safe(short_id(now)) or 'not there'}"
    for path, why in found.partial:
        yield terminal.style(f"  lacks    {safe(path)}: {safe(why)}", "red")
    if found.abandoned is not None:
        yield from _abandoned(found.abandoned)
    for path, id in _in_words(found.took):
        yield f"  took     {safe(path)} of {id[:8]}"
    for path, id in _in_words(found.already):
        yield f"  already  {safe(path)} of {id[:8]}: it was as it should be, and was not touched"
    for path, id in _in_words(kept(found)):
        yield f"  kept     {safe(path)} of {id[:8]}{_taking(terminal, found, path, id)}"
    yield from (terminal.style(line, "red") for line in missed(found))
    for undo in found.undos:
        said = f": {safe(undo.note)}" if undo.note else ""
        of = f" of {undo.act[:8]}" if found.act is None else ""
        yield f"  {'tried' if undo.result != DONE else 'sent':<8} {moment(undo.at)}{of}, {undo.result}{said}"
        yield from _facts(terminal, undo.evidence)
    whole = row.domain == "git" and row.kind == "effect"  # asked for by itself
    git = [] if whole else [raw(f.path) for f in found.files if domain_of(raw(f.path)) == "git"]
    files = [f for f in found.files if whole or domain_of(raw(f.path)) != "git"]
    if files:
        yield ""
        yield from (diffs.stat_lines if stat else diffs.lines)(terminal, files)
        yield diffs.totals(terminal, files)
    if git:
        yield f"git: {safe(amount(git))}"
    if found.tree:
        yield ""
        for path, kind, mode, size in found.tree:
            what = format_size(size) if kind == "file" else kind
            yield f"  {mode:04o}  {what:>9}  {safe(path)}{'/' if kind == 'folder' else ''}"


def kept(found: Shown) -> list[tuple[str, str]]:
    """What a take-back left as it is; of an inverse in doubt nobody knows that."""
    doubted = {each.effect for each in found.missed if each.result == UNKNOWN}
    return [(path, id) for path, id in found.kept if id not in doubted]


def missed(found: Shown) -> Iterator[str]:
    """What a take-back was to do, and did not; what it kept is told apart."""
    for each in found.missed:
        if each.result != KEPT:
            of = f" of {each.effect[:8]}" if each.effect else ""
            yield f"  {each.result:<8} {safe(each.path)}{of}: {safe(each.why)}"


def _work(terminal: Screen, found: Shown) -> Iterator[str]:
    """The agent's turn and calls: of a turn or call, and of what belongs to one."""
    turn, kind = found.turn, found.row.kind
    if turn is not None:
        yield f"  {'prompt' if kind == 'turn' else 'turn':<8} " + _prompt(turn, kind)
        yield f"  session  {safe(turn.session)}"
        if turn.lanes and kind == "turn":
            yield f"  subagent {safe(', '.join(turn.lanes))}"
    if len(found.row.turns) > 1:
        how = "may be   of" if found.act is not None and found.act.is_of_unknown else "shared   by"
        yield f"  {how} {len(found.row.turns)} turns: {', '.join(id[:8] for id in found.row.turns)}"
    known = {row.id for row in found.effects}
    for call in found.calls:
        state = "" if call.state == "done" else terminal.style(f" · {call.state}", "red" if call.ended else "cyan")
        who = f"{safe(call.lane)}: " if call.lane else ""
        if kind == "call":
            yield f"  tool     {safe(call.tool)}{f', by the subagent {safe(call.lane)}' if call.lane else ''}"
            yield f"  did      {safe(call.summary)}{state}"
        else:
            changed = f" · {counted(len(call.files), 'file')}" if call.files else ""
            listed = ", ".join(id[:8] for id in call.effects if id in known)
            told = f" ({listed})" if listed else ""
            unsure = terminal.style(" · uncertain", "yellow") if call.uncertain and kind == "turn" else ""
            named = f"{terminal.style(call.id[:8], 'bold')} {who}{safe(call.summary)}"
            yield f"  call     {named}{changed}{told}{state}{unsure}"
    for row in found.refused:
        yield f"  gate     {terminal.style(row.id[:8], 'bold')} {safe(row.summary)}"
    for row in found.effects:
        if row.domain not in STATES:
            yield f"  outside  {row.id[:8]} {safe(row.domain)}: {safe(row.summary)} · {row.state}"
        elif kind == "call" or row.domain != "files":
            unsure = terminal.style(" · uncertain", "yellow") * row.uncertain
            yield f"  effect   {row.id[:8]} {safe(row.summary)}{unsure}{' · shared' * (len(row.turns) > 1)}"
    for row in found.asked_for:
        yield f"  asked    for {row.id[:8]} {safe(row.summary)}"
    yield from _not_only_its_own(terminal, found)


def _not_only_its_own(terminal: Screen, found: Shown) -> Iterator[str]:
    """Of a turn or call, apart: what may be somebody else's, and what others had a part in."""
    if found.row.kind not in ("turn", "call"):
        return
    unsure = tuple(path for call in found.calls for path in call.uncertain)
    if found.row.kind == "turn" and found.turn is not None:
        unsure = found.turn.uncertain
    if unsure:
        yield terminal.style(f"  uncertain {_some(unsure)}: may be somebody else's, so undo asks first", "yellow")
    shared = {path for row in found.effects if len(row.turns) > 1 and row.domain in STATES for path in row.paths}
    if shared:
        yield f"  shared   {_some(sorted(shared))}: others were at work at the same time"


def _some(paths: Sequence[str]) -> str:
    names = [path for path, _ in _in_words([(path, "") for path in paths])]
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(map(safe, names[:_NAMED])) + more


def _abandoned(gone: Abandoned) -> Iterator[str]:
    """A take-back that was gone back from: what had begun, and whether it is as before."""
    left = dict(gone.left)
    yield f"  gone back {moment(gone.at)}, by takeback resume --abort"
    for path in gone.paths:
        became = f"not put back: {safe(left[path])}" if path in left else "put back as it was"
        name = f"thread {thread_of(path)}" if domain_of(path) == "state" else text(path)
        yield f"  begun    {safe(name)}, {became}"


def _stopped(terminal: Screen, call: Stopped) -> Iterator[str]:
    """A call that the gate stopped: all of it, why, and what a person said to that."""
    yield f"  session  {safe(call.session)}"
    yield f"  state    {safe(call.told)}"
    for line in call.command.split("\n") if call.command else ():
        yield f"  call     {safe(line)}"
    for kind, what, why in call.risks or ((call.kind, call.summary, call.why),):
        yield f"  {'refused' if call.state == 'refused' else 'asked':<8} {safe(kind)}: {safe(what)}: {safe(why)}"
    if call.answer:
        yield f"  {call.answer:<8} {moment(call.answered)}, by a person at {safe(call.agent)}'s prompt"
    if call.approved:
        yield f"  approved {moment(call.approved)}, for once"
    if call.tried:
        word = "passed" if call.passed else "tried"
        yield f"  {word:<8} {moment(call.tried)}" + (f", in turn {call.turn[:8]}" if call.turn else "")
    if call.turned_down:
        by = "nobody was there to be asked" if call.alone else f"by a person at {safe(call.agent)}'s prompt"
        yield f"  {'refused' if call.alone else 'declined':<8} {moment(call.turned_down)}, {by}"
    if call.way:
        yield terminal.style(f"  → let it pass once: {call.way}", "magenta")
    elif call.never:
        yield "  nobody lets an agent do this: do it yourself, in a terminal of your own"


def _taking(terminal: Screen, found: Shown, path: str, id: str) -> str:
    """What takes something that was kept: a file alone, other things with all else of their entry."""
    if id in found.outside:
        return ""
    if (path, id) in found.kept and id not in found.takebacks and domain_of(raw(path)) == "files":
        return f" · take it too: takeback revert {id[:8]} {terminal.typed(raw(path))} --force"
    return f" · take it too, with all else of that entry: takeback revert {id[:8]} --force"


def _in_words(found: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Files one by one, then what of git belongs to the same entry, together."""
    git: dict[str, list[bytes]] = {}
    for path, id in found:
        if domain_of(raw(path)) == "git":
            git.setdefault(id, []).append(raw(path))
        elif domain_of(raw(path)) == "state":
            yield f"thread {thread_of(raw(path))}", id
        else:
            yield path, id
    yield from ((f"in git {amount(paths)}", id) for id, paths in git.items())


def _prompt(turn: TurnSeen, kind: str) -> str:
    asked = f"“{safe(turn.prompt)}”" if turn.prompt else "not known"
    return asked if kind == "turn" else f"{turn.id[:8]} {asked}"


def _outside(terminal: Screen, found: Shown, act: Act) -> Iterator[str]:
    """An effect outside the files: evidence, who, what takes it back, what it stands on."""
    yield f"  domain   {safe(act.domain)}"
    yield f"  state    {effects_outside.state(terminal, act.shown_state)}"
    if act.target:
        yield f"  target   {safe(act.target)}"
    told = [f"{name} {value}" for name, value in act.by.items() if value and name not in _NOT_TOLD]
    if act.is_of_unknown:
        yield "  whose    not known: several may have been at work, and nobody saw who did it"
    if told:
        yield f"  by       {safe(', '.join(told))}"
    if act.step:
        yield f"  step     {safe(act.step)}"
    yield from _facts(terminal, act.did)
    if found.inverse:
        line = effects_outside.wrapped(terminal, safe(found.inverse), 11)
        yield from (f"  inverse  {line[0]}", *line[1:])
        args = act.inverse.args if act.inverse else {}
        for name in ("timeout", "idempotent_for"):
            if args.get(name):
                yield terminal.style(f"           {name}: {safe(_brief(args[name]))}", "dim")
    else:
        yield "  inverse  none: " + safe(str(act.did.get("left_to_do", "it cannot be taken back")))
        if how := effects_outside.giving(act):
            yield f"           if something takes it back: {how}"
    for id in found.stands_on:
        yield f"  on       {id[:8]}, which it depends on"
    for id in found.carries:
        yield f"  carries  {id[:8]}, which depends on it; to take both back: takeback rollback {act.id[:8]}"
    if act.shown_state == "sending":
        yield terminal.style(f"  → it is being sent just now, by process {act.did['sender']['pid']}", "cyan")
    if act.shown_state == "unknown":
        yield terminal.style(f"  → find out, then: {act.resolving}", "magenta")


def _facts(terminal: Screen, known: Mapping[str, Any]) -> Iterator[str]:
    """Evidence, a line for each; what is long is cut, and --json has all of it."""
    for name, value in known.items():
        if value not in (None, "", {}, []) and name not in ("left_to_do", "made"):  # the target says it
            line = f"           {safe(name)}: {safe(_brief(value))}"
            yield terminal.style(clip(line, max(60, terminal.width)), "dim")


def _brief(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def shape(found: Shown) -> dict[str, object]:
    return {
        **json_shapes.log_row(found.row),
        "files": [json_shapes.file_diff(f) for f in found.files],
        "lacking": json_shapes.pairs(found.partial),
        "took": [{"path": p, "effect": id} for p, id in found.took],
        "already": [{"path": p, "effect": id} for p, id in found.already],
        "kept": [{"path": p, "effect": id} for p, id in found.kept],
        "not_done": [each._asdict() for each in found.missed],
        "undone_by": list(found.undone_by),
        "threads": [{"thread": thread, "before": was, "after": now} for thread, was, now in found.threads],
        **_shape_of_act(found),
        "gone_back_from": None if found.abandoned is None else json_shapes.abandoned(found.abandoned),
        "stopped": None if found.stopped is None else json_shapes.stopped(found.stopped),
        **_shape_of_work(found),
        "tree": [{"path": p, "kind": k, "mode": m, "size": s} for p, k, m, s in found.tree],
    }


def _shape_of_work(found: Shown) -> dict[str, object]:
    if found.turn is None and not found.calls:
        return {}
    return {
        "asked": None if found.turn is None else json_shapes.turn(found.turn),
        "made": [json_shapes.call(call) for call in found.calls],
        "effects": [json_shapes.log_row(row) for row in found.effects],
        "asked_for": [json_shapes.log_row(row) for row in found.asked_for],
        "refused": [json_shapes.log_row(row) for row in found.refused],
    }


def _shape_of_act(found: Shown) -> dict[str, object]:
    act = found.act
    if act is None:
        return {"undos": [_undo(u) for u in found.undos]} if found.undos else {}
    return {
        "target": act.target,
        "by": dict(act.by),
        "did": dict(act.did),
        "inverse": found.inverse or None,
        "probe": (act.inverse.args.get("probe") if act.inverse else None) or None,
        "depends_on": list(found.stands_on),
        "carries": list(found.carries),
        "undos": [_undo(u) for u in found.undos],
    }


def _undo(found: Undo) -> dict[str, object]:
    return {
        "id": found.id,
        "undoes": found.act,
        "takeback": found.takeback,
        "at": found.at,
        "result": found.result,
        "note": found.note,
        "evidence": dict(found.evidence),
    }
