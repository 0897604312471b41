from __future__ import annotations

from pathlib import Path

import kantan_agents

from .documented_programs import module_of, written_pages


def test_the_package_is_marked_as_typed() -> None:
    # What the types infer to is in the public_*.py files, which mypy and pyright check in CI.
    assert (Path(kantan_agents.__file__).parent / "py.typed").exists()


def test_every_page_with_examples_is_a_module_of_its_own(tmp_path: Path) -> None:
    pages = written_pages(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f"{module_of(page)}.py" for page in pages}
    assert len({module_of(page) for page in pages}) == len(pages) > 10
