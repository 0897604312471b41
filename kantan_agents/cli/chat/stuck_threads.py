"""Ends the program although a tool still works in a thread, which nothing can end."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

_PATIENCE: Final = 0.5


class _Unwaited(ThreadPoolExecutor):
    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        del wait  # asyncio would wait for minutes
        super().shutdown(wait=False, cancel_futures=cancel_futures)


def wait_for_no_thread() -> None:
    """Let the running event loop end without waiting for the threads that it has begun."""
    asyncio.get_running_loop().set_default_executor(_Unwaited(thread_name_prefix="chat"))


def end_threads(code: int) -> None:
    """Leave the process with an exit code if a thread goes on, for which Python would wait."""
    deadline = time.monotonic() + _PATIENCE
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
