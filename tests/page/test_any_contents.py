"""Whatever a database contains is shown as text: nothing runs, and nothing is loaded from elsewhere."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Page, expect

from kantan_agents.page import traces_app
from kantan_agents.testing.strategies import json_values
from tests.page.served import served
from tests.page.settled import Settling
from tests.traces.store.sample_database import SampleDatabase, open_sample

KINDS = ["function", "generation", "response", "agent", "handoff", "guardrail", "custom"]
LOADING = "main :is(img, iframe, script, object, embed, link, form[action])"
PIECES = [
    "<img src=x onerror=window.hit=1>",
    "<svg onload=window.hit=1>",
    "</script><script>window.hit=1</script>",
    "<iframe src=http://127.0.0.2/></iframe>",
    "![](http://127.0.0.2/x.png)",
    "[a](javascript:window.hit=1)",
    "{{ token }}",
    "${window.hit=1}",
    '" onfocus="window.hit=1" autofocus="',
    "\u202e",
    "\x00",
    "&lt;",
    "]]>",
    "<!--",
    "東京",
    "😀",
    "x" * 2_000,
]
texts = st.lists(
    st.one_of(st.sampled_from(PIECES), st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
    min_size=1,
    max_size=4,
).map("".join)
fields = st.one_of(texts, st.none())
spans = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(KINDS),
        "name": st.one_of(texts, st.sampled_from(["judge", "tool_refused", "agent_run"])),
        "input": fields,
        "output": fields,
        "error": st.one_of(st.none(), texts.map(lambda text: {"message": text, "data": {text: text}})),
        "data": st.one_of(st.none(), json_values(), st.fixed_dictionaries({"rubric": json_values()})),
    }
)
traces = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"agent_name": texts, "prompt_name": texts, "prompt_version": fields, "other": json_values()}
        ),
        "name": texts,
        "group": fields,
        "spans": st.lists(spans, min_size=1, max_size=5),
    }
)


def written(database: SampleDatabase, trace: dict[str, Any]) -> str:
    found = database.trace(None, trace["metadata"], name=trace["name"], group=trace["group"])
    for span in trace["spans"]:
        values = {name: value for name, value in span.items() if value is not None}
        database.span(found, values.pop("kind"), **values)
    return found


@settings(
    max_examples=6,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],  # a browser is too slow for shrinking
    suppress_health_check=list(HealthCheck),
)
@given(found=st.lists(traces, min_size=1, max_size=4))
def shows_everything_as_text(page: Page, settling: Settling, found: list[dict[str, Any]]) -> None:
    with TemporaryDirectory() as folder, open_sample(Path(folder) / "t.db") as database:
        ids = [written(database, trace) for trace in found]
        named = found[0]["metadata"]["prompt_name"]
        with served(traces_app(database.path)) as address:
            for view in (
                "runs",
                *(f"run/{one}" for one in ids),
                f"prompts/{quote(named, safe='')}",
                f"diff/{ids[0]}/{ids[-1]}",
            ):
                page.goto(f"{address}/#/{view}")
                settling.wait()
                expect(page.get_by_role("heading", level=1)).to_be_visible()
                if view.startswith("run/"):
                    for line in page.get_by_role("treeitem").all()[:6]:
                        line.click()
                assert page.evaluate("window.hit") is None
                assert page.locator(LOADING).count() == 0


def test_nothing_runs_and_nothing_is_loaded(page: Page) -> None:
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(request.url))
    page.on("dialog", lambda dialog: asked.add(f"dialog {dialog.message}"))
    shows_everything_as_text(page, Settling(page))
    assert len(asked) > 20
    assert not [url for url in asked if not url.startswith(("http://127.0.0.1:", "about:", "data:"))]
