"""A model that stands where another one stood, and is taken for it."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from typing import Any, cast

from agents import Model, ModelResponse
from typing_extensions import Self


class StandIn(Model):
    """Stands where a model stood.

    Attributes:
        inner: The model.
    """

    inner: Model

    @classmethod
    def for_model(cls, inner: Model, *args: Any) -> Self:
        """Return a stand-in for a model; further arguments are those of the class."""
        made = cast("Self", _class_for(cls, type(inner))(*args))
        made.inner = inner
        return made

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Ask the model."""
        return await self.inner.get_response(*args, **kwargs)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Ask the model and stream its answer."""
        return self.inner.stream_response(*args, **kwargs)

    def get_retry_advice(self, request: Any) -> Any:
        """Return what the model knows about retrying a failed request."""
        return self.inner.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self.inner._cleanup_on_run_end(owner)

    async def close(self) -> None:
        """Release what the model holds."""
        await self.inner.close()

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "inner":  # of one that is being copied
            raise AttributeError(attribute)
        return getattr(self.inner, attribute)

    def __repr__(self) -> str:
        return repr(self.inner)


@functools.lru_cache(maxsize=256)
def _class_for(stand_in: Any, kind: Any) -> Any:
    # The names of the model's own class, and its fields: the SDK orders agents of one name by them when a
    # paused run is stored, and must find the same order without the stand-in.
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is not None:
        names["__dataclass_fields__"] = fields
    return type(kind.__name__, (stand_in,), names)


def real(model: Any) -> Any:
    """Return the model behind all stand-ins."""
    while isinstance(model, StandIn):
        model = model.inner
    return model
