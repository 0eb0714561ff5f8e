"""Which names of the journal each verb can be given, for completion."""

from __future__ import annotations

NAMED = {  # verb → kinds of journal rows it can be given
    "show": ("checkpoint", "change", "act", "takeback", "turn", "open"),
    "diff": ("checkpoint",),
    "report": ("checkpoint", "change", "act", "takeback", "turn", "open"),
    "rollback": ("checkpoint", "change", "act", "turn", "open"),
    "revert": ("change", "act", "takeback", "turn", "open"),
    "restore": ("checkpoint",),
    "apply": ("plan",),
    "approve": ("plan", "note"),
    "resolve": ("act",),
    "label": ("checkpoint",),
    "pin": ("checkpoint",),
    "unpin": ("checkpoint",),
}


AND_PATHS = ("diff", "revert", "restore")


PATHS = "restore:"  # --names restore:CHECKPOINT: the paths it has, those that are gone among them


SESSIONS = "session"  # --names session: of agents
