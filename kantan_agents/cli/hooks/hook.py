"""One command of the user's hooks file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

import attrs
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from kantan_agents.cli.terminal.plain import shortened

Event = Literal["PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"]

_NAMES: Final = re.compile(r"[\w |-]*")
_SHOWN: Final = 60


@attrs.frozen
class Hook:
    """A command that runs at an event; an empty ``matcher`` means all tools."""

    place: str
    event: Event
    matcher: re.Pattern[str]
    command: str
    seconds: float

    def concerns(self, names: Iterable[str]) -> bool:
        """Return whether it applies to a tool."""
        if _NAMES.fullmatch(self.matcher.pattern):
            wanted = {one.strip() for one in self.matcher.pattern.split("|")}
            return wanted == {""} or not wanted.isdisjoint(names)
        return any(map(self.matcher.search, names))

    @property
    def shown(self) -> str:
        """The command on one line, shortened."""
        return shortened(self.command, _SHOWN)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Command(_Strict):
    type: Literal["command"]
    command: Annotated[str, Field(min_length=1)]
    timeout: Annotated[float, Field(gt=0, le=600)] = 60


class _Group(_Strict):
    matcher: Annotated[re.Pattern[str], BeforeValidator(lambda text: "" if text == "*" else text)] = (
        re.compile("")
    )
    hooks: Annotated[list[_Command], Field(min_length=1)]


class _File(_Strict):
    hooks: dict[Event, list[_Group]]


def parse_hooks(data: Any) -> tuple[list[Hook], list[str]]:
    """Return the hooks, and every mistake with its path."""
    try:
        events = _File.model_validate(data).hooks
    except ValidationError as error:
        return [], [f"{_place(one['loc'])}: {one['msg']}" for one in error.errors(include_url=False)]
    return [
        Hook(_place(("hooks", event, at, "hooks", number)), event, group.matcher, one.command, one.timeout)
        for event, groups in events.items()
        for at, group in enumerate(groups)
        for number, one in enumerate(group.hooks)
    ], []


def _place(keys: Iterable[int | str]) -> str:
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.lstrip(".") or "the file"
