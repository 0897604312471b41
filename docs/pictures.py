"""Pictures of the site: a hook of mkdocs.

It adds those of ``benchmarks/results``, which is outside of docs/, and puts the one of the start page into its HTML, so
that its links work and its colors follow the reader's choice.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_RESULTS = "benchmarks/results"
_HERE = "assets/results"
_INLINE = re.compile(r'<p><img alt="[^"]*" src="(assets/run-and-loop\.svg)" ?/?></p>')


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


def on_page_content(html: str, config: Any, **_: Any) -> str:
    """Put the picture into the page instead of a link to it."""

    def picture(found: re.Match[str]) -> str:
        return Path(config["docs_dir"], found[1]).read_text(encoding="utf-8")

    return _INLINE.sub(picture, html)
