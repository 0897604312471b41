"""A run is killed at each of its writes, and goes on in another process."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kantan_agents.testing import OfflineServer
from tests.durable.conftest import default_engine
from tests.durable.seller import ANSWERS, EFFECTS, Seller
from tests.programs import Preloaded

_SHOP = str(Path(__file__).with_name("shop.py"))
_WRITES = 1 + len(ANSWERS) + 2 * (len(EFFECTS) + 1)  # the beginning, answers, tools and the delegation


def test_a_run_that_is_killed_at_any_write_ends_as_if_it_had_not_been(
    preloaded: Preloaded, tmp_path: Path, each_engine: str
) -> None:
    seller, log = Seller(), tmp_path / "log"
    database, traces = f"sqlite:///{tmp_path / 'runs.sqlite3'}", tmp_path / "traces.sqlite3"
    kills = [f"{when} {number}" for number in range(1, _WRITES + 1) for when in ("before", "after")]
    if each_engine == "temporal":
        kills = kills[::6]  # what is stored at a write does not depend on the engine
    with OfflineServer(seller) as server:
        environ = {**os.environ, **server.environment(), "TRACES": str(traces), "ENGINE": default_engine()}

        def killed(kill: str) -> None:
            program = preloaded.run([_SHOP, database, str(log), kill.replace(" ", ""), kill], env=environ)
            assert program.returncode == -9, (kill, program.stdout, program.stderr)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(killed, kills))
        before = Counter(log.read_text().splitlines())
        left = preloaded.run([_SHOP, database, str(log)], env=environ)
    assert left.returncode == 0, left.stderr
    lines = left.stdout.splitlines()
    done = Counter(log.read_text().splitlines())
    assert len(lines) == len(kills)
    for kill in kills:
        case = kill.replace(" ", "")
        report = {"total": 3, "note": case}
        assert [line.split(" ", 2)[2] for line in lines if line.split()[1] == case] == [f"{report} {report}"]
        for effect, step in EFFECTS.items():
            # A call that had ended before the kill is not made again. One that had not may be.
            had_ended = before[f"{case} FINISHED {step}"]
            assert done[f"{case} {effect}"] in ((1,) if had_ended else (1, 2)), (kill, effect)
        for answer, step in ANSWERS.items():
            had_ended = before[f"{case} FINISHED {step}"]
            assert seller.asked[f"{case} {answer}"] in ((1,) if had_ended else (1, 2)), (kill, answer)
