"""The timeline in a terminal (`takeback ui`). Needs the extra takeback[ui]; loaded by that verb alone.

    browser ── listing (the list) ── item_pane (the item at its cursor) ── filter_box
      ├─ app      the timeline, and every way to act on it ─┐
      └─ picker   checkpoints, and going back to one ───────┴─ planning (plan, yes, progress, result)

What is read goes through takeback.show.timeline; what is said through the words of the command line.
"""
