"""Makes the contents of the result files."""

from __future__ import annotations

import json

from kantan_agents.core.prompt import Prompt
from kantan_agents.lab.improve.improvement import Improvement
from kantan_agents.lab.improve.lineage import draw_lineage
from kantan_agents.traces.capture.diff_text import text_diff


def diff_of(old: Prompt, version: str, text: str) -> str:
    """Return the unified diff from the old version to a text.

    Args:
        old: The old version.
        version: What to call the other one.
        text: Its text.
    """
    return text_diff(old.text, text, f"{old.name} {old.version}", f"{old.name} {version}")


def contents_of(improvement: Improvement) -> dict[str, bytes]:
    """Return the content of each result file, by what it holds."""
    old = improvement.old
    title = f"Candidates for {old.name}, made from {old.version}"
    texts = {
        "lineage": draw_lineage(title, improvement.candidates),
        "summary": json.dumps(improvement.to_dict(), indent=2, sort_keys=True, default=str) + "\n",
    }
    if improvement.diff:
        texts["diff"] = f"{improvement.diff}\n"
    if improvement.new is not None:
        texts["prompt"] = improvement.new.text
    return {what: text.encode("utf-8", "backslashreplace") for what, text in texts.items()}
