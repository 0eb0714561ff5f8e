"""Real servers on loopback that keep state, and misbehave when asked to."""
