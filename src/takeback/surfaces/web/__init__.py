"""The timeline in a browser (`takeback web`). Needs the extra takeback[web]; loaded by that verb alone.

    server ── guard (who may ask) ──┬─ GET   site (which view) ── frame, listing, strip, details (how it looks)
                                    └─ POST  changes ── proposals, settling (what is asked) ── results (what came of it)

What is read goes through takeback.show.timeline; what is said through the shared words. All text gets into a
page through html.py, which escapes it.
"""
