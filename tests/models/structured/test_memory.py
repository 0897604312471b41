from __future__ import annotations

from kantan_agents.models.structured.requests.forms import FORCED_TOOL, NATIVE, PROMPT, TOOL
from kantan_agents.models.structured.requests.memory import FormMemory, FormTarget

FORMS = (NATIVE, FORCED_TOOL, TOOL, PROMPT)


def target(number: int) -> FormTarget:
    return FormTarget("http://127.0.0.1/v1", "m", str(number), has_tools=False)


def test_working_forms_come_first_and_refused_forms_last() -> None:
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


def test_the_number_of_stored_targets_is_bounded() -> None:
    memory = FormMemory()
    for number in range(2_000):
        memory.worked(target(number), PROMPT)
    assert memory.in_order(target(0), FORMS) == FORMS
    assert memory.in_order(target(1_999), FORMS)[0] == PROMPT
