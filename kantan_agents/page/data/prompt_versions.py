"""Versions of prompts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kantan_agents.page.data.cut_texts import cut
from kantan_agents.traces.store import PromptStats, TraceStore


def prompt_list(store: TraceStore) -> list[dict[str, Any]]:
    """The most recently used one first."""
    found: dict[str, list[PromptStats]] = {}
    for stats in store.prompts():
        found.setdefault(stats.prompt_name, []).append(stats)
    prompts = [_prompt(name, versions) for name, versions in found.items()]
    return sorted(prompts, key=lambda one: one["last_run"] or "", reverse=True)


def prompt_versions(store: TraceStore, name: str) -> list[dict[str, Any]]:
    """In the order of their first runs; empty if there is no such prompt."""
    return [_version(stats) for stats in store.prompts(name)]


def changed_lines(diff: str) -> list[dict[str, str]]:
    """Return a diff's lines with their kinds."""
    kinds = {"+": "added", "-": "removed", " ": "kept", "@": "place"}
    # The first two lines name the versions.
    return [{"kind": kinds.get(line[:1], "kept"), "text": line[1:]} for line in diff.split("\n")[2:] if line]


def _prompt(name: str, versions: Iterable[PromptStats]) -> dict[str, Any]:
    listed = list(versions)
    last = max((one.last_run for one in listed if one.last_run), default=None)
    return {
        "name": name,
        "versions": len(listed),
        "runs": sum(one.runs for one in listed),
        "failures": sum(one.failures for one in listed),
        "unfinished": sum(one.unfinished for one in listed),
        "last_run": last and last.isoformat(),
    }


def _version(stats: PromptStats) -> dict[str, Any]:
    return {
        "version": stats.prompt_version,
        "runs": stats.runs,
        "failures": stats.failures,
        "unfinished": stats.unfinished,
        "scores": stats.scores,
        "mean_score": stats.mean_score,
        "tokens": stats.total_tokens / stats.runs if stats.runs else None,
        "latency_p50": stats.latency_p50,
        "latency_p95": stats.latency_p95,
        "first_run": stats.first_run and stats.first_run.isoformat(),
        "last_run": stats.last_run and stats.last_run.isoformat(),
        "texts": stats.texts,
        "text": cut(stats.text),
    }
