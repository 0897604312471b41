"""Assembles and runs a chat."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

import anyio
import typer

from kantan_agents.cli.chat.answer_runner import AnswerRunner
from kantan_agents.cli.chat.ask_approval import AskAtTerminal, refuse
from kantan_agents.cli.chat.changed_files import ReportedChanges
from kantan_agents.cli.chat.chat import Chat, EndOfChatError
from kantan_agents.cli.chat.chat_hooks import ChatHooks
from kantan_agents.cli.chat.commands import COMMANDS
from kantan_agents.cli.chat.commands.agent import model_of
from kantan_agents.cli.chat.completer import ChatCompleter
from kantan_agents.cli.chat.conversation import Conversation
from kantan_agents.cli.chat.costs import Costs
from kantan_agents.cli.chat.editor import Editor, Silence
from kantan_agents.cli.chat.ending import ChatEnding
from kantan_agents.cli.chat.input_history import InputHistory
from kantan_agents.cli.chat.jobs import Jobs
from kantan_agents.cli.chat.lines import Lines
from kantan_agents.cli.chat.page import ChatPage
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.chat.settings import Settings
from kantan_agents.cli.chat.talk import Talk
from kantan_agents.cli.chat.undo.undo import Undo, open_snapshots
from kantan_agents.cli.run.recording import recording_to
from kantan_agents.cli.terminal.console import LABEL, NOTICE, wide_terminal
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.core.events import subscribe

_SIGNALLED: Final = 128
_PATIENCE: Final = 2.0
_PATIENCE_WITH_THREADS: Final = 0.5


def lead(settings: Settings) -> None:
    """Run a chat. The process ends even if a tool's thread still works."""
    with recording_to(settings.target) as recorder:
        page = None
        if recorder is not None and settings.target is not None:
            page = ChatPage(settings.target.path, recorder.force_flush)
        try:
            code = asyncio.run(_lead(settings, page))
        finally:
            if settings.store is not None:
                settings.store.close()
    _end_threads(code)
    if code:
        raise typer.Exit(code)


async def _lead(settings: Settings, page: ChatPage | None) -> int:
    _wait_for_no_thread()
    questions = settings.questions
    ending = ChatEnding(is_interactive=questions is not None)
    screen = Screen(wide_terminal(), notes=wide_terminal(stderr=True) if questions is None else None)
    history = InputHistory(settings.history, partial(screen.line, style=NOTICE))
    editor = None if questions is None else Editor(ending, history)
    hooks = ChatHooks(settings.hooks, screen, ending)
    plan, place, store = settings.plan, settings.place_of_commands, settings.store
    ask = partial(refuse, screen) if editor is None else hooks.before(AskAtTerminal(editor, screen, place))
    runner = AnswerRunner(screen, ending, ask, plan, settings.options)
    if questions is not None and editor is not None:
        questions.ask_at(editor, screen, runner.stop)
    plan.ask_at(editor, screen, runner.stop, place)
    snapshots = await asyncio.to_thread(partial(open_snapshots, is_kept=store is not None))
    undo, jobs = Undo(snapshots, screen, editor, settings.folder), Jobs(screen)
    conversation = Conversation(settings.agent, settings.context, store, screen)
    hooks.lead(lambda: conversation.kept.id)
    costs, pinned = Costs(settings.prices), settings.source.pinned
    chat = Chat(
        talk=Talk(settings.agent, conversation, runner, hooks, screen, undo.noting, jobs.with_news),
        screen=screen,
        commands=COMMANDS,
        folder=settings.folder,
        source=settings.source,
        plan=plan,
        jobs=jobs,
        undo=undo,
        history=history,
        costs=costs,
        store=store,
        page=page,
        changes=None if pinned is None else ReportedChanges(pinned, screen),
    )
    try:
        with subscribe(costs.see), jobs.shells.used():
            if settings.resume is not None and store is not None:
                chat.go_on_with(await asyncio.to_thread(store.load, settings.resume))
            if editor is None:
                code = await _answer_lines(chat, ending)
            else:
                editor.complete_with(_completer(chat))
                code = await _converse(chat, editor, ending)
    finally:
        await jobs.end()
        ending.restore()
        snapshots.close()
        if page is not None:
            await page.close()
    _leave_closed_terminal()
    return _SIGNALLED + ending.number if ending.number is not None else code


async def _converse(chat: Chat, editor: Editor, ending: ChatEnding) -> int:
    screen, talk = chat.screen, chat.talk
    screen.line(f"{talk.agent.name}, {model_of(talk.agent)}. /help lists the commands, Ctrl-D ends.", LABEL)
    with anyio.move_on_after(_PATIENCE), suppress(Exception):
        await chat.load_tools()  # only for completion: a tool server may be slow or down
    was_interrupted = False
    while not ending.is_requested and not screen.is_closed:
        try:
            await chat.load_recent()
            chat.jobs.report(len(talk.conversation.kept.turns))
            typed = await editor.read(chat.plan.prompt())
        except KeyboardInterrupt:
            if was_interrupted:
                break
            was_interrupted = True
            screen.line("Ctrl-C again ends the chat.", LABEL)
            continue
        except (EOFError, OSError):
            break
        was_interrupted = False
        try:
            with Silence():
                await chat.handle(typed)
        except EndOfChatError:
            break
    return 0


async def _answer_lines(chat: Chat, ending: ChatEnding) -> int:
    """Answer each line of standard input. Its author is unknown: it is never a command."""
    lines = Lines()
    failed = False
    while not ending.is_requested:
        with ending.interrupting(lines.stop):
            try:
                question = await lines.next()
            except EOFError:
                break
        if question.strip() and await chat.answer(question) == "failed":
            failed = True
    return EXIT_FAILED if failed else 0


def _completer(chat: Chat) -> ChatCompleter:
    arguments = {
        name: partial(command.choices, chat)
        for name, command in chat.commands.items()
        if command.choices is not None
    }
    return ChatCompleter(chat.names, arguments, chat.folder)


def _leave_closed_terminal() -> None:
    """Detach the standard streams: Python would fail to flush them to a closed terminal."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                os.dup2(nothing, stream.fileno())
        os.close(nothing)


class _Unwaited(ThreadPoolExecutor):
    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        del wait  # asyncio would wait for minutes
        super().shutdown(wait=False, cancel_futures=cancel_futures)


def _wait_for_no_thread() -> None:
    asyncio.get_running_loop().set_default_executor(_Unwaited(thread_name_prefix="chat"))


def _end_threads(code: int) -> None:
    deadline = time.monotonic() + _PATIENCE_WITH_THREADS
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
