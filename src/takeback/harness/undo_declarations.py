"""How a harness declares that a tool's outside effect is taken back, and the inverse that comes of it for one call.

    {"http": {"url": "https://pay.example/refunds", "json": {"charge": "{result.id}"}}}    a request
    {"command": ["kubectl", "delete", "pod", "{result.name}"]}                             a program
    {"python": {"function": "shop.orders:cancel", "kwargs": {"order": "{args.order}"}}}    a registered function
    "shop.orders:cancel", or the function itself                                           the same, given `result`
    None                                                                                   it acts on files alone

What was made is often known from the result alone, so an inverse is completed when the call is over. A result says
what is taken back, never where a request goes, which program runs, or which credential it gets.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.domains import command, http, python
from takeback.errors import UsageError
from takeback.model.outside import Inverse
from takeback.privacy import redact

from .recorder import REFERENCE, filled, refuse_misspelled

if TYPE_CHECKING:
    from takeback.workspace import Workspace

Undo = Mapping[str, Any] | str | Callable[..., Any] | None
_HOW = 'such as {"http": {"url": …}}, {"command": […]}, or the name of a function'
_ORIGIN = re.compile(r"https?://[^/?#{}]+", re.IGNORECASE)


class Declared(NamedTuple):
    """How a tool is taken back, whatever it is called with."""

    domain: str  # http, command or python; empty if it does nothing beyond the files
    args: Mapping[str, Any] = {}
    target: str = ""  # what it touches, for what depends on it

    @property
    def needs_result(self) -> bool:
        return any(found[0] == "result" for found in REFERENCE.findall(json.dumps(dict(self.args), default=str)))

    def inverse(self, workspace: Workspace, args: Mapping[str, Any], result: Any = None) -> Inverse:
        """What takes one call back; UsageError if its result does not hold what the undo refers to."""
        known = {"args": args, "result": plain(result)}
        if self.domain == "http":
            return _request(workspace, self.args, known)
        if self.domain == "command":
            words = [_word(word, known) for word in self.args.get("argv", ())]
            given = {**self.args, **({"argv": words} if words else {})}
            runner = workspace.outside("command")
            assert isinstance(runner, command.Command)
            return runner.chosen(runner.check(Inverse(command.OP, given)))
        kwargs = python.as_json(filled(self.args["kwargs"], known))
        _refuse_credentials(kwargs, self.args["kwargs"])
        return workspace.outside("python").check(Inverse(python.OP, {**self.args, "kwargs": kwargs}))


def read_all(workspace: Workspace, undo: Mapping[str, Undo]) -> dict[str, Declared]:
    """What a harness declares, by tool name; UsageError where no inverse can ever come of it."""
    if not isinstance(undo, Mapping):
        raise UsageError("undo names tools, each with how it is taken back", 'such as {"charge": {"http": {"url": …}}}')
    found = {tool: read(tool, how) for tool, how in undo.items()}
    for tool, declared in found.items():
        refuse_misspelled(tool, declared.args)
        try:
            _try_out(workspace, declared)
        except UsageError as error:
            raise UsageError(f"the undo of {tool} could never be done: {error.message}", error.hint) from None
    return found


def _try_out(workspace: Workspace, declared: Declared) -> None:
    """The inverse as it would be made of a call that returns whatever is referred to."""
    if not declared.domain:
        return
    # A folder that it runs in may be made later.
    tried = declared._replace(args={name: value for name, value in declared.args.items() if name != "run_in"})
    known: dict[str, Any] = {}
    for kind, path in REFERENCE.findall(json.dumps(dict(tried.args), default=str)):
        inside = known
        names = f"{kind}{path}".split(".")
        for name in names[:-1]:
            below = inside.get(name)
            inside[name] = inside = below if isinstance(below, dict) else {}
        inside.setdefault(names[-1], "x")
    inverse = tried.inverse(workspace, known.get("args", {}), known.get("result"))
    if told := redact.secret_at(inverse.args, names=False):
        raise UsageError(f"it holds {told}", "name an environment variable instead: ${env:NAME}")


def read(tool: str, undo: Undo) -> Declared:
    """A declaration, looked at before anything is called; UsageError if no inverse can ever come of it."""
    if undo is None:
        return Declared("")
    if isinstance(undo, str) or not isinstance(undo, Mapping):
        return Declared("python", _python(tool, {"function": undo}))
    kinds = [kind for kind in ("http", "command", "python") if kind in undo]
    if len(kinds) != 1 or (unknown := set(undo) - {kinds[0], "target"}):
        told = f"nothing is known of {', '.join(sorted(map(str, unknown)))}" if len(kinds) == 1 else "name one way"
        raise UsageError(f"the undo of {tool} cannot be read: {told}", _HOW)
    given, target = undo[kinds[0]], undo.get("target", "")
    if not isinstance(target, str):
        raise UsageError(f"the target of {tool} is no text", "name what it touches")
    return Declared(kinds[0], _READ[kinds[0]](tool, given), target)


def _http(tool: str, given: Any) -> Mapping[str, Any]:
    url = given.get("url") if isinstance(given, Mapping) else None
    if not isinstance(url, str) or not _ORIGIN.match(url):
        raise UsageError(
            f"the undo of {tool} does not say which server it goes to",
            "write its URL from the beginning: a result may fill in its path, never its server",
        )
    return dict(given)


def _command(tool: str, given: Any) -> Mapping[str, Any]:
    args: dict[str, Any] = (
        dict(given) if isinstance(given, Mapping) else {"shell" if isinstance(given, str) else "argv": given}
    )
    words = args.get("argv", ())
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise UsageError(f"the undo of {tool} is no command", 'list its words: ["git", "branch", "-D", "{args.name}"]')
    if REFERENCE.search(str(args.get("shell", ""))):
        raise UsageError(
            f"the undo of {tool} would put a result into a shell's line, which could say anything there",
            "list the command's words instead: each reference stays one word",
        )
    if words and REFERENCE.search(words[0]):
        raise UsageError(f"the undo of {tool} would let a result name the program", "name the program itself")
    return args


def _python(tool: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or not given.get("function"):
        raise UsageError(f"the undo of {tool} names no function", 'such as {"function": "shop.orders:cancel"}')
    args: dict[str, Any] = {"kwargs": {"result": "{result}"}, **given}
    args["function"] = name = python.register(given["function"])
    function, kwargs = python.registered(name), args["kwargs"]
    if not isinstance(kwargs, Mapping):
        raise UsageError(f"the arguments of the undo of {tool} are named", 'such as {"order": "{args.order}"}')
    if function is not None and (why := python.mismatch(function, kwargs)):
        raise UsageError(
            f"the undo of {tool} cannot be called: {name} does not take {', '.join(kwargs) or 'no arguments'} ({why})",
            'name its arguments in kwargs, such as {"order": "{args.order}"}',
        )
    if given.get("probe") is not None:
        args["probe"] = python.register(given["probe"])
    return args


_READ: Mapping[str, Callable[[str, Any], Mapping[str, Any]]] = {"http": _http, "command": _command, "python": _python}


# -- completing ------------------------------------------------------------------


def _request(workspace: Workspace, given: Mapping[str, Any], known: Mapping[str, Any]) -> Inverse:
    """The request as the domain fills it from an answer: what a result says is escaped where it stands in a URL."""
    origin = _ORIGIN.match(given["url"])
    domain = workspace.outside("http")
    assert origin is not None and isinstance(domain, http.Http)
    try:
        made = http.recorded(domain, "POST", f"{origin[0]}/", response_body=known, inverse=_renamed(given))
    except UsageError as error:  # in the words of the declaration
        raise UsageError(error.message.replace("{response.body.", "{"), error.hint) from None
    assert made.inverse is not None
    return made.inverse


def _renamed(value: Any) -> Any:
    if isinstance(value, str):
        return REFERENCE.sub(lambda found: f"{{response.body.{found[1]}{found[2]}}}", value)
    if isinstance(value, Mapping):
        return {name: _renamed(inner) for name, inner in value.items()}
    return [_renamed(inner) for inner in value] if isinstance(value, list | tuple) else value


def _word(word: str, known: Mapping[str, Any]) -> str:
    made = str(filled(word, known))
    _refuse_credentials(made, word)
    if made != word and made.startswith("-") and not word.startswith("-"):
        raise UsageError(
            f"{word} was filled in as {made!r}, which a program would take for an option", "see its result"
        )
    return made


def _refuse_credentials(made: Any, given: Any) -> None:
    """What a server or a model answered must not be able to ask for a credential."""
    if str(made).count("${") > str(given).count("${"):
        raise UsageError("the result holds a reference to a credential", "it is not filled in")


def plain(result: Any) -> Any:
    """A tool's result as data: an object's fields, and what JSON text says, in the blocks that models are given too."""
    if hasattr(result, "model_dump"):
        result = result.model_dump(mode="json", by_alias=True)
    elif dataclasses.is_dataclass(result) and not isinstance(result, type):
        result = dataclasses.asdict(result)
    if isinstance(result, Mapping) and isinstance(result.get("content"), list):
        structured = result.get("structuredContent") or result.get("structured_content")
        result = structured if structured is not None else result["content"]
    if isinstance(result, list) and len(result) == 1 and hasattr(result[0], "model_dump"):
        result = [result[0].model_dump(mode="json")]
    if isinstance(result, list) and len(result) == 1 and isinstance(result[0], Mapping) and "text" in result[0]:
        result = result[0]["text"]
    if isinstance(result, bytes | str) and result[:1] in ("{", "[", b"{", b"["):
        try:
            return json.loads(result)
        except (ValueError, RecursionError):
            return result
    return result
