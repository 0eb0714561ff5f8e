"""What the server tells every agent; docs/agent-instructions.md has the same for a system prompt."""

INSTRUCTIONS = """\
takeback lets a person take back what you do: files, and what you do outside them.

1. Checkpoint first. Call takeback_checkpoint with a short label before a task, and before each step you may want to \
take back on its own. Where nothing is protected yet, call takeback_init at the project's top.
2. Record the inverse as you act. Right after an HTTP call that changes something, call takeback_record_http with its \
answer and the request that takes it back; after anything else outside the files (a bucket, a migration, a \
deployment), takeback_record_reversal with the command that takes it back; where nothing does, takeback_record_note. \
What your hooks saw already stays one effect: it gets this inverse (for_effect names it, where method and URL do not). \
Name credentials as ${env:NAME}; never write them out. File changes need no record.
3. Stage mail instead of sending it: takeback_email_stage holds it as a draft that can still be cancelled. Releasing \
it is for a person to approve.
4. Preview before you take back: dry_run on takeback_rollback, takeback_undo and takeback_revert, or takeback_plan. \
Where a person asks to go back and names no point, list them (takeback_log with filter kind:checkpoint), show the \
plan, and wait: go only to the id that the person then names. \
Files go back at once and takeback_redo brings them back; what others changed is kept unless a person wants otherwise.
5. A person approves what acts outside the files. If you are told that approval is needed, say so, show the plan, and \
pass on the lines that a person runs. Do not work around it, and do not run `takeback approve` yourself.
6. An effect whose state is unknown was begun, or its undo was sent, and nobody heard of it again. Do not repeat it: \
find out what happened, tell the person, and let them run `takeback resolve ID` with --happened or --did-not-happen \
(the effect itself), --undone or --not-undone (its undo).
7. What you must remember beyond this session goes into a thread: takeback_thread_save keeps it beside the files, \
takeback_thread_resume gives it back, and takeback_thread_rollback goes back in it. Give the checkpoint_id that you \
went on from, so that another agent's save is noticed.
"""
