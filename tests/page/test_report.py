"""The report file: opened from the disk by a browser without a network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from typer.testing import CliRunner

from kantan_agents import TraceStore
from kantan_agents.cli.app import app
from kantan_agents.middleware import Redact
from kantan_agents.page.data.read_run import read_run
from kantan_agents.page.report import report_page, write_run_report
from kantan_agents.page.report.file import MODULES, joined_script, read_static
from tests.traces.store.sample_database import open_sample


@pytest.fixture
def offline(window: BrowserContext, page: Page) -> Iterator[Page]:
    """A page without a network, whose only request may be the file itself."""
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    window.set_offline(True)
    yield page
    assert [url for url in requests if not url.startswith("file:")] == []
    assert len(requests) == 1


def report(store: TraceStore, path: Path, *arguments: str) -> str:
    result = CliRunner().invoke(
        app,
        ["traces", "report", *arguments, "--db", str(store.path), "-o", str(path)],
        catch_exceptions=False,
    )
    assert result.exit_code == 0, result.output
    return path.read_text()


def test_it_shows_a_run_as_the_page_does(store: TraceStore, offline: Page, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    report(store, path, "LAST")
    offline.goto(path.as_uri())
    expect(offline.get_by_role("heading", level=1)).to_have_text("support")
    offline.keyboard.press("j")
    offline.get_by_role("treeitem").filter(has_text="refund_order").first.click()
    details = offline.get_by_role("region", name="Details")
    expect(details).to_contain_text("denied E15 by params: refund_order.order_id.pattern in explicit")
    offline.get_by_role("treeitem").filter(has_text="model").first.click()
    expect(details).to_contain_text("Help Aiko.")
    details.get_by_text("As JSON").click()
    expect(details).to_contain_text('"is_streamed"')  # it is filled after it was opened
    shown = json.loads(details.locator("pre").last.inner_text())
    assert shown["call"]["instructions"]["text"] == "Help Aiko."
    assert shown["call"]["input"][0]["text"]["text"] == "Please refund 7"


def test_several_runs_are_chosen_from_a_list(store: TraceStore, offline: Page, tmp_path: Path) -> None:
    path = tmp_path / "runs.html"
    report(store, path, "--agent", "support", "--limit", "3")
    offline.goto(path.as_uri())
    buttons = offline.get_by_role("navigation").get_by_role("button")
    expect(buttons).to_have_count(3)
    buttons.nth(2).click()
    expect(offline.locator(".problem").first).to_contain_text("the key has expired")
    expect(buttons.nth(2)).to_have_attribute("aria-current", "true")


def test_hostile_texts_are_texts(offline: Page, tmp_path: Path) -> None:
    text = '</script><script>window.hit=1</script><img src=x onerror="window.hit=1"> <!-- \u2028 ]]>'
    with open_sample(tmp_path / "t.db") as database:
        trace = database.trace("trace_hostile", {"agent_name": text})
        database.span(trace, "function", name=text, input=text, output=text)
        write_run_report([read_run(TraceStore(database.path), trace)], tmp_path / "run.html")
    offline.goto((tmp_path / "run.html").as_uri())
    offline.get_by_role("treeitem").first.click()
    expect(offline.get_by_role("region", name="Details")).to_contain_text("<img src=x")
    assert offline.evaluate("window.hit") is None


def test_it_masks_more_on_request(store: TraceStore, tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        database.run("write to aiko@example.org", "done")
        other = TraceStore(database.path)
        assert "aiko@example.org" in report(other, tmp_path / "open.html", "LAST")
        masked = report(other, tmp_path / "masked.html", "LAST", "--redact", "default")
        assert "aiko@example.org" not in masked and "[email]" in masked


def test_a_masked_report_is_still_put_together(store: TraceStore, offline: Page, tmp_path: Path) -> None:
    numbers = Redact({"digit": "[0-9]"})
    write_run_report([read_run(store, "LAST")], tmp_path / "run.html", redact=numbers)
    offline.goto((tmp_path / "run.html").as_uri())
    expect(offline.locator(".summary time")).to_be_visible()
    expect(offline.get_by_role("treeitem")).to_have_count(8)
    offline.get_by_role("treeitem").nth(2).click()
    expect(offline.get_by_role("region", name="Details")).to_contain_text('"order_id": "[digit]"')


def test_a_password_is_found_by_its_name(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        database.run("hello", password="correct horse")
        run = read_run(TraceStore(database.path), "LAST")
        write_run_report([run], tmp_path / "run.html", redact=Redact())
    assert "correct horse" not in (tmp_path / "run.html").read_text()


def test_nothing_is_left_at_the_end_of_a_cut_text(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        # The address begins before the place at which the text is cut, and ends behind it.
        database.run("x" * 19_990 + " aiko.tanaka@example.org", "done")
        run = read_run(TraceStore(database.path), "LAST")
        assert "aiko.tan" in str(run)
        write_run_report([run], tmp_path / "run.html", redact=Redact())
    assert "aiko.tan" not in (tmp_path / "run.html").read_text()


def test_a_new_file_is_for_its_owner_and_an_old_one_keeps_its_mode(store: TraceStore, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    report(store, path, "LAST")
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    report(store, path, "LAST")
    assert path.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in tmp_path.iterdir()] == ["run.html"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "E61"),
        (["--agent", "nobody"], "no run passes these filters"),
        (["LAST", "--agent", "support"], "give a run or filters, not both"),
        (["LAST", "--redact", "nothing"], "MODULE:NAME"),
        (["LAST", "--redact", "json:dumps"], "is not a Redact"),
        (["LAST", "-o", "no/such/folder/run.html"], "E79"),
    ],
)
def test_what_is_wrong_is_one_line(store: TraceStore, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["traces", "report", "--db", str(store.path), *arguments])
    text = f"{result.output}{result.exception or ''}"
    assert result.exit_code != 0 and message in text


def test_the_names_of_the_joined_modules_differ() -> None:
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", joined_script(), flags=re.MULTILINE)
    assert len(names) == len(set(names)) > 40


def test_every_module_that_is_imported_is_joined_before() -> None:
    for place, module in enumerate(MODULES):
        for imported in re.findall(r'^import .* from "([^"]+)";$', read_static(module), flags=re.MULTILINE):
            path = urljoin(module, imported)
            assert path in MODULES[:place], f"{module} imports {path}"


def test_an_import_that_the_file_could_not_load_would_be_left_in_the_script() -> None:
    assert "import " not in re.sub(r"//.*", "", joined_script())
    assert not re.search(r"^export ", joined_script(), flags=re.MULTILINE)


def test_a_page_without_runs_is_a_page() -> None:
    assert '<script type="application/json" id="data">[]</script>' in report_page([])
