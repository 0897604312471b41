"""The commands of ``kantan-agents models`` and their options."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.new_app import new_group
from kantan_agents.cli.terminal.output_options import JsonOption

app = new_group()

CHECK_SECONDS = 60.0
CHECK_TOKENS = 500


@app.command()
def check(
    name: Annotated[
        Optional[str],  # noqa: UP045 - Typer reads it at run time, on Python 3.10 too
        typer.Argument(
            metavar="[NAME]",
            help="The model, such as ollama/llama3.2; without it, the providers are listed.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", help="How long each answer may take.", min=0.1, max=3600
        ),
    ] = CHECK_SECONDS,
    max_tokens: Annotated[
        int,
        typer.Option("--max-tokens", metavar="N", help="How long each answer may be.", min=16, max=100_000),
    ] = CHECK_TOKENS,
    as_json: JsonOption = False,
) -> None:
    """Call a model with five short questions, and show what works; or list the providers.

    The questions need a plain answer, a stream, a tool call, JSON, and the
    usage of the answers. It also shows the mode of structured output. Nothing
    is recorded.

    Without a name, it lists the variables of each provider, and whether its
    server answers. Only addresses of this machine are contacted: the ones that
    a variable names, and the usual ports of Ollama (11434), LM Studio (1234),
    llama.cpp (8080) and vLLM (8000). No key is shown, and only a server that a
    variable names gets KANTAN_LLM_API_KEY.

    Exit codes: 0 all works, or listed, 1 something does not, 2 bad arguments,
    an unknown model, or one without its key or URL.
    """
    if name is None:
        from kantan_agents.cli.models.providers import list_providers

        list_providers(as_json=as_json)
        return

    from kantan_agents.cli.models.check import check_model

    check_model(name, seconds=timeout, max_tokens=max_tokens, as_json=as_json)
