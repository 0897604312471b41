"""What distinguishes two requests for ``Cache``: everything that selects an answer, known today or not."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from importlib import import_module
from typing import Any

import anyio
import openai
import pytest
from agents import (
    FunctionTool,
    Model,
    ModelResponse,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
)
from agents.models.chatcmpl_helpers import HEADERS_OVERRIDE
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import AsyncAzureOpenAI, AsyncOpenAI, DefaultAsyncHttpxClient

from kantan_agents import Agent, AnthropicProvider, GeminiProvider, ModelCall, ProviderModel
from kantan_agents.middleware import Cache
from kantan_agents.middleware.cache import recipient
from kantan_agents.middleware.cache.entry import request_key
from kantan_agents.models.structured.requests.request import Request
from kantan_agents.testing import OfflineServer

_URL = "http://127.0.0.1:9/v1"
_HTTP = DefaultAsyncHttpxClient(trust_env=False, verify=False)

DIFFERENT: dict[str, Any] = {
    "api_key": "another",
    "admin_api_key": "another",
    "organization": "another",
    "project": "another",
    "base_url": "http://127.0.0.1:9/v2",
    "websocket_base_url": "http://127.0.0.1:9/ws",
    "default_headers": {"X-Tenant": "another"},
    "default_query": {"tenant": "another"},
    "http_client": DefaultAsyncHttpxClient(trust_env=False, verify=False, headers={"X-Tenant": "b"}),
    "azure_endpoint": "http://127.0.0.1:9/another",
    "azure_deployment": "another",
    "api_version": "2",
    "data_residency": "eu",
    "azure_ad_token": "another",
    "azure_ad_token_provider": lambda: "another",
}
TOKENS = {"azure_ad_token": "one", "azure_ad_token_provider": lambda: "another"}
"""What goes instead of a key: two of them are compared."""

WITHOUT_EFFECT = {
    "timeout": 3.0,
    "max_retries": 7,
    "webhook_secret": "another",
    "_strict_response_validation": True,
    "_enforce_credentials": False,
}
ELSEWHERE = {"workload_identity", "provider"}  # not together with a key
MODELS = (OpenAIResponsesModel, OpenAIChatCompletionsModel)


def arguments(kind: Any) -> list[str]:
    return [name for name in inspect.signature(kind.__init__).parameters if name not in {"self", *ELSEWHERE}]


def client(kind: Any = AsyncOpenAI, **options: Any) -> Any:
    given: dict[str, Any] = {"api_key": "k", "http_client": _HTTP}
    if kind is AsyncOpenAI:
        given["base_url"] = _URL
    else:
        given |= {"azure_endpoint": _URL, "api_version": "1", "azure_deployment": "d"}
    if "base_url" in options:
        given.pop("azure_endpoint", None), given.pop("azure_deployment", None)
    if "data_residency" in options:
        del given["base_url"]
    if TOKENS.keys() & options.keys():
        del given["api_key"]
    return kind(**{**given, **options})


def key_of(model: Model, settings: ModelSettings | None = None, **changes: Any) -> str:
    call = ModelCall(None, "a", model, "x", "Hi", settings or ModelSettings(), [])  # type: ignore[arg-type]
    request = Request("x", "Hi", call.settings, changes.pop("tools", []), {"tracing": None, **changes})
    return request_key(call, request, model, "tenant")


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    ("of", "name"), [(kind, name) for kind in (AsyncOpenAI, AsyncAzureOpenAI) for name in arguments(kind)]
)
def test_clients_share_answers_only_if_they_send_the_same(kind: Any, of: Any, name: str) -> None:
    known = {**DIFFERENT, **WITHOUT_EFFECT}
    assert name in known, f"a new argument of the client: does {name} select an answer? Say so here"
    without = {name: TOKENS[name]} if name in TOKENS else {}
    plain, other = (key_of(kind("m", client(of, **options))) for options in (without, {name: known[name]}))
    assert (plain == other) == (name in WITHOUT_EFFECT)
    assert other == key_of(kind("m", client(of, **{name: known[name]})))  # an equal client shares them


def test_a_field_of_a_client_that_is_not_known_yet_counts() -> None:
    class Later(AsyncOpenAI):
        region = ""

    one, other = Later(api_key="k", http_client=_HTTP), Later(api_key="k", http_client=_HTTP)
    assert key_of(OpenAIResponsesModel("m", one)) == key_of(OpenAIResponsesModel("m", other))
    other.region = "eu"
    assert key_of(OpenAIResponsesModel("m", one)) != key_of(OpenAIResponsesModel("m", other))


def test_a_changed_client_asks_anew_and_a_used_one_does_not() -> None:
    used = client()
    model = OpenAIChatCompletionsModel("m", used)
    first = key_of(model)
    _ = used.chat
    assert key_of(model) == first
    used.api_key = "rotated"
    assert key_of(model) != first


def test_a_function_that_returns_the_key_identifies_the_client() -> None:
    async def fetch() -> str:
        return "k"

    async def fetch_another() -> str:
        return "k"

    one, again, other = client(api_key=fetch), client(api_key=fetch), client(api_key=fetch_another)
    one.api_key = "what it has returned for the latest request"
    keys = [key_of(OpenAIResponsesModel("m", each)) for each in (one, again, other)]
    assert keys[0] == keys[1] != keys[2]


def test_workload_identities_are_distinguished() -> None:
    def token() -> str:
        return "t"

    def made(**changes: Any) -> str:
        provider = {"token_type": "jwt", "get_token": token, **changes}
        identity = {"identity_provider_id": "p", "service_account_id": "s", "provider": provider}
        options: Any = {"workload_identity": identity, "base_url": _URL, "http_client": _HTTP}
        return key_of(OpenAIResponsesModel("m", AsyncOpenAI(**options)))

    if "workload_identity" not in inspect.signature(AsyncOpenAI.__init__).parameters:
        pytest.skip("this version of openai has no workload identities")
    assert made() == made() != made(get_token=lambda: "t")


# openai 2 is built on httpx, openai 3 on httpx2.
HTTPX: Any = import_module(str(DefaultAsyncHttpxClient.__base__.__module__).partition(".")[0])


class Custom(HTTPX.AsyncBaseTransport):  # type: ignore[misc]
    pass


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"Authorization": "Bearer b"}},
        {"params": {"tenant": "b"}},
        {"cookies": {"session": "b"}},
        {"auth": HTTPX.BasicAuth("b", "b")},
        {"event_hooks": {"request": [lambda request: None]}},
        {"transport": Custom()},
        {"transport": HTTPX.AsyncHTTPTransport(verify=False, uds="/run/b.sock")},
        {"proxy": "http://b:b@127.0.0.1:3128"},
        {"mounts": {"http://": Custom()}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_http_clients_are_distinguished(options: dict[str, Any]) -> None:
    def made(**options: Any) -> str:
        http: Any = HTTPX.AsyncClient(trust_env=False, verify=False, **options)
        return key_of(OpenAIResponsesModel("m", client(http_client=http)))

    assert made() == made() != made(**options)
    assert "event_hooks" in options or "auth" in options or made(**options) == made(**options)


def test_cookies_that_a_server_sets_do_not_count_and_those_of_the_application_do() -> None:
    http = DefaultAsyncHttpxClient(trust_env=False, verify=False)
    model = OpenAIResponsesModel("m", client(http_client=http))
    first = key_of(model)
    http.cookies.set("__cf_bm", "b", domain="127.0.0.1")
    assert key_of(model) == first
    http.cookies.set("tenant", "b")
    assert key_of(model) != first


def test_headers_that_the_application_adds_to_the_sdks_requests_count() -> None:
    model = OpenAIChatCompletionsModel("m", client())
    first = key_of(model)
    token = HEADERS_OVERRIDE.set({"X-Tenant": "b"})
    try:
        assert key_of(model) != first
    finally:
        HEADERS_OVERRIDE.reset(token)


_VALUES = st.one_of(st.text(min_size=1), st.integers(1, 9), st.booleans(), st.just({"a": ["b"]}))


@pytest.mark.parametrize("value", ["b", 1, True, {"a": ["b"]}])
def test_every_field_of_the_settings_counts_but_how_often_is_retried(value: Any) -> None:
    model = OpenAIResponsesModel("m", client())
    plain = key_of(model)
    for field in dataclasses.fields(ModelSettings):
        settings = copy.copy(ModelSettings())
        vars(settings)[field.name] = value
        assert (key_of(model, settings) == plain) == (field.name == "retry"), field.name


@pytest.mark.parametrize("value", ["b", 1, True, {"a": ["b"]}])
def test_what_a_later_sdk_adds_counts(value: Any) -> None:
    model = OpenAIResponsesModel("m", client())
    settings = copy.copy(ModelSettings())
    vars(settings)["a_later_field"] = value
    tool, other = (FunctionTool("t", "", {}, None) for _ in range(2))  # type: ignore[arg-type]
    vars(other)["a_later_field"] = value
    plain = key_of(model, tools=[tool])
    assert plain != key_of(model, tools=[other])
    assert plain != key_of(model, settings, tools=[tool])
    assert plain != key_of(model, tools=[tool], a_later_argument=value)
    assert plain == key_of(model, tools=[copy.copy(tool)], conversation_id=None)


def test_the_fields_of_function_tools_of_this_sdk_are_described_or_used_here() -> None:
    model = OpenAIResponsesModel("m", client())
    plain = FunctionTool("t", "", {}, None)  # type: ignore[arg-type]
    slow = FunctionTool("t", "", {}, None, timeout_seconds=5.0, is_enabled=False)  # type: ignore[arg-type]
    assert key_of(model, tools=[plain]) == key_of(model, tools=[slow])


PROVIDERS = {
    "api_key": "another",
    "base_url": "http://127.0.0.1:9/v2",
    "max_tokens": 3,
    "timeout": 3.0,
    "on_unreadable": "text",
    "output_schema": False,
    "schema_field": "parameters",
    "cache": True,
    "cache_ttl": "1h",
    "cache_seconds": 90.0,
    "model": "another",
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in (AnthropicProvider, GeminiProvider)
        for name in inspect.signature(kind.__init__).parameters
        if name != "self"
    ],
)
def test_ready_made_providers_are_distinguished_also_from_those_of_another_process(
    kind: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = {"model": "gemini-3", "api_key": "k", "base_url": "http://127.0.0.1:9/"}
    options: Any = {**plain, name: PROVIDERS[name]}
    if name == "cache_ttl":
        plain["cache"] = options["cache"] = True  # type: ignore[assignment]
    first = key_of(ProviderModel(kind(**plain)))
    monkeypatch.setattr(recipient, "_PROCESS", "another")
    assert key_of(ProviderModel(kind(**plain))) == first
    assert (key_of(ProviderModel(kind(**options))) == first) == (name == "timeout")


class Own:
    name = "own"

    def __init__(self, **state: Any) -> None:
        vars(self).update(state)

    async def generate(self, prompt: str, context: Any) -> Any: ...


@settings(max_examples=25)
@given(
    one=st.dictionaries(st.sampled_from("abc"), _VALUES),
    other=st.dictionaries(st.sampled_from("abc"), _VALUES),
)
def test_providers_of_ones_own_share_answers_if_they_hold_the_same(one: Any, other: Any) -> None:
    keys = [key_of(ProviderModel(Own(**state))) for state in (one, other)]
    assert (keys[0] == keys[1]) == (repr(sorted(one.items())) == repr(sorted(other.items())))


def test_a_provider_that_holds_an_object_has_answers_of_its_own_unless_it_says_what_counts() -> None:
    shared = object()
    keys = {key_of(ProviderModel(Own(session=session))) for session in (shared, shared, object())}
    assert len(keys) == 2
    said = {key_of(ProviderModel(Own(session=object(), cache_identity=["eu", 1]))) for _ in range(3)}
    assert len(said) == 1
    assert said != {key_of(ProviderModel(Own(session=object(), cache_identity=["us", 1])))}


class OwnModel(Model):
    def __init__(self, inner: Any) -> None:
        self.model = "own"
        self.inner = inner

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        raise NotImplementedError

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def test_a_model_that_wraps_another_is_distinguished_by_its_client() -> None:
    keys = [
        key_of(OwnModel(OpenAIResponsesModel("m", client(project=project)))) for project in ("a", "a", "b")
    ]
    assert keys[0] == keys[1] != keys[2]
    keys = [key_of(OwnModel(client(project=project))) for project in ("a", "a", "b")]
    assert keys[0] == keys[1] != keys[2]


def test_a_model_that_contains_itself_is_not_cached() -> None:
    model = OwnModel(None)
    model.inner = [model]
    with pytest.raises(RecursionError):
        key_of(model)


def test_a_key_of_the_client_is_nowhere_in_what_is_stored() -> None:
    secret = "sk-very-secret"
    key = key_of(OpenAIResponsesModel("m", client(api_key=secret, default_headers={"Authorization": secret})))
    assert len(key) == 64
    assert secret not in key


@pytest.mark.slow
def test_tenants_with_clients_of_their_own_get_their_own_answers() -> None:
    async def ask() -> list[str]:
        answers = iter("abcdef")
        cache = Cache(per=None)
        with OfflineServer(lambda _: next(answers)) as server:
            base = server.bundle().client
            found = []
            for changes in (
                {},
                {"default_headers": {"X-Tenant": "b"}},
                {"api_key": "b"},
                {"project": "b"},
                {},
            ):
                model = OpenAIResponsesModel("m", base.with_options(**changes))
                context = await Agent("t", "x", model=model, middleware=[cache]).run_async("Hi")
                found.append(context["result"].final_output)
            await openai.AsyncOpenAI.close(base)
        return found

    assert anyio.run(ask) == ["a", "b", "c", "d", "a"]
