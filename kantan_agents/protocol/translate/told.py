"""What a schema cannot say in a format, told in its description."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def with_told(schema: dict[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema whose description tells of keywords that it cannot hold."""
    if not told:
        return schema
    words = ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in told.items())
    said = schema.get("description")
    return {**schema, "description": f"{said} ({words})" if isinstance(said, str) and said else f"({words})"}
