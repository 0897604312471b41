"""The pipeline, independent of the SDK."""

from kantan_agents.core.pipeline.pipeline import Pipeline
from kantan_agents.core.pipeline.result import OutputT_co, RunContext, RunResult, run_result
from kantan_agents.core.pipeline.run import Run, current_run, loggable, run_of
from kantan_agents.core.pipeline.stage import NamedStage, Next, Stage, calls_next_last

__all__ = [
    "NamedStage",
    "Next",
    "OutputT_co",
    "Pipeline",
    "Run",
    "RunContext",
    "RunResult",
    "Stage",
    "calls_next_last",
    "current_run",
    "loggable",
    "run_of",
    "run_result",
]
