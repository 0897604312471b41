"""Adds the pictures of ``benchmarks/results``, which is outside of docs/, to the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_RESULTS = "benchmarks/results"
_HERE = "assets/results"


def on_files(files: Files, config: Any) -> Files:
    """Add the pictures to the site."""
    folder = Path(config["docs_dir"]).parent / _RESULTS
    for picture in sorted(folder.glob("*.png")):
        files.append(
            File.generated(config, f"{_HERE}/{picture.name}", abs_src_path=str(picture))
        )
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the paths in the repository by those in the site."""
    return markdown.replace(f"](../{_RESULTS}/", f"]({_HERE}/")
