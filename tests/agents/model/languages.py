"""How models are spoken to: one class for each programming interface, just wide enough for the agents.

    Messages      POST …/messages                    Claude Code
    Responses     POST …/responses                   Codex
    Completions   POST …/chat/completions            Copilot CLI, Qwen Code, opencode
    Gemini        POST …:streamGenerateContent       Gemini CLI

An answer is one object, or the same as a stream of events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol

from .turns import Turn

Body = dict[str, Any]


class Language(Protocol):
    def tools(self, body: Body) -> list[Any]:
        """The tools that a request offers; one without any is a side question, such as for a title."""

    def whole(self, turn: Turn, key: str, body: Body) -> Body:
        """The answer as one object; `key` is unlike that of any other answer."""

    def events(self, whole: Body) -> Iterator[Body | str]:
        """The answer as it is streamed; an event's name is its `type`, if it has one."""


class Messages:
    def tools(self, body: Body) -> list[Any]:
        return body.get("tools") or []

    def whole(self, turn: Turn, key: str, body: Body) -> Body:
        said = [{"type": "text", "text": turn.text}] if turn.text else []
        used = [
            {"type": "tool_use", "id": f"toolu_{key}_{n}", "name": use.name, "input": use.input}
            for n, use in enumerate(turn.uses)
        ]
        return {
            "id": f"msg_{key}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "scripted"),
            "content": said + used,
            "stop_reason": "tool_use" if used else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    def events(self, whole: Body) -> Iterator[Body | str]:
        yield {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}}
        for n, block in enumerate(whole["content"]):
            if block["type"] == "text":
                empty, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                empty = block | {"input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield {"type": "content_block_start", "index": n, "content_block": empty}
            yield {"type": "content_block_delta", "index": n, "delta": delta}
            yield {"type": "content_block_stop", "index": n}
        stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": stop, "usage": whole["usage"]}
        yield {"type": "message_stop"}


class Responses:
    def tools(self, body: Body) -> list[Any]:
        asks_for_title = "format" in (body.get("text") or {})
        return [] if asks_for_title else body.get("tools") or []

    def whole(self, turn: Turn, key: str, body: Body) -> Body:
        items: list[Body] = []
        if turn.text:
            content = [{"type": "output_text", "text": turn.text, "annotations": []}]
            items.append({"type": "message", "id": f"msg_{key}", "role": "assistant", "content": content})
        for n, use in enumerate(turn.uses):
            item: Body = {"id": f"item_{key}_{n}", "call_id": f"call_{key}_{n}", "name": use.name}
            if isinstance(use.input, str):
                item |= {"type": "custom_tool_call", "input": use.input}
            else:
                item |= {"type": "function_call", "arguments": json.dumps(use.input)}
            items.append(item | ({"namespace": use.space} if use.space else {}))
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        return {"id": f"resp_{key}", "object": "response", "status": "completed", "output": items, "usage": usage}

    def events(self, whole: Body) -> Iterator[Body | str]:
        yield {"type": "response.created", "response": whole | {"status": "in_progress", "output": []}}
        for n, item in enumerate(whole["output"]):
            yield {"type": "response.output_item.added", "output_index": n, "item": item}
            yield {"type": "response.output_item.done", "output_index": n, "item": item}
        yield {"type": "response.completed", "response": whole}


class Completions:
    def tools(self, body: Body) -> list[Any]:
        return body.get("tools") or []

    def whole(self, turn: Turn, key: str, body: Body) -> Body:
        message: Body = {"role": "assistant", "content": turn.text or None}
        if turn.uses:
            message["tool_calls"] = [
                {
                    "index": n,
                    "id": f"call_{key}_{n}",
                    "type": "function",
                    "function": {"name": use.name, "arguments": json.dumps(use.input)},
                }
                for n, use in enumerate(turn.uses)
            ]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if turn.uses else "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {
            "id": f"chat_{key}",
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model", "scripted"),
            "choices": [choice],
            "usage": usage,
        }

    def events(self, whole: Body) -> Iterator[Body | str]:
        (choice,) = whole["choices"]
        part = {name: whole[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
        yield part | {"choices": [{"index": 0, "delta": choice["message"], "finish_reason": None}]}
        yield part | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
        yield part | {"choices": [], "usage": whole["usage"]}
        yield "[DONE]"


class Gemini:
    def tools(self, body: Body) -> list[Any]:
        return [tool for group in body.get("tools") or [] for tool in group.get("functionDeclarations", [])]

    def whole(self, turn: Turn, key: str, body: Body) -> Body:
        parts: list[Body] = [{"text": turn.text}] if turn.text else []
        for n, use in enumerate(turn.uses):
            call = {"id": f"call_{key}_{n}", "name": use.name, "args": use.input}
            parts.append({"functionCall": call, "thoughtSignature": "AAAA"})
        if (body.get("generationConfig") or {}).get("responseMimeType") == "application/json":
            parts = [{"text": "{}"}]
        candidate = {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": parts}}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted", "responseId": key}

    def events(self, whole: Body) -> Iterator[Body | str]:
        yield whole


def language_of(path: str) -> Language | None:
    """The language of a request, by its path; None if it asks for something else."""
    if path.endswith("/messages"):
        return Messages()
    if path.endswith("/responses"):
        return Responses()
    if path.endswith("/chat/completions"):
        return Completions()
    if path.lower().endswith("generatecontent"):
        return Gemini()
    return None
