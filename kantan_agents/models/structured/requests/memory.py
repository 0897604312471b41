"""``FormMemory``: remembers working forms."""

from __future__ import annotations

from threading import Lock

import attrs

from kantan_agents.models.structured.requests.forms import Form

_MAX_TARGETS = 1024


@attrs.frozen(cache_hash=True)
class FormTarget:
    """The target of a request: a model, a schema, and whether there are tools.

    With tools, some providers reject a schema.
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
    """Results of forms by target; evicts the oldest targets.

    Reads need no lock: values are replaced, never changed.
    """

    def __init__(self) -> None:
        self._known: dict[FormTarget, _Known] = {}
        self._lock = Lock()

    def in_order(self, target: FormTarget, forms: tuple[Form, ...]) -> tuple[Form, ...]:
        """Sort forms: working first, rejected last."""
        known = self._known.get(target)
        if known is None or (known.worked is forms[0] and not known.refused):
            return forms
        return tuple(sorted(forms, key=lambda form: (form != known.worked, form in known.refused)))

    def has_worked(self, target: FormTarget, form: Form) -> bool:
        """Return whether this form has worked."""
        known = self._known.get(target)
        return known is not None and known.worked == form

    def is_refused(self, target: FormTarget, form: Form) -> bool:
        """Return whether the provider rejects this form."""
        known = self._known.get(target)
        return known is not None and form in known.refused

    def worked(self, target: FormTarget, form: Form) -> None:
        """Record that this form worked."""
        known = self._known.get(target)
        if known is None or not (known.worked is form or known.worked == form):
            with self._lock:
                known = self._known.get(target, _Known())
                self._store(target, _Known(form, known.refused - {form}))

    def refused(self, target: FormTarget, form: Form) -> None:
        """Record that this form was rejected."""
        with self._lock:
            known = self._known.get(target, _Known())
            worked = None if known.worked == form else known.worked
            self._store(target, _Known(worked, known.refused | {form}))

    def _store(self, target: FormTarget, known: _Known) -> None:
        if target not in self._known and len(self._known) >= _MAX_TARGETS:
            del self._known[next(iter(self._known))]
        self._known[target] = known


FORMS = FormMemory()
