"""A missing key or URL is an error of its own, which names the variable to set, at the first call."""

from __future__ import annotations

import logging
import pickle
from typing import Any

import pytest
from agents.models import get_default_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kantan_agents import Agent, StatusJudge, run_of
from kantan_agents.errors import ModelNotConfiguredError, ModelNotFoundError
from kantan_agents.middleware import Fallback
from kantan_agents.models.configuration import check_key
from kantan_agents.testing import OfflineServer, ScriptedModel
from tests.models.protocol.wire_server import Body, WireServer
from tests.programs import Preloaded

NAMES_AND_KEYS = [
    ("gpt-5-mini", "OPENAI_API_KEY"),
    ("openai/gpt-5-mini", "OPENAI_API_KEY"),
    ("gemini-2.5-pro", "GOOGLE_API_KEY"),
    ("google/gemini-2.5-pro", "GOOGLE_API_KEY"),
    ("claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
    ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
    ("openrouter/qwen3-8b", "OPENROUTER_API_KEY"),
    ("ollama/llama3.2", "OLLAMA_BASE_URL"),
    ("lmstudio/qwen3", "LMSTUDIO_BASE_URL"),
    ("compat/x", "KANTAN_LLM_BASE_URL"),
]
names_and_keys = pytest.mark.parametrize(("name", "variable"), NAMES_AND_KEYS)


def failure_of(model: Any, **options: Any) -> ModelNotConfiguredError:
    with pytest.raises(ModelNotConfiguredError) as caught:
        Agent("a", "b", model=model, **options).run("hi")
    return caught.value


@names_and_keys
def test_a_missing_key_or_url_names_the_model_and_the_variable_to_set(name: str, variable: str) -> None:
    error = failure_of(name)
    assert str(error).startswith(
        f"[kantan-agents][E47] Model {name} is not configured: "
        f"the environment variable {variable} is not set. "
    )
    assert (error.model, error.variable, error.code) == (name, variable, "E47")
    assert isinstance(error, ModelNotFoundError)
    assert error.__cause__ is not None
    assert run_of(error) is not None
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@names_and_keys
def test_an_empty_variable_is_as_good_as_none_and_the_error_says_that_it_is_empty(
    monkeypatch: pytest.MonkeyPatch, name: str, variable: str
) -> None:
    monkeypatch.setenv(variable, "")
    assert f"the environment variable {variable} is empty. " in str(failure_of(name))


def test_the_default_model_without_a_key_is_the_same_error() -> None:
    error = failure_of(None)
    assert (error.model, error.variable) == (get_default_model(), "OPENAI_API_KEY")


@pytest.mark.parametrize("model", ["gpt-5-mini", None])
@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("  ", "is blank"),
        ("sk-1\n", "begins or ends with white space or a line end"),
        ("sk-1\r", "begins or ends with white space or a line end"),
        ("sk-1 sk-2", "contains a space or another character that no key has"),
        ("sk-é", "contains a space or another character that no key has"),
        ('"sk-1"', "is in quotes, which are part of the value"),
    ],
)
def test_a_key_that_cannot_be_sent_is_named_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, model: Any, key: str, reason: str
) -> None:
    with OfflineServer([]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", key)
        error = failure_of(model)
        assert f"the environment variable OPENAI_API_KEY {reason}. " in str(error)
        assert "sk-" not in str(error)
        assert not server.requests


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text())
def test_a_key_is_accepted_if_and_only_if_a_header_can_hold_it(key: str) -> None:
    is_sendable = bool(key) and all("!" <= char <= "~" for char in key)
    is_quoted = key[:1] in ("'", '"') and key[-1:] == key[:1]
    try:
        check_key("m", "KEY", key)
    except ModelNotConfiguredError:
        assert not is_sendable or is_quoted
    else:
        assert is_sendable
        assert not is_quoted


@pytest.mark.parametrize(
    "url", ["localhost:1234", "127.0.0.1", "ftp://x/v1", "http://", "http://x:y/v1", "https://a b"]
)
@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("gpt-5-mini", "OPENAI_BASE_URL"),
        (None, "OPENAI_BASE_URL"),
        ("claude-sonnet-4-5", "ANTHROPIC_BASE_URL"),
        ("ollama/llama3.2", "OLLAMA_BASE_URL"),
    ],
)
def test_a_variable_that_holds_no_url_is_named_with_what_it_holds(
    monkeypatch: pytest.MonkeyPatch, name: Any, variable: str, url: str
) -> None:
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(key, "k")
    monkeypatch.setenv(variable, url)
    assert f"the environment variable {variable} must be an http(s) URL, not {url!r}" in str(failure_of(name))


def test_a_module_with_agents_can_be_imported_without_a_key(preloaded: Preloaded) -> None:
    module = (
        "from kantan_agents import Agent\n"
        "from kantan_agents.middleware import Fallback\n"
        "a = Agent('a', 'b', model='gpt-5-mini', middleware=[Fallback('gemini-2.5-pro')])\n"
        "b = Agent('b', 'c', model='claude-sonnet-4-5', handoffs=[a], output_type=dict[str, int])\n"
        "c = Agent('c', 'd', tools=[a, b])\n"
        "print(repr(b))"
    )
    done = preloaded.run(["-c", module], env={})
    assert done.stdout == "Agent('b', model=NamedModel('claude-sonnet-4-5'))\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_a_key_that_is_set_after_the_agent_was_created_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent("a", "b", model="gpt-5-mini")
    with OfflineServer(["one", "two"]) as server:
        with pytest.raises(ModelNotConfiguredError):
            agent.run("hi")
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        assert [agent.run("hi")["result"].final_output for _ in range(2)] == ["one", "two"]
        assert server.requests[0].model == "gpt-5-mini"


async def test_a_stream_a_structured_output_and_a_judge_raise_the_same_error() -> None:
    with pytest.raises(ModelNotConfiguredError):
        async with Agent("a", "b", model="gpt-5-mini").stream("hi") as run:
            async for _ in run:
                pass
    with pytest.raises(ModelNotConfiguredError):
        await Agent("a", "b", model="gemini-2.5-pro", output_type=dict[str, int]).run_async("hi")
    with pytest.raises(ModelNotConfiguredError):
        await StatusJudge(["It works."], model="gpt-5-mini").judge("hi")
    with pytest.raises(ModelNotConfiguredError):
        await Agent("a", "b", model=ScriptedModel([])).run_async("hi", run_config={"model": "gemini-2.5-pro"})


def test_a_model_can_be_checked_before_the_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, _ in [*NAMES_AND_KEYS, (None, "OPENAI_API_KEY")]:
        agent = Agent("a", "b", model=name)
        with pytest.raises(ModelNotConfiguredError):
            agent.check_model()
    with OfflineServer([]) as server:
        for variable, value in server.environment().items():
            monkeypatch.setenv(variable, value)
        for name in ("gpt-5-mini", "claude-sonnet-4-5", None):
            Agent("a", "b", model=name).check_model()
        assert not server.requests
    Agent("a", "b", model=ScriptedModel([])).check_model()


def test_a_fallback_without_a_key_is_logged_when_it_is_created(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kantan_agents.middleware"):
        Fallback("gemini-2.5-pro")
    [record] = caplog.records
    assert "GOOGLE_API_KEY is not set" in record.message


ANSWER = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "Hello."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


@pytest.mark.parametrize("name", ["claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"])
def test_a_claude_name_is_sent_to_the_messages_api_with_the_anthropic_key(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with WireServer([Body(ANSWER), Body(ANSWER)]) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "anthropic-key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        # Without an Anthropic key, these would be used.
        monkeypatch.setenv("OPENROUTER_API_KEY", "other")
        first, second = Agent("a", "b", model=name), Agent("c", "d", model=name)
        assert first.sdk_agent.model.clients is second.sdk_agent.model.clients
        for agent in (first, second):
            assert agent.run("hi")["result"].final_output == "Hello."
        path, body, headers = server.requests[0]
        assert (path, body["model"], headers["x-api-key"]) == (
            "/v1/messages",
            "claude-sonnet-4-5",
            "anthropic-key",
        )


def test_kantan_llms_key_for_claude_goes_before_that_of_anthropic(monkeypatch: pytest.MonkeyPatch) -> None:
    with OfflineServer(["over chat completions"]) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "anthropic-key")
        agent = Agent("a", "b", model="claude-sonnet-4-5")
        assert agent.run("hi")["result"].final_output == "over chat completions"
        assert server.requests[0].path == "/v1/chat/completions"


@pytest.mark.parametrize("url", ["http://me:s3cret@h:99999/v1", "htp://me:s3cret@h/v1", "//me:s@3cret@h"])
def test_the_error_of_a_wrong_url_does_not_contain_its_password(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    message = str(failure_of("gpt-5-mini"))
    assert "3cret" not in message
    assert "//***@h" in message
