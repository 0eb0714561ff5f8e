"""The resident process: workspaces kept open and trees watched, so that a hook costs little more than its start."""
