"""Functions of a harness: what one did is taken back by another, called by its importable name with JSON arguments.

    {"function": "shop.orders:cancel", "kwargs": {"order": "o_17"}}
    "probe"        the name of a function that says, given the same arguments, whether it took effect: True or False
    "idempotent"   calling it twice does nothing more, within "idempotent_for" seconds

The inverse is data, so that another process can run it tomorrow; but what lies in a journal never decides which code
runs. A function is called only if this process registered it (`@takeback.tool`, `step.do`) or the user's own settings
list it, and then it is never imported from the project, which an agent can write. Nothing is ever pickled.

It returns: done. It raises takeback.NotDone: failed, and it may be called again. It raises anything else: it may have
acted in part, so nobody knows — unless it was recorded as idempotent: then it failed, and calling it again is safe.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.machinery
import importlib.util
import inspect
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from takeback.errors import NotDone, TakebackError, UsageError
from takeback.model.effects import DONE, FAILED, UNKNOWN
from takeback.model.outside import KEY_LASTS, Answer, Credential, Inverse, World, is_key_known
from takeback.privacy import redact
from takeback.system import processes

OP = "call"
_MAIN = "__main__"
_EXCERPT = 2000  # characters of what a function returned
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_KEYS = {"function", "kwargs", "probe", "idempotent", "idempotent_for", "program"}
_registered: dict[str, Callable[..., Any] | None] = {}  # None: by name alone, and imported when it is needed
_importing = threading.RLock()


def register(function: str | Callable[..., Any]) -> str:
    """Lets this process call a function to take something back; returns the name it has in the journal."""
    if isinstance(function, str):
        if not _NAME.fullmatch(function):
            raise UsageError(f"{function!r} names no function", "write package.module:function")
        module, _, attribute = function.partition(":")
        _must_exist(module, attribute)
        _registered.setdefault(_known_as(module, attribute), None)
        return _known_as(module, attribute)
    module, attribute = getattr(function, "__module__", "") or "", getattr(function, "__qualname__", "")
    if not callable(function) or not _NAME.fullmatch(f"{module}:{attribute}"):
        raise UsageError(
            f"{getattr(function, '__qualname__', function)!r} cannot be found again by its name",
            "an undo is a function of a module, not a lambda, a method or a function inside another",
        )
    name = _known_as(module, attribute)
    _registered[name] = function
    return name


def _known_as(module: str, attribute: str) -> str:
    """The name of a function for other processes too: a program that was started by its module's name has that one."""
    if module == _MAIN:
        spec = getattr(sys.modules.get(_MAIN), "__spec__", None)
        module = spec.name if spec is not None else _MAIN
    return f"{module}:{attribute}"


def program() -> str:
    """What tells the program that runs here from another: its file; without one, the process itself."""
    file = getattr(sys.modules.get(_MAIN), "__file__", None)
    return os.path.realpath(file) if file else f"process {os.getpid()}.{processes.started(os.getpid())}"


def _must_exist(module: str, attribute: str) -> None:
    """Refuses the name of a function that is not there. What is being imported just now may still come to have it."""
    found = sys.modules.get(module)
    if found is None:
        try:
            found = importlib.import_module(module)
        except ImportError as error:
            if _is_there(module):  # two modules that import each other: it is found once both are there
                return
            raise UsageError(
                f"{module}:{attribute} names no function: there is no module {module} ({error})",
                "mend the name, or install the module where this runs",
            ) from error
        except Exception as error:  # a module may do anything when it is imported
            raise UsageError(
                f"{module}:{attribute} cannot be used: importing {module} raised {type(error).__name__}: {error}",
                "mend the module",
            ) from error
    is_complete = not getattr(getattr(found, "__spec__", None), "_initializing", False)
    if is_complete and not callable(getattr(found, attribute, None)):
        above = " above what declares it" if module == _MAIN else ""
        raise UsageError(
            f"{module}:{attribute} names no function of {module}", f"mend the name, or write the function{above}"
        )


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def registered(name: str) -> Callable[..., Any] | None:
    """A function that is registered; None as long as its module is not there, or lacks it."""
    found = _registered.get(name)
    if found is None and name in _registered:
        module, _, attribute = name.partition(":")
        found = getattr(sys.modules.get(module), attribute, None)
    return getattr(found, "__takeback_plain__", found)


class Python:
    """Calls a registered function as the inverse of another."""

    name = "python"
    runs_code = True

    def __init__(self, world: World) -> None:
        self._world = world

    # -- recording ------------------------------------------------------------

    def check(self, inverse: Inverse) -> Inverse:
        if inverse.op != OP:
            raise UsageError(f"a function cannot {inverse.op!r}", f"the operation is {OP!r}")
        given = dict(inverse.args)
        if unknown := sorted(str(name) for name in given if name not in _KEYS):
            raise UsageError(f"an undo has no {', '.join(unknown)}", f"it may have {', '.join(sorted(_KEYS))}")
        args: dict[str, Any] = {"function": _name(given.get("function")), "kwargs": as_json(given.get("kwargs") or {})}
        if not isinstance(args["kwargs"], dict):
            raise UsageError("the arguments of an undo are named", 'such as {"order": "o_17"}')
        if found := redact.secret_at(args["kwargs"], names=False):
            raise UsageError(
                f"the arguments of an undo hold {found} itself",
                "put it into an environment variable and write ${env:NAME} in its place",
            )
        if given.get("probe") is not None:
            args["probe"] = _name(given["probe"])
        if any(args.get(part, "").startswith(f"{_MAIN}:") for part in ("function", "probe")):
            args["program"] = str(given.get("program") or program())  # every program has a __main__ of its own
        if given.get("idempotent"):
            if given["idempotent"] is not True:
                raise UsageError("idempotent is true or false", "say true only if calling it twice does nothing more")
            args["idempotent"] = True
            lasts = given.get("idempotent_for", KEY_LASTS)
            if isinstance(lasts, bool) or not isinstance(lasts, int | float) or lasts <= 0:
                raise UsageError("idempotent_for is a number of seconds above 0", "such as 86400")
            args["idempotent_for"] = float(lasts)
        return Inverse(OP, args)

    def describe(self, inverse: Inverse) -> str:
        args = self.check(inverse).args
        shown = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in args["kwargs"].items())
        if not shown.isprintable():  # what cannot be seen is spelled out
            shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
        probe = f" · probe: {args['probe']}, with the same" if "probe" in args else ""
        of = f" of {args['program']}" if "program" in args else ""
        return redact.text(f"{args['function']}({shown}){of}{probe}")

    def credentials(self, inverse: Inverse) -> tuple[Credential, ...]:
        try:
            args = self.check(inverse).args
        except UsageError:
            return ()  # it is not called as it is
        origin = f"python://{args['function']}"
        bound = self._world.settings.credentials
        wanted = [Credential(name, origin) for name in sorted(redact.references(args["kwargs"]))]
        return tuple(c for c in wanted if origin not in bound.get(c.name, ()) and c not in self._world.allowed)

    # -- calling --------------------------------------------------------------

    def run(self, inverse: Inverse, key: str) -> Answer:
        args = self.check(inverse).args  # again: a journal can be written by others
        function = self._load(args["function"], str(inverse.args.get("program", "")))
        kwargs, secrets = self._filled(inverse, args["kwargs"])
        _must_take(function, args["function"], kwargs)
        try:
            returned = _call(function, kwargs)
        except NotDone as error:
            return Answer(FAILED, redact.text(error.message, secrets))
        except (Exception, SystemExit) as error:
            told = redact.text(f"it raised {type(error).__name__}: {error}"[:_EXCERPT], secrets)
            return Answer(FAILED if args.get("idempotent") else UNKNOWN, told)
        return Answer(DONE, "", _evidence(returned, secrets))

    def probe(self, inverse: Inverse) -> bool | None:
        args = self.check(inverse).args
        if "probe" not in args:
            return None
        try:
            function = self._load(args["probe"], str(inverse.args.get("program", "")))
            said = _call(function, self._filled(inverse, args["kwargs"])[0])
        except (Exception, SystemExit):
            return None
        return said if isinstance(said, bool) else None

    def may_repeat(self, inverse: Inverse, sent_at: float) -> bool:
        return is_key_known(inverse, sent_at, self._world.clock())

    def _filled(self, inverse: Inverse, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """The arguments with their credentials in place, and what those are."""
        if unbound := self.credentials(inverse):
            raise TakebackError(
                f"nobody let {unbound[0].name} go to {unbound[0].origin}", "bind it in your own settings, or approve it"
            )
        environ = self._world.environ
        names = sorted(redact.references(kwargs))
        for name in names:
            if name not in environ:
                raise TakebackError(f"{name} is not set, and the undo needs it", "set it, then run this again")
        filled = _mapped(kwargs, lambda text: redact.REFERENCE.sub(lambda found: environ[found[1]], text))
        return filled, [environ[name] for name in names]

    def _load(self, name: str, of: str) -> Callable[..., Any]:
        """A function by its name; from code this process vouches for, or from an installed module the user lists. One
        of a program itself is called by that program alone."""
        if name.startswith(f"{_MAIN}:") and of != program():
            raise TakebackError(
                f"{name.partition(':')[2]} is a function of {of or 'another program'}, and this is {program()}: it was "
                "not called; run that program to take it back",
                "for other programs, put the undo into a module of its own",
            )
        found = _registered.get(name)
        if found is None:
            module, _, attribute = name.partition(":")
            if name in _registered:
                found = getattr(_imported(module), attribute, None)
            elif name in self._world.settings.functions:
                found = getattr(_imported_elsewhere(module, self._world.root), attribute, None)
            else:
                raise TakebackError(
                    f"{name} is not registered in this process, so it is not called",
                    f"run this in the harness that has it, or list it in your settings: python.functions = [{name!r}]",
                )
        if found is None or not callable(found):
            raise TakebackError(f"there is no function {name}", "put it back, or take the effect back by hand")
        plain: Callable[..., Any] = getattr(found, "__takeback_plain__", found)  # an undo is not itself journaled
        return plain


def as_json(value: Any) -> Any:
    """The value as JSON has it; UsageError if it has none."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"{type(value).__name__} cannot be kept as JSON ({error})",
            "use text, numbers, lists and dicts",
        ) from error


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise UsageError(f"{value!r} names no function", "write package.module:function")
    return value


def _call(function: Callable[..., Any], kwargs: Mapping[str, Any]) -> Any:
    """Calls it; one that is async runs to its end in a loop of its own."""
    if not inspect.iscoroutinefunction(function):
        return function(**kwargs)
    with ThreadPoolExecutor(1) as thread:  # there may be a running loop in this one
        return thread.submit(lambda: asyncio.run(function(**kwargs))).result()


def _must_take(function: Callable[..., Any], name: str, kwargs: Mapping[str, Any]) -> None:
    """Refuses a call that could not even begin."""
    if why := mismatch(function, kwargs):
        raise TakebackError(f"{name} does not take these arguments: {why}", "mend the function, then run this again")


def mismatch(function: Callable[..., Any], names: Mapping[str, Any]) -> str:
    """Why a function cannot be called with arguments of these names; empty if it can."""
    try:
        inspect.signature(function).bind(**names)
    except TypeError as error:
        return str(error)
    except ValueError:  # written in C, and silent about it
        pass
    return ""


def _evidence(returned: Any, secrets: list[str]) -> dict[str, Any]:
    if returned is None:
        return {}
    try:
        told = json.dumps(returned, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return {}
    return {"returned": redact.text(told, secrets)[:_EXCERPT]}


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """JSON with every text in it changed, names of fields left as they are."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _mapped(inner, change) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(inner, change) for inner in value]
    return value


# -- importing --------------------------------------------------------------------


def _imported(module: str) -> Any:
    if module in sys.modules:
        return sys.modules[module]
    try:
        return importlib.import_module(module)
    except Exception as error:
        raise _no_module(module, error) from error


def _imported_elsewhere(module: str, root: Path) -> Any:
    """A module that does not come from the project, however the import path was set."""
    real = os.path.realpath(root)
    if module == _MAIN:
        raise TakebackError("__main__ is another program in every process", "put the undo into a module")
    with _importing, _path_without(real):
        parts = module.split(".")
        for depth in range(1, len(parts) + 1):
            name = ".".join(parts[:depth])
            try:
                spec = getattr(sys.modules[name], "__spec__", None) if name in sys.modules else _found(name)
            except Exception as error:
                raise _no_module(name, error) from error
            if spec is None or any(_is_inside(place, real) for place in _places(spec)):
                why = "lies in the project, which an agent can write" if spec else "is not installed"
                raise TakebackError(f"{name} {why}, so it is not imported", "install it outside the project")
            try:
                importlib.import_module(name)
            except Exception as error:
                raise _no_module(name, error) from error
        return sys.modules[module]


def _found(name: str) -> importlib.machinery.ModuleSpec | None:
    return importlib.util.find_spec(name)


def _places(spec: importlib.machinery.ModuleSpec) -> list[str]:
    found = [spec.origin] if spec.origin and spec.has_location else []
    return [*found, *(spec.submodule_search_locations or ())]


def _is_inside(path: str, real: str) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(real)


@contextlib.contextmanager
def _path_without(real: str) -> Iterator[None]:
    before = list(sys.path)
    sys.path[:] = [entry for entry in before if not _is_inside(entry or ".", real)]
    try:
        yield
    finally:
        sys.path[:] = before


def _no_module(name: str, error: Exception) -> TakebackError:
    return TakebackError(
        f"{name} cannot be imported ({type(error).__name__}: {error})", "install it where this runs, then try again"
    )
