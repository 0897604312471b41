"""Apply a function to all strings in data."""

from __future__ import annotations

import copy
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from pydantic import BaseModel

from kantan_agents.support.secrets import may_contain_secret, name_of_value, names_in_list

Change = Callable[[str, str], str]
"""Takes a string and the name of its field, and returns the replacement."""

_IDENTIFIER_FIELDS = frozenset(
    {
        "type",
        "id",
        "call_id",
        "response_id",
        "item_id",
        "file_id",
        "container_id",
        "approval_request_id",
        "role",
        "status",
        "phase",
        "name",
        "namespace",
        "server_label",
        "detail",
        "format",
        "created_by",
    }
)
"""Values that look like identifiers are not changed."""

_OPAQUE_FIELDS = frozenset({"encrypted_content", "signature"})
"""Opaque data of the provider."""

_MEDIA_FIELDS = frozenset({"image_url", "file_url", "file_data", "data", "result"})
"""Images and files."""

_IDENTIFIER = re.compile(r"[\w.:/+=|-]*", re.ASCII)

# The packages of the SDK's and of OpenAI's items, whose fields have the names above.
_API_PACKAGES = ("agents", "openai")

_DATA_URL = re.compile(
    r"data:(?:image|audio|video|application|font)/[\w.+-]{1,100}(?:;[\w.+-]{1,40}=[\w.+-]{1,80}){0,4};base64,"
)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]+|[A-Za-z0-9_-]+)={0,2}")
_LINK = re.compile(r"(?:https?|gs|s3)://[^\s\"'<>\\]+", re.IGNORECASE)

_SHORTEST_FILE = 32


def change_item(value: Any, change: Change, field: str = "") -> Any:
    """Change the strings of an API item; the same object if nothing changed.

    Identifiers and media stay.
    """
    if isinstance(value, str):
        text = change(value, field)
        return value if text == value else text
    if isinstance(value, Mapping):
        is_image = field == "image_url"  # `{"image_url": {"url": ...}}`, of the Chat Completions API
        changed = {
            name: _in_field(field if is_image and name == "url" else name, inner, change)
            for name, inner in value.items()
        }
        return value if all(changed[name] is inner for name, inner in value.items()) else changed
    if isinstance(value, (list, tuple)):
        items = [change_item(inner, change, field) for inner in value]
        return value if all(map(operator.is_, items, value)) else _like(value, items)
    if isinstance(value, BaseModel):
        fields = {name: _in_field(name, inner, change) for name, inner in value}
        fields = {name: inner for name, inner in fields.items() if inner is not getattr(value, name)}
        if fields and hasattr(value, "logprobs"):
            fields["logprobs"] = []  # they quote the text
        return value.model_copy(update=fields) if fields else value
    return value


def change_sent_item(value: Any, change: Change) -> Any:
    """Links to media stay too, because the provider must fetch them."""
    return change_item(
        value, lambda text, field: text if _is_media_link(text, field) else change(text, field)
    )


def _is_media_link(text: str, field: str) -> bool:
    return field in _MEDIA_FIELDS and is_link(text)


def _in_field(name: Any, value: Any, change: Change) -> Any:
    if isinstance(value, str) and (
        (
            name in _IDENTIFIER_FIELDS
            and _IDENTIFIER.fullmatch(value) is not None
            and not may_contain_secret(value)
        )
        or (name in _OPAQUE_FIELDS and _IDENTIFIER.fullmatch(value) is not None)
        or (name in _MEDIA_FIELDS and is_media(value))
    ):
        return value
    return change_item(value, change, str(name))


def change_value(value: Any, change: Change, name: str = "") -> Any:
    """Change all strings in data, including keys; the same object if nothing changed.

    An object whose ``str()`` or ``repr()`` is changed becomes the changed string.
    """
    if value is None or isinstance(value, bool):
        return value
    if type(value) is str:
        changed = change(value, name)
        return value if changed == value else changed
    if isinstance(value, (bytes, bytearray)):
        return _change_bytes(value, change, name)
    if type(value) is dict:
        return _change_mapping(value, change)
    if type(value) in (list, tuple):
        names = names_in_list(value, name)
        items = [change_value(inner, change, named) for inner, named in zip(value, names, strict=True)]
        return value if all(map(operator.is_, items, value)) else type(value)(items)
    if type(value) in (set, frozenset):
        return _change_set(value, change, name)
    if isinstance(value, BaseModel) and type(value).__module__.partition(".")[0] in _API_PACKAGES:
        return change_item(value, change)
    return _change_text_of(_change_object(value, change, name), change, name)


def _change_text_of(value: Any, change: Change, name: str) -> Any:
    """Fields may not show all of an object."""
    if type(value) in (str, dict):
        return value
    for write in (str, repr):
        try:
            text = write(value)
        except Exception:  # noqa: BLE001, S112 - user code; a failing `str()` shows nothing
            continue
        changed = change(text, name if write is str else "")
        if changed != text:
            return changed if write is str else change(str(value), name)
    return value


def _change_object(value: Any, change: Change, name: str) -> Any:
    if isinstance(value, str):
        changed = change(str.__str__(value), name)
        return value if changed == str.__str__(value) else changed
    if isinstance(value, Mapping):
        return _change_mapping(value, change)
    if isinstance(value, (list, tuple)):
        items = [change_value(inner, change, name) for inner in value]
        return value if all(map(operator.is_, items, value)) else _like(value, items)
    if isinstance(value, BaseModel):
        fields = _changes(dict(value), change)
        return value.model_copy(update=fields) if fields else value
    if attrs.has(type(value)):
        fields = _changes(
            {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}, change
        )
        return _copied(value, fields) if fields else value
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        fields = _changes({field: getattr(value, field) for field in value.__dataclass_fields__}, change)
        return _copied(value, fields) if fields else value
    return value


def _change_bytes(value: bytes | bytearray, change: Change, name: str) -> Any:
    text = value.decode("utf-8", "surrogateescape")
    changed = change(text, name)
    return value if changed == text else type(value)(changed.encode("utf-8", "surrogateescape"))


def _change_set(value: Any, change: Change, name: str) -> Any:
    pairs = [(inner, change_value(inner, change, name)) for inner in value]
    return value if all(old is new for old, new in pairs) else type(value)(new for _, new in pairs)


def _change_mapping(value: Mapping[Any, Any], change: Change) -> Any:
    named = name_of_value(value)
    pairs = [
        (
            change_value(key, change),
            change_value(inner, change, named if named and key == "value" else _key_name(key)),
        )
        for key, inner in value.items()
    ]
    if all(key is old and inner is value[old] for (key, inner), old in zip(pairs, value, strict=True)):
        return value
    changed = dict(pairs)
    return changed if len(changed) == len(pairs) else change(str(value), "")


def _key_name(key: Any) -> str:
    if isinstance(key, bytes):  # the headers of an HTTP request
        return key.decode("utf-8", "replace")
    return key if isinstance(key, str) else ""


def _changes(fields: Mapping[str, Any], change: Change) -> dict[str, Any]:
    changed = {name: change_value(inner, change, name) for name, inner in fields.items()}
    return {name: inner for name, inner in changed.items() if inner is not fields[name]}


def _copied(value: Any, fields: Mapping[str, Any]) -> Any:
    copied = copy.copy(value)
    for name, inner in fields.items():
        object.__setattr__(copied, name, inner)
    return copied


def _like(value: Any, items: list[Any]) -> Any:
    if hasattr(value, "_fields"):  # a named tuple
        return type(value)(*items)
    return type(value)(items)


def is_data_url(text: str) -> bool:
    """A data URL with well-formed base64."""
    begin = _DATA_URL.match(text) if text.startswith("data:") else None
    return begin is not None and _is_base64(text, begin.end())


def is_media(text: str) -> bool:
    """A data URL or base64 in a media field."""
    return is_data_url(text) or (len(text) >= _SHORTEST_FILE and _is_base64(text, 0))


def is_link(text: str) -> bool:
    """A URL in a media field, which the provider fetches."""
    return _LINK.fullmatch(text) is not None


def _is_base64(text: str, start: int) -> bool:
    return (len(text) - start) % 4 == 0 and _BASE64.fullmatch(text, start) is not None
