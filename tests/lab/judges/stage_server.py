"""A model server that chooses its reply by the stage of a request, not by the number of the request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from kantan_llm import AsyncClientBundle

from kantan_agents import StatusJudge
from kantan_agents.testing import OfflineServer, RecordedRequest, ReplyLike

STRUCTURED, TAGGED, EVALUATION = "structured", "tagged", "evaluation"
RULES = ("all tests pass", "some tests fail", "nothing was done")

# Text that only the instructions of one stage contain, in every language.
_MARKS = {STRUCTURED: "`step`", EVALUATION: "`matched_index`"}


def stage_of(request: RecordedRequest) -> str:
    text = everything(request)
    return next((stage for stage, mark in _MARKS.items() if mark in text), TAGGED)


def everything(request: RecordedRequest) -> str:
    return json.dumps(request.body, ensure_ascii=False)


def instructions_of(request: RecordedRequest) -> str:
    return str(request.body["instructions"])


def input_of(request: RecordedRequest) -> str:
    # Later items only appear when an answer is requested again; these tests ignore them.
    return str(request.body["input"][0]["content"])


class Shared:
    """One server for all tests of this folder, because stopping one takes a tenth of a second."""

    def __init__(self) -> None:
        self.answer: Callable[[str, RecordedRequest], ReplyLike] = lambda _stage, _request: ""
        self.server = OfflineServer(lambda request: self.answer(stage_of(request), request))


SHARED = Shared()


@cache
def bundle() -> AsyncClientBundle:
    """Return the client that all tests share, because creating one takes as long as several judgements."""
    made = SHARED.server.bundle()
    made.client.max_retries = 0
    return made


def answering(**replies: ReplyLike) -> AbstractContextManager[OfflineServer]:
    """Let the server answer each stage with a fixed reply, by default one that decides nothing."""
    return answering_with(lambda stage, _request: replies.get(stage, "I cannot say."))


@contextmanager
def answering_with(answer: Callable[[str, RecordedRequest], ReplyLike]) -> Iterator[OfflineServer]:
    SHARED.answer = answer
    SHARED.server.requests.clear()
    yield SHARED.server


def called_stages(server: OfflineServer) -> list[str]:
    """Return the stages that called the model, in order; a stage may send more than one request."""
    stages: list[str] = []
    for stage in map(stage_of, server.requests):
        if stages[-1:] != [stage]:
            stages.append(stage)
    return stages


def make_judge(rules: Any = RULES, **options: Any) -> StatusJudge:
    return StatusJudge(rules, model=bundle(), **options)
