"""The labelling queue: what its endpoints promise, and how a person uses it in a browser."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import agents
import attrs
import pytest
from playwright.sync_api import BrowserContext, Page, expect
from starlette.testclient import TestClient

from kantan_agents import TraceStore
from kantan_agents.lab import Evaluation, LabelQueue, add_label, labels_of
from kantan_agents.lab.evaluation.experiment.tables import EVALUATIONS, RESULTS
from kantan_agents.page import traces_app
from kantan_agents.page.api.labels import LARGEST_BODY
from kantan_agents.page.data.label_queue import QueueRequest
from tests.lab.evaluation.labels.shop import copied, evaluate_shop
from tests.page.served import apart, served

ASKED = {"evaluation": "shop", "metric": "helpful", "by": "aiko", "scale": "0-1"}
HIDDEN = {"score", "scores", "judge", "variant", "variants", "trace_id"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labels") / "traces.sqlite3"
    agents.set_trace_processors([])
    apart(lambda: evaluate_shop(path, 3, context={"customer": {"name": "Aiko"}}, expected="right"))
    return path


@pytest.fixture
def evaluation(recorded: Path) -> Iterator[Evaluation]:
    with copied(recorded) as found:
        yield found


class Window:
    """An opened page: sends requests as it does."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.app = traces_app(path, **options)
        self.client = TestClient(self.app, base_url="http://127.0.0.1:4711")
        self.token = self.app.state.page.token
        self.said: list[str] = []

    def post(self, path: str, status: int = 200, **body: Any) -> Any:
        response = self.client.post(
            f"/api/labels{path}", json={**ASKED, **body}, headers={"X-Kantan-Token": self.token}
        )
        self.said.append(response.text)
        assert response.status_code == status, response.text
        return response.json()

    def next(self, **body: Any) -> Any:
        return self.post("/next", **body)

    def answer(self, value: Any, **body: Any) -> Any:
        return self.post("", item=self.next(**body)["item"]["id"], value=value, **body)

    def choices(self, **query: Any) -> Any:
        response = self.client.get("/api/labels", params=query)
        assert response.status_code == 200, response.text
        return response.json()


@pytest.fixture
def asking(evaluation: Evaluation) -> Window:
    return Window(evaluation.path)


def keys(data: Any) -> set[str]:
    if isinstance(data, dict):
        return set(data) | {key for value in data.values() for key in keys(value)}
    return {key for value in data for key in keys(value)} if isinstance(data, list) else set()


def test_a_case_is_shown_without_scores_variant_and_trace(evaluation: Evaluation, asking: Window) -> None:
    found = asking.next()
    assert keys(found).isdisjoint(HIDDEN)
    item = found["item"]
    result = next(one for one in evaluation.results if one.output == item["output"]["text"])
    assert item["case"] == result.case_id
    assert item["input"]["shown"][0]["text"].startswith("question ")
    assert item["context"]["shown"][0] == {"name": "customer", "text": '{"name": "Aiko"}', "length": 16}
    assert item["expected"]["text"] == "right"
    for secret in ("v1", "v2", result.trace_id, str(result.scores["helpful"].value)):
        assert f'"{secret}"' not in json.dumps(found)
    assert found["progress"] == {"total": 6, "labelled": 0, "skipped": 0}


def test_the_judges_score_is_in_no_response_before_the_answer_is_stored(
    evaluation: Evaluation, asking: Window
) -> None:
    for number in range(6):
        asking.choices(by="aiko")
        before = len(labels_of(evaluation))
        item = asking.next()["item"]["id"]
        asking.post("", 400, item=item, value=7)
        assert len(labels_of(evaluation)) == before
        assert all(keys(json.loads(one)).isdisjoint(HIDDEN) for one in asking.said)
        answered = asking.post("", item=item, value=number % 2)
        assert len(labels_of(evaluation)) == before + 1
        label = max(labels_of(evaluation), key=lambda one: one.created_at)
        result = next(
            one for one in evaluation.results if (one.case_id, one.variant) == (label.case_id, label.variant)
        )
        assert answered["judge"]["value"] == result.scores["helpful"].value
        assert answered["agrees"] is ((number % 2 == 1) == (answered["judge"]["value"] >= 0.5))
        asking.said.clear()


def test_the_variants_are_shown_when_both_of_a_case_are_answered(asking: Window) -> None:
    first, second = asking.answer(1), asking.answer(0.25)
    assert first["variants"] == []
    assert {one["name"] for one in second["variants"]} == {"v1", "v2"}
    assert [one["is_this"] for one in second["variants"]].count(True) == 1


def test_the_queue_is_that_of_the_command_line(evaluation: Evaluation, asking: Window) -> None:
    queue = LabelQueue.of(evaluation, "helpful", by="aiko", sample=2, seed=5, scale="1-5")
    expected = [(one.case_id, one.output) for one in queue]
    asked: dict[str, Any] = {"sample": 2, "seed": 5, "scale": "1-5"}
    found = []
    while (item := asking.next(**asked)["item"]) is not None:
        found.append((item["case"], item["output"]["text"]))
        asking.post("", item=item["id"], value=4, comment="fine", **asked)
    assert found == expected
    labels = labels_of(evaluation)
    assert {(one.value, one.label, one.comment, one.probability) for one in labels} == {
        (0.75, "4", "fine", 2 / 3)
    }


def test_what_is_skipped_comes_last_and_the_end_has_the_agreement(asking: Window) -> None:
    skipped = asking.next()["item"]["id"]
    said = []
    while (found := asking.next(skipped=[skipped]))["item"] is not None:
        said.append(asking.post("", item=found["item"]["id"], value=1)["agrees"])
    assert found["progress"] == {"total": 6, "labelled": 5, "skipped": 1}
    assert found["agreement"] == {"compared": 5, "agree": said.count(True)}
    assert asking.next()["item"]["id"] == skipped


def test_an_answer_is_taken_back_once(evaluation: Evaluation, asking: Window) -> None:
    item = asking.next()["item"]["id"]
    receipt = asking.post("", item=item, value=1)["receipt"]
    assert asking.next()["item"]["id"] != item
    assert asking.post("/undo", receipt=receipt) == {"undone": True}
    assert labels_of(evaluation) == ()
    assert asking.next()["item"]["id"] == item
    assert asking.post("/undo", 409, receipt=receipt)["error"]["code"] == "changed"


def test_undo_changes_nothing_if_the_label_was_changed_meanwhile(
    evaluation: Evaluation, asking: Window
) -> None:
    receipt = asking.answer(1)["receipt"]
    (label,) = labels_of(evaluation)
    add_label(evaluation, label.case_id, label.variant, 0, "helpful", 0.5, by="aiko")
    asking.post("/undo", 409, receipt=receipt)
    assert [one.value for one in labels_of(evaluation)] == [0.5]


def test_undo_brings_a_label_back_that_was_picked_by_hand(evaluation: Evaluation, asking: Window) -> None:
    item = asking.next()["item"]
    result = next(one for one in evaluation.results if one.output == item["output"]["text"])
    add_label(evaluation, result.case_id, result.variant, 0, "helpful", 0.5, by="aiko", comment="by hand")
    before = labels_of(evaluation)
    receipt = asking.post("", item=item["id"], value=1)["receipt"]
    assert [one.value for one in labels_of(evaluation)] == [1.0]
    asking.post("/undo", receipt=receipt)
    assert labels_of(evaluation) == before


def test_only_a_receipt_of_this_server_is_accepted(evaluation: Evaluation, asking: Window) -> None:
    other = Window(evaluation.path).answer(1)["receipt"]
    packed, _, mark = asking.answer(1)["receipt"].partition(".")
    for forged in (other, f"{packed}.{'0' * 64}", f"x{packed}.{mark}", "", ".", "é.é", None, 7, packed):
        assert asking.post("/undo", 400, receipt=forged)["error"]["code"] == "E75"
    assert len(labels_of(evaluation)) == 2


def test_a_second_window_of_the_same_person_overwrites_nothing(
    evaluation: Evaluation, asking: Window
) -> None:
    other = Window(evaluation.path)
    item, same = asking.next()["item"], other.next()["item"]
    assert item["output"] == same["output"]
    asking.post("", item=item["id"], value=1)
    error = other.post("", 409, item=same["id"], value=0)["error"]
    assert (error["code"], "another window: 1" in error["message"]) == ("labelled", True)
    assert [one.value for one in labels_of(evaluation)] == [1.0]
    assert other.next()["item"]["output"] != item["output"]


def test_two_people_answer_about_the_same_result_side_by_side(evaluation: Evaluation, asking: Window) -> None:
    while (item := asking.next()["item"]) is not None:
        asking.post("", item=item["id"], value=1)
    while (item := asking.next(by="bo")["item"]) is not None:
        asking.post("", item=item["id"], value=0, by="bo")
    assert {(one.by, one.value) for one in labels_of(evaluation)} == {("aiko", 1.0), ("bo", 0.0)}
    assert len(labels_of(evaluation)) == 12


def test_a_result_that_is_deleted_meanwhile_is_said_to_be(evaluation: Evaluation, asking: Window) -> None:
    item = asking.next()["item"]
    result = next(one for one in evaluation.results if one.output == item["output"]["text"])
    with closing(sqlite3.connect(evaluation.path)) as connection, connection:
        connection.execute(f"DELETE FROM {RESULTS} WHERE trace_id = ?", (result.trace_id,))
    error = asking.post("", 410, item=item["id"], value=1)["error"]
    assert error == {"code": "deleted", "message": "This result was deleted meanwhile. Nothing was stored."}
    found = asking.next()
    assert found["item"]["id"] != item["id"] and found["progress"]["total"] == 5
    TraceStore(evaluation.path).prune(keep=0)
    assert asking.post("/next", 404)["error"]["code"] == "E104"


def test_a_damaged_result_can_be_skipped(evaluation: Evaluation, asking: Window) -> None:
    output = asking.next()["item"]["output"]["text"]
    result = next(one for one in evaluation.results if one.output == output)
    with closing(sqlite3.connect(evaluation.path)) as connection, connection:
        connection.execute(f"UPDATE {RESULTS} SET body = '[' WHERE trace_id = ?", (result.trace_id,))
    item = asking.next()["item"]
    assert "[E60]" in item["problem"]
    assert "output" in asking.next(skipped=[item["id"]])["item"]


@pytest.mark.parametrize(
    "body", ["{}", "[]", "7", '{"cases": 3}', '{"variants": {"v": 1}, "cases": [], "evaluators": {}}']
)
def test_a_damaged_evaluation_is_named_as_one(evaluation: Evaluation, asking: Window, body: str) -> None:
    with closing(sqlite3.connect(evaluation.path)) as connection, connection:
        connection.execute(f"UPDATE {EVALUATIONS} SET body = ?", (body,))
    (found,) = asking.choices(by="aiko")["evaluations"]
    assert "is damaged" in found["problem"] and found["metrics"] == []
    assert asking.post("/next", 400)["error"]["code"] == "E60"


def test_an_older_file_without_evaluations_has_nothing_to_label(tmp_path: Path, asking: Window) -> None:
    from tests.traces.store.sample_database import open_sample

    with open_sample(tmp_path / "old.sqlite3") as database:
        database.run("hello")
        window = Window(database.path)
        assert window.choices(by="aiko")["evaluations"] == []
        assert window.post("/next", 404)["error"]["code"] == "E104"


def test_the_choices_count_what_waits_for_a_person(asking: Window) -> None:
    asking.answer(1)
    (found,) = asking.choices(by="aiko")["evaluations"]
    assert (found["name"], found["dataset"], found["variants"], found["finished"]) == (
        "shop",
        "questions",
        2,
        6,
    )
    assert found["metrics"] == [
        {"name": "generous", "judged": True, "people": 0, "scale": "yesno", "waiting": 6},
        {"name": "helpful", "judged": True, "people": 1, "scale": "0-1", "waiting": 5},
    ]
    (found,) = asking.choices()["evaluations"]
    assert [one["waiting"] for one in found["metrics"]] == [None, None]


@pytest.mark.parametrize(
    ("change", "option"),
    [
        ({"evaluation": None}, "evaluation"),
        ({"metric": ""}, "metric"),
        ({"metric": " x"}, "metric"),
        ({"by": 3}, "by"),
        ({"by": "\ud83d"}, "by"),
        ({"scale": "5-1"}, "scale"),
        ({"scale": {"a": 1}}, "scale"),
        ({"sample": 0}, "sample"),
        ({"sample": True}, "sample"),
        ({"seed": -1}, "seed"),
        ({"skipped": "x"}, "skipped"),
        ({"skipped": [["x"]]}, "skipped"),
    ],
)
def test_bad_values_are_named(asking: Window, change: dict[str, Any], option: str) -> None:
    error = asking.client.post(
        "/api/labels/next",
        content=json.dumps({**ASKED, **change}),
        headers={"X-Kantan-Token": asking.token, "Content-Type": "application/json"},
    )
    assert error.status_code == 400, error.text
    assert f"option {option}" in error.json()["error"]["message"] or "JSON" in error.text


@pytest.mark.parametrize("value", [None, "1", 2, -0.1, [], {}])
def test_an_answer_that_is_not_on_the_scale_is_not_stored(
    evaluation: Evaluation, asking: Window, value: Any
) -> None:
    asking.post("", 400, item=asking.next()["item"]["id"], value=value)
    assert labels_of(evaluation) == ()


@pytest.mark.parametrize("path", ["", "/next", "/undo"])
def test_changes_need_the_token_json_and_a_small_body(
    evaluation: Evaluation, asking: Window, path: str
) -> None:
    url, good = f"/api/labels{path}", {"X-Kantan-Token": asking.token, "Content-Type": "application/json"}
    body = json.dumps({**ASKED, "item": "x", "value": 1})

    def status(content: bytes | str = body, **headers: str) -> int:
        given = {name.replace("_", "-"): value.encode() for name, value in headers.items()}
        return asking.client.post(
            url, content=content, headers={**{key: value.encode() for key, value in good.items()}, **given}
        ).status_code

    for token in ("", "x", asking.token[:-1], f"{asking.token} x", "\xe9"):
        assert status(X_Kantan_Token=token) == 403
    assert asking.client.post(url, content=body).status_code == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        assert status(Content_Type=kind) == 415
    assert status(b" " * (LARGEST_BODY + 1)) == 413
    for broken in (b"", b"[]", b"7", b"{", b"\xff", b"[" * 20_000):
        assert status(broken) == 400
    assert status() in (200, 400, 410)
    assert labels_of(evaluation) == ()


def test_a_page_that_only_shows_takes_no_labels(evaluation: Evaluation) -> None:
    window = Window(evaluation.path, may_label=False)
    assert window.choices()["may_label"] is False
    for path in ("", "/next", "/undo"):
        assert window.post(path, 403)["error"]["code"] == "read-only"


def test_long_texts_are_cut_and_say_how_long_they_are(evaluation: Evaluation, asking: Window) -> None:
    with closing(sqlite3.connect(evaluation.path)) as connection, connection:
        for number, body in connection.execute(f"SELECT id, body FROM {RESULTS}").fetchall():
            changed = json.dumps({**json.loads(body), "output": "x" * 50_000})
            connection.execute(f"UPDATE {RESULTS} SET body = ? WHERE id = ?", (changed, number))
    output = asking.next()["item"]["output"]
    assert (len(output["text"]), output["length"]) == (20_000, 50_000)


def test_what_is_asked_for_has_a_usual_scale_and_seed() -> None:
    asked = QueueRequest.of({"evaluation": "e", "metric": "m", "by": "b"})
    assert (asked.scale.text, asked.seed, asked.sample) == ("y, n or 0 to 1", 0, None)


def test_a_person_labels_with_the_keyboard_alone(evaluation: Evaluation, page: Page) -> None:
    with served(traces_app(evaluation.path)) as address:
        page.goto(f"{address}/#/label")
        page.get_by_label("Your name").fill("aiko")
        page.get_by_label("Metric").fill("helpful")
        page.keyboard.press("Enter")
        expect(page.get_by_text("0 of 6 labelled")).to_be_visible()
        page.keyboard.press("y")
        expect(page.get_by_text("judge:")).to_be_visible()
        expect(page.get_by_role("button", name="Next")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_text("judge:")).not_to_be_visible()
        expect(page.get_by_role("button", name="Skip")).to_be_visible()
        page.keyboard.press("c")
        page.keyboard.type("yes and no")
        page.keyboard.press("Enter")
        page.keyboard.press("n")
        expect(page.get_by_text("2 of 6 labelled")).to_be_visible()
        expect(page.get_by_text("this was")).to_be_visible()
        page.keyboard.press("u")
        expect(page.get_by_text("The last answer was taken back.")).to_be_visible()
        expect(page.get_by_text("1 of 6 labelled")).to_be_visible()
        page.keyboard.press("s")
        expect(page.get_by_text("1 of 6 labelled, 1 skipped")).to_be_visible()
    assert [one.value for one in labels_of(evaluation)] == [1.0]


def test_the_next_case_follows_at_once_if_the_reader_likes_and_the_end_says_how_well_they_agree(
    evaluation: Evaluation, page: Page
) -> None:
    with served(traces_app(evaluation.path)) as address:
        page.goto(f"{address}/#/label")
        page.get_by_label("Your name").fill("aiko")
        page.get_by_label("Metric").fill("helpful")
        page.get_by_label("Scale").select_option("1-5")
        page.get_by_role("button", name="Start").click()
        page.get_by_label("go on at once").check()
        for number in range(6):
            expect(page.locator(".label-item")).to_have_attribute("aria-busy", "false")
            expect(page.get_by_text(f"{number} of 6 labelled")).to_be_visible()
            page.keyboard.press("4")
        expect(page.get_by_role("heading", level=1)).to_have_text("Done")
        expect(page.get_by_text("You agree with the judge on")).to_be_visible()
    assert {(one.value, one.label) for one in labels_of(evaluation)} == {(0.75, "4")}


def test_two_windows_of_one_person_lose_nothing(evaluation: Evaluation, window: BrowserContext) -> None:
    with served(traces_app(evaluation.path)) as address:
        first, second = window.new_page(), window.new_page()
        first.goto(f"{address}/#/label")
        first.get_by_label("Your name").fill("aiko")
        first.get_by_label("Metric").fill("helpful")
        first.get_by_role("button", name="Start").click()
        expect(first.get_by_text("0 of 6 labelled")).to_be_visible()
        second.goto(first.url)
        expect(second.get_by_text("0 of 6 labelled")).to_be_visible()
        first.keyboard.press("y")
        expect(first.get_by_text("judge:")).to_be_visible()
        second.keyboard.press("n")
        expect(second.get_by_role("alert")).to_contain_text("in another window: 1. That answer was kept.")
        second.keyboard.press("Enter")
        expect(second.get_by_text("1 of 6 labelled")).to_be_visible()
    assert [one.value for one in labels_of(evaluation)] == [1.0]


def test_a_window_of_an_earlier_server_is_asked_to_load_the_page_again(
    evaluation: Evaluation, window: BrowserContext
) -> None:
    app = traces_app(evaluation.path)
    with served(app) as address:
        opened = window.new_page()
        opened.goto(f"{address}/#/label")
        opened.get_by_label("Your name").fill("aiko")
        opened.get_by_label("Metric").fill("helpful")
        opened.get_by_role("button", name="Start").click()
        expect(opened.get_by_text("0 of 6 labelled")).to_be_visible()
        app.state.page = attrs.evolve(app.state.page, secret=b"that of another server")
        opened.keyboard.press("y")
        expect(opened.get_by_role("alert")).to_contain_text("Load the page again")
    assert labels_of(evaluation) == ()
