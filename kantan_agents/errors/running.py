"""E70 to E79, E81, E85, E86, E25, E26, E48, E67 and E68: pipeline, options, streams, loops, sync runs."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class UnknownStageError(KantanAgentsError):
    """A pipeline does not have the requested stage, or a class matches several of its stages.

    Fix: Use one of the names in the message.

    Attributes:
        stage: The requested stage.
        known: Names of its stages, in order.
    """

    code = "E70"
    template = "Unknown stage: {stage} (this pipeline has: {known})"
    stage: str
    known: str


class DuplicateStageError(KantanAgentsError):
    """Two stages of one pipeline have the same name; two instances of one class, for example.

    Attributes:
        stage: The duplicate name.
    """

    code = "E71"
    template = 'Duplicate stage: {stage} (name one of them with ("another_name", stage))'
    stage: str


class ConcurrentCallNextError(KantanAgentsError):
    """A stage called ``call_next`` while its earlier call was still running.

    Fix: Await each call before the next. To get several answers to one input, run the agent several times.

    Attributes:
        stage: Name of the stage.
    """

    code = "E72"
    template = (
        "Stage {stage} called call_next again before the first call had finished; "
        "await one call before making the next"
    )
    stage: str


class NotAStageError(KantanAgentsError):
    """An entry of a pipeline or of ``middleware`` is not ``async def stage(run, call_next)``.

    Fix: Pass an instance instead of a class; otherwise, see ``reason``.

    Attributes:
        value: ``repr`` of the object.
        reason: What is wrong with it.
    """

    code = "E73"
    template = "Not a stage: {value} ({reason}; a stage is `async def stage(run, call_next)`)"
    value: str
    reason: str


class CallNextNotAwaitedError(KantanAgentsError):
    """A stage called ``call_next`` and returned before the call had finished.

    Attributes:
        stage: Name of the stage.
    """

    code = "E74"
    template = "Stage {stage} returned without awaiting call_next; write `await call_next(run)`"
    stage: str


class InvalidOptionError(KantanAgentsError):
    """An option of ``Agent``, of a run or of a command has an invalid value.

    Attributes:
        option: Name of the option.
        reason: The accepted values and the given one.
    """

    code = "E75"
    is_bad_input = True
    template = "Invalid option {option}: {reason}"
    option: str
    reason: str


class RendererResultError(KantanAgentsError):
    """A renderer did not return a str.

    Fix: Return the rendered str. A function without ``return`` returns None.

    Attributes:
        got: Name of the returned type.
    """

    code = "E76"
    template = "The renderer must return a str, not {got}"
    got: str


class RenderError(KantanAgentsError):
    """A value of the context could not be looked up or converted to a str; its error is the ``__cause__``.

    Fix: Correct the value, or put a str into the context.

    Attributes:
        expression: The placeholder in the template.
        reason: Type and message of the error the value raised.
    """

    code = "E77"
    template = "Cannot render {expression}: {reason}"
    expression: str
    reason: str


class UndefinedPlaceholderError(RenderError):
    """A placeholder of a strict template names a key, an index or a variable that does not exist.

    Fix: Correct the placeholder: ``reason`` has the nearest key. Or add the value to the context, ``""`` if
    it is empty.

    Attributes:
        expression: The placeholder in the template.
        prompt: The prompt, such as ``prompt 'support' (v4)``.
        reason: The missing key, and the nearest existing one.
    """

    code = "E48"
    template = "Cannot render {expression} of {prompt}: {reason}"
    prompt: str


class InputTypeError(KantanAgentsError):
    """The input of a run is neither a str, nor a list of input items, nor a ``RunState``.

    Attributes:
        got: Name of the type that was given.
    """

    code = "E78"
    is_bad_input = True
    template = "Input must be a str, a list of input items or a RunState, not {got}"
    got: str


class FileArgumentError(KantanAgentsError):
    """A file named on the command line cannot be used.

    Attributes:
        path: The given path.
        reason: Why it cannot be used.
    """

    code = "E79"
    is_bad_input = True
    template = "Cannot use {path}: {reason}"
    path: str
    reason: str


class FixedOptionError(KantanAgentsError, AttributeError):
    """An option of an ``Agent`` was assigned after the agent had been created. Only ``handoffs`` may be.

    Attributes:
        agent: Name of the agent.
        option: Name of the option.
    """

    code = "E67"
    template = (
        "{option} of agent {agent!r} cannot be assigned; create the agent with it, or a changed copy: "
        "agent.clone({option}=...)"
    )
    agent: str
    option: str


class EventLoopError(KantanAgentsError, RuntimeError):
    """A run was started where no event loop of asyncio is running: under trio, for example.

    Attributes:
        found: What is running instead.
    """

    code = "E68"
    template = (
        "An agent needs asyncio, and {found}. Start the program with asyncio.run(...) or "
        'anyio.run(..., backend="asyncio"), or call the sync agent.run in a worker thread: '
        "await {library}.to_thread.run_sync(agent.run, input)"
    )
    found: str
    library: str


class StreamUsageError(KantanAgentsError):
    """A ``RunStream`` was read before ``async with``, entered or read twice, or its context read too early.

    Attributes:
        reason: The mistake, and what to do instead.
    """

    code = "E81"
    template = "Streamed run: {reason}"
    reason: str


class ApprovalStateError(KantanAgentsError):
    """A run that waits for approvals cannot be stored or resumed this way.

    Attributes:
        reason: The mistake, and what to do.
    """

    code = "E85"
    template = "Approval: {reason}"
    reason: str


class NoRunResultError(KantanAgentsError):
    """``run_result`` got a context without the result of a run.

    No run has completed it, or a stage stopped the run without a result or set the result itself.

    Fix: Pass the context that a run returned. If a stage returns early, read its answer from the context.

    Attributes:
        reason: What the context has instead, and how that can be.
    """

    code = "E86"
    template = "The context has no run result: {reason}"
    reason: str


class RunInCollectorError(KantanAgentsError):
    """The sync ``run`` was called by the garbage collector, which may have stopped the thread anywhere."""

    code = "E25"
    template = (
        "run was called by the garbage collector, in __del__ or a weakref callback; "
        "the code that the collector has interrupted may hold a lock that the run needs, "
        "so call run from a method such as close() instead"
    )


class InterpreterExitError(KantanAgentsError):
    """A sync run was canceled, or not started, because the interpreter exits.

    A daemon thread was still running it, or an object called ``run`` in its finalizer.

    Fix: Join the thread, or use one that is not a daemon. Run the agent in ``close()`` or in an ``atexit``
    handler.
    """

    code = "E26"
    template = (
        "The run was cancelled or not started because the interpreter is exiting; "
        "run agents before the program ends, not in a finalizer, and wait for the threads that run them"
    )
