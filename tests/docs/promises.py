"""Which tests show what the tables of the documentation promise, row by row.

A table is named by its page, its heading and the first cell of its header; a row by its first cell.
"""

from __future__ import annotations

Tests = tuple[str, ...]
Table = dict[str, Tests]

_FILES = "toolkit/shell/test_protected_files.py"
_OWN = "tools/mcp/configuration/test_own_start.py"
_APP = "cli/test_app.py"
_RUN = "cli/test_run_toolkit.py"
_KEPT = "toolkit/shell/test_unchanged_paths.py"
_HOOKS = "cli/hooks/test_hooks.py"
_READ_HOOKS = "cli/hooks/test_read_hooks.py"
_GIT = "toolkit/shell/test_repositories.py"

_USED = "test_deployed_changes.py::test_what_was_done_is_used_as_it_is"
_PARKED = "test_deployed_changes.py::test_a_program_that_cannot_use_what_was_done_parks_the_run"
_DEPLOYED = {
    "nothing": _USED,
    "the prompt, or the context values in it": _USED,
    "the model or its settings": _USED,
    "the output type or `output_mode` is added, removed or changed": _USED,
    "a tool is added": _USED,
    "the signature or the schema of a tool": _USED,
    "a tool is removed, renamed or disabled": _USED,
    "an MCP server is down": _USED,
    "the tool rules": "test_deployed_changes.py::test_a_finished_call_of_a_gone_tool_obeys_the_rules_of_now",
    "an approval is added for a tool": _PARKED,
    "`Fallback` is removed": _USED,
    "`Retry` is added or removed": (
        "test_deployed_changes.py::test_the_last_try_counts_without_the_middleware_that_has_tried_again"
    ),
    "a middleware that answers calls itself": (
        "test_deployed_changes.py::test_what_a_middleware_has_answered_is_not_made_without_it"
    ),
    "a middleware that calls the model more often than before": _PARKED,
    "`once`": (
        "test_deployed_changes.py::test_a_call_in_flight_of_a_tool_that_is_once_now_is_not_made_again"
    ),
    "the tool of a slash command is removed, or takes other arguments": (
        "test_deployed_changes.py::test_a_call_of_a_slash_command_is_made_once_or_as_often_as_said"
    ),
    "`SlashCommands` is removed, or gets another prefix": (
        "test_deployed_changes.py::test_a_call_of_a_slash_command_is_made_once_or_as_often_as_said"
    ),
    "a handoff is removed, or its target is renamed": _PARKED,
    "a subagent or an agent as a tool is renamed": _PARKED,
    "the agent's name": "test_listing.py::test_runs_of_an_agent_that_no_process_has_are_named",
    "the version of the SDK, or of this library": (
        "test_versions.py::test_a_run_that_version_1_has_stored_is_finished"
    ),
}

PROMISES: dict[tuple[str, str, str], Table] = {
    ("docs/reference/what-a-folder-can-do.md", "Tools for files", "`Write`, `Edit` or `MultiEdit`"): {
        'gets a protected file after "always" for another, or with `--yes Write`': (
            "cli/chat/test_approvals.py::test_always_is_for_a_folder_and_never_for_a_protected_file",
            "toolkit/files/test_protected.py::test_an_approval_of_every_call_does_not_cover_them",
            "cli/test_standing_approvals.py::test_a_protected_path_is_asked_for_whatever_the_tool_is",
        ),
        "gets a protected file with `approval=False`, even by `..`, an absolute path, upper case, an "
        "invisible character or a link": (
            "toolkit/files/test_protected.py::test_they_are_not_written_without_a_person",
            "toolkit/files/test_protected.py::test_they_are_not_edited_without_a_person",
            "toolkit/files/test_protected.py::test_no_link_leads_to_one",
        ),
        "writes to a hard link of one": ("toolkit/files/test_protected.py::test_no_link_leads_to_one",),
        "makes a folder a repository, or writes in an environment, a `PATH` folder, or a program "
        "of git or a `.mcp.json` server": (
            f"{_FILES}::test_what_git_runs_asks_also_in_the_tools_for_files",
            f"{_FILES}::test_a_program_of_a_server_is_read_only_however_it_is_named",
            f"{_FILES}::test_a_program_of_a_server_that_does_not_exist_is_set_aside",
            "toolkit/files/test_protected.py::test_what_makes_a_folder_a_repository_or_an_environment_counts",
            "toolkit/files/test_protected.py::test_where_programs_and_the_users_settings_are_found_counts",
        ),
        "gets a file that changed after the question": (
            "toolkit/files/test_protected.py::test_what_was_shown_is_what_is_changed",
        ),
        "gets, in `chat` or `run`, a file that was not read, or that has changed since": (
            "toolkit/files/test_read_first.py::test_a_file_is_changed_only_after_it_was_read",
            "toolkit/files/test_read_first.py::test_what_has_changed_since_is_read_again",
        ),
        "is an MCP tool that gets a protected path, in any form": (
            "toolkit/files/test_protected.py::test_whatever_a_tool_takes_for_a_path_is_looked_at",
            "toolkit/files/test_protected.py::test_a_path_is_followed_from_the_working_directory",
            "cli/test_standing_approvals.py::test_a_protected_path_is_asked_for_whatever_the_tool_is",
        ),
        "names the folder of conversations, typed input and old content for `/undo`": (
            "toolkit/files/test_own_data.py::test_no_tool_reads_or_writes_it",
            "toolkit/files/test_own_data.py::test_a_tool_cannot_make_it_first",
        ),
    },
    ("docs/reference/what-a-folder-can-do.md", "A conversation", "During a chat or run"): {
        "an agent file appears or gets more tools; a skill, command, `AGENTS.md`, `CLAUDE.md` or "
        "MCP configuration changes": (
            "cli/test_pinned_files.py::test_an_agent_has_the_tools_that_its_file_gave_it_at_the_start",
            "cli/chat/test_changed_files.py::test_a_changed_file_has_no_effect_in_a_pipe",
            "cli/test_pinned_files.py::test_pinned_skills_and_commands_stay_as_well",
            "cli/test_pinned_files.py::test_the_loaders_of_an_agent_made_in_python_are_pinned",
            "cli/test_pinned_files.py::test_the_configuration_of_servers_is_read_once",
            "cli/test_instruction_files.py::test_a_change_is_reported_and_exactly_that_is_used",
            "cli/chat/test_project_instructions.py::test_a_person_agrees_to_the_file_of_a_folder_once_and_to_each_change",
        ),
        "you type `/reload`": (
            "cli/chat/test_changed_files.py::test_a_changed_file_is_used_when_the_person_says_so",
            "cli/test_pinned_files.py::test_what_was_shown_is_what_is_used",
        ),
        "you type `/undo`": (
            "cli/chat/test_undo.py::test_nothing_is_put_back_without_a_yes",
            "cli/chat/test_undo.py::test_no_link_is_followed",
            "cli/chat/test_undo.py::test_a_file_that_changes_while_the_person_reads_is_left",
        ),
        "`/undo` meets a file that a running command may not change": (
            "cli/chat/test_undo.py::test_a_protected_file_is_left_while_a_command_runs_that_could_then_write_it",
        ),
        "a tool writes to a rules file, an agents directory or a server's program": (
            "cli/test_pinned_files.py::test_the_files_that_a_command_was_started_with_are_protected",
            "toolkit/files/test_protected.py::test_what_this_process_runs_and_uses_counts",
        ),
        "an agent, subagent or handoff target calls a tool that may change something in [plan "
        "mode](../guides/chat.md#plan-first)": (
            "cli/chat/test_plan_mode.py::test_no_option_permits_a_change",
            "cli/chat/test_plan_mode.py::test_tools_of_modules_and_servers_are_refused_whatever_their_names_say",
            "cli/chat/test_plan_mode.py::test_subagents_only_read_and_have_no_plan_of_their_own",
            "cli/chat/test_plan_mode.py::test_an_agent_after_a_hand_off_only_reads_and_may_propose_a_plan",
            "cli/chat/test_plan_mode.py::test_always_is_no_way_around_it",
        ),
        "you agree to a plan": (
            "cli/chat/test_plan_mode.py::test_a_call_beside_a_plan_is_not_made",
            "cli/chat/test_plan_mode.py::test_a_plan_that_is_agreed_to_permits_exactly_what_was_shown",
            "cli/chat/test_plan_in_chat.py::test_what_was_agreed_to_ends_with_the_conversation",
        ),
    },
    ("docs/guides/chat.md", "Undo", "If"): {
        "you, an editor or a command has changed a file since": (
            "cli/chat/test_undo.py::test_what_has_changed_since_is_left_unless_the_person_wants_it",
            "cli/chat/test_undo.py::test_what_changes_between_two_calls_is_not_lost",
            "cli/chat/test_undo.py::test_a_file_that_was_removed_since_is_not_made_again_in_silence",
        ),
        "the answer created the file": (
            "cli/chat/test_undo.py::test_files_get_back_their_content_and_mode_and_created_ones_are_removed",
        ),
        "the answer ran commands, or tools of MCP servers": (
            "cli/chat/test_undo.py::test_a_chat_undoes_what_its_tools_did_and_the_model_knows_it",
        ),
        "a parent folder is a link now": (
            "cli/chat/test_undo.py::test_no_link_is_followed",
            "cli/chat/test_undo.py::test_a_root_that_became_a_link_is_left",
        ),
        "the process is killed midway": (
            "cli/chat/test_undo.py::test_a_crash_in_the_middle_leaves_each_file_old_or_new",
        ),
        "the chat is resumed": (
            "cli/chat/test_undo.py::test_a_resumed_chat_undoes_what_a_killed_one_has_done",
        ),
    },
    ("docs/guides/chat.md", "Approve calls", "Answer"): {
        "`y`": ("cli/chat/test_approvals.py::test_a_call_is_made_after_a_yes_only",),
        "`n`": ("cli/chat/test_approvals.py::test_a_refusal_with_its_reason_is_sent_to_the_model",),
        "`a`": (
            "cli/chat/test_approvals.py::test_always_is_for_the_same_call_in_this_conversation",
            "cli/chat/test_approvals.py::test_always_is_for_a_folder_and_never_for_a_protected_file",
            "cli/chat/test_approvals.py::test_calls_of_a_subagent_are_asked_for_in_place",
            "cli/test_standing_approvals.py::test_always_is_for_a_folder",
            "cli/test_standing_approvals.py::test_always_is_for_the_beginning_of_a_command",
        ),
        "`s`": (
            "cli/chat/test_ask_approval.py::test_the_rest_of_a_long_change_is_shown_when_it_is_asked_for",
        ),
        "Ctrl-C": (
            "cli/chat/test_approvals.py::test_ctrl_c_at_the_question_ends_the_answer_without_the_call",
        ),
    },
    ("docs/guides/file-and-shell-tools.md", "Protected files", "Value"): {
        '`"ask"`': (
            "toolkit/files/test_protected.py::test_the_option_says_what_happens_with_them",
            "toolkit/files/test_protected.py::test_an_approval_of_every_call_does_not_cover_them",
            "toolkit/files/test_protected.py::test_an_approval_of_the_call_covers_it",
        ),
        '`"refuse"`': (
            "toolkit/files/test_protected.py::test_they_are_not_written_without_a_person",
            "toolkit/files/test_protected.py::test_they_are_not_edited_without_a_person",
        ),
        '`"allow"`': ("toolkit/files/test_protected.py::test_the_option_says_what_happens_with_them",),
    },
    ("docs/reference/file-formats.md", "Hooks", "Event"): {
        "`PreToolUse`": (
            f"{_HOOKS}::test_exit_code_2_blocks_the_call_and_the_model_gets_the_reason",
            f"{_HOOKS}::test_rules_decide_first_and_a_hook_allows_nothing",
            "cli/chat/test_chat_hooks.py::test_a_hook_decides_before_the_person_is_asked",
        ),
        "`PostToolUse`": (f"{_HOOKS}::test_a_hook_after_a_call_adds_to_the_result_or_warns",),
        "`UserPromptSubmit`": (
            f"{_HOOKS}::test_a_prompt_is_blocked_or_gets_more",
            "cli/chat/test_chat_hooks.py::test_in_a_pipe_a_message_is_kept_back_or_gets_more",
            "cli/hooks/test_run_with_hooks.py::test_a_question_is_kept_back",
            "cli/chat/test_together.py::test_a_blocked_message_is_sent_by_retry_and_takes_no_answer_away",
        ),
        "`Stop`": (f"{_HOOKS}::test_the_end_of_an_answer_can_warn",),
    },
    ("docs/guides/chat.md", "Retry an answer", "`/retry`"): {
        "after an answer without tool calls": (
            "cli/chat/test_retry.py::test_a_message_whose_answer_failed_is_sent_again_and_replaced",
            "cli/chat/test_retry.py::test_an_interrupted_answer_is_begun_again",
            "cli/chat/test_retry.py::test_another_model_gets_the_message_without_what_only_the_first_one_knows",
        ),
        "after tool calls": (
            "cli/chat/test_retry.py::test_what_tools_have_done_is_neither_hidden_nor_done_again",
            "cli/chat/test_retry.py::test_a_finished_answer_is_made_anew_after_the_calls_of_its_tools",
            "cli/chat/test_retry.py::test_an_answer_that_was_lost_is_tried_again_after_resume",
            "cli/chat/test_retry.py::test_the_model_knows_which_call_was_interrupted",
            "cli/chat/test_together.py::test_the_model_knows_what_was_undone_and_answers_anew",
        ),
        "after a hook has blocked a message": (
            "cli/chat/test_together.py::test_a_blocked_message_is_sent_by_retry_and_takes_no_answer_away",
        ),
        "fails before anything is written": (
            "cli/chat/test_retry.py::test_a_finished_answer_is_made_anew_after_the_calls_of_its_tools",
        ),
        "after `/compact`, a tool command, or before the first message": (
            "cli/chat/test_retry.py::test_with_nothing_to_try_again_it_is_an_error",
            "cli/chat/test_retry.py::test_a_command_and_the_result_of_a_tool_are_not_tried_again",
        ),
    },
    ("docs/guides/chat.md", "Find what you typed", "What you type"): {
        "a message or a command": (
            "cli/chat/test_history.py::test_what_was_typed_is_found_in_the_next_chat_and_in_another_one",
        ),
        "an answer to a question or an approval": (
            "cli/chat/test_history.py::test_answers_are_not_kept_and_the_history_can_be_removed",
        ),
        "anything with `--no-save`, or input that starts with a space, exceeds 20 KB, or has a "
        "secret that [`Redact`](../reference/middleware/redact.md) finds": (
            "cli/chat/test_history.py::test_secrets_lines_with_a_space_before_and_very_long_texts_are_not_kept",
            "cli/chat/test_history.py::test_the_latest_entry_is_first_whichever_chat_it_is_from",
            "cli/chat/test_history.py::test_without_saving_nothing_is_kept",
            "cli/chat/test_history.py::test_a_chat_begins_without_a_history_that_cannot_be_used",
        ),
    },
    ("docs/guides/chat.md", "Continue later", "If"): {
        "Ctrl-C or SIGTERM comes, or the terminal is closed": (
            "cli/chat/test_interruptions.py::test_ctrl_c_ends_the_answer_and_keeps_the_conversation",
            "cli/chat/test_interruptions.py::test_a_signal_in_mid_answer_ends_the_chat_and_keeps_it",
            "cli/chat/test_interruptions.py::test_a_closed_terminal_ends_the_chat_and_keeps_it",
        ),
        "the process is killed, or the machine crashes": (
            "cli/chat/test_interruptions.py::test_after_a_crash_the_conversation_goes_on",
        ),
        "two chats continue one conversation": (
            "cli/chat/test_interruptions.py::test_two_chats_with_one_conversation_part_where_they_differ",
            "cli/chat/test_kept.py::test_many_writers_lose_nothing",
        ),
        "`/compact` is typed": (
            "cli/chat/test_commands.py::test_compact_goes_on_with_a_summary_that_the_model_writes",
        ),
    },
    ("docs/guides/opentelemetry.md", "When the collector is down", "What happens"): {
        "the collector rejects spans: any other status, or `partial_success`": (
            "traces/telemetry/test_sending.py::test_what_a_collector_refuses_is_counted_and_logged_once",
            "traces/telemetry/test_sending.py::test_spans_that_a_collector_refuses_of_those_it_takes_are_counted_and_said_once",
        ),
        "the collector is down: no answer, or 429, 502, 503, 504": (
            "traces/telemetry/test_sending.py::test_nothing_is_lost_while_the_collector_is_away_and_the_queue_is_not_full",
            "traces/telemetry/test_sending.py::test_a_process_ends_when_nobody_listens",
            "traces/telemetry/test_sending.py::test_a_flush_waits_no_longer_than_it_may",
        ),
        "the collector gets spans and does not answer, five times in a row": (
            "traces/telemetry/test_sending.py::test_spans_that_the_collector_gets_without_an_answer_hold_up_no_others",
        ),
        "more than `OTEL_BSP_MAX_QUEUE_SIZE` (2,048) spans wait": (
            "traces/telemetry/test_sending.py::test_what_does_not_fit_into_the_queue_is_dropped_counted_and_logged",
            "traces/telemetry/test_sending.py::test_what_is_lost_while_the_collector_is_away_is_counted_and_said",
        ),
        "the process ends, also by SIGTERM": (
            "traces/telemetry/test_sending.py::test_what_waits_is_sent_at_exit",
            "traces/telemetry/test_sending.py::test_what_waits_is_sent_on_sigterm",
            "traces/telemetry/test_sending.py::test_workers_of_multiprocessing_send_at_their_end",
            "traces/telemetry/test_sending.py::test_a_process_ends_when_the_collector_is_silent",
            "traces/telemetry/test_sending.py::test_what_waits_at_the_end_is_said",
        ),
        "`kill -9`": ("traces/telemetry/test_sending.py::test_kill_9_loses_only_what_was_not_sent",),
        "a fork": ("traces/telemetry/test_sending.py::test_forked_children_send_their_own_spans_only",),
    },
    ("docs/guides/opentelemetry.md", "Group by conversation and user", "You have"): {
        "a `session`": ("traces/telemetry/test_runs.py::test_all_spans_of_a_run_have_its_conversation",),
        "`conversation_id`, for a conversation that OpenAI stores": (
            "traces/telemetry/test_runs.py::test_a_conversation_that_openai_stores_is_that_of_the_run",
        ),
        "`RunConfig(group_id=...)`, or your own trace with a `group_id`": (
            "traces/telemetry/test_runs.py::test_all_spans_of_a_run_have_its_conversation",
            "traces/telemetry/test_runs.py::test_runs_in_a_trace_of_the_user_are_below_one_workflow",
        ),
        "a run inside another run": (
            "traces/telemetry/test_runs.py::test_a_delegated_run_is_of_the_conversation_around_it",
        ),
        "a session that has no id yet": (
            "traces/telemetry/test_runs.py::test_a_session_without_a_conversation_groups_nothing",
        ),
    },
    ("docs/guides/file-and-shell-tools.md", "Limit commands", "If"): {
        "a command ends and leaves processes that hold its output": (
            "toolkit/shell/test_commands.py::test_processes_that_hold_the_output_after_the_command_are_ended_with_it",
        ),
        "a command takes too long": (
            "toolkit/shell/test_commands.py::test_a_command_that_takes_too_long_is_ended_and_shows_what_it_printed",
            "toolkit/shell/test_commands.py::test_a_command_that_ignores_the_request_to_end_is_killed",
        ),
        "a command prints without end": (
            "toolkit/shell/test_commands.py::test_a_flood_of_output_ends_the_command_and_keeps_little",
            "toolkit/shell/test_commands.py::test_of_long_output_the_beginning_and_the_end_are_shown",
        ),
        "it exceeds memory, CPU time, disk writes or processes": (
            "toolkit/shell/test_protected_files.py::test_shared_memory_and_files_in_memory_are_limited",
            "toolkit/shell/test_protected_files.py::test_many_files_together_are_limited",
            "toolkit/shell/test_commands.py::test_processes_that_take_more_memory_together_are_ended",
            "toolkit/shell/test_commands.py::test_a_command_that_computes_too_long_is_ended",
            "toolkit/shell/test_commands.py::test_a_command_with_too_many_processes_is_ended",
        ),
        "the run is canceled": (
            "toolkit/shell/test_background.py::test_a_cancelled_run_has_ended_all_processes_when_it_returns",
        ),
        "the run ends, with an answer or an error": (
            "toolkit/shell/test_background.py::test_the_end_of_a_run_ends_what_it_has_in_the_background",
            "toolkit/shell/test_background.py::test_a_run_that_fails_ends_what_it_has_in_the_background",
        ),
        "the run waits for an approval": (
            "toolkit/shell/test_background.py::test_a_run_that_waits_for_an_approval_keeps_its_shells_until_it_is_over",
            "toolkit/shell/test_background.py::test_the_shells_of_a_run_that_nobody_resumes_end_by_themselves",
        ),
        "this process ends, even by `kill -9`": (
            "toolkit/shell/test_background.py::test_nothing_survives_a_process_that_is_killed",
        ),
    },
    ("docs/reference/what-a-folder-can-do.md", "Commands in the sandbox", "A command"): {
        "replaces the interpreter, library, packages or `sitecustomize.py` in use, or your hooks "
        "and their scripts if the folder is your home": (
            f"{_FILES}::test_the_sandbox_is_not_left_through_what_the_library_runs_from",
            f"{_READ_HOOKS}::test_a_command_in_the_sandbox_cannot_change_them_where_the_home_folder_is_its_folder",
        ),
        "changes, removes, replaces or links a protected file, or moves its folder": (
            f"{_FILES}::test_a_protected_file_cannot_be_changed_whichever_way",
            f"{_FILES}::test_folders_that_hold_something_read_only_cannot_be_moved",
        ),
        "creates a protected file": (
            f"{_FILES}::test_folders_down_to_the_working_directory_are_protected_too",
            f"{_FILES}::test_a_protected_file_that_did_not_exist_is_set_aside",
            f"{_FILES}::test_a_command_that_has_made_a_protected_file_is_ended_also_in_the_background",
            f"{_FILES}::test_a_link_on_the_way_out_is_set_aside_and_nothing_outside_is_renamed",
            f"{_KEPT}::test_afterwards_none_of_them_is_there_and_everything_else_is",
            f"{_KEPT}::test_a_folder_that_may_not_be_written_is_no_shelter",
            f"{_KEPT}::test_all_names_may_be_taken",
        ),
        "runs while you, `git` or an approved call replaces a protected file": (
            f"{_FILES}::test_a_command_is_ended_when_what_it_may_not_write_is_replaced",
            f"{_FILES}::test_a_command_ends_before_an_approved_call_replaces_a_protected_file",
            f"{_KEPT}::test_what_is_mounted_is_missed_also_if_the_new_file_gets_its_number",
        ),
        "replaces a link at a protected path": (
            f"{_FILES}::test_a_link_in_the_place_of_a_protected_file_is_put_back",
            f"{_FILES}::test_what_a_protected_link_leads_to_is_read_only",
        ),
        "runs `git add`, `git commit`, `git checkout` or `git gc`": (
            f"{_FILES}::test_git_works_in_the_sandbox_but_its_configuration_is_read_only",
        ),
        "runs `git config`, adds a hook, or changes a file that git's configuration names, in "
        "submodules and included files too": (
            f"{_FILES}::test_git_works_in_the_sandbox_but_its_configuration_is_read_only",
            f"{_FILES}::test_a_protected_file_cannot_be_changed_whichever_way",
            f"{_FILES}::test_files_that_the_configuration_names_are_read_only",
            f"{_GIT}::test_what_an_included_file_names_is_read_only",
            f"{_GIT}::test_where_the_file_of_a_repository_leads_is_read_only",
            f"{_GIT}::test_a_submodule_is_read_only_whatever_a_command_puts_beside_it",
            f"{_GIT}::test_another_worktree_is_a_part_of_the_repository",
        ),
        "creates a repository, or adds one to the folder's": (
            f"{_FILES}::test_a_new_repository_is_left_and_one_that_runs_programs_is_not",
            f"{_KEPT}::test_a_new_configuration_of_git_is_left_only_if_it_names_no_program",
            f"{_GIT}::test_a_repository_that_becomes_a_part_runs_no_program",
            f"{_GIT}::test_one_that_names_no_program_is_left_and_stays_so",
        ),
        "creates or changes a `.mcp.json` program, or `node_modules` if a server starts Node": (
            f"{_FILES}::test_a_program_of_a_server_is_read_only_however_it_is_named",
            f"{_FILES}::test_files_that_the_configuration_names_are_read_only",
        ),
        "changes or removes the process's database of runs, conversations or durable runs": (
            f"{_FILES}::test_the_database_of_durable_runs_is_read_only",
            "cli/test_pinned_files.py::test_the_files_that_a_command_was_started_with_are_protected",
            f"{_FILES}::test_the_database_that_records_is_read_only_and_goes_on",
        ),
        "puts a program in a `PATH` folder of the project": (
            f"{_FILES}::test_folders_of_path_in_the_project_are_read_only",
            f"{_FILES}::test_a_relative_folder_of_path_is_read_only",
            f"{_FILES}::test_a_program_in_the_project_is_not_taken_for_bubblewrap",
        ),
        "puts a link in place of the folder, its `/tmp`, or a read-only path": (
            f"{_FILES}::test_a_directory_that_became_a_link_is_not_used",
            f"{_FILES}::test_the_directory_for_temporary_files_is_not_in_the_project",
            f"{_FILES}::test_what_a_running_command_may_replace_is_not_mounted_for_the_next",
        ),
        "starts in a folder below the folder of a running command": (
            f"{_FILES}::test_no_command_begins_in_a_folder_that_a_running_one_may_replace",
        ),
        "changes a library that `LD_LIBRARY_PATH` or the like names in `shell_tools(env=...)`": (
            f"{_FILES}::test_libraries_that_the_environment_names_are_loaded_in_the_sandbox_only",
        ),
        "runs in the process's Python environment or library": (
            f"{_FILES}::test_a_project_from_which_the_process_runs_is_read_only",
        ),
        "accesses conversations, typed input, or old content for `/undo`": (
            f"{_FILES}::test_the_librarys_own_data_is_hidden_from_commands",
            f"{_FILES}::test_the_librarys_own_data_is_hidden_in_what_commands_may_read",
        ),
        "uses shared memory, files in memory or `/dev/shm`": (
            f"{_FILES}::test_shared_memory_and_files_in_memory_are_limited",
            f"{_KEPT}::test_shared_memory_of_a_process_counts_as_its_memory",
        ),
        "fills a disk, or `/tmp`": (
            f"{_FILES}::test_many_files_together_are_limited",
            f"{_FILES}::test_a_file_cannot_be_larger_than_the_limit",
        ),
    },
    ("docs/reference/what-a-folder-can-do.md", "Files of a repository", "A repository has"): {
        "`traces.sqlite3` as a link": (
            "traces/test_default_link.py::test_a_link_in_its_place_is_not_followed",
            "traces/test_default_link.py::test_a_run_is_not_recorded_where_a_link_leads",
        ),
        "`durable.sqlite3` as a link, or with pickles": (
            "cli/test_runs.py::test_the_default_database_is_no_link",
            "cli/test_runs.py::test_a_pickle_in_a_database_is_not_read",
        ),
        "a module or `PATH` program named like your MCP server's": (
            f"{_OWN}::test_a_module_of_the_project_is_not_the_one_that_the_users_own_server_names",
            f"{_OWN}::test_an_own_server_starts_in_the_folder_of_its_file_and_a_projects_in_the_project",
            f"{_OWN}::test_no_entry_of_the_path_leads_into_the_project",
            f"{_OWN}::test_a_program_that_only_the_project_has_is_an_error_that_says_so",
        ),
        "MCP servers, in `.mcp.json` or an agent file": (
            "cli/test_mcp.py::test_one_question_is_about_all_files_of_a_folder_and_the_answer_is_kept",
            "cli/test_mcp.py::test_a_changed_file_is_not_trusted_and_trust_can_be_forgotten",
        ),
        "a command that looks secret, or has invisible characters": (
            "cli/test_mcp.py::test_no_command_of_a_project_is_masked_because_it_looks_like_a_secret",
            "cli/test_mcp.py::test_no_character_of_a_command_is_invisible",
            "cli/test_mcp.py::test_what_is_too_long_for_a_question_is_not_asked_about",
        ),
        "`AGENTS.md` or `CLAUDE.md`": (
            "cli/test_instruction_files.py::test_nothing_of_a_repository_is_used_before_a_person_has_agreed_to_exactly_that",
            "cli/test_instruction_files.py::test_without_a_terminal_only_the_option_agrees",
            "cli/chat/test_project_instructions.py::test_a_person_agrees_to_the_file_of_a_folder_once_and_to_each_change",
        ),
        "an agent, skill or command named like yours": (
            "cli/test_run_agent.py::test_what_a_project_puts_in_place_of_the_users_is_named_on_stderr",
        ),
        "`hooks.json`, or a program or module named like one of your [hooks](../guides/chat.md#hooks)": (
            f"{_READ_HOOKS}::test_a_file_of_the_project_is_never_read",
            f"{_READ_HOOKS}::test_a_variable_cannot_make_a_folder_of_the_project_the_users",
            f"{_READ_HOOKS}::test_a_link_into_the_project_is_refused",
            f"{_READ_HOOKS}::test_a_command_that_names_a_file_of_the_project_is_refused",
            f"{_HOOKS}::test_where_it_starts",
        ),
        "`kantan_agents.py`, `attr.py` or another file named like a library module": (
            "cli/test_app.py::test_a_file_in_the_working_directory_takes_the_place_of_no_module",
            f"{_APP}::test_a_module_of_the_working_directory_is_loaded_and_later_files_take_the_place_of_none",
            "cli/chat/test_commands.py::test_the_page_of_the_last_answer_can_be_opened",
            "tools/test_worker_process.py::test_no_file_that_a_tool_may_write_takes_the_place_of_a_module",
        ),
    },
    ("docs/reference/what-a-folder-can-do.md", "Calls of tools", "A call"): {
        "is blocked by your hook, or the hook fails or times out": (
            f"{_HOOKS}::test_a_guard_that_fails_lets_nothing_through",
            f"{_HOOKS}::test_the_arguments_that_it_sees_are_those_of_the_call",
            f"{_HOOKS}::test_tools_of_delegated_agents_are_guarded",
            f"{_HOOKS}::test_tools_of_every_other_agent_are_guarded",
            f"{_HOOKS}::test_a_server_s_tool_is_known_by_its_full_name",
            "cli/chat/test_together.py::test_a_hook_blocks_a_plan_before_a_person_sees_it",
        ),
        "is to an MCP tool": ("cli/test_mcp.py::test_only_full_names_approve_calls_of_a_server",),
        "runs a command without a sandbox": (
            "cli/test_run_toolkit.py::test_without_a_sandbox_this_is_said_on_stderr",
            "cli/test_run_toolkit.py::test_the_question_about_a_command_says_whether_there_is_a_sandbox",
            f"{_RUN}::test_a_required_sandbox_that_is_missing_ends_the_command_before_the_model_is_asked",
        ),
    },
    ("docs/guides/file-and-shell-tools.md", "Read a page", "If"): {
        "a page redirects to another host or port": (
            "toolkit/web/test_web_fetch.py::test_a_redirect_to_another_host_is_named_and_not_followed",
            "toolkit/web/test_web_fetch.py::test_a_redirect_to_another_port_or_scheme_is_not_followed",
        ),
        "a page redirects on its host": (
            "toolkit/web/test_web_fetch.py::test_a_redirect_on_the_same_host_is_followed",
            "toolkit/web/test_web_fetch.py::test_rules_for_urls_hold_for_redirects_too",
            "toolkit/web/test_web_fetch.py::test_endless_redirects_end",
        ),
        "a name has an address outside the public internet": (
            "toolkit/web/test_web_fetch.py::test_private_addresses_are_refused_by_default",
            "toolkit/web/test_urls.py::test_addresses_of_other_networks_are_not_public",
        ),
        "the name server later gives another address": (
            "toolkit/web/test_web_fetch.py::test_the_name_is_looked_up_once_and_the_connection_goes_to_that_address",
        ),
        "the URL has a user name, a password or an ambiguous host": (
            "toolkit/web/test_urls.py::test_what_may_be_read_in_two_ways_is_refused",
        ),
        "the page is huge, slow or a compression bomb": (
            "toolkit/web/test_web_fetch.py::test_a_huge_body_is_read_only_up_to_the_limit",
            "toolkit/web/test_web_fetch.py::test_a_slow_server_is_left_after_the_time_limit",
            "toolkit/web/test_web_fetch.py::test_a_compressed_body_is_unpacked_only_up_to_the_limit",
        ),
        "the page is HTML": ("toolkit/web/test_web_fetch.py::test_html_becomes_markdown",),
        "the page hides text with `hidden`, `aria-hidden`, inline styles or comments": (
            "toolkit/web/test_web_fetch.py::test_what_a_reader_does_not_see_is_left_out_and_counted",
            "toolkit/web/test_markdown.py::test_what_readers_do_not_see_is_left_out",
            "toolkit/web/test_markdown.py::test_markup_does_not_bring_back_what_it_hides",
        ),
        "the page has invisible characters": (
            "toolkit/web/test_web_fetch.py::test_what_a_reader_does_not_see_is_left_out_and_counted",
            "support/test_invisible.py::test_what_hides_in_a_text_is_shown_by_code",
        ),
        "the page is neither text nor HTML": (
            "toolkit/web/test_web_fetch.py::test_what_is_no_text_is_named_and_not_shown",
        ),
    },
    ("docs/reference/durable-runs.md", "The promises", "If"): {
        "a process is killed": (
            "durable/test_killed.py::test_a_run_that_is_killed_at_any_write_ends_as_if_it_had_not_been",
            "durable/test_calls.py::test_a_call_in_flight_is_made_again_with_the_same_key",
            "durable/test_any_run.py::test_any_run_that_is_killed_anywhere_ends_as_an_uninterrupted_one",
        ),
        "a run crashes each process that executes it": (
            "durable/test_ends.py::test_a_run_that_ends_each_process_is_parked",
        ),
        "the tool rules are tightened meanwhile": (
            "durable/test_rules.py::test_a_tightened_rule_refuses_a_call_in_flight",
            "durable/test_rules.py::test_a_tightened_rule_withholds_the_result_of_a_finished_call",
        ),
        "a model call failed and was retried": (
            "durable/test_limits.py::test_failed_attempts_do_not_disturb_what_is_found_again",
        ),
        "a budget or a deadline was set": (
            "durable/test_limits.py::test_a_limit_counts_what_was_spent_before_the_kill",
            "durable/test_limits.py::test_a_deadline_counts_the_time_without_a_process",
        ),
        "two processes execute the same run": (
            "durable/test_ownership.py::test_a_process_that_was_stopped_finds_out_that_its_run_was_taken",
            "durable/test_ownership.py::test_two_processes_that_recover_at_once_make_each_run_once",
        ),
        "two clocks differ": (
            "durable/test_workers.py::test_a_clock_that_is_wrong_by_an_hour_takes_no_run_away",
            "durable/test_limits.py::test_clocks_that_differ_by_hours_do_not_matter",
        ),
        "another version of your code resumes the run": (
            "durable/test_versions.py::test_another_prompt_other_tools_or_another_model_go_on_with_what_was_done",
        ),
        "a server shuts down and cancels its requests": (
            "durable/test_deploys.py::test_a_request_that_a_server_cancels_at_its_end_goes_on",
        ),
        "a process is forked": (
            "durable/test_deploys.py::test_a_forked_child_does_not_keep_its_parent_alive",
            "durable/test_deploys.py::test_a_child_of_a_started_one_can_start_its_own",
            "durable/test_deploys.py::test_children_of_one_process_are_processes_of_their_own",
        ),
        "a run is canceled": (
            "durable/test_ends.py::test_a_run_whose_caller_cancels_it_is_not_taken_up_again",
            "durable/test_ends.py::test_a_run_can_be_cancelled_from_elsewhere_and_resumed",
            "durable/test_listing.py::test_a_run_that_is_cancelled_while_it_waits_can_wait_again",
        ),
    },
    ("docs/reference/durable-runs.md", "What may change", "Change"): {
        change: (f"durable/{test}",) for change, test in _DEPLOYED.items()
    },
    ("docs/reference/temporal.md", "What happens when", "If"): {
        "a worker is killed": (
            "durable/test_workers.py::test_all_runs_end_although_a_worker_is_killed_every_second",
            "durable/test_killed.py::test_a_run_that_is_killed_at_any_write_ends_as_if_it_had_not_been",
        ),
        "a worker is killed at the moment it receives a run": (
            "durable/test_temporal.py::test_a_run_that_a_killed_process_was_given_is_given_to_another_one",
        ),
        "someone cancels the workflow": (
            "durable/test_temporal.py::test_a_run_that_is_cancelled_there_is_cancelled",
            "durable/test_temporal.py::test_what_is_ended_there_before_it_is_made_is_cancelled_and_what_it_forgets_is_made",
        ),
        "someone terminates the workflow": (
            "durable/test_temporal.py::test_what_is_ended_there_before_it_is_made_is_cancelled_and_what_it_forgets_is_made",
            "durable/test_temporal.py::test_a_run_that_is_ended_there_while_it_is_made_goes_on",
        ),
        "Temporal is down": (
            "durable/test_temporal.py::test_runs_are_queued_and_begun_while_it_is_away",
            "durable/test_temporal.py::test_a_server_that_is_not_there_is_a_clear_error",
        ),
        "Temporal has lost its data": (
            "durable/test_temporal.py::test_what_is_ended_there_before_it_is_made_is_cancelled_and_what_it_forgets_is_made",
        ),
        "a schedule is due": ("durable/test_queues.py::test_a_schedule_queues_runs",),
    },
    ("docs/guides/deploying.md", "When a worker, Postgres or the model is down", "Down"): {
        "a worker": (
            "durable/test_workers.py::test_all_runs_end_although_a_worker_is_killed_every_second",
            "cli/test_worker.py::test_another_worker_finishes_the_run_of_one_that_is_killed",
        ),
        "all workers": ("durable/test_queues.py::test_a_queued_run_is_made_by_whoever_has_its_queue",),
        "Postgres, for up to a minute": (
            "durable/test_database_away.py::test_a_run_waits_until_the_server_is_back",
            "durable/test_database_away.py::test_a_run_goes_on_later_if_the_server_stays_away",
            "durable/test_database_away.py::test_who_waits_for_a_run_waits_until_the_server_is_back",
        ),
        "an answer of Postgres, for 30 seconds": (
            "durable/test_stalled.py::test_a_caller_gets_an_error_and_the_run_goes_on_when_the_database_answers",
            "durable/test_stalled.py::test_a_start_that_stalls_ends",
        ),
        "a worker, silent for 30 seconds": (
            "durable/test_stalled.py::test_a_stalled_process_stops_and_another_one_goes_on_with_its_run",
        ),
        "the model": ("durable/test_limits.py::test_failed_attempts_do_not_disturb_what_is_found_again",),
    },
    ("docs/guides/page.md", "Who can see the page", "Situation"): {
        "a string from a model, a tool or a file contains HTML, Markdown or JavaScript": (
            "page/test_runs_view.py::test_hostile_texts_are_texts",
            "page/test_run_view.py::test_hostile_texts_are_texts",
            "page/test_report.py::test_hostile_texts_are_texts",
            "page/test_security.py::test_every_response_forbids_what_nobody_needs",
        ),
        "a string contains characters that hide it or reverse its direction": (
            "page/test_runs_view.py::test_hostile_texts_are_texts",
        ),
        "another site that is open in your browser sends requests to the page": (
            "page/test_security.py::test_a_request_of_another_site_or_name_is_refused",
            "page/test_security.py::test_a_page_of_another_site_reads_and_changes_nothing",
            "cli/test_traces_open.py::test_every_loopback_address_may_be_served",
        ),
        "another user of your machine opens the port": (
            "cli/test_traces_open.py::test_every_start_has_a_token_of_its_own",
            "cli/test_traces_open.py::test_the_browser_is_opened_with_an_address_that_works_once",
            "page/test_security.py::test_with_a_token_every_request_needs_it",
        ),
        "`--host` names an address that other machines reach": (
            "cli/test_traces_open.py::test_what_cannot_be_served_is_refused_before_the_start",
            "cli/test_traces_open.py::test_with_a_token_other_hosts_may_be_served",
        ),
        "a label is given": ("page/test_security.py::test_a_change_needs_the_token_of_the_opened_page",),
        "the database is deleted or replaced": (
            "page/test_runs_view.py::test_a_database_that_is_deleted_is_reported_until_it_is_back",
        ),
    },
    ("docs/guides/maintain-traces.md", "What is lost when the server fails", "What happens"): {
        "the server is down for a minute, or restarts": (
            "traces/postgres/test_faults.py::test_nothing_is_lost_while_the_server_is_away",
        ),
        "it is down for longer": (
            "traces/postgres/test_faults.py::test_beyond_the_queue_the_oldest_are_dropped_counted_and_logged",
        ),
        "it is silent for 30 seconds during a statement": (
            "traces/postgres/test_faults.py::test_nothing_is_lost_when_a_connection_stalls_in_the_middle_of_a_statement",
        ),
        "another server takes over without the last transactions": (
            "traces/postgres/test_faults.py::test_an_empty_replica_gets_the_tables_and_all_later_traces",
        ),
        "a process ends while the server does not answer": (
            "traces/postgres/test_faults.py::test_a_process_that_ends_before_its_server_answers_says_how_many_spans_are_missing",
        ),
        "a process is killed": (
            "traces/postgres/test_faults.py::test_a_killed_writer_loses_only_what_was_not_written",
        ),
        "a connection breaks during a commit": (
            "traces/postgres/test_faults.py::test_a_batch_whose_commit_was_not_answered_is_counted_once",
        ),
        "the clocks of two machines differ": (
            "traces/postgres/test_recorder.py::test_the_order_is_that_of_storing_whatever_the_clocks_say",
        ),
    },
    ("docs/guides/improve.md", "Limits of every version", "A version must"): {
        "have the same placeholders as the old one, such as `{{ $ctx.customer }}`": (
            "lab/improve/test_what_may_not_win.py::test_a_text_that_breaks_a_limit_never_runs_and_the_model_reads_why",
            "lab/improve/test_what_may_not_win.py::test_a_text_passes_exactly_if_its_markers_are_the_same",
        ),
        "have at most `max_length` characters": (
            "lab/improve/test_what_may_not_win.py::test_a_text_that_breaks_a_limit_never_runs_and_the_model_reads_why",
        ),
        "cause no denied tool call that the old one did not cause": (
            "lab/improve/test_what_may_not_win.py::test_a_candidate_that_causes_a_refused_call_does_not_win",
            "lab/improve/test_what_may_not_win.py::test_a_candidate_that_is_refused_only_on_a_sealed_case_does_not_win",
        ),
        "cause no output-schema failure that the old one did not cause": (
            "lab/improve/test_what_may_not_win.py::test_a_candidate_with_a_failed_schema_does_not_win",
        ),
        "use at most 20% more than the old one (`max_cost_increase`)": (
            "lab/improve/test_what_may_not_win.py::test_a_candidate_whose_runs_cost_too_much_does_not_win",
            "lab/improve/test_what_may_not_win.py::test_the_limit_of_use_is_inclusive",
        ),
    },
    ("docs/guides/rollout.md", "Which arm a run gets", "When"): {
        "the context has a user": (
            "lab/rollout/test_runs.py::test_each_way_to_run_uses_and_records_the_arm",
            "lab/rollout/test_assignment.py::test_another_process_draws_the_same",
        ),
        "the share of the new arms grows": (
            "lab/rollout/test_assignment.py::test_a_growing_share_moves_units_from_the_control_only_and_once",
            "lab/rollout/test_processes.py::test_eight_processes_of_eight_threads_follow_one_that_promotes",
        ),
        "the user is missing, empty, or neither a str, an int nor a UUID": (
            "lab/rollout/test_runs.py::test_a_run_without_a_unit_gets_the_control",
            "lab/rollout/test_runs.py::test_runs_without_a_unit_are_logged_once_and_counted",
            "lab/rollout/test_runs.py::test_a_missing_unit_may_be_an_error_which_the_trace_records",
        ),
        "the state of the rollout cannot be read, or its file was replaced": (
            "lab/rollout/test_live.py::test_a_deleted_file_means_the_control_until_it_is_back",
            "lab/rollout/test_live.py::test_a_damaged_row_means_the_control_and_is_logged_once",
        ),
        "no trace database is known": (
            "lab/rollout/test_runs.py::test_without_a_database_runs_get_the_control_and_one_error_is_logged",
        ),
        "it resumes a paused run": (
            "lab/rollout/test_runs.py::test_a_resumed_run_keeps_its_arm_when_the_shares_have_changed",
        ),
        "another agent hands over to this one, or uses it as a tool": (
            "lab/rollout/test_runs.py::test_a_handed_off_agent_is_the_control",
            "lab/rollout/test_runs.py::test_an_agent_as_a_tool_is_the_control",
        ),
        "it hands over to an agent that hands back": (
            "lab/rollout/test_runs.py::test_a_run_that_comes_back_by_hand_offs_keeps_the_prompt_of_its_arm",
        ),
        "a recorded run is [replayed](replay.md)": (
            "lab/rollout/test_replay.py::test_a_run_of_each_arm_replays_after_the_rollout",
        ),
    },
    ("docs/reference/events.md", "Order", "What starts"): {
        "`run_started`": ("core/events/test_order.py::test_every_start_has_exactly_one_end",),
        "`stage_entered`": ("core/events/test_order.py::test_every_start_has_exactly_one_end",),
        "`model_call_started`": (
            "core/events/test_order.py::test_every_start_has_exactly_one_end_if_the_run_is_cancelled_after_any_event",
        ),
        "`tool_call_started`": (
            "core/events/test_order.py::test_every_start_has_exactly_one_end_if_a_stream_is_left_after_any_event",
        ),
    },
    ("docs/reference/events.md", "Delivery", "When"): {
        "a handler is subscribed or canceled during a run": (
            "core/events/test_observers.py::test_a_subscription_does_not_receive_runs_that_have_already_started",
        ),
        "the same handler is subscribed to an agent and to the process": (
            "core/events/test_observers.py::test_a_handler_receives_each_event_once_even_if_subscribed_several_times",
        ),
        "a handler is async": (
            "core/events/test_observers.py::test_a_slow_observer_delays_the_run_and_misses_no_event",
        ),
        "a handler raises `SystemExit` or `KeyboardInterrupt`": (
            "agent/running/test_exits.py::test_an_exit_from_any_place_in_a_run_reaches_the_caller_and_others_continue",
            "agent/running/test_one_outcome.py::test_an_exit_in_an_observer_of_run_finished_reaches_the_caller",
        ),
        "the run is canceled while a handler receives `run_finished` or `run_failed`": (
            "agent/running/test_one_outcome.py::test_a_cancellation_during_run_finished_reaches_the_caller_next",
            "agent/running/test_one_outcome.py::test_a_run_cancelled_while_run_failed_is_delivered_has_failed",
        ),
        "a handler raises": (
            "core/events/test_observers.py::test_an_observer_that_fails_is_logged_and_the_others_receive_all_events",
            "core/events/test_observers.py::test_each_failure_of_an_observer_is_logged_or_counted",
        ),
        "the run, or the tool call an event is about, is canceled while an async handler waits": (
            "core/events/test_emitter.py::test_the_event_of_an_end_reaches_every_handler_despite_repeated_cancellation",
        ),
        "a handler itself runs an agent": (
            "core/events/test_observers.py::test_an_observer_may_run_another_agent",
        ),
        "a tool calls the sync `agent.run()`": (
            "core/events/test_observers.py::test_a_sync_run_in_a_tool_emits_on_another_thread",
        ),
        "a run starts inside another run": (
            "core/events/test_observers.py::test_a_run_in_a_tool_emits_into_its_parents_stream",
        ),
        "there is no handler, no stream, and the logger is not at debug level": (
            "core/events/test_events.py::test_without_handlers_no_events_are_created",
        ),
    },
    ("docs/reference/events.md", "Logs with the run's id", "Level"): {
        "info": ("core/events/test_logs.py::test_one_line_per_run_at_info",),
        "warning": ("core/events/test_logs.py::test_a_failed_run_is_a_warning_with_its_error",),
        "debug": ("core/events/test_logs.py::test_each_event_at_debug",),
    },
    ("docs/reference/middleware/deadline.md", "Deadline", "When the time is over"): {
        "a model call is in progress": (
            "middleware/test_deadline.py::test_a_request_to_a_slow_server_is_cancelled",
        ),
        "an async tool runs": ("middleware/test_deadline.py::test_tools_are_cancelled",),
        "a sync tool runs": (
            "middleware/test_deadline.py::test_a_sync_tool_does_not_delay_the_end_of_the_run",
        ),
        "a run inside the run is in progress": (
            "middleware/test_deadline.py::test_runs_started_by_tools_are_cancelled",
            "middleware/test_deadline_of_inner_runs.py::test_a_run_that_a_tool_started_as_a_task_ends_with_the_outer_run",
        ),
        "a run inside the run has outlived the outer one": (
            "middleware/test_deadline_of_inner_runs.py::test_a_run_that_outlives_the_outer_one_ends_at_the_same_instant",
        ),
        "the inner run has an earlier `Deadline`": (
            "middleware/test_deadline.py::test_a_nested_run_with_a_shorter_deadline_fails_alone",
        ),
    },
    ("docs/reference/middleware/approve.md", "Approve", "Decision"): {
        "`Approved()`": (
            "middleware/test_approve.py::test_calls_are_approved_edited_and_rejected_one_by_one",
        ),
        "`Approved({...})`": (
            "middleware/test_approve.py::test_calls_are_approved_edited_and_rejected_one_by_one",
        ),
        "`Rejected(reason)`": (
            "middleware/test_approve.py::test_over_http_the_model_receives_the_decisions",
        ),
        "none, for a call of a stored run": (
            "middleware/test_approve.py::test_a_call_without_a_decision_keeps_waiting",
        ),
    },
    ("docs/reference/middleware/redact.md", "Redact", "Option"): {
        '`mode="mask"`, the default': (
            "middleware/test_redact.py::test_no_original_value_reaches_model_events_result_history_or_trace",
        ),
        '`mode="hash"`': (
            "middleware/test_redact.py::test_equal_values_have_equal_hashes_with_the_same_key_only",
        ),
        '`mode="block"`': (
            "middleware/test_redact.py::test_blocking_ends_the_run_and_the_error_names_the_rule_but_not_the_value",
        ),
        "`restore=True`": (
            "middleware/test_redact.py::test_with_restore_only_tools_stream_and_answer_get_the_values",
        ),
        '`keep_in="key"`': (
            "middleware/test_redact.py::test_values_stored_in_the_context_are_used_in_later_runs",
        ),
    },
    ("docs/reference/middleware/tool-errors.md", "ToolErrors", "Policy"): {
        '`"fixed"`, the default': (
            "middleware/test_tool_errors.py::test_by_default_the_model_receives_nothing_from_the_exception",
        ),
        '`"message"`': (
            "middleware/test_tool_errors.py::test_the_message_is_masked_and_truncated_and_has_no_traceback",
        ),
        '`"raise"`': (
            "middleware/test_tool_errors.py::test_raise_ends_the_run_with_the_tools_own_exception",
        ),
        "a function `(error, call)`, sync or async": (
            "middleware/test_tool_errors.py::test_a_function_returns_the_text",
        ),
    },
    ("docs/reference/middleware/cache.md", "Cache", "When"): {
        "the context names no tenant": ("middleware/test_cache.py::test_a_run_without_a_tenant_is_an_error",),
        "the model, client, instructions, conversation, settings, tools, handoffs or output schema differ": (
            "middleware/test_cache.py::test_whatever_is_asked_otherwise_is_another_request",
        ),
        "equal requests run at the same time": (
            "middleware/test_cache.py::test_of_equal_requests_at_once_one_is_made",
            "middleware/test_cache.py::test_if_the_one_that_is_made_fails_the_others_ask_for_themselves",
        ),
        "the stored answer calls a tool": (
            "middleware/test_cache.py::test_a_stored_tool_call_runs_the_tool_again",
        ),
        "the answer is an error, cut off, a rejection, or does not fit the output type": (
            "middleware/test_cache.py::test_errors_are_not_stored",
            "middleware/test_cache.py::test_answers_that_are_not_complete_are_not_stored",
            "middleware/test_cache.py::test_structured_output_that_never_fits_is_not_stored",
        ),
        "it has provider-side code or MCP calls, or something that `Redact` finds": (
            "middleware/test_cache.py::test_answers_that_are_not_complete_are_not_stored",
            "middleware/test_cache.py::test_what_redact_finds_in_an_answer_is_not_stored",
        ),
        "the provider stores the conversation": (
            "middleware/test_cache.py::test_conversations_at_the_provider_are_not_cached",
        ),
        "the store fails": ("middleware/test_cache.py::test_a_store_that_fails_costs_no_run",),
        "the run is streamed": (
            "middleware/test_cache.py::test_a_streamed_run_gets_the_stored_answer_as_a_stream",
        ),
        "the run is a replay, or a resumed durable run": (
            "middleware/test_cache.py::test_a_run_with_hits_is_replayed_without_the_cache",
            "middleware/test_in_durable_runs.py::test_a_hit_is_kept_by_the_journal_and_not_asked_for_again",
        ),
    },
    ("docs/reference/middleware/budget.md", "If a provider sends no usage", "A model call"): {
        "is answered, with usage": (
            "middleware/test_unknown_usage.py::test_a_budget_that_can_count_raises_nothing",
        ),
        "is answered, without usable usage": (
            "middleware/test_unknown_usage.py::test_a_call_without_usage_is_counted_as_such_and_costs_its_reservation",
            "middleware/test_unknown_usage.py::test_a_budget_that_cannot_count_ends_the_run_and_stays_closed",
            "middleware/test_unknown_usage.py::test_a_limit_that_no_usage_can_change_does_not_need_it",
            "middleware/test_unknown_usage.py::test_a_wrong_report_is_an_unknown_usage",
        ),
        "breaks off or is canceled after its streamed answer has started": (
            "middleware/test_unknown_usage.py::test_a_stream_that_is_left_costs_its_reservation_once_the_answer_has_begun",
        ),
        "ends its stream without an answer, but with usage": (
            "middleware/test_unknown_usage.py::test_a_stream_without_an_answer_costs_the_usage_that_it_reports",
        ),
        "fails or is canceled before": (
            "middleware/test_unknown_usage.py::test_a_stream_that_is_left_costs_its_reservation_once_the_answer_has_begun",
            "middleware/test_budget.py::test_calls_that_fail_or_are_cancelled_release_their_reservation",
        ),
        "is answered by a middleware or [`Cache`](cache.md)": (
            "middleware/test_unknown_usage.py::test_an_answer_that_a_middleware_has_made_uses_no_tokens",
            "middleware/test_cache.py::test_a_budget_is_not_charged_for_a_hit",
        ),
        "is repeated by [`Hedge`](hedge.md)": (
            "middleware/test_hedge.py::test_a_budget_counts_what_is_known_of_the_slower_request",
            "middleware/test_hedge.py::test_answers_that_arrive_together_are_both_counted",
        ),
    },
    ("docs/reference/middleware/budget.md", "Order with other middleware", "With"): {
        "`Fallback`": (
            "middleware/test_budget.py::test_the_cost_is_that_of_the_model_that_answered",
            "middleware/test_budget.py::test_an_answer_of_a_model_without_a_price_costs_the_highest_one",
            "middleware/test_budget.py::test_inside_a_fallback_each_attempt_needs_a_price_of_its_own",
        ),
        "`Retry`": (
            "middleware/test_retry.py::test_a_budget_outside_counts_a_repeated_tool_once",
            "middleware/test_retry.py::test_each_attempt_passes_through_the_rules_and_the_budget",
        ),
        "`CompactHistory`": (
            "middleware/compact_history/test_compact_history.py::test_a_budget_after_it_counts_its_summaries",
        ),
        "`Cache`": (
            "middleware/test_cache.py::test_a_budget_is_not_charged_for_a_hit",
            "middleware/test_cache.py::test_a_used_up_budget_before_the_cache_gives_no_stored_answer",
            "middleware/test_cache.py::test_a_used_up_budget_inside_the_cache_refuses_only_what_is_not_stored",
        ),
        "`Hedge`": (
            "middleware/test_hedge.py::test_a_budget_counts_what_is_known_of_the_slower_request",
            "middleware/test_hedge.py::test_a_budget_inside_may_refuse_the_second_request",
        ),
    },
    ("docs/reference/middleware/retry.md", "Retry", "When"): {
        "status 408, 409, 429 or 5xx, a timeout, or a lost connection": (
            "middleware/test_retry.py::test_a_transient_error_is_retried",
            "middleware/test_retry.py::test_a_permanent_error_is_not_retried",
            "middleware/test_retry_bounds.py::test_the_server_gets_as_many_requests_as_attempts_and_no_wait_is_shorter_than_asked_or_beyond_the_bounds",
        ),
        "the account is out of credit (429 as well)": (
            "middleware/test_retry.py::test_an_account_without_credit_is_not_asked_again",
        ),
        "the server sends `Retry-After`": (
            "middleware/test_retry.py::test_the_delay_is_the_one_the_server_requests",
            "middleware/test_retry.py::test_a_call_is_not_retried_if_the_server_requests_too_long_a_delay",
        ),
        "text or a tool call of a streamed answer has arrived": (
            "models/test_whole_streams.py::test_retry_does_not_ask_again_after_text_was_streamed",
        ),
        "a tool in `tools` raises an exception": (
            "middleware/test_retry.py::test_a_named_tool_is_retried",
            "middleware/test_retry.py::test_invalid_arguments_are_not_retried",
            "middleware/test_retry.py::test_errors_of_this_library_in_a_tool_are_not_retried",
        ),
        "another tool raises an exception": (
            "middleware/test_retry.py::test_a_tool_that_is_not_named_is_run_once",
        ),
        "the wait would end after the `Deadline`": (
            "middleware/test_retry_bounds.py::test_a_wait_that_would_end_after_the_deadline_is_not_begun",
            "middleware/test_retry_bounds.py::test_a_wait_for_a_tool_that_would_end_after_the_deadline_is_not_begun",
        ),
    },
    ("docs/reference/middleware/fallback.md", "Fallback", "When"): {
        "a model raises an error": ("middleware/test_fallback.py::test_the_next_model_answers_if_one_fails",),
        "the error is a cancellation, the SDK's `UserError`, or another error of this library": (
            "middleware/test_fallback.py::test_an_error_that_another_model_cannot_avoid_is_raised_at_once",
            "middleware/test_fallback.py::test_a_cancellation_does_not_trigger_the_fallback",
        ),
        "text of a streamed answer has already been passed on": (
            "middleware/test_fallback.py::test_there_is_no_fallback_after_text_has_been_streamed",
        ),
        "the provider stores the conversation (`previous_response_id`, `conversation_id`)": (
            "middleware/test_fallback.py::test_a_conversation_stored_at_the_provider_is_not_moved_to_another_model",
        ),
        "all models fail": (
            "middleware/test_fallback.py::test_if_all_fail_the_last_error_is_raised_and_its_chain_holds_the_others",
        ),
    },
    ("docs/reference/middleware/compact-history.md", "CompactHistory", "When"): {
        "a request reaches `begin_at` of `max_tokens`": (
            "middleware/compact_history/test_compact_history.py::test_steps_are_large_and_the_beginning_stays_the_same_between_them",
        ),
        "a later run continues the conversation, with the same object": (
            "middleware/compact_history/test_compact_history.py::test_the_next_run_of_a_session_goes_on_from_the_summary",
        ),
        "nothing more can be omitted": (
            "middleware/compact_history/test_compact_history.py::test_input_that_is_too_long_is_an_error_that_names_the_limit",
            "middleware/compact_history/test_compact_history.py::test_input_that_is_too_long_is_sent_on_request",
        ),
        "a summary fails": (
            "middleware/compact_history/test_compact_history.py::test_if_a_summary_fails_turns_are_left_out_with_a_notice",
            "middleware/compact_history/test_compact_history.py::test_an_error_that_ends_a_run_ends_it_in_a_summary_too",
        ),
        "the provider stores the conversation": (
            "middleware/compact_history/test_compact_history.py::test_a_conversation_at_the_provider_is_not_shortened",
        ),
        '`max_tokens` does not name the model, and has no `"*"`': (
            "middleware/compact_history/test_compact_history.py::test_each_model_has_its_own_limit",
        ),
        "the run is a replay": (
            "middleware/compact_history/test_kept_runs.py::test_a_replay_makes_no_summary_and_the_same_requests",
        ),
    },
    ("docs/reference/middleware/limit-concurrency.md", "LimitConcurrency", "When"): {
        "a slot becomes free": ("middleware/test_limit_concurrency.py::test_tenants_take_turns",),
        "`max_waiting` calls of a tenant wait already": (
            "middleware/test_limit_concurrency.py::test_a_full_queue_is_an_error_that_names_the_key",
        ),
        "a call has waited `max_wait` seconds": (
            "middleware/test_limit_concurrency.py::test_waiting_too_long_is_a_timeout",
        ),
        "a run inside a run starts while the outer run holds a slot": (
            "middleware/test_limit_concurrency.py::test_a_run_inside_a_run_of_the_same_tenant_does_not_wait_for_it",
        ),
        "a waiting run is canceled, or reaches its `Deadline`": (
            "middleware/test_limit_concurrency.py::test_a_cancelled_wait_leaves_nothing_behind",
            "middleware/test_limit_concurrency.py::test_a_deadline_ends_the_wait",
        ),
        "the provider answers 429, 503 or 529": (
            "middleware/test_limit_concurrency.py::test_rate_limits_of_a_server_lower_the_limit_and_answers_raise_it",
        ),
        "it sends `Retry-After`, or the reset time of a used-up limit": (
            "middleware/test_limit_concurrency.py::test_a_retry_after_pauses_its_key_only",
            "middleware/test_limit_concurrency.py::test_how_long_a_provider_asks_to_wait",
        ),
        "headers report a used-up limit (`x-ratelimit-*`, `anthropic-ratelimit-*`)": (
            "middleware/test_limit_concurrency.py::test_while_a_limit_is_used_up_calls_begin_one_by_one",
            "middleware/test_limit_concurrency.py::test_an_answer_that_uses_up_a_limit_pauses_its_key",
        ),
    },
    ("docs/reference/middleware/hedge.md", "Hedge", "When"): {
        "one request fails": (
            "middleware/test_hedge.py::test_if_one_request_fails_the_other_one_is_waited_for",
        ),
        "both requests fail": (
            "middleware/test_hedge.py::test_if_both_fail_the_error_of_the_first_is_raised",
        ),
        "the first request fails before the second starts": (
            "middleware/test_hedge.py::test_an_error_before_the_time_is_raised_at_once",
        ),
        "a streamed answer has started": (
            "middleware/test_hedge.py::test_a_stream_that_has_begun_is_not_asked_for_again",
        ),
        "two streams are in progress": (
            "middleware/test_hedge.py::test_of_two_streams_only_one_is_passed_on",
        ),
        "fewer than 20 calls of the model are known": (
            "middleware/test_hedge.py::test_before_a_percentile_is_known_no_second_request_is_made",
        ),
    },
    ("docs/guides/models.md", "Token usage of streamed answers", "When"): {
        "the settings have `include_usage`, or `stream_options` in `extra_args` or `extra_body`": (
            "models/test_stream_usage.py::test_settings_that_decide_about_the_usage_are_respected",
            "models/test_stream_usage.py::test_the_run_config_can_switch_it_off",
        ),
        "the server rejects `stream_options` with status 400 or 422": (
            "models/test_stream_usage.py::test_a_server_that_rejects_the_question_is_asked_once",
            "models/test_stream_usage.py::test_any_other_error_is_not_taken_for_a_rejected_question",
            "models/test_stream_usage.py::test_an_error_after_a_rejected_question_is_the_error_of_the_run",
        ),
        "the server sends no usage": (
            "middleware/test_unknown_usage.py::test_events_distinguish_0_tokens_from_an_unknown_usage",
            "middleware/test_unknown_usage.py::test_a_call_without_usage_is_counted_as_such_and_costs_its_reservation",
        ),
    },
    ("docs/guides/prompts-and-context.md", "Continue a conversation", ""): {
        "`input`": ("agent/test_agent.py::test_the_last_user_text_of_a_list_of_input_items_is_stored",),
        "the rendered instructions, tools and handoffs": (
            "agent/test_agent.py::test_a_sync_or_async_renderer_is_called_once_per_turn",
        ),
        "earlier messages in `session=`": ("agent/test_agent.py::test_a_session_works_as_in_the_sdk",),
        '`context["history"]`': (
            "agent/test_agent.py::test_the_history_and_other_keys_of_the_context_are_not_sent_to_the_model",
        ),
        "other keys of the context": (
            "agent/test_agent.py::test_the_history_and_other_keys_of_the_context_are_not_sent_to_the_model",
        ),
    },
    ("docs/reference/odd-replies.md", "When the reply is not an answer", "When"): {
        "the body is HTML, plain text, or half of a JSON object": (
            "models/test_whole_streams.py::test_an_answer_that_is_not_streamed_and_not_json_is_an_error_and_retried",
        ),
        "the JSON has no message (Responses API: no `output`)": (
            "models/test_whole_streams.py::test_an_answer_that_is_not_streamed_and_not_json_is_an_error_and_retried",
        ),
        "a stream has no part of an answer": (
            "models/test_whole_streams.py::test_a_stream_that_breaks_off_is_an_error",
        ),
        "a stream stops without a finish reason and an end mark": (
            "models/test_whole_streams.py::test_a_stream_that_breaks_off_is_an_error",
        ),
        "a stream contains an error": (
            "models/test_whole_streams.py::test_an_error_that_a_server_streams_is_raised_as_such",
        ),
        "the path does not exist (404, 405)": (
            "cli/test_app.py::test_every_error_is_one_line_with_its_code",
        ),
    },
    ("docs/reference/custom-providers.md", "Return an answer", "`type`"): {
        "`text`": (
            "models/protocol/test_provider_model.py::test_responses_with_text_media_and_calls_are_processed_in_order",
        ),
        "`tool_call`": (
            "models/protocol/test_provider_model.py::test_responses_with_text_media_and_calls_are_processed_in_order",
        ),
        "`image`, `audio`, `video`": (
            "models/protocol/test_provider_model.py::test_a_session_and_the_next_input_preserve_all_segments",
        ),
        "`file`": ("models/protocol/test_files.py::test_a_custom_provider_gets_the_file_with_its_name",),
        "`ui`": (
            "models/protocol/test_provider_model.py::test_a_session_and_the_next_input_preserve_all_segments",
        ),
    },
    ("docs/reference/custom-providers.md", "When something goes wrong", "When"): {
        "your provider cannot parse its model's reply": (
            "models/protocol/test_http_providers.py::test_an_unreadable_response_raises_e51_or_becomes_a_text",
        ),
        "`generate` returns something other than a `ProviderResponse`": (
            "models/protocol/test_provider_model.py::test_any_other_response_raises_e51",
            "models/protocol/test_provider_model.py::test_the_protocols_json_is_a_valid_response",
        ),
        "`stream` is not an async generator": (
            "models/protocol/test_provider_model.py::test_a_stream_method_that_returns_no_stream_raises_e51",
        ),
        "the provider raises `CancelledError`, but the run was not canceled": (
            "models/protocol/test_provider_model.py::test_a_cancelled_error_without_a_cancellation_raises_e51",
        ),
        "`generate` raises any other exception": (
            "models/protocol/test_provider_model.py::test_an_error_of_a_provider_propagates",
            "models/protocol/test_provider_model.py::test_a_provider_can_replace_a_failing_model",
        ),
        "the model calls a tool that does not exist": (
            "models/protocol/test_invalid_calls.py::test_a_call_of_an_unknown_tool_returns_the_nearest_names",
            "models/protocol/test_invalid_calls.py::test_of_a_thousand_tools_only_the_nearest_names_are_listed",
        ),
        "the arguments of a tool are not a JSON object": (
            "models/protocol/test_invalid_calls.py::test_arguments_that_are_not_an_object_return_an_error",
        ),
        "five turns in a row contain only such mistakes": (
            "models/protocol/test_invalid_calls.py::test_a_model_that_only_makes_invalid_calls_ends_the_run",
            "models/protocol/test_invalid_calls.py::test_a_valid_call_resets_the_count",
        ),
    },
    ("docs/reference/custom-providers.md", "Conversations from other models", "Content"): {
        "arguments that are not an object": (
            "models/protocol/test_http_providers.py::test_a_conversation_of_another_model_is_adapted",
        ),
        "ids that the API does not allow": (
            "models/protocol/test_http_providers.py::test_a_conversation_of_another_model_is_adapted",
        ),
        "system messages in the middle of the conversation": (
            "models/protocol/test_http_providers.py::test_a_conversation_of_another_model_is_adapted",
        ),
        "`ui` segments": (
            "models/protocol/test_http_providers.py::test_media_and_ui_of_another_model_do_not_end_the_conversation",
        ),
        "media that another model made": (
            "models/protocol/test_http_providers.py::test_media_and_ui_of_another_model_do_not_end_the_conversation",
        ),
        "text and images in the result of a tool": (
            "models/protocol/test_translations.py::test_media_at_a_url_in_a_tool_result_are_a_loss_for_gemini",
            "models/protocol/test_http_providers.py::test_a_conversation_of_another_model_is_adapted",
        ),
        "text files from the user or a tool": (
            "models/protocol/test_files.py::test_a_file_of_text_is_sent_as_a_document",
        ),
        "names of files": ("models/protocol/test_files.py::test_a_pdf_is_sent_to_the_native_apis",),
        "media from the user or a tool that the API does not accept, such as a ZIP file to Claude": (
            "models/protocol/test_files.py::test_a_type_that_claude_does_not_accept_is_e52_with_its_path",
            "models/protocol/test_anthropic_gemini_agents.py::test_content_that_cannot_be_translated_raises_at_once",
        ),
    },
    ("docs/reference/custom-providers.md", "Errors", "When"): {
        "the API rejects the request, the connection fails, a stream breaks off, "
        "a turn of Claude pauses more than ten times, or the answer is blocked": (
            "models/protocol/test_paused_turns.py::test_a_turn_that_pauses_without_end_is_e53",
            "models/protocol/test_http_providers.py::test_a_rejected_request_raises_e53",
            "models/protocol/test_http_providers.py::test_an_unreachable_or_interrupted_api_raises_e53",
            "models/protocol/test_http_providers.py::test_an_error_event_in_a_stream_raises_e53_with_its_status",
            "models/protocol/test_http_providers.py::test_a_blocked_response_raises_an_error",
        ),
        "the connection is lost, or the status is 408, 409, 429 or 5xx": (
            "models/protocol/test_anthropic_gemini_agents.py::test_retry_repeats_a_request_to_a_busy_api_but_not_a_rejected_one",
        ),
        "the answer cannot be parsed": (
            "models/protocol/test_http_providers.py::test_an_unreadable_response_raises_e51_or_becomes_a_text",
        ),
    },
    ("docs/guides/models.md", "If a model fails", "Agent"): {
        "with `Retry`": (
            "middleware/test_retry_bounds.py::test_each_attempt_of_a_clients_model_is_one_request",
            "middleware/test_retry_bounds.py::test_each_attempt_of_a_named_model_is_one_request",
            "middleware/test_retry_bounds.py::test_each_attempt_of_a_model_of_the_sdk_is_one_request",
        ),
        "without `Retry`": (
            "middleware/test_retry_bounds.py::test_without_retry_the_client_retries_as_in_the_plain_sdk",
        ),
        "without `Retry`, with `AnthropicProvider` or `GeminiProvider`": (
            "middleware/test_retry_bounds.py::test_providers_over_http_do_not_retry_by_themselves",
        ),
    },
    ("docs/start/first-service.md", "What happens when", "When"): {
        "the client disconnects": (
            "docs/test_first_service.py::test_a_client_that_disconnects_ends_the_run_and_frees_its_place",
        ),
        "a run takes longer than 60 seconds": (
            "docs/test_first_service.py::test_a_run_that_takes_too_long_is_ended",
        ),
        "a run fails": ("docs/test_first_service.py::test_a_failed_run_is_one_line_of_the_services_log",),
        "100 runs are active": (
            "docs/test_first_service.py::test_a_request_without_a_place_is_answered_with_503_and_starts_no_run",
        ),
    },
    ("docs/guides/deploying.md", "What happens when", "When"): {
        "the client closes the connection": (
            "agent/service/test_service.py::test_clients_that_disconnect_leave_nothing_behind_and_the_others_get_their_answers",
        ),
        "the client vanishes without closing the connection": (
            "agent/service/test_service.py::test_during_silence_heartbeats_are_sent_and_no_event_is_lost",
        ),
        "the client reads slowly": (
            "agent/service/test_service.py::test_a_slow_client_slows_its_run_down",
            "agent/service/test_service.py::test_the_place_of_a_client_that_does_not_read_is_free_in_the_end",
        ),
        "a run takes longer than `SECONDS`": (
            "agent/service/test_service.py::test_a_run_that_takes_too_long_ends_with_e82",
        ),
        "`RUNS` runs are active": (
            "agent/service/test_service.py::test_a_request_without_a_place_is_answered_with_503_and_starts_no_run",
        ),
        "the run fails": (
            "agent/service/test_service.py::test_of_a_failed_run_the_client_receives_only_the_code",
            "agent/service/test_service.py::test_a_failed_run_is_one_line_of_the_services_log_and_one_of_the_sdk",
        ),
        "a run is canceled while its connection to the model is opened, used or closed": (
            "models/test_cancelled_connections.py::test_every_place_is_free_after_runs_were_cancelled_at_random_points",
            "models/test_connection_stats.py::test_a_cancelled_tls_handshake_closes_its_socket_and_frees_its_place",
        ),
        "the server receives SIGTERM": (
            "agent/service/test_service.py::test_open_streams_end_with_the_service_and_are_recorded_completely",
        ),
    },
    ("docs/guides/judges.md", "If the model gives no valid answer", "Stage"): {
        "`structured_output`": (
            "lab/judges/test_status_judge.py::test_the_structured_stage_decides_and_no_other_stage_runs",
        ),
        "`phase3_tag`": (
            "lab/judges/test_status_judge.py::test_a_reply_without_a_judgment_leads_to_the_tag",
        ),
        "`ai_judge`": ("lab/judges/test_status_judge.py::test_the_conditions_are_evaluated_last",),
    },
    ("docs/guides/models.md", "Clients and connections", "When"): {
        "a run is canceled": (
            "models/test_cancelled_connections.py::test_every_place_is_free_after_runs_were_cancelled_at_random_points",
        ),
        "more than 128 names are in use": (
            "models/test_shared_clients.py::test_an_api_that_is_no_longer_used_keeps_no_idle_connection",
            "models/test_shared_clients.py::test_a_request_continues_when_its_client_is_evicted",
        ),
        "nothing uses a client any longer": (
            "models/test_shared_clients.py::test_objects_per_loop_are_closed_on_their_loop_when_nothing_uses_them",
            "models/test_shared_clients.py::test_a_provider_that_is_dropped_closes_its_connections",
            "models/test_several_loops.py::test_a_client_that_nothing_refers_to_leaves_no_connection_on_any_loop",
        ),
        "a variable of the client, or `SSL_CERT_FILE`, `SSL_CERT_DIR` or the file, changes": (
            "models/test_shared_clients.py::test_other_certificates_in_the_environment_are_read_by_later_clients",
            "models/test_shared_clients.py::test_a_name_gets_another_client_after_the_file_of_certificates_has_changed",
        ),
        "an event loop ends, or `client.close()` is called": (
            "models/test_several_loops.py::test_in_any_order_of_loops_each_loop_keeps_its_connection_and_none_is_left",
            "models/test_several_loops.py::test_the_connections_of_a_loop_that_was_closed_without_its_end_are_not_used_or_counted",
            "models/test_several_loops.py::test_a_client_closed_on_another_loop_closes_its_connections_on_their_own",
        ),
        "a transport that is not httpx's, and wraps none, fails on a second loop": (
            "models/test_several_loops.py::test_a_transport_that_fails_on_another_loop_is_named_and_its_request_is_not_repeated",
            "models/test_several_loops.py::test_a_transport_without_connections_works_on_every_loop",
        ),
    },
    ("docs/guides/mcp.md", "Names", "Name"): {
        "`read`": ("tools/test_reach.py::test_tools_of_a_stdio_server_obey_the_rules",),
        "`mcp_files__read`": (
            "tools/test_reach.py::test_rules_for_prefixed_mcp_names_work_with_either_name",
        ),
        "`mcp__files__read`, `mcp_files__read`, `read`": (
            (
                "tools/test_names_of_servers.py::"
                "test_each_spelling_names_the_tool_of_a_real_server_wherever_a_rule_is_written"
            ),
        ),
        "`mcp__files` and `mcp__files__*`": (
            (
                "tools/test_names_of_servers.py::"
                "test_each_spelling_names_the_tool_of_a_real_server_wherever_a_rule_is_written"
            ),
        ),
        "`/read`, `/mcp__files__read`": (
            "tools/commands/test_only_users.py::test_tools_of_servers_are_commands",
        ),
    },
    ("docs/guides/mcp.md", "Names", "Name of a server's tool"): {
        "`mcp__files`, `mcp__files__read` and `mcp_files__read`": (
            (
                "tools/test_names_of_servers.py::"
                "test_no_name_that_a_server_chooses_widens_what_another_server_is_allowed"
            ),
            (
                "tools/test_server_names.py::"
                "test_a_servers_own_name_that_claims_another_origin_does_not_count_for_allow"
            ),
        ),
        "its own name, `read`": (
            (
                "tools/test_server_names.py::"
                "test_an_entry_that_spells_out_a_servers_own_name_allows_it_unless_a_local_tool_has_it"
            ),
        ),
        "its own name, if it starts with `mcp_`, such as `mcp__github__read`": (
            (
                "tools/test_server_names.py::"
                "test_a_servers_own_name_that_claims_another_origin_does_not_count_for_allow"
            ),
        ),
    },
    ("docs/reference/mcp-configuration.md", "Names in rules", "Same name"): {
        "a tool or handoff of the agent and a server's tool": (
            (
                "tools/mcp/test_collisions.py::"
                "test_a_local_tool_and_a_hand_off_win_over_servers_tools_of_their_names"
            ),
        ),
        "tools of two servers, `files` and `mail`": (
            "tools/mcp/test_collisions.py::test_only_names_that_collide_get_the_sdks_prefix",
            "tools/mcp/test_collisions.py::test_each_prefixed_tool_is_called_on_its_own_server",
        ),
        "tools of two servers, one hidden by rules": (
            "tools/mcp/test_collisions.py::test_a_tool_that_the_rules_hide_does_not_collide",
        ),
        "tools of two servers of the same name": (
            "tools/mcp/test_collisions.py::test_servers_of_one_name_get_names_that_differ",
        ),
    },
    ("docs/guides/mcp.md", "Continue when a server fails", "What happens"): {
        "the connection is lost between runs or turns": (
            "tools/mcp/test_failures.py::test_a_server_that_was_killed_between_two_runs_is_connected_again",
            (
                "tools/mcp/test_failures.py::"
                "test_concurrent_runs_share_one_reconnection_and_a_cancelled_one_does_not_stop_it"
            ),
        ),
        "the connection is lost during a call": (
            (
                "tools/mcp/test_failures.py::"
                "test_a_call_that_may_have_been_executed_is_not_sent_twice_and_the_run_goes_on"
            ),
        ),
        "an HTTP server has restarted and does not know the session": (
            (
                "tools/mcp/test_failures.py::"
                "test_a_request_that_was_refused_for_its_session_is_sent_again_in_a_new_one"
            ),
        ),
        "the attempts fail": (
            (
                "tools/mcp/test_failures.py::"
                "test_a_server_that_cannot_be_connected_again_ends_the_run_with_its_name_and_the_cause"
            ),
            (
                "tools/mcp/test_failures.py::test_a_run_continues_without_a_failing_server_by_choice_and_says_so"
            ),
            "tools/mcp/test_backoff.py::test_waits_and_rests_double_and_are_bounded",
        ),
        "the server does not answer in time": (
            (
                "tools/mcp/test_failures.py::"
                "test_a_server_that_is_silent_once_keeps_its_connection_and_twice_gets_a_new_one"
            ),
        ),
        "your `async with` ends": (
            "tools/mcp/test_failures.py::test_a_server_that_was_killed_between_two_runs_is_connected_again",
        ),
    },
    ("docs/guides/mcp.md", "Continue when a server fails", "Where the server was connected"): {
        "nowhere": (
            "tools/mcp/test_event_loops.py::test_a_server_that_is_not_connected_is_connected_by_run_and_stays_so",
            (
                "tools/mcp/test_failures.py::test_a_server_that_nobody_has_connected_is_connected_by_the_run_"
                "and_closed_with_the_event_loop"
            ),
        ),
        "in the event loop of the call, such as a notebook's": (
            "tools/mcp/test_event_loops.py::test_run_says_at_once_that_it_blocks_the_loop_of_the_connection",
        ),
        "in an event loop that runs in another thread": (
            "tools/mcp/test_event_loops.py::test_run_works_with_a_connection_on_a_loop_in_another_thread",
            (
                "tools/mcp/test_event_loops.py::test_run_async_works_with_a_connection_on_a_loop_in_another_thread_"
                "also_after_a_crash"
            ),
        ),
        "in an event loop that is not running now": (
            "tools/mcp/test_event_loops.py::test_run_says_at_once_that_the_loop_of_the_connection_does_not_run",
        ),
        "in an event loop that is closed, or closes during the run": (
            "tools/mcp/test_event_loops.py::test_a_connection_whose_loop_is_closed_is_made_again",
            "tools/mcp/test_event_loops.py::test_a_run_goes_on_if_the_event_loop_of_the_connection_ends_meanwhile",
        ),
    },
    ("docs/guides/mcp.md", "Limit the tools", "Rule"): {
        '`"allow": ["search", "mcp__files__read"]`': (
            "tools/test_reach.py::test_a_rule_may_concern_one_tool_or_all_tools_of_a_server",
        ),
        '`"deny": ["mcp__files"]`, `"deny": ["mcp__files__*"]`': (
            "tools/test_reach.py::test_a_rule_may_concern_one_tool_or_all_tools_of_a_server",
        ),
        '`"deny": ["mcp__*"]`': (
            "tools/test_reach.py::test_a_rule_may_concern_one_tool_or_all_tools_of_a_server",
        ),
        '`"deny": ["mcp__*__delete"]`': (
            "tools/test_reach.py::test_a_rule_may_concern_one_tool_or_all_tools_of_a_server",
        ),
        '`"params": {"mcp__files__*": {"path": {"pattern": "^[a-z]+[.]txt$"}}}`': (
            "tools/test_reach.py::test_tools_of_a_stdio_server_obey_the_rules",
        ),
    },
    ("docs/guides/middleware.md", "What a method returns", "The method"): {
        "`tool_call` returns None, and `call_next` returned something else": (
            "core/interception/test_returns.py::test_a_tool_call_middleware_without_return_is_an_error_that_names_it",
            "core/interception/test_returns.py::test_a_result_is_lost_only_with_an_error",
        ),
        "`tool_call` returns None, and `call_next` returned None, at least once": (
            "core/interception/test_returns.py::test_a_middleware_may_call_again_until_the_tool_returns_none",
            "core/interception/test_returns.py::test_a_middleware_may_return_the_none_that_a_tool_has_returned",
        ),
        "`tool_call` returns None without a result of `call_next`: not awaited, or its error handled": (
            "core/interception/test_returns.py::test_a_tool_call_middleware_without_return_is_an_error_that_names_it",
            "core/interception/test_returns.py::test_a_middleware_that_turns_an_error_into_none_is_an_error",
        ),
        "`tool_call` or `model_call` returns `call_next(call)` without `await`": (
            "core/interception/test_returns.py::test_a_tool_call_middleware_without_return_is_an_error_that_names_it",
        ),
        "`model_call` returns something other than a `ModelResponse`": (
            "core/interception/test_returns.py::test_a_model_call_middleware_without_return_is_an_error_that_names_it",
            "core/interception/test_model_calls.py::test_a_result_that_is_not_a_response_is_e80",
        ),
        "`run` does not call `call_next`, and sets no `run.result`": (
            "core/interception/test_returns.py::test_a_stage_that_ends_the_run_without_a_result_is_named_in_the_log",
        ),
    },
    ("docs/guides/models.md", "Use the SDK's default client", "If the name is"): {
        "one of OpenAI's, or None": (
            "models/test_openai_defaults.py::test_the_default_client_counts_whenever_it_is_set",
            "models/test_openai_defaults.py::test_the_default_client_needs_no_key_in_the_environment",
            "models/test_openai_defaults.py::test_the_default_key_goes_before_the_environment",
        ),
        "one of another provider": (
            "models/test_openai_defaults.py::test_other_providers_do_not_use_the_default_client",
            "models/test_openai_defaults.py::test_a_provider_without_its_variable_is_e47_despite_the_default_client",
        ),
        "unknown, and a variable of the order above is set": (
            "models/test_openai_defaults.py::test_other_providers_do_not_use_the_default_client",
        ),
        "unknown otherwise": (
            "models/test_openai_defaults.py::test_the_default_client_counts_for_a_name_of_no_known_provider",
        ),
    },
    ("docs/guides/models.md", "A missing key", "What happens when"): {
        "the key of the provider is missing or empty": (
            "models/test_configuration.py::test_a_missing_key_or_url_names_the_model_and_the_variable_to_set",
            "models/test_configuration.py::test_an_empty_variable_is_as_good_as_none_and_the_error_says_that_it_is_empty",
            "models/test_configuration.py::test_the_default_model_without_a_key_is_the_same_error",
        ),
        "the URL of a local server (`ollama/...`) is missing": (
            "models/test_configuration.py::test_a_missing_key_or_url_names_the_model_and_the_variable_to_set",
        ),
        "the key is blank, in quotes, or has a space or a line end": (
            "models/test_configuration.py::test_a_key_that_cannot_be_sent_is_named_before_anything_is_sent",
            "models/test_configuration.py::test_a_key_is_accepted_if_and_only_if_a_header_can_hold_it",
        ),
        "the URL is not an http(s) URL": (
            "models/test_configuration.py::test_a_variable_that_holds_no_url_is_named_with_what_it_holds",
        ),
        "the key is set after the agent was created": (
            "models/test_configuration.py::test_a_key_that_is_set_after_the_agent_was_created_is_used",
        ),
        "no provider is known for the name": (
            "models/test_resolve.py::test_creating_an_agent_with_an_unknown_model_name_raises_e19",
        ),
    },
    ("docs/guides/middleware.md", "Stop a run early", "Stage that returns early"): {
        "before `normalize_context` (middleware)": (
            "agent/test_agent.py::test_what_the_context_holds_after_an_early_end_depends_on_the_stages_that_ran",
        ),
        "between `normalize_context` and `call_sdk`": (
            "agent/test_agent.py::test_what_the_context_holds_after_an_early_end_depends_on_the_stages_that_ran",
        ),
        "between `call_sdk` and `store_output`": (
            "agent/test_agent.py::test_what_the_context_holds_after_an_early_end_depends_on_the_stages_that_ran",
        ),
    },
    ("docs/guides/prompts-and-context.md", "Templates", "Placeholder"): {
        "`{{ $ctx.user.name }}`": (
            "core/test_templating.py::test_any_nesting_of_mappings_and_lists_is_reached",
        ),
        "`{{ $ctx.items.0 }}`": ("core/test_templating.py::test_sequences_are_indexed_and_strings_are_not",),
        "`{{ $env.REGION }}`": ("agent/test_agent.py::test_env_is_rendered_only_when_allowed",),
        "anything else in braces": ("core/test_templating.py::test_only_complete_markers_are_replaced",),
    },
    ("docs/guides/prompts-and-context.md", "Store a context", "To store"): {
        "the context": (
            "agent/bridge/test_stored_states.py::test_a_context_without_its_result_is_json_and_a_later_run_continues_its_history",
        ),
        "a run that waits for an approval": (
            "middleware/test_approve.py::test_a_stored_run_is_resumed_in_another_process",
        ),
        "the SDK's state of any run": (
            "agent/bridge/test_stored_states.py::test_the_state_of_a_finished_run_is_stored_without_the_result",
            "agent/bridge/test_stored_states.py::test_a_paused_run_is_restored_from_its_text_and_continued",
        ),
    },
    ("docs/guides/prompts-and-context.md", "What the context holds afterwards", "The run"): {
        "finished": (
            "agent/test_agent.py::test_spec_2_5_and_2_7_the_callers_dict_is_completed_and_returned",
            "agent/test_agent.py::test_spec_11_1_a_structured_output_is_stored_in_the_context_as_a_dict",
        ),
        "waits for an [approval](tools.md)": (
            "middleware/test_approve.py::test_a_call_that_matches_the_policy_waits_and_the_run_ends_without_an_answer",
        ),
        "was answered by a stage, which set `run.result` and awaited `call_next`": (
            "agent/test_agent.py::test_a_result_set_before_call_sdk_is_used_and_no_model_is_called",
        ),
        "was stopped by a stage that did not call `call_next`": (
            "agent/test_agent.py::test_a_stage_that_does_not_call_next_leaves_no_stale_result",
        ),
        "raised an exception or was canceled": (
            "agent/test_agent.py::test_a_failing_stage_leaves_the_context_unchanged",
            "traces/test_spans.py::test_a_cancelled_run_is_recorded_and_restores_the_context",
        ),
    },
    ("docs/guides/skills-and-commands.md", "Run tools without a model", "Typed"): {
        typed: ("tools/commands/test_reading.py::" + test,)
        for typed, test in (
            ("`/read todo.txt 5`", "test_arguments_are_parsed"),
            ("`/read todo.txt --limit 5`, `--limit=5`, `limit=5`", "test_arguments_are_parsed"),
            (
                "`/send --dry-run`, `--no-dry-run`, `--dry-run=false`, `--dry-run false`",
                "test_a_word_after_a_flag_sets_it",
            ),
            ("`/read \"my notes.txt\"`, `'my notes.txt'`", "test_arguments_are_parsed"),
            ("`/add --tag a --tag b`, `--tag a,b`, `--tag '[\"a,b\"]'`", "test_arguments_are_parsed"),
            (
                "`/remove a.txt b.txt`",
                "test_a_list_as_the_last_parameter_takes_each_remaining_token",
            ),
            (
                "`/say it's a nice day`",
                "test_the_only_text_parameter_takes_everything_after_the_name",
            ),
            ("`/note Title and then all the rest`", "test_the_last_text_parameter_takes_the_rest"),
            ("`/say -- --text`", "test_arguments_are_parsed"),
            ('`/read {"path": "todo.txt", "limit": 5}`', "test_arguments_are_parsed"),
        )
    },
    ("docs/guides/streaming.md", "Stop between two turns", "When"): {
        "you call it at any event of a turn": (
            "core/events/test_stop_after_turn.py::test_a_run_stopped_at_any_event_of_a_turn_ends_after_it",
            "core/events/test_stop_after_turn.py::test_the_next_turn_waits_until_a_slow_reader_has_read_the_last",
        ),
        "the turn is the last one, or needs an approval": (
            "core/events/test_stop_after_turn.py::test_a_run_stopped_in_its_last_turn_finishes_as_usual",
            "core/events/test_stop_after_turn.py::test_a_turn_that_needs_an_approval_waits_for_it",
        ),
        "before the first turn": ("core/events/test_stop_after_turn.py::test_its_state_continues_it",),
        "the run has stopped": (
            "core/events/test_stop_after_turn.py::test_a_run_stopped_at_any_event_of_a_turn_ends_after_it",
            "core/events/test_stop_after_turn.py::test_the_result_and_the_session_are_those_of_the_sdk",
            "core/events/test_stop_after_turn.py::test_no_output_is_stored",
        ),
        "you want to continue it": (
            "core/events/test_stop_after_turn.py::test_its_state_continues_it",
            "core/events/test_stop_after_turn.py::test_its_items_continue_it",
        ),
        "a tool has started another run": (
            "core/events/test_stop_after_turn.py::test_a_run_inside_a_tool_runs_to_its_end",
        ),
        "you call `run.cancel()` afterwards, or leave the block": (
            "core/events/test_stop_after_turn.py::test_the_stronger_mode_wins",
            "core/events/test_stop_after_turn.py::test_leaving_the_block_cancels_the_run_at_once",
        ),
        "the run is over, or is being canceled": (
            "core/events/test_stop_after_turn.py::test_a_run_that_is_over_or_has_been_cancelled_is_not_affected",
        ),
    },
    ("docs/guides/structured-output.md", "Structured output", "`output_type`"): {
        "pydantic model, dataclass, attrs class": (
            "models/structured/test_schema.py::test_outputs_with_fields_become_dicts",
            "models/structured/test_attrs_types.py::test_a_result_is_stored_as_plain_dicts",
        ),
        "TypedDict, `dict[str, int]`, `dict`": (
            "models/structured/test_schema.py::test_outputs_with_fields_become_dicts",
        ),
        "a JSON Schema as a dict, with an object at its root": (
            "models/structured/test_dict_schema.py::test_a_json_schema_is_an_output_type",
        ),
        "`list[...]`, unions, `int`, other JSON Schemas": (
            "models/structured/test_schema.py::test_outputs_that_are_not_dicts_are_not_stored",
        ),
    },
    ("docs/guides/structured-output.md", "When a provider rejects a form", "The error"): {
        "names the form: `response_format`, a schema, a grammar; in tool mode also tools or functions": (
            "models/structured/test_refused_forms.py::test_a_native_provider_that_refuses_the_schema_is_asked_with_a_tool",
            "models/structured/test_refused_forms.py::test_a_refused_schema_is_no_error_about_size",
        ),
        "does not name the form: `Request contains an invalid argument.`": (
            "models/structured/test_refused_forms.py::test_an_accepted_form_is_found_and_remembered",
            "models/structured/test_refused_forms.py::test_an_error_that_every_form_gets_is_raised_after_one_more_request",
        ),
        "is about the length of the conversation, a quota, the key, the model or a content filter": (
            "models/structured/test_refused_forms.py::test_an_error_about_something_else_is_raised_at_once",
        ),
        "has another status than 400, 404 or 422: 401, 403, 429, 5xx": (
            "models/structured/test_refused_forms.py::test_no_other_status_costs_a_second_request",
        ),
    },
    ("docs/guides/structured-output.md", "How the value is requested", "`output_mode`"): {
        '`"native"`': ("models/structured/test_output_modes.py::test_an_explicit_mode_is_used",),
        '`"tool"`': ("models/structured/test_output_modes.py::test_an_explicit_mode_is_used",),
        '`"prompt"`': ("models/structured/test_output_modes.py::test_an_explicit_mode_is_used",),
        '`"auto"`': (
            "models/structured/test_output_modes.py::test_auto_finds_and_remembers_the_supported_mode",
        ),
    },
    ("docs/reference/file-formats.md", "Entries of `tools` and `disallowedTools`", "Entry"): {
        "`Read`": ("subagent_files/test_grants.py::test_an_entry_grants_its_calls",),
        "`Bash(git diff:*)`, `Bash(git diff *)`": (
            "subagent_files/test_grants.py::test_an_entry_grants_its_calls",
            "agent/delegation/test_narrowing.py::test_a_call_pattern_does_not_grant_the_whole_tool",
        ),
        "`Bash(ls)`": ("subagent_files/test_grants.py::test_an_entry_grants_its_calls",),
        "`mcp__github`, `mcp__github__*`": ("subagent_files/test_grants.py::test_an_entry_grants_its_calls",),
        "`Task`, `Agent`": (
            "agent/delegation/test_narrowing.py::test_files_call_the_tool_task_or_agent_whatever_its_name",
        ),
        "`Task(tester, writer)`, `Agent(tester, writer)`": (
            "agent/delegation/test_narrowing.py::test_only_the_named_agents_can_be_delegated_to",
            "agent/delegation/test_narrowing.py::test_a_permitted_agent_is_permitted_in_every_spelling",
        ),
    },
    ("docs/reference/file-formats.md", "Tools that do not exist", "Where the file is used"): {
        "`Agent.from_definition(...)`, subagents too": (
            "agent/test_from_definition.py::test_they_are_logged_by_name_with_the_nearest_one",
            "agent/test_from_definition.py::test_a_subagent_whose_parent_lacks_its_tools_names_them",
        ),
        "`Agent.from_definition(..., strict=True)`": (
            "agent/test_from_definition.py::test_they_are_an_error_if_the_agent_is_strict",
        ),
        "`kantan-agents run --agent`, subagents too": (
            "cli/test_agents_validate.py::test_run_names_them_on_stderr_and_answers",
            "cli/test_run_agent.py::test_the_missing_tools_of_subagents_are_named_once_on_stderr",
        ),
        "`kantan-agents tools explain NAME --agent`": (
            "cli/test_rules_options.py::test_a_tool_that_the_agent_does_not_have_is_named_on_stderr",
        ),
        "`kantan-agents agents new`, `validate`, `show`": (
            "cli/test_agents_new.py::test_tools_that_do_not_exist_here_are_named_on_stderr_and_the_file_is_written",
            "cli/test_agents_validate.py::test_each_is_named_on_the_line_of_the_list",
            "cli/test_agents_validate.py::test_show_names_them",
        ),
    },
    ("docs/reference/file-formats.md", "Models", "In the file"): {
        "no `model`, or `inherit`, `default`, `main`, `task`, `reasoning`, `quick`": (
            "agent/test_from_definition.py::test_without_a_model_in_the_file_the_given_model_is_used",
            "agent/test_from_definition.py::test_a_short_name_may_mean_the_given_model",
        ),
        "`sonnet`, `opus`, `haiku`, also `claude-sonnet` and so on": (
            "agent/test_from_definition.py::test_the_built_in_short_names_are_models_of_anthropic",
        ),
        "`fable`": (
            "subagent_files/test_remarks.py::test_short_names_of_claude_code_never_reach_a_provider",
        ),
        "`best`, `opusplan`": (
            "subagent_files/test_remarks.py::test_short_names_of_claude_code_never_reach_a_provider",
        ),
        "a name with the suffix `[1m]`": (
            "subagent_files/test_remarks.py::test_short_names_of_claude_code_never_reach_a_provider",
            "subagent_files/test_remarks.py::test_the_short_names_of_the_user_come_first",
        ),
        "a list of models": (
            "subagent_files/test_frontmatter.py::test_a_list_of_models_loses_no_agent_and_its_first_is_used",
        ),
        "anything else": ("agent/test_from_definition.py::test_a_full_id_goes_to_kantan_llm",),
    },
    ("docs/guides/subagent-files.md", "Delegation", "Limit"): {
        "`definition`": ("agent/delegation/test_narrowing.py::test_the_explanation_names_the_refusing_file",),
        "`delegation`": (
            "agent/delegation/test_narrowing.py::test_rules_of_the_delegation_tool_apply_at_all_levels_below",
        ),
        "`delegation: rules of NAME`, `delegation: definition of NAME`": (
            "agent/delegation/test_narrowing.py::test_the_explanation_for_a_child_names_its_parent",
            "agent/delegation/test_narrowing.py::test_a_refusal_is_recorded_with_the_deciding_limit",
        ),
    },
    ("docs/guides/subagent-files.md", "Limit delegations", "Option of `task_tool`"): {
        "`max_depth=3`": ("agent/delegation/test_limits.py::test_the_default_depth_is_three_delegations",),
        "`max_delegations=50`": (
            "agent/delegation/test_limits.py::test_the_delegations_of_the_whole_tree_are_counted",
        ),
        '`on_failure="feedback"`': (
            "agent/delegation/test_failures.py::test_a_failing_child_returns_its_error_as_the_tool_result",
            "agent/delegation/test_failures.py::test_on_failure_raise_ends_the_parent_run",
        ),
        "`tool_rules`": (
            "agent/delegation/test_narrowing.py::test_rules_of_the_delegation_tool_apply_at_all_levels_below",
        ),
        "`models`": ("agent/test_from_definition.py::test_users_can_define_short_names",),
        "any other option of `Agent`": (
            "agent/delegation/test_task.py::test_options_of_the_tool_override_those_of_the_parent",
            "agent/delegation/test_inherited_configuration.py::test_options_that_could_widen_a_child_are_refused",
        ),
    },
    ("docs/guides/subagent-files.md", "What happens when", "When"): {
        "`subagent_type` is unknown": (
            "agent/delegation/test_failures.py::test_an_unknown_agent_name_returns_the_available_names",
        ),
        "there are too many delegations, or they are too deep": (
            "agent/delegation/test_limits.py::test_the_delegations_of_the_whole_tree_are_counted",
            "agent/delegation/test_limits.py::test_calling_the_hidden_tool_at_the_limit_returns_an_error",
        ),
        "an agent delegates to one that waits for it": (
            "agent/delegation/test_limits.py::test_an_agent_in_the_chain_is_not_delegated_to",
        ),
        "the run is canceled, its stream is left, or its `Deadline` expires": (
            "agent/delegation/test_failures.py::test_cancelling_a_run_cancels_its_delegations",
            "agent/delegation/test_failures.py::test_leaving_a_stream_early_ends_its_delegations",
            "agent/delegation/test_failures.py::test_the_deadline_of_the_parent_applies_to_the_child",
        ),
        "a subagent's call needs an approval": (
            "agent/delegation/test_failures.py::test_a_tool_that_waits_for_an_approval_is_a_failure",
            "agent/delegation/test_failures.py::test_approve_middleware_of_the_parent_also_asks_for_calls_of_the_child",
        ),
        "the outermost run has options such as `max_turns`, `hooks` or `session`": (
            "agent/delegation/test_tree.py::test_the_callers_tracing_options_apply_to_all_runs",
            "agent/delegation/test_tree.py::test_a_model_in_the_callers_run_config_applies_to_all_runs",
        ),
        "the parent was reached by a handoff": (
            "agent/delegation/test_inherited_configuration.py::test_delegations_of_a_hand_off_target_use_the_middleware_of_the_run",
        ),
        "the SDK's `Runner.run` runs the agent": (
            "agent/delegation/test_task.py::test_plain_sdk_agents_can_delegate",
        ),
    },
    ("docs/guides/testing.md", "Scripts", "A reply"): {
        "a str": ("testing/test_script.py::test_every_form_of_an_answer_is_played_by_both",),
        "a dict, or a pydantic object": (
            "testing/test_script.py::test_every_form_of_an_answer_is_played_by_both",
            "testing/test_script.py::test_a_structured_answer_of_a_profile_may_be_a_pydantic_object",
        ),
        '`{"tool": name, "arguments": {...}}`': (
            "testing/test_script.py::test_every_form_of_a_tool_call_is_played_by_both",
        ),
        "a `ScriptedToolCall`": ("testing/test_script.py::test_every_form_of_a_tool_call_is_played_by_both",),
        "a list": (
            "testing/test_script.py::test_every_form_of_a_tool_call_is_played_by_both",
            "testing/test_script.py::test_a_wrong_script_is_the_same_error_in_both_with_its_position",
        ),
        '`{"status": 401, "text": "unknown key"}`': (
            "testing/test_script.py::test_an_http_error_is_the_same_error_in_both",
        ),
        "a `Reply`": ("testing/test_script.py::test_a_script_gives_the_same_runs_in_both",),
        "an exception": (
            "testing/test_script.py::test_an_exception_is_raised_as_it_is_by_the_model",
            "testing/test_script.py::test_an_api_error_arrives_over_http_as_it_is",
            "testing/test_script.py::test_a_connection_error_closes_the_connection_and_is_one_model_call",
            "testing/test_script.py::test_the_error_of_a_function_reaches_the_client",
        ),
        "a `ModelStep`, a dict of its fields, or a `ModelResponse`": (
            "testing/test_script.py::test_every_form_of_an_answer_is_played_by_both",
            "testing/test_script.py::test_the_usage_of_a_step_is_reported_by_both",
        ),
        "a function, sync or async": (
            "testing/test_script.py::test_a_function_of_the_call_is_a_script_in_both",
            "testing/test_script.py::test_a_wrong_return_value_of_a_function_names_the_function",
        ),
    },
    ("docs/guides/tool-rules.md", "Allow and deny tools", "Key"): {
        "`allow`": (
            "tool_rules/test_rules.py::test_a_tool_is_permitted_if_an_entry_allows_it_and_none_denies_it",
        ),
        "`deny`": (
            "tool_rules/test_rules.py::test_a_tool_is_permitted_if_an_entry_allows_it_and_none_denies_it",
        ),
        "`params`": ("tool_rules/test_parameters.py::test_rules_agree_with_the_reference",),
    },
    ("docs/guides/tool-rules.md", "Allow and deny tools", "Entry"): {
        "`search`": (
            "tool_rules/test_rules.py::test_a_tool_is_permitted_if_an_entry_allows_it_and_none_denies_it",
        ),
        "`fs.*`, `read_?`, `tool[12]`": (
            "tool_rules/test_rules.py::test_a_tool_is_permitted_if_an_entry_allows_it_and_none_denies_it",
            "tool_rules/test_rules.py::test_a_pattern_is_also_an_exact_name",
        ),
        "`mcp__github`, `mcp__github__*`": (
            (
                "tools/test_names_of_servers.py::"
                "test_each_spelling_names_the_tool_of_a_real_server_wherever_a_rule_is_written"
            ),
        ),
        "`bash(git status)`": ("tool_rules/test_calls.py::test_an_exact_entry_grants_that_call_only",),
        "`bash(git:*)`": (
            "tool_rules/test_calls.py::test_a_prefix_grants_its_command_with_any_further_words",
            "tool_rules/test_calls.py::test_a_prefix_ends_at_the_end_of_a_word",
        ),
        "`bash(*)`": ("tool_rules/test_calls.py::test_a_star_grants_every_call_and_needs_no_arguments",),
        "`Read(src/**)`, `Read(path:notes.txt)`": (
            "tool_rules/test_paths_and_hosts.py::test_an_entry_of_allow_covers_paths",
            "tool_rules/test_paths_and_hosts.py::test_deny_covers_what_is_below_or_refused",
            "tool_rules/test_paths_and_hosts.py::test_in_another_tool_allow_covers_nothing_and_deny_all",
        ),
        "`WebFetch(domain:example.com)`": (
            "tool_rules/test_paths_and_hosts.py::test_a_host_is_granted_exactly_and_denied_with_its_subdomains",
        ),
    },
    ("docs/guides/tool-rules.md", "When a call is denied", "`Agent(on_rule_violation=...)`"): {
        '`"feedback"`, the default': (
            "tools/test_violations.py::test_by_default_a_violation_is_feedback_for_the_model",
        ),
        '`"raise"`': (
            "tools/test_violations.py::test_raise_ends_the_run_with_the_error_and_restores_the_context",
        ),
        "a function, sync or async": (
            "tools/test_violations.py::test_a_function_decides_for_each_violation",
        ),
    },
    ("docs/reference/what-tool-rules-protect.md", "Tools", "Tool"): {
        "functions, `FunctionTool` and its subclasses, agents as tools": (
            "tools/test_guard.py::test_no_kind_of_tool_is_shown_or_run_when_it_is_denied",
            "tools/test_reach.py::test_the_rules_apply_to_an_agent_as_tool_and_to_its_tools",
        ),
        "tools of MCP servers (stdio, HTTP)": (
            "tools/test_reach.py::test_tools_of_a_stdio_server_obey_the_rules",
            "tools/test_reach.py::test_tools_of_an_http_server_obey_the_rules_of_a_hand_off",
        ),
        "shell, local shell, apply_patch, custom tools": (
            "tools/test_guard.py::test_no_kind_of_tool_runs_when_it_is_denied_after_it_was_shown",
            "tools/test_guard.py::test_their_calls_are_checked_by_arguments",
        ),
        "computer": ("tools/test_guard.py::test_a_computer_created_for_each_run_is_guarded_and_disposed",),
        "hosted MCP servers": (
            "tools/test_reach.py::test_rules_for_single_tools_of_a_hosted_server_require_approval_of_each_call",
            "tools/test_reach.py::test_a_hosted_server_can_be_hidden",
        ),
        "web search, file search, code interpreter, image generation": (
            "tools/test_guard.py::test_rules_for_hosted_tools_work_with_each_of_their_names",
            "tools/test_guard.py::test_a_refused_hosted_call_that_the_provider_makes_is_recorded",
        ),
    },
    ("docs/reference/tool-rules.md", "Parameter keywords", "Keyword"): {
        f"`{keyword}`": ("tool_rules/test_parameters.py::test_each_keyword_has_its_error",)
        for keyword in ("type", "enum", "minLength", "maxLength", "pattern", "minimum", "maximum")
    },
    ("docs/reference/tool-rules.md", "Names of tools", "Tool"): {
        "in a namespace": ("tool_rules/test_decide.py::test_an_entry_may_use_any_name_of_the_tool",),
        "of an MCP server named `github`": (
            "tools/test_reach.py::test_rules_for_prefixed_mcp_names_work_with_either_name",
        ),
        "of a hosted MCP server": ("tools/test_explain.py::test_a_hosted_tool_also_has_its_other_names",),
        "computer": ("tools/test_guard.py::test_no_kind_of_tool_is_shown_or_run_when_it_is_denied",),
        "web search": ("tools/test_guard.py::test_rules_for_hosted_tools_work_with_each_of_their_names",),
    },
    ("docs/guides/tools.md", "When a call fails", "The model"): {
        "sends arguments that the function cannot take": (
            "tools/test_wrong_arguments.py::test_each_wrong_parameter_is_named",
            "tools/test_wrong_arguments.py::test_long_values_and_many_mistakes_are_cut_short",
        ),
        "calls a function that raises an exception": (
            "middleware/test_tool_errors.py::test_without_it_the_model_receives_the_message_of_the_sdk",
        ),
        "calls a tool that does not exist, or sends arguments that are not a JSON object": (
            "models/protocol/test_invalid_calls.py::test_a_model_that_only_makes_invalid_calls_ends_the_run",
        ),
        "repeats a call that fails in the same way": (
            "tools/test_repeated_failures.py::test_before_the_run_ends_the_model_reads_that_the_call_has_failed_before",
            "tools/test_repeated_failures.py::test_the_same_failure_in_five_turns_ends_the_run_with_all_facts",
        ),
    },
    ("docs/guides/tools.md", "Control tools of installed packages", "`tool_providers=`"): {
        '`"available"`, the default': (
            "tools/test_providers.py::test_a_provider_that_fails_to_import_is_logged_and_the_others_load",
        ),
        '`"all"`': ("tools/test_providers.py::test_any_failure_of_a_provider_is_reported",),
        '`["shop"]`': ("tools/test_providers.py::test_names_choose_providers",),
        "`None`": ("tools/test_providers.py::test_none_chooses_no_providers",),
    },
    (
        "docs/guides/opentelemetry.md",
        "Use openinference, Logfire or another instrumentation",
        "In this order",
    ): {
        "`record_traces(...)`, then `OpenAIAgentsInstrumentor().instrument(exclusive_processor=False)`": (
            "real_parts/test_observability.py::test_openinference_that_is_not_exclusive_keeps_the_database",
            "real_parts/test_observability.py::test_openinference_and_logfire_and_the_database_at_once",
        ),
        "`OpenAIAgentsInstrumentor().instrument()`, then `add_trace_processor(SQLiteRecorder(...))`": (
            "real_parts/test_observability.py::test_a_recorder_added_to_openinference_keeps_both",
        ),
        "`record_traces(...)`, then `OpenAIAgentsInstrumentor().instrument()` or `set_trace_processors()`": (
            "real_parts/test_observability.py::test_openinference_after_record_traces_silences_the_database",
            "real_parts/test_observability.py::test_openinference_gives_the_database_back_when_it_is_removed",
            "real_parts/test_observability.py::test_set_trace_processors_after_record_traces_silences_the_database",
            "traces/recorder/test_lost_recorder.py::test_the_first_run_after_the_loss_warns_once",
        ),
        "`add_trace_processor(...)` or openinference, then `record_traces(...)`": (
            "real_parts/test_observability.py::test_record_traces_after_openinference_silences_openinference",
            "real_parts/test_observability.py::test_record_traces_silences_openinference_that_is_not_exclusive",
            "real_parts/test_observability.py::test_record_traces_silences_the_processors_before_it",
        ),
        "`record_traces(...)` and `logfire.instrument_openai_agents()`, in any order": (
            "real_parts/test_observability.py::test_logfire_and_record_traces_keep_each_other_in_any_order",
        ),
        "`record_traces(...)`, then `add_trace_processor(...)`": (
            "real_parts/test_observability.py::test_add_trace_processor_after_record_traces_keeps_both",
        ),
    },
    ("docs/guides/replay.md", "What a replay runs", "In `replay`"): {
        "tools of MCP servers": (
            "lab/replay/test_kinds_of_runs.py::test_a_replayed_run_is_the_recorded_run",
            "lab/replay/test_mcp.py::test_a_server_process_is_not_contacted",
            "lab/replay/test_kinds_of_tools.py::test_tools_of_other_kinds_do_not_run",
        ),
        "agents as tools, `Task`, handoffs, `find_tools`": (
            "lab/replay/test_kinds_of_runs.py::test_a_replayed_run_is_the_recorded_run",
        ),
        "agents that the body of a tool runs": (
            "lab/replay/test_runs_inside.py::test_a_tool_that_runs_an_agent_is_answered_whole",
        ),
        "the input": ("lab/test_run_again.py::test_an_escaped_text_is_not_run_as_a_command",),
        "your middleware, stages, renderers, guardrails and hooks": (
            "lab/replay/test_kinds_of_tools.py::test_guardrails_of_agents_run_again",
            "lab/replay/test_middleware.py::test_middleware_catches_the_errors_of_its_own_classes",
        ),
        "context values in templates": (
            "lab/replay/test_kinds_of_runs.py::test_a_replayed_run_is_the_recorded_run",
        ),
        "sessions": (
            "lab/replay/test_kinds_of_runs.py::test_a_replayed_run_is_the_recorded_run",
            "lab/replay/test_again.py::test_a_new_recording_has_the_old_input_and_the_new_answers",
        ),
        "`Approve`": (
            "lab/replay/test_approvals.py::test_a_run_goes_on_as_the_person_decided",
            "lab/replay/test_kinds_of_runs.py::test_a_replayed_run_is_the_recorded_run",
        ),
        "`Retry`": (
            "lab/replay/test_middleware.py::test_a_retried_model_call_does_not_wait",
            "lab/replay/test_middleware.py::test_a_call_that_was_not_retried_is_not_retried",
            "lab/replay/test_middleware.py::test_a_retried_tool_is_answered_once",
        ),
        "`Deadline`": ("lab/replay/test_middleware.py::test_a_deadline_does_not_expire_in_a_replay",),
        "`Budget`": (
            "lab/replay/test_middleware.py::test_a_budget_runs_out_as_it_did_and_is_not_used_up_by_replays",
        ),
        "traces": ("lab/replay/test_kinds_of_runs.py::test_a_replay_leaves_no_trace",),
        "events": (
            "lab/replay/test_kinds_of_runs.py::test_a_replayed_run_is_the_recorded_run",
            "lab/replay/test_any_run.py::test_any_run_replays",
        ),
    },
    ("docs/guides/replay.md", "Runs that cannot be replayed", "Run"): {
        "recorded with `record_requests=False`, by an earlier version or another tracer": (
            "lab/replay/test_files.py::test_a_run_without_recorded_requests",
            "lab/replay/test_files.py::test_a_database_of_another_tracer",
        ),
        "its process was killed": ("lab/replay/test_files.py::test_a_run_whose_process_was_killed",),
        "the file is missing, damaged, or from a later version": (
            "lab/replay/test_files.py::test_a_file_that_is_not_a_recording_is_refused",
            "lab/replay/test_files.py::test_damage_is_refused_or_harmless",
            "lab/replay/test_files.py::test_a_file_of_a_later_version_says_what_to_do",
        ),
        "canceled, past its deadline, or its stream was abandoned": (
            "lab/replay/test_files.py::test_runs_that_were_cut_off",
            "lab/replay/test_files.py::test_a_stream_that_its_reader_has_left",
        ),
        "a streamed answer broke off, or a tool timed out": (
            "lab/replay/test_files.py::test_an_answer_that_broke_off",
            "lab/replay/test_kinds_of_tools.py::test_a_tool_that_timed_out_is_refused",
        ),
        "uses a computer tool": ("lab/replay/test_kinds_of_tools.py::test_a_computer_is_refused",),
        "used a hosted tool, such as a web search": (
            "lab/replay/test_provider_side.py::test_the_work_of_a_hosted_tool_is_refused_by_name",
            "lab/replay/test_provider_side.py::test_every_kind_of_item_of_the_client_is_local_or_refused",
        ),
        "continues a conversation at the provider: `previous_response_id`, `conversation_id`": (
            "lab/replay/test_provider_side.py::test_what_the_provider_holds_is_refused_by_name",
        ),
        "finds its tools with an embedding model": (
            "lab/replay/test_retrieval.py::test_a_run_whose_tools_an_embedding_model_has_found_is_refused",
        ),
        "uses a prompt at the provider": (
            "lab/replay/test_provider_side.py::test_what_the_provider_holds_is_refused_by_name",
            "lab/replay/test_provider_side.py::test_each_thing_at_the_provider_needs_its_own_name",
        ),
        "its agent has a custom runner": (
            "lab/replay/test_files.py::test_an_agent_with_a_runner_of_its_own",
        ),
        "its trace has several parallel runs": (
            "lab/replay/test_runs_inside.py::test_one_of_several_runs_of_a_trace",
        ),
    },
    ("docs/guides/compare-versions.md", "Resume an evaluation", "Situation"): {
        "the program was stopped, or a run failed": (
            "lab/evaluation/experiment/test_resumed.py::test_a_process_that_is_killed_keeps_what_is_done_and_the_next_one_goes_on",
            "lab/evaluation/experiment/test_resumed.py::test_a_resumed_evaluation_equals_one_that_was_never_interrupted",
            "lab/evaluation/experiment/test_evaluate.py::test_a_run_that_fails_is_a_failed_result_without_scores",
            "lab/evaluation/experiment/test_evaluate.py::test_failed_runs_and_failed_scores_are_made_again",
        ),
        "a case, a prompt, a model, a setting or a tool definition changed": (
            "lab/evaluation/experiment/test_evaluate.py::test_a_case_with_another_content_is_run_again_and_the_old_result_does_not_count",
            "lab/evaluation/experiment/test_identity.py::test_a_change_in_an_agent_or_in_one_that_it_reaches_makes_other_runs",
        ),
        "`context`, `run_config` or `max_turns` changed": (
            "lab/evaluation/experiment/test_identity.py::test_other_options_of_the_runs_make_other_runs",
        ),
        "another dataset has the same name": (
            "lab/evaluation/experiment/test_identity.py::test_the_name_of_an_evaluation_belongs_to_one_dataset",
        ),
        "two processes run it": (
            "lab/evaluation/experiment/test_resumed.py::test_two_processes_at_the_same_evaluation_end_with_one_result_for_each_run",
            "lab/evaluation/experiment/test_kept_apart.py::test_a_finished_result_of_another_process_stays_with_its_scores",
        ),
        "the model is unreachable, or the key is wrong": (
            "lab/evaluation/experiment/test_evaluate.py::test_an_unreachable_model_stops_the_evaluation_and_keeps_what_is_done",
        ),
        "`max_tokens` or `max_cost` is used up": (
            "lab/evaluation/experiment/test_budget.py::test_a_budget_ends_an_evaluation_before_a_run_that_would_exceed_it",
            "lab/evaluation/experiment/test_budget.py::test_a_limit_of_cost_counts_money",
            "lab/evaluation/experiment/test_budget.py::test_judges_are_in_the_budget",
        ),
        "a run waits for an approval": (
            "lab/evaluation/experiment/test_evaluate.py::test_a_run_that_waits_for_an_approval_has_failed",
        ),
        "an evaluator changed": (
            "lab/evaluation/experiment/test_evaluate.py::test_the_scores_of_an_evaluators_earlier_version_are_replaced",
        ),
        "the next start omits a variant or an evaluator": (
            "lab/evaluation/experiment/test_identity.py::test_variants_and_evaluators_of_earlier_starts_stay",
        ),
        "a model call fails temporarily": (
            "lab/evaluation/experiment/test_evaluate.py::test_failed_model_calls_are_retried",
        ),
        "an input or an output has a secret": (
            "lab/evaluation/experiment/test_kept_apart.py::test_secrets_are_masked_wherever_an_evaluation_stores_them",
        ),
        "a trace is pruned": (
            "lab/evaluation/experiment/test_evaluate.py::test_the_results_of_a_deleted_trace_are_deleted_with_their_scores",
        ),
    },
    ("docs/guides/replay.md", "Try a change on many runs", "Status"): {
        "`same`": (
            "lab/replay/test_cohort_same.py::test_a_change_that_the_model_does_not_notice_gives_the_same_run",
        ),
        "`wording`": (
            "lab/replay/test_cohort_experiment.py::test_runs_are_sorted_into_same_wording_and_diverged",
        ),
        "`changed`": (
            "lab/replay/test_cohort_experiment.py::test_fields_of_structured_outputs_are_decisions",
            "lab/replay/test_cohort_tools.py::test_equal_calls_are_answered_in_any_order_and_again",
            "lab/replay/test_cohort_tools.py::test_new_rules_refuse_a_recorded_call",
            "lab/replay/test_cohort_tools.py::test_a_hand_off_that_only_one_run_makes_is_a_changed_decision",
        ),
        "`diverged`": (
            "lab/replay/test_cohort_tools.py::test_a_call_with_other_arguments_ends_the_run",
            "lab/replay/test_cohort_tools.py::test_a_new_call_of_an_agent_inside_the_run_ends_it",
        ),
        "`failed`": (
            "lab/replay/test_cohort_experiment.py::test_an_error_that_is_gone_is_a_decision_and_a_new_one_a_failure",
        ),
    },
    ("docs/guides/replay.md", "What can be changed", "Change"): {
        "`Change.prompt(text)`": (
            "lab/replay/test_change_of_an_agent.py::test_a_text_keeps_the_name_of_the_prompt",
        ),
        "`Change.model(model)`": (
            "lab/replay/test_change_of_an_agent.py::test_rules_and_model_reach_the_run",
        ),
        "`Change.settings(temperature=0)`": (
            "lab/replay/test_change_of_an_agent.py::test_settings_are_changed_one_by_one",
        ),
        '`Change.rules({"deny": [...]})`': (
            "lab/replay/test_change_of_an_agent.py::test_rules_and_model_reach_the_run",
            "lab/replay/test_cohort_tools.py::test_new_rules_refuse_a_recorded_call",
        ),
        "`Change.tool(name, description=..., parameters=...)`": (
            "lab/replay/test_change_of_an_agent.py::test_the_definition_of_one_tool_is_changed",
        ),
        "`Change.middleware(...)`": (
            "lab/replay/test_change_of_an_agent.py::test_middleware_is_added_outside_of_the_agents_own",
        ),
    },
    ("docs/guides/replay.md", "What happens to a tool call", "A call in `replay_cohort`"): {
        "equals a recorded call of the run: agent, tool and arguments": (
            "lab/replay/test_cohort_tools.py::test_equal_calls_are_answered_in_any_order_and_again",
            "lab/replay/test_cohort_tools.py::test_repeated_equal_calls_get_their_results_in_order",
            "lab/replay/test_cohort_tools.py::test_the_order_of_keys_in_arguments_does_not_count",
        ),
        "is denied by the tool rules": (
            "lab/replay/test_cohort_tools.py::test_new_rules_refuse_a_recorded_call",
            "lab/replay/test_cohort_tools.py::test_rules_refuse_a_live_tool",
        ),
        "delegates, calls an agent as a tool, or searches for tools": (
            "lab/replay/test_cohort_same.py::test_a_change_that_the_model_does_not_notice_gives_the_same_run",
        ),
        "is any other call": (
            "lab/replay/test_cohort_tools.py::test_a_call_with_other_arguments_ends_the_run",
            "lab/replay/test_cohort_tools.py::test_shell_and_patches_do_not_run",
            "lab/replay/test_cohort_tools.py::test_an_mcp_server_is_neither_listed_nor_called",
        ),
        'is any other call of a tool in `live={"search_docs"}`': (
            "lab/replay/test_cohort_tools.py::test_a_tool_that_is_named_live_runs_if_the_recording_does_not_answer",
        ),
        "is any other call, with `simulate=agent`": (
            "lab/replay/test_cohort_tools.py::test_an_agent_that_plays_a_tool_is_marked",
        ),
        "needs an approval that was not recorded": (
            "lab/replay/test_cohort_tools.py::test_a_live_tool_that_needs_an_approval_does_not_run",
            "lab/replay/test_cohort_tools.py::test_a_run_that_would_wait_for_an_approval_diverges",
        ),
    },
    ("docs/guides/record-traces.md", "When runs are recorded", "Program"): {
        "your own, with `record_traces`": (
            "traces/recorder/test_when_recorded.py::test_record_traces_records_the_runs_after_it",
        ),
        "your own, without `record_traces`": (
            "traces/recorder/test_when_recorded.py::test_without_record_traces_no_file_is_written",
        ),
        "`kantan-agents run`": ("cli/test_run_recorded.py::test_show_last_works_after_a_run",),
        "`kantan-agents demo`": ("cli/test_demo.py::test_the_temporary_database_is_deleted",),
    },
    ("docs/guides/record-traces.md", "What happens when", "When"): {
        "`recorder.force_flush(timeout)` or `await recorder.force_flush_async()` is called": (
            "traces/recorder/test_recorder.py::test_after_a_flush_the_span_is_in_the_file_despite_other_threads",
            "traces/recorder/test_recorder.py::test_a_flush_can_be_awaited_and_cancelled",
        ),
        "`recorder.shutdown(timeout)` is called": (
            "traces/recorder/test_recorder.py::test_shutdown_ends_the_thread_and_closes_the_file_until_the_next_span",
        ),
        "`asyncio.run` or the process ends": (
            "traces/recorder/test_durability.py::test_when_a_loop_has_ended_its_spans_are_written",
            "traces/recorder/test_durability.py::test_the_end_of_a_process_writes_everything_without_a_flush",
        ),
        "SIGTERM arrives and the program has no handler": (
            "traces/recorder/test_durability.py::test_sigterm_without_a_handler_writes_everything_and_ends_the_process",
        ),
        "SIGTERM arrives in a worker of a pre-fork server": (
            "traces/recorder/test_shutdown.py::test_a_worker_that_resets_its_signals_after_the_fork_writes_everything",
        ),
        "SIGINT (Ctrl-C) arrives": (
            "traces/recorder/test_shutdown.py::test_a_worker_that_resets_its_signals_after_the_fork_writes_everything",
            "traces/recorder/test_shutdown.py::test_ctrl_c_raises_keyboard_interrupt_as_without_a_recorder",
        ),
        "SIGTERM arrives and the program has a handler": (
            "traces/recorder/test_durability.py::test_a_user_defined_handler_is_called_and_then_everything_is_written",
            "traces/recorder/test_shutdown.py::test_a_default_action_that_is_restored_after_a_sigterm_ends_the_process_after_writing",
            "traces/recorder/test_shutdown.py::test_while_the_file_is_locked_the_traces_that_end_after_a_sigterm_do_not_block_the_loop",
            "traces/recorder/test_shutdown.py::test_the_function_that_sets_handlers_is_replaced_no_longer_than_needed",
        ),
        "the process ends while the file cannot be written": (
            "traces/recorder/test_shutdown.py::test_while_the_file_is_locked_all_ends_of_a_process_share_one_bound",
            "traces/recorder/test_shutdown.py::test_the_waits_of_a_process_that_ends_add_up_to_one_bound_while_the_file_fails",
        ),
        "`os.execv` replaces the process": (
            "traces/recorder/test_durability.py::test_a_flush_before_exec_writes_everything",
        ),
        "`record_traces` is called again": (
            "traces/recorder/test_recorder.py::test_record_traces_again_and_again_leaves_one_thread_and_one_open_database",
            "traces/recorder/test_recorder.py::test_record_traces_on_an_event_loop_closes_the_recorder_before_without_waiting",
        ),
        "the process forks": (
            "traces/recorder/test_durability.py::test_spans_waiting_at_a_fork_are_written_once_by_the_parent",
            "traces/recorder/test_durability.py::test_forked_workers_that_call_no_exit_functions_lose_nothing",
        ),
        "the process is killed (SIGKILL)": (
            "traces/recorder/test_durability.py::test_after_sigkill_the_file_is_intact_and_at_most_half_a_second_is_missing",
        ),
        "the disk is full, or the file is locked, read-only or damaged": (
            "traces/recorder/test_write_errors.py::test_spans_wait_while_the_disk_is_full",
            "traces/recorder/test_write_errors.py::test_a_failure_is_logged_once_and_again_if_it_returns",
        ),
        "the file is deleted, moved, replaced or truncated": (
            "traces/recorder/test_replaced_files.py::test_after_any_change_of_the_files_a_read_sees_no_foreign_rows_and_new_spans_are_readable",
            "traces/recorder/test_replaced_files.py::test_spans_in_hand_when_the_files_change_are_written_to_the_new_ones",
            "traces/recorder/test_replaced_files.py::test_an_idle_recorder_leaves_replaced_files_so_that_other_processes_read_the_new_ones",
            "traces/recorder/test_replaced_files.py::test_after_any_changes_of_the_files_what_is_counted_as_written_is_readable",
            "traces/recorder/test_replaced_files.py::test_several_processes_go_on_after_their_log_was_removed_and_what_they_wrote_is_readable",
            "traces/recorder/test_replaced_files.py::test_rows_in_a_removed_log_that_another_process_still_reads_are_not_lost",
            "traces/recorder/test_replaced_files.py::test_a_database_that_is_copied_over_the_file_is_kept_even_if_the_copy_has_only_begun",
            "traces/recorder/test_write_errors.py::test_after_the_file_was_deleted_a_new_one_is_created",
            "traces/recorder/test_write_errors.py::test_after_the_file_was_replaced_the_new_one_is_used",
        ),
        "too many spans wait": (
            "traces/recorder/test_write_errors.py::test_without_a_wait_the_oldest_spans_are_dropped_and_counted",
            "traces/recorder/test_recorder.py::test_spans_beyond_max_queue_bytes_are_dropped_while_the_file_is_unusable",
            "traces/recorder/test_write_errors.py::test_everything_that_waits_for_a_slow_file_takes_no_more_memory_than_max_queue_bytes",
            "traces/recorder/test_write_errors.py::test_a_span_that_cannot_be_written_within_max_queue_bytes_is_dropped_alone",
            "traces/recorder/test_write_errors.py::test_traces_are_not_dropped_so_that_every_remaining_span_has_its_metadata",
        ),
    },
    ("docs/guides/maintain-traces.md", "What happens during a prune", "When"): {
        "other processes write": (
            "traces/store/test_prune_steps.py::test_a_writer_comes_in_between_any_two_steps",
            "traces/store/test_prune_steps.py::test_a_writer_that_waited_for_a_slow_step_finds_the_next_pause",
            "traces/store/test_prune.py::test_others_can_read_and_write_during_pruning",
        ),
        "the prune is interrupted or killed": (
            "traces/store/test_prune_steps.py::test_after_a_kill_the_file_is_sound_and_the_next_prune_finishes",
            "traces/store/test_prune_steps.py::test_interrupted_within_a_trace_the_same_age_deletes_the_rest",
        ),
        "a deleted run was repeated by a [replay experiment](replay.md)": (
            "lab/replay/test_cohort_experiment.py::test_pruned_traces_take_their_results_along",
            "lab/replay/test_cohort_experiment.py::test_an_experiment_goes_with_its_last_result_and_takes_no_other_along",
        ),
        "the disk is nearly full": (
            "traces/store/test_prune_steps.py::test_a_prune_without_space_for_the_log_names_the_bytes_and_leaves_the_file_as_it_is",
            "traces/store/test_prune_steps.py::test_a_transaction_for_which_the_disk_has_no_space_is_repeated_with_fewer_rows",
            "traces/store/test_prune_steps.py::test_a_prune_uses_the_log_again_so_the_disk_need_not_hold_all_changes",
        ),
        "kantan-llm's tracer or an earlier version created the file": (
            "traces/store/test_prune_steps.py::test_a_file_of_kantan_llm_keeps_its_size_until_a_vacuum_is_requested",
            "traces/store/test_prune_steps.py::test_in_a_file_that_does_not_shrink_the_size_is_that_of_the_pages_in_use",
        ),
        "`vacuum=True` or `--vacuum` is given": (
            "traces/store/test_prune_steps.py::test_a_file_of_kantan_llm_keeps_its_size_until_a_vacuum_is_requested",
            "cli/test_traces_prune.py::test_a_file_that_does_not_shrink_says_so_and_vacuum_shrinks_it",
        ),
    },
    ("docs/guides/maintain-traces.md", "What happens with the index", "When"): {
        "a run was just recorded": (
            "traces/recorder/test_search_index_kept.py::test_a_few_traces_are_not_indexed_and_found",
            "traces/recorder/test_search_index_kept.py::test_a_new_file_has_an_index_that_is_filled",
            "traces/recorder/test_search_index_kept.py::test_a_busy_writer_indexes_later",
        ),
        "another program changes the file": (
            "traces/store/test_search_index.py::test_whoever_changes_the_file_the_index_misses_nothing",
            "traces/recorder/test_search_index_kept.py::test_what_kantan_llms_tracer_adds_is_found_and_indexed_by_the_next_recorder",
        ),
        "building is interrupted": (
            "traces/store/test_search_index.py::test_a_build_that_is_interrupted_goes_on_where_it_stopped",
        ),
        "runs are pruned": (
            "traces/store/test_search_index.py::test_pruning_drops_the_parts_whose_traces_are_gone",
        ),
        "a run is very long": (
            "traces/store/test_search_index.py::test_a_trace_that_is_too_long_is_read_by_every_search",
        ),
        "SQLite is older than 3.34 or lacks FTS5": (
            "traces/store/test_search_index.py::test_without_fts5_a_search_reads_all_texts_and_a_build_says_what_is_missing",
            "traces/store/test_search_index.py::test_a_sqlite_without_the_tokenizer_of_the_index_reads_all_texts",
        ),
        "the index is damaged": (
            "traces/store/test_search_index.py::test_a_damaged_index_is_not_used_and_can_be_made_anew",
            "traces/recorder/test_search_index_kept.py::test_a_damaged_index_does_not_stop_the_recorder",
        ),
    },
    ("docs/guides/search-traces.md", "When a record is incomplete", "When"): {
        "kantan-llm's tracer, or a version without records, wrote the file": (
            "traces/store/test_run_records.py::test_a_file_of_a_version_without_records_is_read_and_taken_over",
            "traces/store/test_run_records.py::test_a_file_of_the_tracer_of_kantan_llm_is_read",
        ),
        "`record_requests=False`": (
            "traces/store/test_run_records.py::test_a_run_recorded_without_its_requests_says_so",
        ),
        "the run has `trace_include_sensitive_data=False`": (
            "cli/test_traces_record.py::test_a_run_without_a_record_says_so",
        ),
        "the process is killed before the record is written": (
            "traces/store/test_run_records.py::test_a_run_that_has_not_ended_has_no_record",
        ),
        "`redact` returned None for a part, or raised": (
            "traces/store/test_run_records.py::test_a_record_from_which_redact_left_out_parts_says_so",
        ),
        "a later version of this library wrote the record": (
            "traces/store/test_run_records.py::test_a_record_of_a_later_format_says_so",
        ),
        "the record is damaged": (
            "traces/store/test_run_records.py::test_of_a_damaged_record_nothing_else_is_lost",
            "traces/store/test_run_records.py::test_the_other_runs_of_a_trace_are_read_beside_a_damaged_one",
        ),
    },
    ("docs/guides/search-traces.md", "Combine filters", "In Python"): {
        '`keywords=["a", "b"]`': (
            "traces/store/test_traces.py::test_keywords_are_found_ignoring_case_in_any_script",
        ),
        **dict.fromkeys(
            (
                "`agent`, `prompt`, `version`",
                '`tool="get_weather"`',
                "`has_failed=True`",
                "`has_error=True`",
                "`has_denial=True`",
                "`rubric_below=0.5`",
                "`started_from`, `started_to`",
                "`limit=20`",
            ),
            ("traces/store/test_traces.py::test_runs_are_found_by_every_filter",),
        ),
        "`before=trace_id`": ("traces/store/test_paging.py::test_pages_are_the_whole_result",),
        '`metadata={"tenant": "acme"}`': (
            "traces/store/test_traces.py::test_runs_inside_an_open_trace_are_found_by_their_own_metadata",
        ),
        "`has_cut_answer=True`": (
            "models/test_finish_reasons.py::test_an_answer_that_was_cut_off_says_so_everywhere",
        ),
    },
    ("docs/reference/migrating-from-0.1.md", "Mistakes in tool rules are errors", "Rules"): {
        '`{"allow": "read"}`': ("tool_rules/test_rules.py::test_a_mistake_is_an_error_that_names_it",),
        '`{"deny": ("shell",)}`': ("tool_rules/test_rules.py::test_a_tuple_is_a_list_of_names",),
        '`{"params": {"search": {"query": {"maxlength": 9}}}}`': (
            "tool_rules/test_rules.py::test_a_mistake_is_an_error_that_names_it",
        ),
        "a `pattern` with look-around or back references": (
            "tool_rules/test_parameters.py::test_a_pattern_that_cannot_be_checked_in_linear_time_is_refused",
        ),
    },
    ("docs/reference/migrating-from-0.1.md", "Problems of 0.1 that are solved", "0.1"): {
        "`run` inside a running event loop loses the traces of kantan-llm's SQLite tracer": (
            "traces/test_sqlite.py::test_an_async_run_and_a_sync_run_inside_the_same_loop_are_both_recorded",
        ),
        "keyword search finds no text answers of the Responses API": (
            "traces/test_spans.py::test_spec_5_3_a_text_run_is_found_by_a_word_of_its_input_or_output",
        ),
        "the latest trace is not the first result": (
            "traces/test_spans.py::test_the_newest_trace_comes_first",
        ),
        "an SQLite tracer commits every span on the event loop": (
            "traces/recorder/test_recorder.py::test_nothing_blocks_the_event_loop",
        ),
        "hosted tools, MCP tools and tools of SDK handoff targets are not checked": (
            "tools/test_guard.py::test_no_kind_of_tool_is_shown_or_run_when_it_is_denied",
            "tools/test_reach.py::test_tools_of_a_handoff_target_obey_the_rules_of_the_run",
        ),
        "wrapping a tool drops `needs_approval`, `timeout` and `defer_loading`": (
            "agent/bridge/test_sdk_agent.py::test_a_guarded_tool_keeps_the_sdks_attributes",
        ),
        "handoffs in a cycle raise `RecursionError`": (
            "agent/bridge/test_handoffs.py::test_cycles_work_and_the_starting_agent_is_rendered_again",
        ),
        "a tool provider that cannot be imported breaks every `Agent`": (
            "tools/test_providers.py::test_a_provider_that_fails_to_import_is_logged_and_the_others_load",
        ),
        "the input is a `str`; no sessions, no options for the runner": (
            "agent/test_agent.py::test_runner_options_reach_the_runner",
            "agent/test_agent.py::test_a_session_works_as_in_the_sdk",
        ),
    },
}
