"""Copies of a ``RunConfig``: equal to those of ``dataclasses.replace``, of a user's subclass as well."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from agents import ModelSettings, RunConfig
from agents.memory import SessionSettings

from kantan_agents.agent.bridge.run_config import changed_config


@pytest.mark.parametrize(
    "config",
    [
        RunConfig(),
        RunConfig(model_settings=ModelSettings(temperature=0.5), workflow_name="w"),
        RunConfig(session_settings=SessionSettings(limit=3)),
    ],
)
def test_a_copy_has_the_changed_fields_and_leaves_the_original_as_it_is(config: RunConfig) -> None:
    before = dataclasses.replace(config)
    copy = changed_config(config, trace_id="trace_1", trace_metadata={"a": 1})
    assert copy == dataclasses.replace(config, trace_id="trace_1", trace_metadata={"a": 1})
    assert config == before
    assert copy is not config


def test_a_dict_that_was_set_later_is_converted_as_the_sdk_does() -> None:
    config: Any = RunConfig()
    config.model_settings = {"temperature": 0.5}
    assert changed_config(config).model_settings == ModelSettings(temperature=0.5)


def test_a_subclass_with_a_constructor_and_attributes_of_its_own_is_copied() -> None:
    class Own(RunConfig):
        def __init__(self, tenant: str) -> None:
            super().__init__(workflow_name="w")
            self.tenant = tenant

    copy = changed_config(Own("acme"), trace_id="trace_1")
    assert isinstance(copy, Own)
    assert (copy.tenant, copy.trace_id) == ("acme", "trace_1")
