"""``api/comparisons``: evaluations and experiments, and their comparisons."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: list[Route] = []
