"""The recipient of a request: everything that a model, its client and its HTTP client add to it.

All fields count unless excluded here, so new fields of the SDK or the client count as well. A meaningless
difference costs one request; an overlooked one gives a caller the answer of another. The result holds
secrets: hash it, never store it.
"""

from __future__ import annotations

import enum
import re
import secrets
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import count
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

import attrs
import msgspec
from agents import Model
from cachetools import LRUCache
from openai import AsyncOpenAI

from kantan_agents.agent.bridge.captured.models import shared_model
from kantan_agents.models.origin import origin_of
from kantan_agents.models.protocol import ProviderModel

IDENTITY: Final = "cache_identity"
"""With this attribute, a model or provider identifies itself."""

_PROCESS: Final = secrets.token_hex(8)
_DEEPEST: Final = 12

# Retries and timeouts, values that the client looks up itself, and options of its other APIs.
_OF_CLIENT: Final = frozenset(
    {
        "_client",  # its HTTP client, whose fields are read separately
        "_default_stream_cls",
        "_idempotency_header",
        "_sleep_for_retry",
        "_platform",
        "_strict_response_validation",
        "_version",
        "_workload_identity_auth",  # created from `workload_identity`
        "max_retries",
        "timeout",
        "webhook_secret",
    }
)
# State of the SDK's models that changes while they are used.
_PASSING: Final = re.compile(r"_client|_ws_.*|_has_warned_.*|.*_(?:cache|locks?)")
_HTTP: Final = ("httpx", "httpx2", "httpx_aiohttp")
_OF_POOL: Final = ("_uds", "_local_address", "_proxy", "_proxy_url", "_proxy_headers", "_proxy_auth")
_OVERRIDES: Final = (
    ("agents.models.chatcmpl_helpers", "HEADERS_OVERRIDE"),
    ("agents.models.openai_responses", "_HEADERS_OVERRIDE"),
)


def recipient_of(model: Model) -> list[Any]:
    """Return the recipient, and everything sent along; TypeError or RecursionError if that is impossible."""
    current_model = getattr(type(model), "current_model", None)  # of a NamedModel
    if current_model is not None:
        model = current_model(model)
    return [[_data(headers.get()) for headers in _overrides()], _model(model, 0)]


def _overrides() -> Iterator[Any]:
    """Applications add headers through these context variables."""
    for module, name in _OVERRIDES:
        found = getattr(sys.modules.get(module), name, None)
        if found is not None:
            yield found


def _model(model: Model, depth: int) -> list[Any]:
    if isinstance(model, ProviderModel):  # its URL is a number of this process
        return ["provider", _state(model.provider, depth)]
    origin = origin_of(model)
    if origin.is_instance:
        return ["instance", _PROCESS, origin.base_url]
    client = getattr(model, "_client", None)
    return ["model", msgspec.Raw(shared_model(model).packed), _data(client, depth), _state(model, depth)]


def _state(owner: Any, depth: int) -> Any:
    kind = type(owner)
    name = f"{kind.__module__}.{kind.__qualname__}"
    said = getattr(owner, IDENTITY, None)
    if said is not None:
        return ["says", name, _data(said, depth + 1)]
    is_of_sdk = kind.__module__.partition(".")[0] == "agents"
    fields = {
        field: _data(value, depth + 1)
        for field, value in _fields(owner)
        if not (is_of_sdk and _PASSING.fullmatch(field))
    }
    # A class inside a function may hold variables of that function.
    return [name, _object(owner) if "<locals>" in name else None, fields]


def _fields(owner: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(owner, "__dict__", {}).items()
    for kind in type(owner).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(owner, name):
                yield name, getattr(owner, name)


@lru_cache(maxsize=64)
def _made_on_demand(kind: type) -> frozenset[str]:
    return frozenset(
        name
        for one in kind.__mro__
        for name, value in vars(one).items()
        if isinstance(value, cached_property)
    )


def _client(client: Any, depth: int) -> list[Any]:
    kind: Any = type(client)
    left_out = _OF_CLIENT
    if getattr(client, "_api_key_provider", None) is not None:
        left_out = left_out | {"api_key"}  # the function's result for the latest request
    fields = {
        name: _data(value, depth + 1)
        for name, value in vars(client).items()
        if name not in left_out and name not in _made_on_demand(kind)
    }
    http = _http_client(getattr(client, "_client", None), depth + 1)
    return [f"{kind.__module__}.{kind.__qualname__}", fields, http]


_cookies: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _http_client(client: Any, depth: int) -> Any:
    if not hasattr(client, "headers"):
        return _data(client, depth)
    hooks = [
        hook
        for of_event in (getattr(client, "event_hooks", None) or {}).values()
        for hook in of_event
        if not getattr(hook, "__module__", "").startswith("kantan_agents.")
    ]
    jar = [
        [cookie.domain, cookie.path, cookie.name, cookie.value]
        for cookie in getattr(getattr(client, "cookies", None), "jar", ())
    ]
    # Cookies without a domain are the application's. The server may have set the others, and may change them.
    known = _cookies.setdefault(client, jar)
    own = [cookie for cookie in jar if not cookie[0]]
    mounts = getattr(client, "_mounts", {})
    return [
        _data(client.headers, depth),
        _data(getattr(client, "params", None), depth),
        _data(getattr(client, "_auth", None), depth),
        [known, own, [_object(hook) for hook in hooks]],
        _transport(getattr(client, "_transport", None), depth),
        [[str(getattr(at, "pattern", at)), _transport(to, depth)] for at, to in mounts.items()],
    ]


def _transport(transport: Any, depth: int) -> Any:
    pool = getattr(transport, "_pool", None)
    if transport is None or not type(transport).__module__.startswith(_HTTP):
        return None if transport is None else _object(transport)
    fields = [_data(getattr(pool, name, None), depth) for name in _OF_POOL]
    return [type(transport).__qualname__, type(pool).__qualname__, fields]


def _data(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise RecursionError("too deep to be distinguished from others")
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, (float, bytes, enum.Enum)):
        return [type(value).__qualname__, repr(value)]
    if isinstance(value, (int, str)):
        return _data(int(value) if isinstance(value, int) else str.__str__(value))
    if isinstance(value, Mapping) and not hasattr(value, "multi_items"):
        pairs = [[_data(name, depth + 1), _data(inner, depth + 1)] for name, inner in value.items()]
        return ["map", sorted(pairs, key=msgspec.json.encode)]
    if isinstance(value, (list, tuple)):
        return ["list", [_data(inner, depth + 1) for inner in value]]
    if isinstance(value, (set, frozenset)):
        return ["set", sorted((_data(inner, depth + 1) for inner in value), key=msgspec.json.encode)]
    if isinstance(value, AsyncOpenAI):
        return _client(value, depth)
    if isinstance(value, Model):
        return _model(value, depth)
    return _value_of_library(value, depth)


def _value_of_library(value: Any, depth: int) -> Any:
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    if library in _HTTP and hasattr(value, "multi_items"):
        return ["items", [list(pair) for pair in value.multi_items()]]
    if kind.__qualname__ == "URL" or kind.__module__ == "openai._types":
        return [kind.__qualname__, str(value) if kind.__qualname__ == "URL" else ""]
    if hasattr(kind, "__dataclass_fields__") or attrs.has(kind) or hasattr(kind, "model_fields"):
        name = f"{kind.__module__}.{kind.__qualname__}"
        return [name, {field: _data(inner, depth + 1) for field, inner in _fields(value)}]
    return _object(value)


_numbers = count(1)
_known: dict[int, tuple[ref[Any], int]] = {}
_held: LRUCache[int, tuple[Any, int]] = LRUCache(1_024)
_lock = Lock()


def _object(value: Any) -> list[Any]:
    """Objects without a comparable value have an identity in this process."""
    key = id(value)
    found: Any = _known.get(key)
    if found is not None and found[0]() is value:
        return ["object", _PROCESS, found[1]]
    try:
        reference = ref(value, lambda _: _known.pop(key, None))
    except TypeError:  # hold it instead, so that no other object gets its address
        with _lock:
            found = _held.get(key)
            if found is None or found[0] is not value:
                found = _held[key] = value, next(_numbers)
        return ["object", _PROCESS, found[1]]
    number = next(_numbers)
    _known[key] = reference, number
    return ["object", _PROCESS, number]
