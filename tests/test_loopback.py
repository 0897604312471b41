"""The suite's own guard: no test reaches another machine, by whichever call."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest

ELSEWHERE = ("192.0.2.1", 80)  # of a network that is kept for documentation


@pytest.mark.parametrize("name", ["connect", "connect_ex"])
def test_a_test_that_reaches_for_another_machine_fails(name: str) -> None:
    with closing(socket.socket()) as opened, pytest.raises(AssertionError, match="a test tried to reach"):
        opened.settimeout(1)
        getattr(opened, name)(ELSEWHERE)


def test_this_machine_is_reached() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server, closing(socket.socket()) as opened:
        assert opened.connect_ex(server.getsockname()) == 0
