from pathlib import Path
S = Path("src/takeback")
def sub(path, *pairs):
    p = S / path if not path.startswith("tests") and not path.startswith("scripts") else Path(path)
    t = p.read_text()
    for a, b in pairs:
        assert a in t, (path, a)
        t = t.replace(a, b)
    p.write_text(t)
sub("__init__.py", ('"Step"), "effects")', '"Step"), "model.effects")'), ('"Status"), "views")', '"Status"), "show.views")'),
    ('"Conversation"), "conversation")', '"Conversation"), "harness.conversation")'), ('"tool"), "doing")', '"tool"), "harness.recorder")'), ('"WorkStep"), "steps")', '"WorkStep"), "harness.steps")'))
sub("surfaces/cli/parsing.py", ('''def module_of(verb: str) -> ModuleType:
    return __import__(f"{__package__}.{verb}", fromlist=["run"])
''', '''def module_of(verb: str) -> ModuleType:
    """The module of a verb: it lies in the folder of its group. Loaded when the verb is asked for."""
    return import_module(f"takeback.surfaces.cli.verbs.{VERBS[verb][0]}.{verb}")
'''), ("from types import SimpleNamespace\n", "from importlib import import_module\nfrom types import SimpleNamespace\n"))
sub("gate/code/inputs.py", ('with_name("code.toml")', 'with_suffix(".toml")'))

p = S / "show/report.py"; t = p.read_text()
import re
t = re.sub(r"(item\.stands != timeline_items\.NONE, well,) item\.took,\n( +)", r"\1\n\2item.took, ", t)
p.write_text(t)
