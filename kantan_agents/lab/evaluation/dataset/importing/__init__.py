"""Datasets of other tools: tables with any columns, data frames, exports of Langfuse and promptfoo."""
