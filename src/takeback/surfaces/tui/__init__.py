"""The timeline in a terminal (`takeback ui`). Needs the extra takeback[ui]; loaded by that verb alone.

    app ── timeline (the list) ── detail (the item) ── planning (plan, yes, progress, result)

What is read goes through takeback.timeline; what is said through the words of the command line.
"""
