"""The capture of one model call."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from agents import ModelResponse

from kantan_agents.agent.bridge.captured.collector import Collector, error_data
from kantan_agents.agent.bridge.captured.definitions import encode
from kantan_agents.core.answers import CUT_OFF
from kantan_agents.core.interception import redacted_data
from kantan_agents.core.usage import usage_numbers
from kantan_agents.models.finish_reasons import finish_reason
from kantan_agents.models.protocol.translate.openai_responses.provider_data import without_media
from kantan_agents.traces.capture.shared import shared_item


class ModelCallCapture:
    """A model call that has started."""

    def __init__(self, capture: Collector, data: dict[str, Any], place: int) -> None:
        self._capture = capture
        self._place = place
        self.data = data
        self._begun = perf_counter()

    def answered(self, answer: ModelResponse, *, reports_usage: bool = True) -> None:
        """Capture the answer, with its tokens if reported."""
        self.data["seconds"] = perf_counter() - self._begun
        try:
            requests, run = self._capture.requests, self._capture.run
            items = redacted_data(run, [_item_data(item) for item in answer.output])
            packed = [encode(item) for item in items]
            requests.answered, requests.answered_by = packed, self._place
            requests.size += sum(map(len, packed))
            usage = answer.usage
            data: dict[str, Any] = {
                "output": [shared_item(item) for item in packed],
                "usage": usage_numbers(usage) if reports_usage else {"requests": usage.requests},
            }
            if answer.response_id:
                data["response_id"] = answer.response_id
            ending = finish_reason(answer)
            if ending in CUT_OFF:
                data["cut_off"] = ending
            self.data["answer"] = data
        except Exception as error:  # noqa: BLE001 - recording must not fail a run
            self._capture.failed("an answer", error)

    def failed(self, error: BaseException, *, has_begun: bool = False, is_superseded: bool = False) -> None:
        """Capture the error or cancellation; ``has_begun``: after a part of the answer."""
        if has_begun:
            self.data["broke_off"] = True
        if is_superseded:
            self.data["is_superseded"] = True
        self.data["seconds"] = perf_counter() - self._begun
        try:
            self.data["error"] = error_data(self._capture.run, error)
        except Exception as raised:  # noqa: BLE001 - recording must not fail a run
            self._capture.failed("an error", raised)


def _item_data(item: Any) -> Any:
    dump = getattr(item, "model_dump", None)
    return without_media(item if dump is None else dump(mode="json", exclude_unset=True, warnings=False))
