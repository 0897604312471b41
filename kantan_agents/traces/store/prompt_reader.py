"""The methods of ``TraceStore`` about prompts."""

from __future__ import annotations

from itertools import pairwise

from kantan_agents.errors import PromptNotRecordedError
from kantan_agents.traces.capture import PromptRecord
from kantan_agents.traces.capture.diff_text import text_diff
from kantan_agents.traces.store.filters import check_text
from kantan_agents.traces.store.indexed import IndexedService
from kantan_agents.traces.store.prompt_texts import prompts_with_id, texts_by_version
from kantan_agents.traces.store.prompts import prompt_stats
from kantan_agents.traces.store.records import PromptStats


class PromptReader(IndexedService):
    """Reads the prompts of a trace database in the calling thread."""

    def prompts(self, prompt: str | None = None) -> list[PromptStats]:
        """Compare the versions of all prompts, or of one, by their recorded runs.

        A run counts once, for the prompt of the agent that was started, whether it has its own trace or is
        inside an open trace or another run. The agents that it is handed off to belong to it. Its tokens are
        those of its own model calls, without the runs inside it. It failed if an error ended it; a tool error
        that it recovered from is not a failure. Latencies are those of runs that ended with an answer, by
        nearest rank. A verdict counts for the answer that the judge's ``judged_trace_id`` names, if that
        trace is in the file. Without this key, it counts for the run that contains it.

        Args:
            prompt: Name of the prompt; None for all.

        Returns:
            One record for each version, sorted by name, then by the first run of the version.

        Raises:
            TraceDatabaseError: E60, the file cannot be read.
        """
        if prompt is not None:
            check_text("prompt", prompt)
        with self._reading() as connection:
            return prompt_stats(connection, prompt)

    def prompt(self, prompt_id: str) -> PromptRecord:
        """Return a prompt with its text; if several have this id, the one that was first used last.

        Args:
            prompt_id: ``prompt_id`` of a trace.

        Raises:
            PromptNotRecordedError: E87, no recorded run has used a prompt of this id.
            TraceDatabaseError: E60, the file cannot be read.
        """
        check_text("prompt_id", prompt_id)
        with self._reading() as connection:
            found = prompts_with_id(connection, prompt_id)
        if not found:
            raise PromptNotRecordedError(prompt=prompt_id, path=str(self.path))
        return found[-1]

    def prompt_diff(self, prompt: str, old_version: str | None, new_version: str | None) -> str:
        """Return the unified diff of the texts of two versions of a prompt.

        Of a version whose text was edited, the newest text is compared. With the same version twice, the
        result shows these edits: a diff from each text to the next one.

        Args:
            prompt: Name of the prompt.
            old_version: A version; None for the version of plain text instructions.
            new_version: The version to compare it with.

        Returns:
            The diff without a line end at its end; empty if the texts are equal.

        Raises:
            PromptNotRecordedError: E87, no recorded run has used one of the versions.
            TraceDatabaseError: E60, the file cannot be read.
        """
        check_text("prompt", prompt)
        for option, version in (("old_version", old_version), ("new_version", new_version)):
            if version is not None:
                check_text(option, version)
        with self._reading() as connection:
            found = texts_by_version(connection, prompt)
        for version in (old_version, new_version):
            if (prompt, version) not in found:
                named = f"{prompt} {version or 'without a version'}"
                raise PromptNotRecordedError(prompt=named, path=str(self.path))
        old, new = found[prompt, old_version].prompts, found[prompt, new_version].prompts
        pairs = pairwise(old) if old_version == new_version else [(old[-1], new[-1])]
        return "\n".join(filter(None, (_diff(*pair) for pair in pairs)))


def _diff(old: PromptRecord, new: PromptRecord) -> str:
    return text_diff(old.text, new.text, _label(old), _label(new))


def _label(prompt: PromptRecord) -> str:
    return f"{prompt.name} {prompt.version or ''}".rstrip() + f" ({prompt.id[:8]})"
