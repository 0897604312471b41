"""Agent options for ``AGENTS.md`` or ``CLAUDE.md``."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs
import typer

from kantan_agents.cli.agents.instruction_files import InstructionFiles
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.core.templating import render_template


def instruction_options(files: InstructionFiles | None) -> dict[str, Any]:
    """Return the agent's options. The first run prompts for trust; each run's metadata names the files."""
    if files is None:
        return {}
    if not files.is_settled:
        files.is_settled = True
        _settle(files)
    if not files.used:
        return {}
    text = "\n\n".join(one.section for one in files.used)
    sources = "; ".join(f"{one.path} sha256:{one.source.digest}" for one in files.used)
    return {"renderer": partial(_render, text), "metadata": {"project_instructions": sources}}


def _settle(files: InstructionFiles) -> None:
    if not files.files:
        return
    # Imported here: most folders have no such file, and these imports are slow.
    from kantan_agents.cli.mcp.trust import ask_for_trust
    from kantan_agents.tools.mcp.configuration.trust import TrustRecord

    ask_for_trust((), texts=files.questions())
    record, judged = TrustRecord.of_user(), []
    for one in files.files:
        distrust = None if files.is_agreed or one.reason else record.distrust(one.source)
        reason = f"it {distrust}; --project-instructions use agrees to it"
        judged.append(one if distrust is None else attrs.evolve(one, reason=reason))
    files.files = tuple(judged)
    for one in files.files:
        whose = "your own" if one.is_of_user else "of this project"
        typer.echo(one_line(f"instructions {whose}: {one.path}, {one.extent}"), err=True)


# The files' text is added after rendering, so that its placeholders are not filled.
def _render(added: str, text: str, context: dict[str, Any], allow_env: bool) -> str:
    return f"{render_template(text, context, allow_env).rstrip()}\n\n{added}"
