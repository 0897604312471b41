"""Shared TLS settings: reading the certificates takes 20 ms and 1 MiB."""

from __future__ import annotations

import os
import ssl
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any


def tls_settings(http_library: str = "httpx") -> ssl.SSLContext:
    """Return the shared TLS settings of ``"httpx"`` or ``"httpx2"``.

    They follow ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, even later changes. The first call blocks to read the
    certificates.
    """
    return _settings(http_library, *trusted_certificates())


def trusted_certificates() -> tuple[Any, ...]:
    """Return the environment's certificate settings."""
    file, directory = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    changed = None
    if file:
        with suppress(OSError):  # the library reports it
            changed = Path(file).stat().st_mtime_ns
    return file, directory, changed


@lru_cache(maxsize=4)
def _settings(http_library: str, *_trusted: object) -> ssl.SSLContext:
    settings: ssl.SSLContext = import_module(http_library).create_ssl_context()
    return settings


@lru_cache(maxsize=1)
def no_tls() -> ssl.SSLContext:
    """Return TLS settings without certificates."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
