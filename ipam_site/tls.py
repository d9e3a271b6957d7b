"""The web server's own TLS: `up --tls-cert --tls-key`, or gunicorn with WEB_TLS_CERT and WEB_TLS_KEY.

Certificates are renewed by other programs, in place: a file that changed is read at the next
connection, and a pair that does not fit (written by half) leaves the one before in use.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import pathlib
import ssl
import threading

from ipam_site import env

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Files:
    """PEM files: the certificate with its chain, its key, and whose client certificates are taken."""

    certificate: pathlib.Path
    key: pathlib.Path
    client_ca: pathlib.Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What tells a web server of them; read by `from_environment`."""
        return {
            "WEB_TLS_CERT": str(self.certificate),
            "WEB_TLS_KEY": str(self.key),
            "WEB_TLS_CLIENT_CA": str(self.client_ca or ""),
        }

    def context(self) -> ssl.SSLContext:
        """Raises OSError (also ssl.SSLError) for files that cannot be read or do not fit."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key, password=_no_password)
        if self.client_ca:
            # Optional: browsers and API clients have none, and need none.
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(self.client_ca)
        return context

    def stamp(self) -> tuple[object, ...]:
        """Another one when a file was replaced."""
        paths = [path for path in (self.certificate, self.key, self.client_ca) if path]
        stats = [os.stat(path) for path in paths]
        return tuple((each.st_ino, each.st_mtime_ns, each.st_size) for each in stats)


def from_environment() -> Files | None:
    """The files that the environment names; ValueError for half of a pair."""
    names = [env.text(f"WEB_TLS_{part}") for part in ("CERT", "KEY", "CLIENT_CA")]
    return of(*names)


def of(certificate: str, key: str, client_ca: str) -> Files | None:
    """Files by their names, "" for none; ValueError for half of a pair."""
    if not certificate and not key and not client_ca:
        return None
    if not certificate or not key:
        raise ValueError("TLS needs both a certificate and its key")
    return Files(
        pathlib.Path(certificate).absolute(),
        pathlib.Path(key).absolute(),
        pathlib.Path(client_ca).absolute() if client_ca else None,
    )


class Contexts:
    """The context of the files as they are now."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._stamp: object = None
        self._context: ssl.SSLContext | None = None

    def current(self) -> ssl.SSLContext:
        with self._lock:
            try:
                stamp = self._files.stamp()
                if self._context is None or stamp != self._stamp:
                    self._context, self._stamp = self._files.context(), stamp
            except OSError as error:
                if self._context is None:
                    raise
                log.warning("the new TLS certificate cannot be used: %s", error)
            return self._context


def _no_password() -> str:
    """OpenSSL would ask for it at the terminal."""
    raise ssl.SSLError("the key is encrypted")
