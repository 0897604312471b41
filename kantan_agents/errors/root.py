"""The root of all errors: a code, a message, the data the message was made from."""

from __future__ import annotations

from typing import Any, ClassVar

PREFIX = "[kantan-agents]"


class KantanAgentsError(ValueError):
    """Root of all errors of kantan_agents.

    Catch it to catch any of them; compare ``code`` to tell them apart without importing the class.

    Attributes:
        code: The code as it stands in the message and in ``docs/errors.md``, such as ``"E5"``.
        data: The values the message was made from; each is also an attribute of its own.
    """

    code: ClassVar[str]
    template: ClassVar[str]

    def __init__(self, **data: Any) -> None:
        self.data = data
        for name, value in data.items():
            setattr(self, name, value)
        super().__init__(f"{PREFIX}[{self.code}] {self.template.format(**data)}")

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions pickle by their positional arguments; ours are made from keywords.
        return (_rebuild, (type(self), self.data))


def code_of(error: BaseException) -> str | None:
    """Return the E-code of an error, None if it is not one of ours; others may have codes of their own."""
    return error.code if isinstance(error, KantanAgentsError) else None


def _rebuild(cls: type[KantanAgentsError], data: dict[str, Any]) -> KantanAgentsError:
    return cls(**data)
