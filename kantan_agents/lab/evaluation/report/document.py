"""The HTML document of a report, and its file."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Final

from kantan_agents.errors import FileArgumentError
from kantan_agents.support.arguments import checked_path
from kantan_agents.support.replace_file import replace_file

# Even if a string got into the page as markup, nothing could run or load.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def document(title: str, header: str, body: str) -> str:
    """Return a whole page; the arguments are markup."""
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
<header>
{header}
</header>
{body}</main>
</body>
</html>
"""


def write_page(page: str, path: str | os.PathLike[str]) -> None:
    """Write a page, replacing an existing one."""
    place = Path(checked_path("path", path))
    try:
        replace_file(place, page.encode())
    except OSError as error:
        raise FileArgumentError(path=str(path), reason=error.strerror or str(error)) from error
