"""takeback inside other programs' frameworks: one file each, loaded only by who has that framework."""
