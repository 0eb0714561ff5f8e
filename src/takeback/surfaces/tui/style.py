"""How the screen is divided, and how dialogs look."""

CSS = """
Screen { background: $background; }
#top { height: 1; background: $panel; padding: 0 1; }
#panes { layout: vertical; height: 1fr; }
#left { height: 1fr; width: 1fr; }
#right { height: 1fr; width: 1fr; border-top: solid $panel-lighten-2; }
Screen.-wide #panes { layout: horizontal; }
Screen.-wide #left { width: 11fr; }
Screen.-wide #right { width: 9fr; border-top: none; border-left: solid $panel-lighten-2; }
.zoomed { display: none; }
#tabs { height: 1; padding: 0 1; color: $text-muted; link-style: none; link-color: $text-muted; }
#detail { padding: 0 1; height: 1fr; }
#list { height: 1fr; }
#filter { height: 1; border: none; padding: 0 1; background: $boost; display: none; }
#notice { height: auto; max-height: 3; padding: 0 1; display: none; }
#notice.shown { display: block; }
ModalScreen { align: center middle; background: $background 60%; }
.dialog { width: 100%; max-width: 140; height: 90%; margin: 1 2; border: round $primary; background: $surface; }
.dialog { padding: 0 1; }
.dialog.fitting { height: auto; }
.dialog.small { height: auto; max-width: 70; }
.dialog Lines, .dialog Rows { height: 1fr; }
.dialog Input { border: none; height: 1; background: $boost; margin: 0 0 1 0; padding: 0 1; }
.dialog .title { text-style: bold; height: auto; width: 100%; margin: 0 0 1 0; }
.dialog .question { text-style: bold; height: auto; width: 100%; margin: 1 0 0 0; color: $text-warning; }
.dialog Footer { background: $surface; }
"""
