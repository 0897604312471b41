"""``ModelOrigin``: the identity of a model."""

from __future__ import annotations

from itertools import count
from threading import Lock
from typing import Final
from weakref import WeakKeyDictionary

import attrs
from agents import Model, OpenAIChatCompletionsModel

_MOST_ORIGINS: Final = 1024


@attrs.frozen(cache_hash=True)
class ModelOrigin:
    """Identifies a model by its API and name.

    Without a URL, ``base_url`` identifies the class or, with ``is_instance``, one object of this process.
    ``provider`` is kantan-llm's name or a ``ProviderModel``'s family.
    """

    base_url: str
    model: str
    provider: str | None = None
    is_chat: bool = False
    is_instance: bool = False


class Origins:
    """A bounded set of models; evicts the oldest. Reads need no lock."""

    def __init__(self) -> None:
        self._origins: dict[ModelOrigin, None] = {}
        self._lock = Lock()

    def __contains__(self, origin: ModelOrigin) -> bool:
        return origin in self._origins

    def add(self, origin: ModelOrigin) -> None:
        """Add a model."""
        with self._lock:
            while len(self._origins) >= _MOST_ORIGINS:
                del self._origins[next(iter(self._origins))]
            self._origins[origin] = None


_origins: WeakKeyDictionary[Model, ModelOrigin] = WeakKeyDictionary()
_numbers = count(1)


def register_origin(model: Model, provider: str) -> None:
    """Store a model's origin with its provider."""
    _origins[model] = _origin(model, provider)


def origin_of(model: Model) -> ModelOrigin:
    """Return the origin of a model, or of a ``NamedModel``'s current one."""
    current_model = getattr(type(model), "current_model", None)  # of a NamedModel
    if current_model is not None:
        model = current_model(model)
    try:
        return _origins[model]
    except KeyError:
        return _origins.setdefault(model, _origin(model))
    except TypeError:  # not weakly referenceable or hashable
        return _origin(model)


def _origin(model: Model, provider: str | None = None) -> ModelOrigin:
    client = getattr(model, "_client", None)
    url = getattr(client, "base_url", None) or getattr(model, "base_url", None)
    name = getattr(model, "model", None)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    is_instance = url is None and not isinstance(name, str)
    if url is None:  # without a name, only the instance identifies it
        url = kind if isinstance(name, str) else f"{kind} {next(_numbers)}"
    return ModelOrigin(
        base_url=str(url),
        model=name if isinstance(name, str) else type(model).__name__,
        provider=provider or getattr(model, "structured_output_family", None),  # of a ProviderModel
        is_chat=isinstance(model, OpenAIChatCompletionsModel),
        is_instance=is_instance,
    )


def name_of(model: Model) -> str | None:
    """Return a model's name, if any."""
    for attribute in ("name", "model"):
        name = getattr(model, attribute, None)
        if isinstance(name, str):
            return name
    return None
