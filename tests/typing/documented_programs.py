"""Type-check what users write: ``python -m tests.typing.documented_programs``.

The Python blocks of each page of README and docs are one module. pyright checks these modules with its
default settings. mypy checks them, and the programs in this folder, with ``strict``. Nothing of this
project's own configuration applies, so both see the library as they see it in a user's project.

pyright in strict mode is a step of its own: ``pyright`` alone, configured in pyproject.toml.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.docs.pages import PAGES, ROOT, Page

_PACKAGE = "documented"

_MYPY = f"""
[mypy]
strict = true
explicit_package_bases = true
mypy_path = {ROOT}
# Errors in the library itself are found by the step that checks it, with its own settings.
follow_imports = silent

# Examples leave out annotations where prose is clearer without them; so do many programs.
[mypy-{_PACKAGE}.*]
disallow_untyped_defs = false
disallow_incomplete_defs = false
disallow_untyped_calls = false
disallow_untyped_decorators = false
disallow_any_generics = false
warn_return_any = false
# To a reader each block of a page is a program of its own, which may use a name again.
allow_redefinition = true
# kantan-llm, which some pages import, is untyped.
disable_error_code = no-redef, var-annotated, import-untyped
"""

_PYRIGHT = {
    "include": [_PACKAGE],
    "extraPaths": [str(ROOT)],
    # As for mypy: the blocks of a page may use a name again.
    "reportRedeclaration": False,
}


def main() -> int:
    """Check the pages and the programs in this folder; return 0 if no checker has found a mistake."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        package = workspace / _PACKAGE
        package.mkdir()
        written_pages(package)
        (workspace / "mypy.ini").write_text(_MYPY, encoding="utf-8")
        (workspace / "pyrightconfig.json").write_text(json.dumps(_PYRIGHT), encoding="utf-8")
        programs = workspace / "programs"
        programs.mkdir()
        for program in Path(__file__).parent.glob("public_*.py"):
            shutil.copy(program, programs)
        checks = (
            ("pyright", "--pythonpath", sys.executable, "--project", "pyrightconfig.json"),
            (sys.executable, "-m", "mypy", "--config-file", "mypy.ini", _PACKAGE, "programs"),
        )
        return max([subprocess.run(check, cwd=workspace, check=False).returncode for check in checks])


def written_pages(folder: Path) -> list[Page]:
    """Write each page that has Python blocks into ``folder``, as a module; return these pages."""
    pages = [page for page in map(Page, PAGES) if page.blocks("python")]
    for page in pages:
        (folder / f"{module_of(page)}.py").write_text(page.script, encoding="utf-8")
    return pages


def module_of(page: Page) -> str:
    """Return the name of a page as a module: ``docs/guides/tool-rules.md`` is ``docs_guides_tool_rules``."""
    return re.sub(r"\W", "_", page.name.removesuffix(".md")).lower()


if __name__ == "__main__":
    sys.exit(main())
