"""Write the recordings that later versions must read: ``python -m tests.lab.replay.keep_recordings``.

It writes those that are missing. One that was released is never written again.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from tests.lab.replay.kinds_of_runs import KINDS
from tests.lab.replay.taping import Tapes

FOLDER = Path(__file__).with_name("recordings")
STREAMED = ("plain", "tools", "handoff", "delegation", "structured_native", "refused")
LARGE = ("retrieval",)


async def keep(tapes: Tapes, path: Path, kind: str, *, streamed: bool) -> None:
    """Record a run of a kind."""
    taped = await tapes.record(KINDS[kind](True), streamed=streamed)
    taped.recording.save(path)


async def main() -> None:
    """Write the missing files."""
    wanted = [(kind, FOLDER / f"{kind}.json", False) for kind in KINDS if kind not in LARGE]
    wanted += [(kind, FOLDER / f"{kind}.streamed.json", True) for kind in STREAMED]
    kept = set(FOLDER.glob("*.json"))
    with tempfile.TemporaryDirectory() as folder:
        tapes = Tapes(Path(folder))
        for kind, path, streamed in wanted:
            if path not in kept:
                await keep(tapes, path, kind, streamed=streamed)
        tapes.recorder.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
