"""run: a command, with a checkpoint before it and all it changed as one turn after it."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from takeback.agents.sessions.conversation import titled
from takeback.domains.git.repository import amount
from takeback.errors import TakebackError, UsageError
from takeback.look import runs_at_work
from takeback.model.effects import DONE, domain_of, raw, text
from takeback.run import elsewhere, landlock
from takeback.run.command import in_words
from takeback.run.isolate import Layer
from takeback.store import layout
from takeback.surfaces.cli import approving, who_is_looking
from takeback.surfaces.cli.captured import lacking, with_progress
from takeback.surfaces.resident import starting
from takeback.surfaces.wording import diffs
from takeback.surfaces.wording.text import counted, listed, safe
from takeback.system import processes

from . import init

if TYPE_CHECKING:
    from pathlib import Path

    from takeback.model.effects import Checkpoint
    from takeback.run.command import Ended, Mask, Prepare
    from takeback.run.elsewhere import Elsewhere
    from takeback.run.isolate import Layer
    from takeback.show.turns import TurnSeen
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.workspace import Workspace

VARIABLE = "TAKEBACK_RUN"  # tells the command which run it is part of
_AGENTS = {"claude", "codex", "gemini", "copilot", "qwen", "opencode", "cursor-agent"}  # programs with hooks of ours
_MOST_LINES = 400  # of a diff
_MOST_PATHS = 10  # outside the project
_MOST_TURNS = 10  # of agents below it


def add(parser: Parser) -> None:
    parser.synopsis = "[--isolate [--keep | --drop]] -- CMD…"
    parser.about = (
        "Takes a checkpoint, runs the command and journals what it changed as one turn: `takeback\n"
        "undo` takes back exactly this run. Input, output, signals and exit code are the command's;\n"
        "takeback speaks on standard error. The command cannot write to takeback's own store.\n"
        "With --isolate it works over a layer of its own, and the project stays as it is until you\n"
        "have seen the diff and keep it (Linux). See docs/run.md."
    )
    parser.takes("-- CMD…", "words", nargs="*", help="the command and its arguments")
    parser.takes("--isolate", "--isolate", action="store_true", help="over a private layer; then ask: keep or drop")
    parser.takes("--keep", "--keep", action="store_true", help="answer beforehand: keep what it did")
    parser.takes("--drop", "--drop", action="store_true", help="answer beforehand: drop it, after showing the diff")
    parser.has_after = True
    parser.examples = [
        ("takeback run -- npm run migrate", "then takeback undo, if you do not like it"),
        ("takeback run --isolate -- ./codemod.sh", "look first, then keep it or drop it"),
        ("takeback run --isolate --drop -- make clean", "what would it do?"),
    ]


def run(context: Context, args: Namespace) -> int:
    _must_make_sense(context, args)
    context.terminal.leave_output()
    argv: list[str] = args.after
    environ = _environ(context, args)
    home = os.path.realpath(context.settings().home)
    if (outer := _outer(context)) and not args.isolate:
        context.terminal.hint(f"takeback: part of the run {outer[:8]}, which journals what this changes")
        return _within(context, argv, environ)
    workspace, _ = init.ensure(context)
    with workspace:
        _finish_layers(context, workspace)
        command = in_words(argv)
        before = _before(context, workspace, command)
        _have_resident(context, workspace, argv)
        environ[VARIABLE] = before.id
        how = _Isolated if args.isolate else _Plain
        return how(context, args, workspace, before, command, home).run(argv, environ)


def _have_resident(context: Context, workspace: Workspace, argv: list[str]) -> None:
    """The hooks of an agent below cannot write to the store, but a process that was there before can."""
    if workspace.store.journal.last("turn") is None and not _AGENTS & {os.path.basename(word) for word in argv}:
        return
    try:
        starting.ensure(context.environ, str(context.cwd))
    except (OSError, TakebackError):
        return  # then this run is captured as a whole, and not call by call


def _must_make_sense(context: Context, args: Namespace) -> None:
    if context.json:
        raise UsageError(
            "run has no --json: standard output is the command's", "takeback log --json tells afterwards what it did"
        )
    if args.words or not args.after:
        words = [*args.words, *args.after] or ["CMD"]
        raise UsageError("run needs a command after --", f"takeback run -- {safe(' '.join(words))}")
    if (args.keep or args.drop) and not args.isolate:
        raise UsageError("--keep and --drop answer what --isolate asks", "add --isolate, or leave them out")
    if args.keep and args.drop:
        raise UsageError("--keep and --drop exclude each other", "choose one")


def _environ(context: Context, args: Namespace) -> dict[str, str]:
    found = dict(context.environ)
    if args.directory:
        found["PWD"] = str(context.cwd)
    return found


def _outer(context: Context) -> str:
    """The run that this one is part of: it is still at work on the same project."""
    id = context.environ.get(VARIABLE, "")
    if not id.isalpha() or not id.isascii():
        return ""
    settings = context.settings()
    root = layout.find_root(settings.home, context.cwd)
    if root is None:
        return ""
    folder = layout.folder_of(settings.home, root)
    marks = (
        runs_at_work.folder_in(folder) / id,
        runs_at_work.folder_in(folder, True) / id,
        folder / "staging" / id / "lock",
    )
    return id if any(map(runs_at_work.is_alive, marks)) else ""


def _agent(context: Context, workspace: Workspace) -> str:
    """The agent that runs it; empty where a person does."""
    found = processes.agent_named(approving.sessions_known(context, workspace), context.environ)
    return titled(found) or found


def _within(context: Context, argv: list[str], environ: dict[str, str]) -> int:
    from takeback.run.command import deaf, run

    context.must_be_on(context.settings(context.root()))
    with deaf() as mask:
        return _told(context, run(argv, environ, lambda: "", mask))


def _finish_layers(context: Context, workspace: Workspace) -> None:
    if results := workspace.finish_layers():
        done = [text(r.path) for r in results if r.result == DONE]
        context.terminal.warn(f"takeback: finished keeping what an earlier isolated run did: {listed(done)}")


def _before(context: Context, workspace: Workspace, command: str) -> Checkpoint:
    checkpoint = with_progress(context, workspace, lambda: workspace.checkpoint(f"before: {command}"))
    context.terminal.hint(f'takeback: checkpoint {checkpoint.id[:8]} "{safe(checkpoint.label)}"')
    lacking(context, checkpoint.partial, "this checkpoint is partial")
    for path, why in checkpoint.too_large[:5]:
        context.terminal.warn(f"  not captured: {safe(path)}, {safe(why)}")
    return checkpoint


def _told(context: Context, ended: Ended) -> int:
    if ended.failure:
        context.terminal.warn(f"takeback: {safe(ended.failure)}")
    return ended.code


class _Plain:
    """The command works on the project itself."""

    def __init__(
        self, context: Context, args: Namespace, workspace: Workspace, before: Checkpoint, command: str, home: str
    ) -> None:
        self.context = context
        self.terminal = context.terminal
        self.args = args
        self.workspace = workspace
        self.before = before
        self.command = command
        self.home = home
        self.agent = _agent(context, workspace)

    def run(self, argv: list[str], environ: dict[str, str]) -> int:
        from takeback.run import command as run

        with run.deaf() as mask:
            with runs_at_work.mark(runs_at_work.folder_in(self._store(), bool(self.agent)) / self.before.id):
                ended = self._start(argv, environ, lambda: run.shield(self.home, str(self.workspace.root)), mask)
            code = _told(self.context, ended)
            return code if not ended.ran else self._after(code)

    def _store(self) -> Path:
        assert self.workspace.store.folder is not None
        return self.workspace.store.folder

    def _start(self, argv: list[str], environ: dict[str, str], prepare: Prepare, mask: Mask) -> Ended:
        from takeback.run import command as run

        if not landlock.abi():
            self._unshielded("this kernel has no Landlock")
        sys.stderr.flush()
        ended = run.run(argv, environ, prepare, mask)
        if ended.note and landlock.abi():
            self._unshielded(ended.note)
        return ended

    def _unshielded(self, why: str) -> None:
        self.terminal.warn(f"takeback: the store is not shielded from the command: {safe(why)}")

    def _after(self, code: int) -> int:
        try:
            after, changed = self.workspace.ran(self.before, self.command, self.agent)
        except TakebackError as error:
            self.terminal.warn(f"takeback: what the command changed is not journaled yet: {safe(error.message)}")
            self.terminal.warn(f"  → {safe(error.hint)}; the next checkpoint finds it")
            return code or 1
        turns = self._turns()
        self._tell_turns(turns)
        if changed:
            besides = "besides, " if turns else ""
            self.terminal.hint(f"takeback: {besides}{_counted(changed)}; take it back: takeback undo")
        elif not turns:
            self.terminal.hint("takeback: no file changed")
        lacking(self.context, after.partial, "not everything was captured")
        return code

    def _turns(self) -> list[TurnSeen]:
        """What agents with hooks did in it, oldest first: their calls are journaled as their own turns."""
        from takeback.show import turns

        history = self.workspace.history()
        mine = [turn for turn in history.agent_turns.values() if turn.caller.run == self.before.id]
        return turns.turns_seen(history, mine, self.workspace.store.blobs.get, count=0)

    def _tell_turns(self, turns: list[TurnSeen]) -> None:
        for turn in turns[:_MOST_TURNS]:
            asked = f" “{safe(turn.prompt)}”" if turn.prompt else ""
            self.terminal.hint(f"takeback: {safe(turn.agent)}, turn {turn.id[:8]}{asked}: {_did(turn)}")
        if turns:
            more = len(turns) - _MOST_TURNS
            said = f"{counted(more, 'more turn')}; " if more > 0 else ""
            agents = " or ".join(f"takeback log session:{safe(s)}" for s in dict.fromkeys(t.session for t in turns))
            self.terminal.hint(f"takeback: {said}all of it: {agents}; take one back: takeback undo TURN")


class _Isolated(_Plain):
    """The command works on a layer over the project, which is kept or dropped afterwards."""

    _elsewhere: Elsewhere

    def run(self, argv: list[str], environ: dict[str, str]) -> int:
        from takeback.run import command as run

        layer = Layer(self._store(), self.before.id, str(self.workspace.root), self.home)
        try:
            layer.prepare()
            with runs_at_work.mark(layer.folder / "lock"):
                with run.deaf() as mask:
                    begun = time.time_ns()
                    ended = self._start(argv, environ, layer.enter, mask)
                    over = time.time_ns()
                    code = _told(self.context, ended)
                if not ended.ran:
                    if code == 1:
                        self.terminal.warn("  → run it without --isolate: takeback undo takes it back as well")
                    return code
                layer.entered()
                ours = (str(self.workspace.root), self.home)
                self._elsewhere = elsewhere.changed(elsewhere.places(environ, argv), ours, begun, over)
                return self._decide(layer, code)
        finally:
            layer.close()
            if layer.folder.exists() and not (layer.folder / "summary").exists():
                layer.drop()

    def _decide(self, layer: Layer, code: int) -> int:
        found, files = self.workspace.layer_found(layer, self.before)
        if not files and not found.uncovered:
            self.terminal.hint("takeback: no file of the project changed")
            self._tell_elsewhere()
            return code
        if not self.terminal.quiet or self._asks:
            mask = who_is_looking.Mask(self.context, self.workspace)
            self._show(list(diffs.lines(self.terminal, mask.files(files))), diffs.totals(self.terminal, files))
            mask.tell()
        if found.uncovered:
            self.terminal.warn(f"takeback: not covered, so it is not kept: {listed(found.uncovered)}")
        self._tell_elsewhere()
        if not self._answer():
            return code
        from takeback.run import command as run

        with run.deaf():
            return self._keep(layer, code)

    def _tell_elsewhere(self) -> None:
        """What was written outside the project stays, whether the rest is kept or dropped."""
        paths, is_whole = self._elsewhere
        if paths:
            self.terminal.warn(
                f"takeback: written outside the project while it ran, by it or by others: {listed(paths, _MOST_PATHS)}"
            )
            self.terminal.warn("  → that is neither isolated nor captured: it stays, and takeback cannot undo it")
        if not is_whole:
            self.terminal.hint("takeback: not every place outside the project could be looked through in time")

    def _show(self, lines: list[str], totals: str) -> None:
        for line in lines[:_MOST_LINES]:
            self.terminal.write(line)
        if len(lines) > _MOST_LINES:
            self.terminal.write(f"… {len(lines) - _MOST_LINES:,} more lines")
        self.terminal.write(totals)
        self.terminal.err.flush()

    @property
    def _asks(self) -> bool:
        return self.terminal.interactive and not self.args.keep and not self.args.drop

    def _answer(self) -> bool:
        """Whether to keep it; anything but a plain yes is a no."""
        if self.args.keep:
            return True
        if not self._asks:
            how = "" if self.args.drop else ", since nobody can be asked here; with --keep it is kept"
            self.terminal.hint(f"takeback: dropped{how}; the project is as it was")
            return False
        try:
            kept = self.terminal.ask("Keep it? [keep/DROP]").lower() in ("k", "keep")
        except KeyboardInterrupt:
            self.terminal.write()
            kept = False
        if not kept:
            self.terminal.hint("takeback: dropped; the project is as it was")
        return kept

    def _keep(self, layer: Layer, code: int) -> int:
        results = self.workspace.keep_layer(layer, self.before, self.command)
        (layer.folder / "summary").unlink(missing_ok=True)  # it is done: nothing to finish
        done = [text(r.path) for r in results if r.result == DONE]
        if done:
            self.terminal.hint(
                f"takeback: kept {counted(len(done), 'path')}: {listed(done)}; take it back: takeback undo"
            )
        for result in results:
            if result.result != DONE:
                self.terminal.warn(f"takeback: not kept: {safe(text(result.path))}: {safe(result.note)}")
        return code if len(done) == len(results) else code or 3


def _did(turn: TurnSeen) -> str:
    """'3 calls: a.txt, b.txt; in git main; 1 outside the files'"""
    told = [listed(turn.files)] if turn.files else []
    told += [f"in git {safe(turn.git)}"] if turn.git else []
    told += [f"{turn.outside:,} outside the files"] if turn.outside else []
    told += [f"{turn.failed:,} outside the files failed"] if turn.failed else []
    return f"{counted(turn.calls, 'call')}: {'; '.join(told) or 'no file changed'}"


def _counted(paths: list[str]) -> str:
    """'3 paths changed: a, b, c; in git main, 2 index entries'"""
    git = [path for path in map(raw, paths) if domain_of(path) == "git"]
    files = [path for path in paths if domain_of(raw(path)) == "files"]
    told = [f"{counted(len(files), 'path')} changed: {listed(files)}"] if files else []
    return "; ".join([*told, *([f"in git {safe(amount(git))} changed"] if git else [])])
