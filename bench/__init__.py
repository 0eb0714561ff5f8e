"""How fast takeback is, as ratios against a shadow git repository in one interleaved run.

__main__ ─► rounds (one tree size)  ─► shadow_git, library (─► worker, a process of its own)
         ─► command, memory         ─► report, plot
"""
