"""E120 to E129: proposing better versions of a prompt."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class PromptNotImprovableError(KantanAgentsError):
    """The agent has no ``Prompt`` of this name, or no recorded run has used the version.

    Fix: Use a name in ``reason``. Give the agent a ``Prompt`` with a name and a version as its instructions.

    Attributes:
        prompt: The name that was looked for.
        reason: What there is instead, and what to do.
    """

    code = "E120"
    is_bad_input = True
    template = "Cannot improve the prompt {prompt!r}: {reason}"
    prompt: str
    reason: str


class CohortTooSmallError(KantanAgentsError):
    """The recorded runs are too few to show that a new version is better.

    Fix: Record more conversations, or choose a larger cohort.

    Attributes:
        found: Number of independent conversations in the cohort.
        needed: About how many it takes.
        reason: Which part is too small, and what to do.
    """

    code = "E121"
    is_bad_input = True
    template = "The cohort is too small: {found} conversations, and about {needed} are needed; {reason}"
    found: int
    needed: int
    reason: str


class ImproveBudgetError(KantanAgentsError):
    """The budget does not suffice for one candidate and its final test, or a model has no price.

    Fix: Raise the limit, choose a smaller cohort, or add the model to the prices. Finished work is stored.

    Attributes:
        reason: What is needed, the limit, and what to do.
    """

    code = "E122"
    is_bad_input = True
    template = "The budget is too small: {reason}"
    reason: str


class WorkingFolderError(KantanAgentsError):
    """The working folder has other files, belongs to another search, is in use, damaged or changed.

    Fix: Choose another folder, or move the file that ``path`` names.

    Attributes:
        path: The folder, or a file in it.
        reason: What is wrong, and what to do.
    """

    code = "E123"
    is_bad_input = True
    template = "The working folder cannot be used: {path}: {reason}"
    path: str
    reason: str


class JudgeFailedError(KantanAgentsError):
    """The judge failed three times in a row, or gave more than half of the runs no usable score.

    Fix: Correct the judge. The same call continues with this run.

    Attributes:
        judge: Its name.
        run: Id of the recorded run.
        reason: What is wrong, and what to do.
    """

    code = "E125"
    template = "The judge {judge!r} gave no usable score for the run {run}: {reason}"
    judge: str
    run: str
    reason: str


class ReflectionFailedError(KantanAgentsError):
    """No reply of the reflection model was a new version.

    Fix: Set ``max_tokens`` and a timeout in ``reflection_settings``, and repeat the call. Or choose another
    model and another folder.

    Attributes:
        reason: Its error, and what to do.
    """

    code = "E126"
    template = "The reflection model proposed nothing: {reason}"
    reason: str
