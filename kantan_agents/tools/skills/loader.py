"""The skills and commands of a project and its user.

Links are not followed: everything that the model reads of a skill must be in its folder.
"""

from __future__ import annotations

from kantan_agents.errors import (
    CommandFileError,
    InvalidSkillError,
    KantanAgentsError,
    SkillFileError,
    SkillNotFoundError,
    UnknownCommandError,
)
from kantan_agents.subagent_files.loading.catalog import FileCatalog
from kantan_agents.subagent_files.loading.loader import FileKind, FileLoader
from kantan_agents.subagent_files.loading.scan import Chosen, Entries, Search, is_directory, is_markdown
from kantan_agents.tools.skills.command_file import CommandFile
from kantan_agents.tools.skills.confined import open_file
from kantan_agents.tools.skills.skill import SKILL_FILE, Skill


def _skill_files(entries: Entries) -> Chosen:
    found = [(entry, False) for entry in entries if entry.name.lower() == SKILL_FILE.lower()]
    # Everything below a skill belongs to it. Other directories group skills.
    return found[:1] or [(entry, True) for entry in entries if is_directory(entry)]


def _command_files(entries: Entries) -> Chosen:
    yield from ((entry, False) for entry in entries if is_markdown(entry))
    yield from ((entry, True) for entry in entries if is_directory(entry))


class SkillCatalog(FileCatalog[Skill]):
    """An immutable snapshot of the loaded skills, sorted by name.

    Attributes:
        problems: Errors and warnings of all files, by path and line.
        shadowed: Skills that are not used because another one with the same name has priority.
    """

    def _missing(self, name: str) -> KantanAgentsError:
        return SkillNotFoundError(name=name, available=self.names())


class CommandCatalog(FileCatalog[CommandFile]):
    """An immutable snapshot of the loaded commands, sorted by name.

    Attributes:
        problems: Errors and warnings of all files, by path and line.
        shadowed: Commands that are not used because another one with the same name has priority.
    """

    def _missing(self, name: str) -> KantanAgentsError:
        return UnknownCommandError(name=name, nearest=(), prefix="/")


class SkillLoader(FileLoader[Skill, SkillCatalog]):
    """Loads skills from their folders, and reads a ``SKILL.md`` again only after it has changed.

    A skill is a folder with a ``SKILL.md``, in one of the directories or in a folder that groups skills. If
    two skills have the same name, the directory with the higher priority wins. Links below the directories
    are not followed. Safe to use from any number of tasks and threads.

    Args:
        directories: A directory, or several in order of priority, which need not exist. By default
            ``.kode/skills`` and ``.claude/skills`` of the project and its user, as for `AgentLoader`.
        cwd: The working directory to start from; by default the process's.
        home: The home directory with the user's skills; by default the process's.
        builtin: Skills made in code, used if no file has their name.
        cache_size: Number of parsed files to cache; by default those that the last load found.

    Raises:
        InvalidOptionError: E75, an argument has an invalid value, or a path needs a working or home directory
            that does not exist.
    """

    _kind = FileKind(
        folder="skills",
        made=Skill,
        errors=(SkillFileError, InvalidSkillError),
        log="kantan_agents.skills",
        log_line="skills cannot be used",
        values="objects of the class Skill",
        search=Search(_skill_files),
        read=open_file,
    )
    _catalog = SkillCatalog

    async def load_skills(self) -> SkillCatalog:
        """Load all skills.

        Files that cannot be read are listed in the catalog's ``problems``; the others load. Tasks that call
        this during another load share the next one.

        Returns:
            The current skills; the same object as before if nothing has changed.
        """
        return await self._load_async()

    async def get_skill(self, name: str) -> Skill:
        """Return the skill with this name.

        Raises:
            SkillNotFoundError: E189, there is no such skill.
        """
        return (await self.load_skills()).get(name)

    def load_skills_now(self) -> SkillCatalog:
        """Load all skills, like ``load_skills``, without an event loop."""
        return self.load_now()

    def get_skill_now(self, name: str) -> Skill:
        """Return the skill with this name, without an event loop.

        Raises:
            SkillNotFoundError: E189, there is no such skill.
        """
        return self.load_skills_now().get(name)


class CommandLoader(FileLoader[CommandFile, CommandCatalog]):
    """Loads slash commands from Markdown files, and reads a file again only after it has changed.

    A command has the name of its file. Directories are searched recursively; links below them are not
    followed. If two files have the same name, the directory with the higher priority wins. Safe to use from
    any number of tasks and threads.

    Args:
        directories: A directory, or several in order of priority, which need not exist. By default
            ``.kode/commands`` and ``.claude/commands`` of the project and its user.
        cwd: The working directory to start from; by default the process's.
        home: The home directory with the user's commands; by default the process's.
        builtin: Commands made in code, used if no file has their name.
        cache_size: Number of parsed files to cache; by default those that the last load found.

    Raises:
        InvalidOptionError: E75, an argument has an invalid value, or a path needs a working or home directory
            that does not exist.
    """

    _kind = FileKind(
        folder="commands",
        made=CommandFile,
        errors=(CommandFileError,),
        log="kantan_agents.skills",
        log_line="commands cannot be used",
        values="objects of the class CommandFile",
        search=Search(_command_files),
        read=open_file,
    )
    _catalog = CommandCatalog

    async def load_commands(self) -> CommandCatalog:
        """Load all commands. Files that cannot be read are listed in the catalog's ``problems``.

        Returns:
            The current commands; the same object as before if nothing has changed.
        """
        return await self._load_async()

    def load_commands_now(self) -> CommandCatalog:
        """Load all commands, like ``load_commands``, without an event loop."""
        return self.load_now()
