"""README and the reference pages match the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mkdocs.config import load_config

from kantan_agents import DEFAULT_STAGES, Pipeline, Prompt
from kantan_agents.models.structured.requests.families import FAMILIES
from kantan_agents.models.structured.requests.forms import FORCED_TOOL, TOOL, Form
from kantan_agents.traces.metadata import origin_metadata, prompt_metadata, run_metadata

from .pages import PAGES, ROOT, Page, code_spans, rows

README = Page(ROOT / "README.md")


def page(name: str) -> Page:
    return Page(ROOT / "docs" / f"{name}.md")


def test_the_readme_has_each_of_the_two_commands_in_its_own_block() -> None:
    commands = [block.code.strip() for block in README.blocks("bash")]
    assert "python -m pip install . && kantan-agents demo" in commands
    assert 'python -m pip install -e ".[dev]" && python -m pytest' in commands


def standard_keys() -> set[str]:
    prompt = Prompt("name", "version", "text", meta={"any": "thing"})
    metadata = run_metadata({}, prompt_metadata("agent", prompt) | origin_metadata("own: tool"), "id")
    return {"prompt_meta_*" if key.startswith("prompt_meta_") else key for key in metadata}


def test_the_metadata_table_lists_exactly_the_standard_keys() -> None:
    table = page("reference/metadata").section("Standard keys")
    keys = [key for first, *_ in rows(table) for key in code_spans(first)]
    assert sorted(keys) == sorted(standard_keys())


def test_the_architecture_lists_exactly_the_packages() -> None:
    table = page("architecture").section("Packages")
    listed = sorted(name for first, *_ in rows(table) for name in code_spans(first))
    package = ROOT / "kantan_agents"
    packages = [f"{folder.parent.name}/" for folder in package.glob("*/__init__.py")]
    modules = [module.name for module in package.glob("*.py") if not module.stem.startswith("__")]
    assert listed == sorted(packages + modules)


def test_the_architecture_lists_the_stages_in_order() -> None:
    listed = [code_spans(first)[0] for first, *_ in rows(page("architecture").section("The flow"))]
    assert tuple(listed) == Pipeline(DEFAULT_STAGES).names


def requirements() -> set[str]:
    """Return the names of all requirements of pyproject.toml (Python 3.10 has no tomllib)."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = \[(.*?)^\[project\.scripts", text, re.MULTILINE | re.DOTALL)
    assert listed
    return set(re.findall(r'"([A-Za-z][\w-]*)[^"]*"', listed[1])) - {"kantan-agents"}


def test_every_dependency_is_listed_with_a_reason() -> None:
    text = page("architecture").section("Dependencies")
    listed = [code_spans(first)[0] for first, *_ in rows(text)]
    assert sorted(listed) == sorted(requirements())


def test_every_link_of_the_readme_has_a_target() -> None:
    # Links between the pages of docs are checked by `mkdocs build --strict`.
    for target in links(README.text):
        assert (ROOT / target).exists(), target


def links(text: str) -> list[str]:
    return re.findall(r"\]\((?!https?:)([^)#]+)", text)


def test_the_navigation_has_every_page_once() -> None:
    docs = ROOT / "docs"
    config = load_config(str(ROOT / ".mkdocs.yml"))
    config.plugins.on_config(config)
    pages = [path.relative_to(docs).as_posix() for path in PAGES if path.is_relative_to(docs)]
    listed = [name for name in pages_of(config.nav) if not name.startswith("reference/api/")]
    assert sorted(listed) == sorted(pages)


def pages_of(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    for inside in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
        yield from pages_of(inside)


def test_the_table_of_provider_families_lists_their_modes_in_order() -> None:
    table = page("guides/structured-output").text.partition("| Family |")[2]
    written = {code_spans(name)[0]: cells for name, *cells in rows(table)}
    for family in FAMILIES:
        recognized_by, *tries = written.pop(family.name)
        names, _, hosts = recognized_by.partition("; ")
        assert tuple(code_spans(names)) == family.providers
        assert tuple(filter(None, hosts.split(", "))) == family.hosts
        for cell, forms in zip(tries, (family.forms, family.forms_beside_tools), strict=True):
            assert cell.partition(":")[0].split(", ") == modes_of(forms)
    assert written == {}


def modes_of(forms: tuple[Form, ...]) -> list[str]:
    # The page describes the two forms of the tool mode, forced and not, as one.
    return [form.mode for form in forms if form != TOOL or FORCED_TOOL not in forms]
