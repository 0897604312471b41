"""``api/prompts``: versions of prompts."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: list[Route] = []
