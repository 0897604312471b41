"""The tool ``Grep``."""

from __future__ import annotations

from functools import partial
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from kantan_agents.toolkit.files.grep.answer import Answer
from kantan_agents.toolkit.files.grep.chosen_files import ChosenFiles
from kantan_agents.toolkit.files.grep.pattern import compiled_pattern
from kantan_agents.toolkit.files.grep.search import OutputMode, Search, search_files
from kantan_agents.toolkit.files.making import file_tool
from kantan_agents.toolkit.files.read_rules import ReadRules
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.stop import SCAN_SECONDS, in_thread
from kantan_agents.toolkit.files.walk import Walk, skipped_notice

USUAL_LIMIT = 200
MAX_LIMIT = 2_000
MAX_CONTEXT = 100


def grep_tool(root: Root, rules: ReadRules) -> FunctionTool:
    """Return the tool ``Grep``."""

    async def grep(
        _context: ToolContext[Any],
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        output_mode: OutputMode = "files_with_matches",
        ignore_case: bool = False,
        line_numbers: bool = True,
        before: int | None = None,
        after: int | None = None,
        context: int | None = None,
        multiline: bool = False,
        head_limit: int | None = None,
        offset: int | None = None,
    ) -> str:
        """Search the contents of files with a regular expression, line by line.

        Files that .gitignore leaves out are not searched, unless path names them or their folder.

        Args:
            pattern: The expression in the syntax of RE2, as for ripgrep: no look-around, no back-references.
            path: The file or folder to search, relative to the root folder, which is the default.
            glob: Which files to search, such as "*.py" or "src/**/*.{ts,tsx}"; "!vendor" searches all others.
            output_mode: "files_with_matches" gives paths, "content" gives lines, "count" gives the number of
                matching lines of each file.
            ignore_case: Whether to ignore case.
            line_numbers: Whether lines have their numbers.
            before: How many lines to show before each match, with "content".
            after: How many lines to show after each match.
            context: How many lines to show before and after each match.
            multiline: Whether a match may span lines; . then matches line ends too.
            head_limit: How many lines, files or counts to give, 200 if left out.
            offset: How many of them to leave out first.
        """
        around = _within(context, 0, MAX_CONTEXT)
        search = Search(
            compiled_pattern(pattern, ignore_case=ignore_case, multiline=multiline),
            output_mode,
            ChosenFiles.of(glob) if glob else None,
            _within(before, around, MAX_CONTEXT),
            _within(after, around, MAX_CONTEXT),
        )
        has_gaps = bool(search.before or search.after)
        limit = max(1, _within(head_limit, USUAL_LIMIT, MAX_LIMIT))
        answer = Answer(max(0, offset or 0), limit, line_numbers, has_gaps)
        may_read = rules.in_force(_context, "Grep")
        walk = await in_thread(partial(search_files, root, search, path or ".", may_read, answer))
        return _text(answer, walk)

    return file_tool(grep, "Grep", root)


def _within(value: int | None, default: int, most: int) -> int:
    return default if value is None else min(max(0, value), most)


def _text(answer: Answer, walk: Walk) -> str:
    notes = [note for note in (skipped_notice(walk.skipped),) if note]
    if answer.is_full:
        notes.append(
            f"[there is more: go on with offset={answer.next_offset}, or narrow the pattern, path or glob]"
        )
    if walk.skipped["late"]:
        notes.append(f"[stopped after {SCAN_SECONDS:.0f} seconds: search a narrower path or glob]")
    if not answer.entries:
        notes.insert(0, "[nothing found]" if not answer.skip else "[nothing more found]")
    return "\n".join((*answer.entries, *notes))
