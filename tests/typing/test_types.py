from __future__ import annotations

from pathlib import Path

import kantan_agents


def test_the_package_is_marked_as_typed() -> None:
    # What the types infer to stands in public_types.py, which mypy checks in CI.
    assert (Path(kantan_agents.__file__).parent / "py.typed").exists()
