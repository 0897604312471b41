"""README.md as package indexes show it: a hook of the build, named in pyproject.toml.

An index shows the text without the repository around it, so that relative links lead nowhere. If ``[project.urls]``
has ``Documentation`` (the site that mkdocs builds) and ``Source`` (the folder of the repository's files), each link
leads there. Without them, only the text of a link stays, and a sentence says where the pages are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Code stays as it is, whatever it looks like.
_LINK = re.compile(
    r"(?P<code>^```.*?^```$)|(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)",
    re.MULTILINE | re.DOTALL,
)
_ABSOLUTE = re.compile(r"[a-z]+:")
_HEADING = "## Documentation\n"
_WHERE = "\nThe pages named here are in the folder `docs` of the source distribution.\n"


def published(text: str, urls: Mapping[str, str]) -> str:
    """Return the text of a README whose links do not need the repository.

    Args:
        text: The text of README.md.
        urls: ``[project.urls]``.
    """

    def link(found: re.Match[str]) -> str:
        if found["code"]:
            return found["code"]
        url = _url(found["target"], urls)
        if url is not None:
            return f"{found['image']}[{found['text']}]({url})"
        return "" if found["image"] else found["text"]

    new = _LINK.sub(link, text)
    return new if "Documentation" in urls else new.replace(_HEADING, _HEADING + _WHERE)


def _url(target: str, urls: Mapping[str, str]) -> str | None:
    if _ABSOLUTE.match(target):
        return target
    path, _, fragment = target.partition("#")
    at = f"#{fragment}" if fragment else ""
    if path.startswith("docs/") and "Documentation" in urls:
        page = re.sub(r"(^|/)index\.md$", r"\1", path.removeprefix("docs/"))
        page = re.sub(r"\.md$", "/", page)
        return f"{urls['Documentation'].rstrip('/')}/{page}{at}"
    if path and "Source" in urls:
        return f"{urls['Source'].rstrip('/')}/{path}{at}"
    return None


def get_metadata_hook() -> type[Any]:
    """Return the hook; hatchling, which looks for this name, is installed only while a package is built."""
    from hatchling.metadata.plugin.interface import MetadataHookInterface

    class ReadmeHook(MetadataHookInterface):
        """Gives the build the text."""

        def update(self, metadata: dict[str, Any]) -> None:
            """Set the README of a project."""
            text = Path(self.root, "README.md").read_text(encoding="utf-8")
            metadata["readme"] = {
                "content-type": "text/markdown",
                "text": published(text, metadata.get("urls", {})),
            }

    return ReadmeHook
