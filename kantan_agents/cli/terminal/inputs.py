"""Reads the user's input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

from kantan_agents.core.context import meant_permission
from kantan_agents.errors import FileArgumentError, InvalidOptionError

STDIN = "-"


def read_question(question: str) -> str:
    """Return the question, from standard input for ``-``."""
    question = read_stdin().rstrip("\r\n") if question == STDIN else _checked("QUESTION", question)
    if not question.strip():
        raise InvalidOptionError(option="QUESTION", reason="must not be empty")
    return question


def read_instructions(instructions: str) -> str:
    """Return the instructions, from a file for ``@FILE``."""
    instructions = text_or_file("--instructions", instructions)
    if not instructions.strip():
        raise InvalidOptionError(option="--instructions", reason="must not be empty")
    return instructions


def text_or_file(option: str, text: str) -> str:
    """Return an option's value, from a file for ``@FILE``."""
    return read_text(Path(text[1:])) if text.startswith("@") else _checked(option, text)


def _checked(option: str, text: str) -> str:
    # Python represents non-UTF-8 bytes of the command line as halves of surrogate pairs.
    try:
        text.encode()
    except UnicodeEncodeError:
        reason = f"must be UTF-8 text, not {text.encode(errors='surrogateescape')!r}"
        raise InvalidOptionError(option=option, reason=reason) from None
    return text


def read_context(path: Path | None) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty one; E79 for a misspelled permission key."""
    if path is None:
        return {}
    text = read_text(path)
    try:
        context = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FileArgumentError(path=str(path), reason=f"it is not JSON ({error})") from error
    if not isinstance(context, dict):
        kind = type(context).__name__
        raise FileArgumentError(path=str(path), reason=f"it must contain a JSON object, not a {kind}")
    for key in context:
        meant = meant_permission(key)
        if meant not in (None, key):
            raise FileArgumentError(path=str(path), reason=f"the key {key!r} must be written {meant!r}")
    return context


def read_stdin() -> str:
    """Return standard input without a byte order mark."""
    if sys.stdin is None:
        raise FileArgumentError(path=STDIN, reason="there is no standard input")
    return _decoded(sys.stdin.buffer.read(), STDIN)


def read_text(path: Path) -> str:
    """Return a file without its byte order mark."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileArgumentError(path=str(path), reason=reason) from error
    return _decoded(content, str(path))


def _decoded(content: bytes, path: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileArgumentError(path=path, reason="it is not UTF-8 text") from error


def _refuse_constant(name: str) -> NoReturn:
    # Python's parser accepts NaN and Infinity, which are not valid JSON.
    raise ValueError(f"{name} is not allowed")
