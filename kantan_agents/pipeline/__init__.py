"""The pipeline: moves a run through its stages. Independent of the SDK."""

from kantan_agents.pipeline.pipeline import Pipeline
from kantan_agents.pipeline.run import Run, current_run
from kantan_agents.pipeline.stage import NamedStage, Next, Stage, calls_next_last

__all__ = ["NamedStage", "Next", "Pipeline", "Run", "Stage", "calls_next_last", "current_run"]
