"""How a person makes an agent forget a turn: takeback brings the project back, the conversation is the agent's own."""

from __future__ import annotations

# In words that follow "in Claude Code:"; each leaves the files as they are, or says so.
WAYS = {
    "claude": ("Claude Code", "press Esc twice, pick the prompt, restore the conversation only"),
    "codex": ("Codex", "press Esc twice, step back to the prompt with Esc, then Enter"),
    "gemini": ("Gemini CLI", "press Esc twice (or /rewind), pick the prompt, “Rewind conversation”, not the code"),
    "qwen": ("Qwen Code", "press Esc twice (or /rewind), pick the prompt, “Restore conversation only”"),
    "copilot": ("Copilot CLI", "type /rewind, pick the prompt, the conversation only"),
    "opencode": ("opencode", "type /undo, which puts back its own copies of files too; then look at takeback status"),
    "cursor": ("Cursor", "edit and resend the message before it, and keep the files when it asks"),
}


def titled(title: str) -> str:
    """The agent that calls itself so; empty where none does."""
    return next((agent for agent, (name, _) in WAYS.items() if name == title), "")


def way_to_forget(agent: str) -> str:
    """What to do in an agent so that it forgets a turn; empty where nobody knows."""
    title, way = WAYS.get(agent, ("", ""))
    return f"in {title}: {way}" if way else ""
