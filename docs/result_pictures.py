"""Lets the site show the pictures of ``benchmarks/results``, which lie outside of its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_RESULTS = "benchmarks/results"
_HERE = "assets/results"


def on_files(files: Files, config: Any) -> Files:
    """Add the pictures."""
    folder = Path(config["docs_dir"]).parent / _RESULTS
    for picture in sorted(folder.glob("*.png")):
        files.append(
            File.generated(config, f"{_HERE}/{picture.name}", abs_src_path=str(picture))
        )
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Point at them where they are in the site; in the repository the page shows them as well."""
    return markdown.replace(f"](../{_RESULTS}/", f"]({_HERE}/")
