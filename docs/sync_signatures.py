"""Gives functions decorated with ``sync_of`` the signature of their async form in the API reference."""

from __future__ import annotations

from typing import Any

import griffe


class SyncSignatures(griffe.Extension):
    """Copies parameters and return type from the argument of ``sync_of``."""

    def on_function(self, *, func: griffe.Function, **_kwargs: Any) -> None:
        """Copy the signature; the async function is above the decorator that names it."""
        for decorator in func.decorators:
            text = str(decorator.value)
            if text.startswith("sync_of(") and func.parent is not None:
                form = func.parent.members[text[len("sync_of(") : -1]]
                assert isinstance(form, griffe.Function)
                func.parameters, func.returns = form.parameters, form.returns
