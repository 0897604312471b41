"""An answer that was cut off, on the page: in the table of runs, its filter, the timeline and the details."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from kantan_agents import Agent, TraceStore, record_traces
from kantan_agents.page import traces_app
from kantan_agents.testing import OfflineServer, Reply
from tests.page.served import apart, served


@pytest.mark.parametrize("is_recorded", [True, False], ids=["with a record", "spans only"])
def test_it_is_marked_and_found(page: Page, tmp_path: Path, is_recorded: bool) -> None:
    path = tmp_path / "traces.sqlite3"

    def record() -> None:
        recorder = record_traces(path, record_requests=is_recorded)
        with OfflineServer([Reply("Once upon", is_cut=True), "The end."]) as server:
            agent = Agent("teller", "Tell.", model=server.bundle(api="chat"))
            agent.run("The first story")
            agent.run("The second story")
        recorder.shutdown()

    apart(record)
    with served(traces_app(TraceStore(path))) as address:
        page.goto(address)
        rows = page.locator("tbody tr[data-id]")
        expect(rows).to_have_count(2)
        page.get_by_label("answers cut off").check()
        expect(rows).to_have_count(1)
        expect(rows.first).to_contain_text("cut off")
        rows.first.get_by_text("The first story").click()
        expect(page.locator("p.summary")).to_contain_text("cut off")
        expect(page.get_by_role("treeitem").filter(has_text="answer_cut_off")).to_be_visible()
        page.get_by_role("treeitem").filter(has_text="offline-model").first.click()
        details = page.get_by_role("region", name="Details")
        expect(details).to_contain_text("Once upon")
        if is_recorded:
            expect(details).to_contain_text("cut off at the limit of its tokens")
