"""Writes each page as Markdown beside its HTML, and llms.txt (https://llmstxt.org) at the root of the site.

A hook of mkdocs, named in .mkdocs.yml. The plugin mkdocs-llmstxt makes Markdown of the HTML again, and needs a second
list of all pages. Here both come from the Markdown of the pages and from the navigation.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page
from public_names import plain

_CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^<!--.*?-->\n+", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")
_NAME = re.compile(r"^::: (?P<path>[\w.]+)\n(?:    .*\n?)*", re.MULTILINE)
_FIRST_SENTENCE = re.compile(r".+?[.:?!](?= [A-Z`\[]|$)")
_OPTIONAL = "Contributing"

_site: list[tuple[Navigation, Files]] = []


def on_nav(nav: Navigation, files: Files, **_: Any) -> None:
    """Note the pages."""
    _site[:] = [(nav, files)]


def on_post_build(config: Any) -> None:
    """Write the files."""
    ((nav, files),) = _site
    root = Path(config["site_dir"])
    for page in nav.pages:
        (root / _address(page)).write_text(
            _markdown(page, files), encoding="utf-8", newline="\n"
        )
    lines = [f"# {config['site_name']}\n", f"> {config['site_description']}"]
    lines += _overview(
        [item for item in nav.items if item.title != _OPTIONAL], "Overview"
    )
    # A reader that needs fewer words may omit a section of this name.
    optional = [
        page
        for page in nav.pages
        if _OPTIONAL in (above.title for above in page.ancestors)
    ]
    lines += _overview(optional, "Optional")
    (root / "llms.txt").write_text(
        "\n".join(lines) + "\n", encoding="utf-8", newline="\n"
    )


def _address(page: Page) -> str:
    return page.file.dest_uri.removesuffix(".html") + ".md"


def _overview(items: list[Any], title: str) -> Iterator[str]:
    if pages := [item for item in items if isinstance(item, Page)]:
        yield f"\n## {title}\n"
        for page in pages:
            yield f"- [{page.title}]({_address(page)}){_description(page)}"
    for item in items:
        if isinstance(item, Section):
            inside = item.title if item.parent is None else f"{title}: {item.title}"
            yield from _overview(item.children, inside)


def _description(page: Page) -> str:
    """Return the first sentence under the title of a page."""
    text = _COMMENT.sub("", page.markdown or "").partition("\n\n")[2]
    paragraphs = (
        part for part in text.split("\n\n") if re.match(r"(?!```)[^#|<>!:\s-]", part)
    )
    words = re.sub(
        r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(next(paragraphs, "").split())
    )
    sentence = _FIRST_SENTENCE.match(words)
    return f": {sentence[0]}" if sentence else ""


def _markdown(page: Page, files: Files) -> str:
    parts = _CODE.split(page.markdown or "")
    parts[::2] = [_prose(part, page, files) for part in parts[::2]]
    return "".join(parts)


def _prose(text: str, page: Page, files: Files) -> str:
    folder = posixpath.dirname(page.file.src_uri)

    def link(found: re.Match[str]) -> str:
        target = files.get_file_from_path(
            posixpath.normpath(posixpath.join(folder, found["path"]))
        )
        if target is None:
            return found[0]
        to = _address(target.page) if target.page else target.dest_uri
        here = posixpath.dirname(_address(page)) or "."
        return f"]({posixpath.relpath(to, here)}{found['anchor'] or ''})"

    text = _NAME.sub(
        lambda name: "\n".join(plain(name["path"])) + "\n", _COMMENT.sub("", text)
    )
    return _LINK.sub(link, text)
