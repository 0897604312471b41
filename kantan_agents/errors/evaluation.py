"""E100 to E109, E205 and E206: datasets, evaluations, comparisons, labels and judges."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class DatasetFileError(KantanAgentsError):
    """A file is not a dataset, or cannot be read or written, or a held-out test set has changed.

    Fix: ``reason`` names the line and what to do. Put values for unknown keys into ``metadata``.

    Attributes:
        path: The file.
        reason: What is wrong, in which line, and what to do.
    """

    code = "E100"
    is_bad_input = True
    template = "Not a dataset: {path}: {reason}"
    path: str
    reason: str


class InvalidCaseError(KantanAgentsError):
    """A value of a case has the wrong type or is not JSON data, or two cases have the same id.

    Fix: Give each case a different id, or none: by default it is derived from the content.

    Attributes:
        case: Id of the case, or its position in the dataset.
        reason: What is wrong with it, and what to do.
    """

    code = "E101"
    is_bad_input = True
    template = "Invalid case {case!r}: {reason}"
    case: str
    reason: str


class EmptyDatasetError(KantanAgentsError):
    """The dataset has no case: no run passes the filters, or none is recorded completely.

    Fix: Try the filters in ``kantan-agents traces list``; ``reason`` names the first obstacle.

    Attributes:
        reason: Why not, and what to do.
    """

    code = "E102"
    is_bad_input = True
    template = "The dataset is empty: {reason}"
    reason: str


class EvaluationBudgetError(KantanAgentsError):
    """The missing runs of an evaluation may exceed the rest of its budget.

    Fix: Take a smaller sample, or raise the limit. Finished runs are stored.

    Attributes:
        reason: What they are expected to use, the limit, and what to do.
    """

    code = "E103"
    template = "The evaluation exceeds its budget: {reason}"
    reason: str


class EvaluationNotFoundError(KantanAgentsError):
    """The trace database has no such evaluation, or the evaluation has no such variant.

    Fix: Use one of the names in ``reason``.

    Attributes:
        name: The name that was looked for.
        reason: What there is instead.
    """

    code = "E104"
    is_bad_input = True
    template = "No evaluation {name!r}: {reason}"
    name: str
    reason: str


class NotComparableError(KantanAgentsError):
    """Two variants have no case or metric in common, or scores of different evaluator versions.

    Fix: Run both on the same dataset with the same evaluators.

    Attributes:
        a: The one.
        b: The other.
        reason: Why not, and what to do.
    """

    code = "E105"
    is_bad_input = True
    template = "{a!r} and {b!r} cannot be compared: {reason}"
    a: str
    b: str
    reason: str


class HeldOutDatasetError(KantanAgentsError):
    """A held-out test set was used without being opened.

    Fix: Work with ``train`` and ``validation``. For the last evaluation, use ``open(reason)`` or ``eval run
    --open-held-out REASON``.

    Attributes:
        dataset: Its name.
        reason: What to do.
    """

    code = "E106"
    is_bad_input = True
    template = "The test set {dataset!r} is held out: {reason}"
    dataset: str
    reason: str


class UnusableLabelsError(KantanAgentsError):
    """Human labels cannot measure or correct a judge: too few, or for cases that were not sampled at random.

    Fix: Label the cases that the queue samples at random.

    Attributes:
        metric: The metric of the judge.
        reason: Why not, and what to do.
    """

    code = "E107"
    is_bad_input = True
    template = "The labels for {metric!r} cannot be used: {reason}"
    metric: str
    reason: str


class CriterionError(KantanAgentsError):
    """A ready-made judge gives no score.

    The case lacks a reference output, the run has no sources, or the verdict does not cover all sources.

    Attributes:
        judge: Name of the judge.
        case: Id of the case.
        reason: What is missing, and what to do.
    """

    code = "E205"
    template = "The judge {judge!r} gives no score for the case {case!r}: {reason}"
    judge: str
    case: str
    reason: str


class AnswerCutOffError(KantanAgentsError):
    """The answer to a call of the library itself, such as a judge, was cut off.

    The limits are 8,192 tokens, with reasoning, and 600 seconds.

    Attributes:
        agent: Name of the judge, or of another agent.
        limit: What the answer has reached: a number of tokens or seconds, or the limit of the provider.
        setting: The model setting that raises the limit.
    """

    code = "E206"
    template = (
        "The answer of {agent!r} was cut off at {limit}, so it is not used. Raise {setting} in its "
        "model_settings, or choose another model if its answers have no end"
    )
    agent: str
    limit: str
    setting: str
