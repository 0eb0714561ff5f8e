"""What a new domain or a new store has to pass: one line of test each."""
