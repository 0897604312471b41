"""Which form of asking has worked, so that only the first run pays for finding out."""

from __future__ import annotations

from threading import Lock

import attrs
from cachetools import LRUCache

from kantan_agents.structured.asking.forms import Form

_KEPT = 1024


@attrs.frozen
class Target:
    """Who is asked for what.

    Attributes:
        base_url: Where the model is.
        model: Its name.
        schema: The schema as JSON text.
        has_tools: Whether there are tools or hand-offs beside; some providers then refuse a schema.
    """

    base_url: str
    model: str
    schema: str
    has_tools: bool


@attrs.define
class _Known:
    worked: Form | None = None
    refused: frozenset[Form] = frozenset()


class FormMemory:
    """What has worked and what was refused for each target; the ones used least are forgotten first."""

    def __init__(self) -> None:
        self._known: LRUCache[Target, _Known] = LRUCache(_KEPT)
        self._lock = Lock()

    def in_order(self, target: Target, forms: tuple[Form, ...]) -> tuple[Form, ...]:
        """Return forms in the order to try: what worked first, what was refused last."""
        with self._lock:
            known = self._known.get(target)
        if known is None:
            return forms
        return tuple(sorted(forms, key=lambda form: (form != known.worked, form in known.refused)))

    def worked(self, target: Target, form: Form) -> None:
        """Remember that a fitting answer came in this form."""
        with self._lock:
            known = self._known.setdefault(target, _Known())
            known.worked, known.refused = form, known.refused - {form}

    def refused(self, target: Target, form: Form) -> None:
        """Remember that the provider would not be asked in this form, or did not keep to it."""
        with self._lock:
            known = self._known.setdefault(target, _Known())
            known.refused |= {form}
            if known.worked == form:
                known.worked = None


FORMS = FormMemory()
