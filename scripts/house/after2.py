from pathlib import Path
exec(Path("scripts/house/after.py").read_text().split("sub(\"__init__")[0])
sub("surfaces/cli/__init__.py", ("from takeback.surfaces.cli.verbs.outside.hook import respond\n", ""), ('''        return respond(rest, os.environ)
''', '''        code: int = module_of(verb).respond(rest, os.environ)
        return code
'''), ("    from .parsing import module_of, parse\n\n", ""), ("from .terminal import Terminal\nfrom .verb_list", "from .parsing import module_of, parse\nfrom .terminal import Terminal\nfrom .verb_list"))

sub("tests/surfaces/cli/ready.py", ('_NOT_READY = ("__main__", "integrations", "mcp", "reference", "ui", "web")', '_NOT_READY = {"__main__", "integrations", "mcp", "reference", "tui", "ui", "web"}'), ("""    from takeback import capture, domains
""", ""), ("""    from takeback.surfaces import cli
    from takeback.system import safefs

    for package in (takeback, capture, domains, safefs, cli):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if module.name.rpartition(".")[2] not in _NOT_READY:
                importlib.import_module(module.name)
""", """    from takeback.surfaces import cli

    for module in pkgutil.walk_packages(takeback.__path__, "takeback."):
        if not _NOT_READY & set(module.name.split(".")):
            importlib.import_module(module.name)
"""))
