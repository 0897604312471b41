"""``api/labels``: the labelling queue."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: list[Route] = []
