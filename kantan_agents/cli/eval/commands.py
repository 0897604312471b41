"""The group ``kantan-agents eval``."""

from __future__ import annotations

import typer

from kantan_agents.cli.eval.dataset import dataset
from kantan_agents.cli.eval.judge import judge
from kantan_agents.cli.eval.label import label
from kantan_agents.cli.eval.results import compare, list_, report, show
from kantan_agents.cli.eval.run import run
from kantan_agents.cli.terminal.new_app import new_app

app = new_app()


@app.callback(invoke_without_command=True)
def eval_(context: typer.Context) -> None:
    """Evaluate agents on datasets, compare prompts and models, and check judges with people's labels."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("dataset")(dataset)
app.command("run")(run)
app.command("list")(list_)
app.command("show")(show)
app.command("compare")(compare)
app.command("report")(report)
app.command("label")(label)
app.command("judge")(judge)
