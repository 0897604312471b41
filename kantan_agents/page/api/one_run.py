"""``api/run``: one run with its records and spans."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: list[Route] = []
