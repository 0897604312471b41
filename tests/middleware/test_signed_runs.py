"""Stored runs are signed: nobody without the key decides what a resumed run does."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from agents import Agent as SDKAgent
from agents import function_tool, set_trace_processors
from hypothesis import example, given
from hypothesis import strategies as st

from kantan_agents import Agent, SlashCommands, ToolRulesMode, UserRules, record_traces
from kantan_agents.errors import ApprovalStateError, InvalidOptionError, KantanAgentsError, ToolRulesTypeError
from kantan_agents.middleware import Approve, Approved, Rejected, decide, pending, resume, to_json
from kantan_agents.middleware.approve.keys import recorded_keys
from kantan_agents.middleware.approve.stored_runs import read_signed, signed
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.traces import registry
from tests.programs import Preloaded

KEY = b"0123456789abcdef, the first key"
OTHER = "another key, which somebody else has"
POSIX = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no modes of files")


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("KANTAN_AGENTS_KEY", raising=False)
    monkeypatch.setattr(registry.Main, "recorder", None)
    yield
    set_trace_processors([])


class Bank:
    """An agent that pays if it is approved, and what it paid."""

    def __init__(self, name: str = "clerk", *, middleware: Any = ()) -> None:
        self.paid: list[int] = []
        steps: list[Any] = [[function_call("pay", {"amount": 5}, call_id="c5")], [assistant_message("Done.")]]
        self.model = ScriptedModel(steps)
        self.agent = Agent(
            name, "Pay.", model=self.model, tools=[self.pay], middleware=[Approve("pay"), *middleware]
        )

    def pay(self, amount: int) -> str:
        """Pay."""
        self.paid.append(amount)
        return f"paid {amount}"

    def stored(self, context: Any = None, key: Any = KEY) -> str:
        return to_json(self.agent.run("Go.", {} if context is None else context), key=key)

    async def resumed(self, text: Any, key: Any = KEY, **options: Any) -> Any:
        return await resume(self.agent, text, {"c5": Approved()}, key=key, **options)


def unsigned(text: str) -> str:
    """Return a stored run as earlier versions have written it."""
    found = read_signed(text)
    assert found is not None
    state = json.loads(found.state)
    del state["kantan_agents"]
    return json.dumps(state, indent=2)


async def test_a_signed_run_is_resumed(anyio_backend: str) -> None:
    bank = Bank()
    context = await bank.resumed(bank.stored({"user": "Aiko"}))
    assert bank.paid == [5]
    assert (context["result"].final_output, context["user"]) == ("Done.", "Aiko")


CHANGES: dict[str, Callable[[str], str]] = {
    "the arguments": lambda text: re.sub(r'(\\"amount\\": ?)5', r"\g<1>9999", text),
    "the rules": lambda text: text.replace('"deny":["balance"]', '"deny":[]'),
    "the context": lambda text: text.replace('"user":"Aiko"', '"user":"Evil"'),
    "an approval of every call": lambda text: text.replace(
        '"approvals":{}', '"approvals":{"pay":{"approved":true,"rejected":[]}}'
    ),
    "the name of the agent": lambda text: text.replace('"agent":"clerk"', '"agent":"other"', 1),
    "the version": lambda text: text.replace('_run":1,', '_run":2,', 1),
    "the signature": lambda text: re.sub('"signature":"[^"]*"', f'"signature":"{"0" * 64}"', text),
    "no signature": lambda text: re.sub('"signature":"[^"]*",', "", text),
    "an empty signature": lambda text: re.sub('"signature":"[^"]*"', '"signature":""', text),
    "the order of the entries": lambda text: json.dumps(dict(reversed(json.loads(text).items()))),
    "the form of the JSON": lambda text: json.dumps(json.loads(text), indent=2),
    "the state alone": lambda text: json.dumps(json.loads(text)["state"]),
    "another signed run beside it": lambda text: f"{text}{text}",
    "half of it": lambda text: text[: len(text) // 2],
}


@pytest.mark.parametrize("trust_unsigned", [False, True])
@pytest.mark.parametrize("change", CHANGES)
async def test_a_changed_run_is_refused_and_nothing_is_run(change: str, trust_unsigned: bool) -> None:
    bank = Bank()
    text = bank.stored({"user": "Aiko", "tool_rules": {"deny": ["balance"]}})
    changed = CHANGES[change](text)
    assert changed != text
    with pytest.raises(ApprovalStateError):
        await bank.resumed(changed, trust_unsigned=trust_unsigned)
    assert bank.paid == []
    assert len(bank.model.calls) == 1


@pytest.mark.parametrize("wrong", [OTHER, [OTHER, OTHER[::-1]], KEY + b"x"])
async def test_a_run_signed_with_another_key_is_refused(wrong: Any) -> None:
    bank = Bank()
    with pytest.raises(ApprovalStateError, match="was changed, or it was signed with another key"):
        await bank.resumed(bank.stored(), key=wrong)
    assert bank.paid == []


async def test_keys_are_replaced_one_after_the_other() -> None:
    bank = Bank()
    old = bank.stored(key=OTHER)
    assert (await bank.resumed(old, key=[KEY, OTHER]))["result"].final_output == "Done."
    new = Bank().stored(key=(KEY, OTHER))
    with pytest.raises(ApprovalStateError):
        await decide(Bank().agent, new, {}, key=OTHER)
    await decide(Bank().agent, new, {}, key=KEY)


async def test_a_str_and_its_bytes_are_the_same_key() -> None:
    await decide(
        Bank().agent, Bank().stored(key="schlüssel, lang genug"), {}, key="schlüssel, lang genug".encode()
    )


async def test_a_run_of_one_agent_is_no_run_of_another() -> None:
    text = Bank().stored()
    with pytest.raises(ApprovalStateError, match="not a stored run of agent 'boss', but of 'clerk'"):
        await decide(Bank("boss").agent, text, {}, key=KEY)


async def test_a_run_without_a_signature_is_accepted_only_if_the_caller_vouches_for_it() -> None:
    bank = Bank()
    text = unsigned(bank.stored())
    for key in (None, KEY):
        with pytest.raises(ApprovalStateError, match="has no signature"):
            await bank.resumed(text, key=key)
    assert bank.paid == []
    for trust in (1, "yes"):
        with pytest.raises(ApprovalStateError, match="has no signature"):
            await bank.resumed(text, trust_unsigned=trust)
    await bank.resumed(text, key=None, trust_unsigned=True)
    assert bank.paid == [5]


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "x", "{", '"' * 9, "[" * 100_000, None, 5, b"\xff"])
@pytest.mark.parametrize("trust_unsigned", [False, True])
async def test_anything_else_is_refused(text: Any, trust_unsigned: bool) -> None:
    with pytest.raises(ApprovalStateError):
        await decide(Bank().agent, text, {}, key=KEY, trust_unsigned=trust_unsigned)


STORED = Bank().stored({"user": "Aiko"})


@example(0, "insert", " ")
@example(len(STORED) - 1, "delete", "")
@given(
    st.integers(0, len(STORED) - 1),
    st.sampled_from(["flip", "insert", "delete"]),
    st.characters(max_codepoint=255),
)
def test_any_changed_byte_is_noticed(at: int, how: str, character: str) -> None:
    data = STORED.encode()
    byte = character.encode("latin-1")
    inserted = {
        "flip": bytes([data[at] ^ (byte or b"\1")[0]]) if byte != b"\0" else b"",
        "insert": byte,
        "delete": b"",
    }
    changed = data[:at] + inserted[how] + data[at + (how != "insert") :]
    bank = Bank()
    if changed.strip(b" \t\r\n") == data:
        bank.agent.run(read(bank, changed))
        assert bank.paid == [5]
        return
    for trust_unsigned in (False, True):
        with pytest.raises(ApprovalStateError):
            read(bank, changed, trust_unsigned=trust_unsigned)
    assert bank.paid == []


def read(bank: Bank, text: Any, **options: Any) -> Any:
    import anyio

    async def decided() -> Any:
        return await decide(bank.agent, text, {"c5": Approved()}, key=KEY, **options)

    return anyio.run(decided)


@given(st.text(), st.text(st.characters(max_codepoint=127)))
def test_a_signed_text_is_read_back(agent: str, state: str) -> None:
    found = read_signed(signed(agent, state, KEY))
    assert found is not None
    assert json.loads(found.agent) == agent
    assert found.state == state
    for key in (b"", OTHER.encode()):
        with pytest.raises(ApprovalStateError):
            found.verified([key])


@given(st.text(), st.text(), st.text(st.characters(max_codepoint=127)))
def test_the_name_and_the_state_cannot_change_places(one: str, two: str, state: str) -> None:
    first, second = (read_signed(signed(name, state, KEY)) for name in (one, two))
    assert first is not None
    assert second is not None
    assert (first.signature == second.signature) == (one == two)


class TestKeys:
    def test_without_a_key_the_error_says_how_to_give_one(self) -> None:
        with pytest.raises(ApprovalStateError) as caught:
            Bank().stored(key=None)
        for way in ("key=...", "KANTAN_AGENTS_KEY", "record_traces"):
            assert way in str(caught.value)

    async def test_without_a_key_nothing_is_resumed(self) -> None:
        bank = Bank()
        with pytest.raises(ApprovalStateError, match="there is no key"):
            await bank.resumed(bank.stored(), key=None)
        assert bank.paid == []

    @pytest.mark.parametrize(
        "key", ["", b"", "short", b"x" * 15, 5, bytearray(32), [], ["short"], [KEY, None], {KEY: 1}, True]
    )
    def test_a_key_that_is_too_short_or_no_text_is_refused_and_not_shown(self, key: Any) -> None:
        with pytest.raises(InvalidOptionError, match="key: must") as caught:
            Bank().stored(key=key)
        assert "short" not in str(caught.value)
        with pytest.raises(InvalidOptionError, match="key: must"):
            read_with(Bank(), STORED, key)

    @pytest.mark.parametrize("value", ["", "too short"])
    def test_a_wrong_key_in_the_environment_is_an_error(
        self, value: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KANTAN_AGENTS_KEY", value)
        with pytest.raises(InvalidOptionError, match="KANTAN_AGENTS_KEY: must have at least 16 bytes"):
            Bank().stored(key=None)

    def test_the_argument_comes_first_then_the_environment_then_the_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        recorder = record_traces(tmp_path / "traces.sqlite3")
        by_file = Bank().stored(key=None)
        monkeypatch.setenv("KANTAN_AGENTS_KEY", OTHER)
        by_environment = Bank().stored(key=None)
        by_argument = Bank().stored(key=KEY)
        (file_key,) = recorded_keys(create=False)
        for text, key in ((by_file, file_key), (by_environment, OTHER), (by_argument, KEY)):
            read_with(Bank(), text, key)
        read_with(Bank(), by_environment, None)
        for text in (by_file, by_argument):
            with pytest.raises(ApprovalStateError):
                read_with(Bank(), text, None)
        monkeypatch.delenv("KANTAN_AGENTS_KEY")
        read_with(Bank(), by_file, None)
        recorder.shutdown()

    def test_no_key_is_in_a_text_an_error_or_a_log(
        self, caplog: pytest.LogCaptureFixture, tmp_path: Path
    ) -> None:
        import logging
        import traceback

        caplog.set_level(logging.DEBUG)
        recorder = record_traces(tmp_path / "traces.sqlite3")
        bank, said = Bank(), []
        text = bank.stored(key=None)
        (key,) = recorded_keys(create=False)
        for wrong in (OTHER, "\ud800" + OTHER, KEY):
            with pytest.raises(KantanAgentsError) as caught:
                read_with(bank, text, wrong)
            said.append("".join(traceback.format_exception(caught.value)) + repr(vars(caught.value)))
        everything = " ".join([text, caplog.text, *said])
        for secret in (OTHER, KEY.decode(), key.hex(), repr(key)):
            assert secret not in everything
        recorder.shutdown()


def read_with(bank: Bank, text: Any, key: Any) -> Any:
    import anyio

    async def decided() -> Any:
        return await decide(bank.agent, text, {}, key=key)

    return anyio.run(decided)


class TestKeyFile:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Iterator[Path]:
        recorder = record_traces(tmp_path / "traces.sqlite3")
        yield tmp_path / "traces.sqlite3.key"
        recorder.shutdown()

    @POSIX
    @pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
    def test_it_is_made_for_its_owner_only_and_kept(self, file: Path, umask: int) -> None:
        before = os.umask(umask)
        try:
            text = Bank().stored(key=None)
        finally:
            os.umask(before)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert len(file.read_bytes()) == 32
        key = file.read_bytes()
        Bank().stored(key=None)
        assert file.read_bytes() == key
        assert [path.name for path in file.parent.glob("*.key*")] == [file.name]
        read_with(Bank(), text, None)

    def test_resuming_does_not_make_it(self, file: Path) -> None:
        with pytest.raises(ApprovalStateError, match="does not exist"):
            read_with(Bank(), STORED, None)
        assert not file.exists()

    @POSIX
    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o777])
    def test_it_is_refused_if_others_may_read_or_write_it(self, file: Path, mode: int) -> None:
        file.write_bytes(b"k" * 32)
        file.chmod(mode)
        with pytest.raises(ApprovalStateError, match="chmod 600"):
            Bank().stored(key=None)

    @pytest.mark.parametrize("size", [0, 16, 31, 33, 64])
    def test_it_is_refused_if_it_has_another_size(self, file: Path, size: int) -> None:
        file.write_bytes(b"k" * size)
        file.chmod(0o600)
        with pytest.raises(ApprovalStateError, match="must have 32 bytes"):
            Bank().stored(key=None)
        assert len(file.read_bytes()) == size

    @POSIX
    @pytest.mark.parametrize("exists", [True, False])
    def test_a_link_is_not_followed(self, file: Path, exists: bool, tmp_path: Path) -> None:
        target = tmp_path / "target"
        if exists:
            target.write_bytes(b"k" * 32)
            target.chmod(0o600)
        file.symlink_to(target)
        with pytest.raises(ApprovalStateError, match="cannot be used"):
            Bank().stored(key=None)
        assert target.exists() == exists

    @POSIX
    def test_a_directory_or_a_pipe_is_refused_without_waiting(self, file: Path) -> None:
        file.mkdir()
        with pytest.raises(ApprovalStateError, match="not a regular file"):
            Bank().stored(key=None)
        file.rmdir()
        os.mkfifo(file, 0o600)
        with pytest.raises(ApprovalStateError, match="not a regular file"):
            Bank().stored(key=None)

    def test_threads_that_make_it_at_once_get_the_same_key(self, file: Path) -> None:
        keys: list[tuple[bytes, ...]] = []
        barrier = Barrier(8)

        def make() -> None:
            barrier.wait()
            keys.append(recorded_keys(create=True))

        threads = [Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(keys) == {(file.read_bytes(),)}
        assert len(keys) == 8
        assert [path.name for path in file.parent.glob("*.key*")] == [file.name]

    def test_processes_that_make_it_at_once_get_the_same_key(
        self, tmp_path: Path, preloaded: Preloaded
    ) -> None:
        (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
        arguments = [tmp_path / "program.py", tmp_path / "shared.sqlite3"]
        programs = [preloaded.popen(arguments) for _ in range(4)]
        printed = {program.communicate(60) for program in programs}
        key = (tmp_path / "shared.sqlite3.key").read_bytes()
        assert printed == {(f"{key.hex()}\n".encode(), b"")}


PROGRAM = """
import sys
from kantan_agents import record_traces
from kantan_agents.middleware.approve.keys import recorded_keys

recorder = record_traces(sys.argv[1])
print(recorded_keys(create=True)[0].hex())
recorder.shutdown()
"""


class TestRulesForUsers:
    @pytest.mark.parametrize(
        "rules", [UserRules({"allow": ["pay"], "deny": ["x"]}), UserRules({}), ToolRulesMode.DENY_ALL]
    )
    async def test_they_come_back_as_the_object_they_were(self, rules: Any) -> None:
        bank = Bank()
        text = bank.stored({"user_rules": rules})
        context = await bank.resumed(text)
        assert context["user_rules"] == (rules if isinstance(rules, UserRules) else UserRules(rules))

    async def test_a_plain_dict_comes_back_as_a_plain_dict(self) -> None:
        bank = Bank(middleware=[SlashCommands({"allow": []})])
        text = bank.stored({"user_rules": {"allow": "*"}})
        context = await bank.resumed(text)
        with pytest.raises(ToolRulesTypeError):
            await bank.agent.run_async("/pay 9999", context)
        assert bank.paid == [5]

    async def test_a_dict_that_looks_like_the_place_of_the_rules_changes_nothing(self) -> None:
        bank = Bank(middleware=[SlashCommands({"allow": []})])
        text = bank.stored({"kantan_agents": {"user_rules": {"allow": "*"}}})
        context = await bank.resumed(text)
        assert "user_rules" not in context

    async def test_a_text_without_a_signature_brings_no_rules_for_users(self) -> None:
        bank = Bank()
        state = json.loads(unsigned(bank.stored()))
        state["kantan_agents"] = {"user_rules": {"allow": "*"}}
        with pytest.raises(ApprovalStateError, match="signature of the stored run was removed"):
            await bank.resumed(json.dumps(state), trust_unsigned=True)


def asking_desk(bank: Bank, steps: Any, policy: Any) -> Agent:
    """Return an agent that asks another one, whose model pays 700 under the call id c5."""
    again: list[Any] = [
        [function_call("pay", {"amount": 700}, call_id="c5")],
        [assistant_message("Paid.")],
    ]
    inner = SDKAgent(
        name="inner", instructions="x", model=ScriptedModel(again), tools=[function_tool(bank.pay)]
    )
    return Agent(
        "clerk",
        "x",
        model=ScriptedModel([*steps, [assistant_message("Done.")]]),
        tools=[bank.pay, inner.as_tool("ask", "Asks.")],
        middleware=[Approve(policy)],
    )


class TestApprovalsAreForOneCall:
    pays = function_call("pay", {"amount": 5}, call_id="c5")
    asks = function_call("ask", {"input": "Pay."}, call_id="a")

    async def test_an_edit_is_not_used_for_another_call_with_the_same_id(self) -> None:
        bank = Bank()
        desk = asking_desk(
            bank, [[self.pays], [self.asks]], lambda call: call.agent == "clerk" and call.tool == "pay"
        )
        text = to_json(await desk.run_async("Go."), key=KEY)
        with pytest.raises(ApprovalStateError, match="edited for another call"):
            await resume(desk, text, {"c5": Approved({"amount": 6})}, key=KEY)
        assert bank.paid == [6]

    async def test_an_approval_is_not_used_for_another_call_with_the_same_id(self) -> None:
        bank = Bank()
        desk = asking_desk(bank, [[self.pays], [self.asks]], "pay")
        text = to_json(await desk.run_async("Go."), key=KEY)
        context = await resume(desk, text, {"c5": Approved()}, key=KEY)
        assert bank.paid == [5]
        assert [call.values for call in pending(context)] == [{"amount": 700}]

    async def test_a_decision_for_an_id_that_two_calls_have_is_for_the_first(self) -> None:
        bank = Bank()
        desk = asking_desk(bank, [[self.pays, self.asks]], "pay")
        context = await desk.run_async("Go.")
        assert [call.values["amount"] for call in pending(context)] == [5, 700]
        first, second = (call.call_id for call in pending(context))
        assert first == "c5" != second  # models/call_ids.py
        context = await resume(desk, to_json(context, key=KEY), {"c5": Approved()}, key=KEY)
        assert [call.call_id for call in pending(context)] == [second]
        await resume(desk, to_json(context, key=KEY), {second: Rejected("No.")}, key=KEY)
        assert bank.paid == [5]

    async def test_a_later_call_of_the_same_tool_waits_again(self) -> None:
        bank = Bank()
        steps = [[function_call("pay", {"amount": n}, call_id=f"c{n}")] for n in (5, 6)]
        desk = asking_desk(bank, steps, "pay")
        text = to_json(await desk.run_async("Go."), key=KEY)
        context = await resume(desk, text, {"c5": Approved()}, key=KEY)
        assert bank.paid == [5]
        assert [call.call_id for call in pending(context)] == ["c6"]
