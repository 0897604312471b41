"""Every example names the same OpenAI model, so that replacing the model changes one line."""

from __future__ import annotations

import runpy

from .pages import ROOT, Page

SCRIPT = runpy.run_path(str(ROOT / "docs" / "name_example_model.py"))
EXAMPLE_MODEL = SCRIPT["EXAMPLE_MODEL"]


def test_no_example_names_another_openai_model() -> None:
    files = list(SCRIPT["texts"]())
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    others = [str(path.relative_to(ROOT)) for path, text in texts.items() if SCRIPT["renamed"](text) != text]
    assert others == [], "run `python docs/name_example_model.py`"
    assert ROOT / "kantan_agents" / "cli" / "app.py" in files


def test_the_readme_names_the_example_model() -> None:
    assert f'model="{EXAMPLE_MODEL}"' in Page(ROOT / "README.md").text


def test_any_version_and_size_of_a_model_is_replaced() -> None:
    text = 'model="gpt-4.1-mini", or gpt-5. And `gpt-...`, `openai/...`.'
    expected = f'model="{EXAMPLE_MODEL}", or {EXAMPLE_MODEL}. And `gpt-...`, `openai/...`.'
    assert SCRIPT["renamed"](text) == expected
