"""Where a model is: its provider, its URL, its name."""

from __future__ import annotations

from itertools import count
from weakref import WeakKeyDictionary

import attrs
from agents import Model, OpenAIChatCompletionsModel


@attrs.frozen(cache_hash=True)
class Origin:
    """Where a model is.

    Attributes:
        base_url: URL of its API; for a model without a client that can be seen, something of its own.
        model: Its name.
        provider: kantan-llm's name of the provider, if it came from there.
        is_chat: Whether it is asked over chat completions.
    """

    base_url: str
    model: str
    provider: str | None = None
    is_chat: bool = False


_origins: WeakKeyDictionary[Model, Origin] = WeakKeyDictionary()
_numbers = count(1)


def register_origin(model: Model, provider: str) -> None:
    """Remember whose model this is, by kantan-llm's name of the provider."""
    _origins[model] = _look(model, provider)


def origin_of(model: Model) -> Origin:
    """Return where a model is; for a named model, the one the running loop or run would ask."""
    behind = getattr(type(model), "behind", None)  # of a NamedModel
    if behind is not None:
        model = behind(model)
    try:
        return _origins[model]
    except KeyError:
        return _origins.setdefault(model, _look(model))
    except TypeError:  # it cannot be referred to weakly, or not be hashed
        return _look(model)


def _look(model: Model, provider: str | None = None) -> Origin:
    client = getattr(model, "_client", None)
    url = getattr(client, "base_url", None) or getattr(model, "base_url", None)
    name = getattr(model, "model", None)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    if url is None:  # one that cannot be told from others of its kind is a place of its own
        url = kind if isinstance(name, str) else f"{kind} {next(_numbers)}"
    return Origin(
        base_url=str(url),
        model=name if isinstance(name, str) else type(model).__name__,
        provider=provider or getattr(model, "structured_output_family", None),  # of a ProviderModel
        is_chat=isinstance(model, OpenAIChatCompletionsModel),
    )
