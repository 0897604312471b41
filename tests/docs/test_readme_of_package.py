"""The README as package indexes show it has no link that needs the repository."""

from __future__ import annotations

import re

import pytest

from .pages import ROOT
from .scripts import load

published = load("readme_of_package").published
README = (ROOT / "README.md").read_text()
URLS = {"Documentation": "https://docs.example/", "Source": "https://code.example/blob/main"}


def targets(text: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", text)


@pytest.mark.parametrize("urls", [{}, URLS], ids=["unknown", "known"])
def test_the_readme_has_absolute_links_only(urls: dict[str, str]) -> None:
    found = targets(published(README, urls))
    assert found
    assert [target for target in found if not target.startswith("https://")] == []


def test_with_known_urls_every_link_leads_to_its_page() -> None:
    assert len(targets(published(README, URLS))) == len(targets(README))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](docs/guides/tools.md#x)", "[a](https://docs.example/guides/tools/#x)"),
        ("[a](docs/decisions/index.md)", "[a](https://docs.example/decisions/)"),
        ("![a](docs/assets/a.svg)", "![a](https://docs.example/assets/a.svg)"),
        ("[a](CHANGELOG.md)", "[a](https://code.example/blob/main/CHANGELOG.md)"),
        ("[a](https://example.com)", "[a](https://example.com)"),
        ("```\n[a](b)\n```", "```\n[a](b)\n```"),
    ],
)
def test_a_relative_link_leads_to_the_site_or_to_the_source(text: str, expected: str) -> None:
    assert published(text, URLS) == expected


def test_without_urls_the_text_of_a_link_stays_and_the_pages_are_located() -> None:
    assert (
        published("See [a](docs/a.md) and [b](https://b.example).", {}) == "See a and [b](https://b.example)."
    )
    assert published("![a](docs/a.svg)", {}) == ""
    assert "in the folder `docs` of the source distribution" in published(README, {})
