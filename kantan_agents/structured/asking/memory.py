"""Which form of asking has worked, so that only the first run pays for finding out."""

from __future__ import annotations

from threading import Lock

import attrs

from kantan_agents.structured.asking.forms import Form

_KEPT = 1024


@attrs.frozen(cache_hash=True)
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


@attrs.frozen
class _Known:
    worked: Form | None = None
    refused: frozenset[Form] = frozenset()


class FormMemory:
    """What has worked and what was refused for each target; the oldest targets are forgotten first.

    Read by every structured run, from any thread, so reading takes no lock: values are replaced, not changed.
    """

    def __init__(self) -> None:
        self._known: dict[Target, _Known] = {}
        self._lock = Lock()

    def in_order(self, target: Target, forms: tuple[Form, ...]) -> tuple[Form, ...]:
        """Return forms in the order to try: what worked first, what was refused last."""
        known = self._known.get(target)
        if known is None or (known.worked is forms[0] and not known.refused):
            return forms
        return tuple(sorted(forms, key=lambda form: (form != known.worked, form in known.refused)))

    def has_worked(self, target: Target, form: Form) -> bool:
        """Whether a fitting answer has come in this form."""
        known = self._known.get(target)
        return known is not None and known.worked == form

    def worked(self, target: Target, form: Form) -> None:
        """Remember that a fitting answer came in this form."""
        known = self._known.get(target)
        if known is None or not (known.worked is form or known.worked == form):
            with self._lock:
                known = self._known.get(target, _Known())
                self._keep(target, _Known(form, known.refused - {form}))

    def refused(self, target: Target, form: Form) -> None:
        """Remember that the provider would not be asked in this form, or did not keep to it."""
        with self._lock:
            known = self._known.get(target, _Known())
            worked = None if known.worked == form else known.worked
            self._keep(target, _Known(worked, known.refused | {form}))

    def _keep(self, target: Target, known: _Known) -> None:
        if target not in self._known and len(self._known) >= _KEPT:
            del self._known[next(iter(self._known))]
        self._known[target] = known


FORMS = FormMemory()
