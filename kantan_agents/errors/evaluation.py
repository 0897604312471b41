"""Errors of datasets, evaluations and comparisons."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class DatasetFileError(KantanAgentsError):
    """A file is not a dataset, or cannot be read or written.

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
    """A case cannot be part of a dataset.

    Attributes:
        case: Id of the case, or its place in the dataset.
        reason: What is wrong with it, and what to do.
    """

    code = "E101"
    is_bad_input = True
    template = "Invalid case {case!r}: {reason}"
    case: str
    reason: str


class EmptyDatasetError(KantanAgentsError):
    """There is no case to evaluate.

    Attributes:
        reason: Why not, and what to do.
    """

    code = "E102"
    is_bad_input = True
    template = "The dataset is empty: {reason}"
    reason: str


class EvaluationBudgetError(KantanAgentsError):
    """The missing runs of an evaluation may exceed what is left of its budget.

    Attributes:
        reason: What they are expected to use, the limit, and what to do.
    """

    code = "E103"
    template = "The evaluation exceeds its budget: {reason}"
    reason: str


class EvaluationNotFoundError(KantanAgentsError):
    """There is no such evaluation in a trace database, or no such variant in it.

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
    """Two variants have nothing to compare.

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


class SealedDatasetError(KantanAgentsError):
    """A sealed test set was used without being opened.

    Attributes:
        dataset: Its name.
        reason: What to do.
    """

    code = "E106"
    is_bad_input = True
    template = "The test set {dataset!r} is sealed: {reason}"
    dataset: str
    reason: str


class UnusableLabelsError(KantanAgentsError):
    """People's labels cannot be used to measure or to correct a judge.

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
    """A ready-made judge gives no score: the case lacks what it needs, or the verdict is not usable.

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
    """The answer of a model that the library asks by itself, such as a judge, was cut off.

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
