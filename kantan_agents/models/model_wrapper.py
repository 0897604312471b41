"""Base class of wrapped models, unnoticed by the SDK."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Coroutine
from typing import Any, cast

from agents import Model, ModelResponse
from typing_extensions import Self


def of_inner(name: str) -> Any:
    """Return a property that reads an inner attribute, or None.

    The SDK looks these up in every run: in ``__getattr__``, each would be a slow exception.
    """
    return property(lambda self: getattr(self.inner, name, None))


class ModelWrapper(Model):
    """A model that forwards everything to ``inner``."""

    inner: Model
    name = of_inner("name")
    _supports_default_prompt_cache_key = of_inner("_supports_default_prompt_cache_key")

    @classmethod
    def for_model(cls, inner: Model, *args: Any) -> Self:
        """Wrap a model; ``args`` go to the constructor."""
        made = cast("Self", _class_for(cls, type(inner))(*args))
        made.inner = inner
        return made

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Call the model."""
        return await self.inner.get_response(*args, **kwargs)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Call the model and stream its answer."""
        return self.inner.stream_response(*args, **kwargs)

    def get_retry_advice(self, request: Any) -> Any:
        """Return the model's retry advice."""
        return self.inner.get_retry_advice(request)

    def _cleanup_on_run_end(self, owner: object) -> Coroutine[Any, Any, None]:
        return self.inner._cleanup_on_run_end(owner)

    async def close(self) -> None:
        """Release the model's resources."""
        await self.inner.close()

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "inner":  # not set yet while an instance is copied
            raise AttributeError(attribute)
        return getattr(self.inner, attribute)

    def __repr__(self) -> str:
        return repr(self.inner)


@functools.lru_cache(maxsize=256)
def _class_for(stand_in: Any, kind: Any) -> Any:
    # The SDK orders agents by these names and fields when it stores a paused run; the wrapper must not change
    # the order.
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is not None:
        names["__dataclass_fields__"] = fields
    return type(kind.__name__, (stand_in,), names)


def unwrapped(model: Any) -> Any:
    """Return the model behind all wrappers."""
    while isinstance(model, ModelWrapper):
        model = model.inner
    return model
