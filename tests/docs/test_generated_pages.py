"""The generated parts of the reference pages have every command, error and event, in words of the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import attrs
import pytest

from kantan_agents.core.events import EVENT_KINDS, EventBase

from .pages import ROOT, Page
from .scripts import load

check_words = load("check_words")

PAGES = ("command-line", "errors", "events")
MESSAGE_HAS_THE_FIX = {
    *("E25", "E28", "E37", "E46", "E67", "E68", "E71", "E74", "E78", "E96", "E124", "E130", "E140"),
    *("E153", "E163", "E170", "E198", "E199", "E206"),
}


@pytest.fixture(scope="module")
def hook() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")  # as mkdocs does for a hook
        yield load("generated_pages")


@cache  # importing and describing every command takes a second
def markdown(hook: ModuleType, name: str) -> str:
    text = Page(ROOT / "docs" / "reference" / f"{name}.md").text
    written, generated, _ = text.partition(f"<!-- generated: {name} -->")
    assert generated
    replaced: str = hook.on_page_markdown(text)
    assert replaced.startswith(written)
    return replaced


def test_every_generated_part_is_in_its_page(hook: ModuleType) -> None:
    assert tuple(hook.GENERATED) == PAGES
    for name in PAGES:
        assert "<!-- generated" not in markdown(hook, name)


@pytest.mark.parametrize("name", PAGES)
def test_the_words_are_those_of_the_pages(hook: ModuleType, name: str) -> None:
    assert list(check_words.in_markdown(markdown(hook, name))) == []


@pytest.mark.parametrize("name", PAGES)
def test_every_anchor_is_unique(hook: ModuleType, name: str) -> None:
    headings = re.findall("^#+ (.+)$", markdown(hook, name), re.MULTILINE)
    assert len(headings) == len(set(headings))


def test_every_error_has_a_heading_with_its_code_its_message_and_a_fix(hook: ModuleType) -> None:
    text = markdown(hook, "errors")
    for error in hook.errors.classes():
        heading = f"### {error.code} `{error.__name__}` {{#{error.code.lower()}}}\n"
        assert f"\n{heading}" in text
        section = text.partition(heading)[2].partition("\n### ")[0]
        assert error.template in section
        assert section.splitlines()[3].endswith("."), "there is no cause"
        if "**Fix:** " in section:
            assert error.code not in MESSAGE_HAS_THE_FIX
        else:
            assert error.code in MESSAGE_HAS_THE_FIX or "reason}" in error.template, error.code


def test_every_event_is_listed_with_a_description_of_each_field(hook: ModuleType) -> None:
    text = markdown(hook, "events")
    common = [field.name for field in attrs.fields(EventBase)]
    for kind in EVENT_KINDS:
        section = text.partition(f"\n### `{kind.type}`\n")[2].partition("\n### ")[0]
        assert f"Class `{kind.__name__}`." in section
        listed = re.findall(r"^\| `(\w+)` \| `.+` \| .+ \|$", section, re.MULTILINE)
        assert listed == [field.name for field in attrs.fields(kind) if field.name not in common]


def test_every_command_is_listed_with_its_options(hook: ModuleType) -> None:
    text = markdown(hook, "command-line")
    for name, command in hook.command_line.commands():
        section = re.split(rf"\n##+ `{name}`\n", text)[1].partition("\n## ")[0].partition("\n### ")[0]
        for parameter in command.params:
            assert parameter.help
            if parameter.param_type_name == "option" and "--help" not in parameter.opts:
                assert_listed(section, parameter)


def assert_listed(section: str, option: Any) -> None:
    for name in [*option.opts, *option.secondary_opts]:
        assert re.search(rf"^\| .*`{name}[ `]", section, re.MULTILINE), name
