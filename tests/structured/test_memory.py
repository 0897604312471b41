from __future__ import annotations

from kantan_agents.structured.asking.forms import FORCED_TOOL, NATIVE, PROMPT, TOOL
from kantan_agents.structured.asking.memory import FormMemory, Target

FORMS = (NATIVE, FORCED_TOOL, TOOL, PROMPT)


def target(number: int) -> Target:
    return Target("http://127.0.0.1/v1", "m", str(number), has_tools=False)


def test_what_worked_is_tried_first_and_what_was_refused_last() -> None:
    memory = FormMemory()
    assert memory.in_order(target(1), FORMS) == FORMS
    memory.refused(target(1), NATIVE)
    assert memory.in_order(target(1), FORMS) == (FORCED_TOOL, TOOL, PROMPT, NATIVE)
    memory.worked(target(1), PROMPT)
    assert memory.in_order(target(1), FORMS) == (PROMPT, FORCED_TOOL, TOOL, NATIVE)
    memory.refused(target(1), PROMPT)
    assert memory.in_order(target(1), FORMS) == (FORCED_TOOL, TOOL, NATIVE, PROMPT)
    memory.worked(target(1), NATIVE)
    assert memory.in_order(target(1), FORMS) == (NATIVE, FORCED_TOOL, TOOL, PROMPT)
    assert memory.in_order(target(2), FORMS) == FORMS


def test_no_more_targets_are_kept_than_a_process_can_have_use_for() -> None:
    memory = FormMemory()
    for number in range(2_000):
        memory.worked(target(number), PROMPT)
    assert memory.in_order(target(0), FORMS) == FORMS
    assert memory.in_order(target(1_999), FORMS)[0] == PROMPT
