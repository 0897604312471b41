"""Instructions of templates and of data, which is never rendered."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from kantan_agents.agent.options import Renderer, checked_renderer
from kantan_agents.errors import RendererResultError

_MARKER = re.compile(r"\{\{ *([a-z]+) *\}\}")
_TICKS = re.compile("`+")
_SHORTEST_FENCE = 3


@attrs.frozen
class Data:
    """A string that is never rendered."""

    text: str


@attrs.frozen
class Wording:
    """Instructions in parts: templates (str), and data."""

    parts: tuple[str | Data, ...]

    @property
    def text(self) -> str:
        """All parts joined, with unfilled placeholders."""
        return "".join(part.text if isinstance(part, Data) else part for part in self.parts)

    def renderer(self, renderer: Renderer | None = None) -> Callable[..., Awaitable[str]]:
        """Return a renderer for an ``Agent`` that leaves the data unchanged."""
        render, count = checked_renderer(renderer)

        async def render_parts(_text: str, context: dict[str, Any], allow_env: bool) -> str:
            texts = []
            for part in self.parts:
                if isinstance(part, Data):
                    texts.append(part.text)
                    continue
                text = render(*(part, context, allow_env)[:count])
                if inspect.isawaitable(text):
                    text = await text
                if not isinstance(text, str):
                    raise RendererResultError(got=type(text).__name__)
                texts.append(text)
            return "".join(texts)

        return render_parts


def fill(template: str, values: Mapping[str, str]) -> Wording:
    """Return ``template`` with each ``{{ name }}`` in ``values`` replaced by data."""
    parts: list[str | Data] = []
    end = 0
    for match in _MARKER.finditer(template):
        if match[1] in values:
            parts += [template[end : match.start()], Data(values[match[1]])]
            end = match.end()
    parts.append(template[end:])
    return Wording(tuple(part for part in parts if part != ""))


def markers_in(template: str) -> set[str]:
    """Return the names of the placeholders in ``template``."""
    return set(_MARKER.findall(template))


def fenced(text: str) -> str:
    """Return ``text`` in a code fence that it cannot close."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(longest + 1, _SHORTEST_FENCE)
    return f"{fence}\n{text}\n{fence}"
