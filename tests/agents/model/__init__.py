"""A model that says what a test wrote down for it, so that real agents can be driven without an account.

    Model([Turn("I write.", [Use("Write", {...})]), Turn("done")]) ─► http://127.0.0.1:PORT ─► the agent

It speaks the four languages that the agents speak: see languages.py.
"""

from .server import Model, Seen
from .turns import Turn, Use

__all__ = ["Model", "Seen", "Turn", "Use"]
