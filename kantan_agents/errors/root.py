"""``KantanAgentsError``: the root of all errors, with a code, a message and its data."""

from __future__ import annotations

from typing import Any, ClassVar

PREFIX = "[kantan-agents]"


class KantanAgentsError(ValueError):
    """Root of all errors of kantan_agents.

    Catch it to catch all of them. Compare ``code`` to distinguish them without importing their classes.

    Attributes:
        code: The code in the message and in ``docs/reference/errors.md``, such as ``"E5"``.
        is_bad_input: Whether other arguments, files or settings avoid it. Commands then exit with 2, not 1.
        data: The values in the message; each is also an attribute.
    """

    code: ClassVar[str]
    template: ClassVar[str]
    is_bad_input: ClassVar[bool] = False

    def __init__(self, **data: Any) -> None:
        self.data = data
        for name, value in data.items():
            setattr(self, name, value)
        super().__init__(f"{PREFIX}[{self.code}] {self.template.format(**data)}")

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions pickle their positional arguments; these take keywords.
        return (_rebuild, (type(self), self.data))


def code_of(error: BaseException) -> str | None:
    """Return the E-code of an error of this library; None for others, even if they have a ``code``."""
    return error.code if isinstance(error, KantanAgentsError) else None


def _rebuild(cls: type[KantanAgentsError], data: dict[str, Any]) -> KantanAgentsError:
    return cls(**data)
