"""Completes the navigation of .mkdocs.yml, and says which pages the search shows first: a hook of mkdocs.

In the navigation, ``folder/*`` stands for all pages of a folder, the index first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.pages import Page

_NOT_SEARCHED = (
    "architecture",
    "decisions/",
    "measuring",
    "performance",
    "where-do-i-put",
)

# By the start of the path. The rest has 1.
_BOOST = {
    "recipes": 2.0,
    "troubleshooting": 4.0,
    "guides/": 2.0,
    "start/": 2.0,
    "reference/middleware/": 2.0,
    "reference/api/": 0.5,
}


def on_config(config: Any) -> None:
    """List the pages of folders."""
    config["nav"] = _listed(config["nav"], Path(config["docs_dir"]))


def on_page_markdown(markdown: str, page: Page, **_: Any) -> None:
    """Tell the search how to treat the page."""
    path = page.file.src_uri
    search: dict[str, Any] = page.meta.setdefault("search", {})
    if path.startswith(_NOT_SEARCHED):
        search["exclude"] = True
    for start, boost in _BOOST.items():
        if path.startswith(start):
            search["boost"] = boost


def _listed(item: Any, docs: Path) -> Any:
    if isinstance(item, dict):
        return {title: _listed(inside, docs) for title, inside in item.items()}
    if isinstance(item, list):
        return [_listed(inside, docs) for inside in item]
    if not item.endswith("/*"):
        return item
    pages = (docs / item).parent.glob("*.md")
    return sorted(
        (page.relative_to(docs).as_posix() for page in pages), key=_index_first
    )


def _index_first(path: str) -> tuple[bool, str]:
    return not path.endswith("/index.md"), path
