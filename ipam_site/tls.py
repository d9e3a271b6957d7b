"""The web server's own TLS: `up --tls-cert --tls-key`, or gunicorn with WEB_TLS_CERT and WEB_TLS_KEY.

Other programs renew certificates in place. A changed file is read at the next handshake. While
certificate and key do not match, because only one is written, the previous pair stays in use.
"""

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
    """PEM files: the certificate with its chain, its key, and the CA of client certificates."""

    certificate: pathlib.Path
    key: pathlib.Path
    client_ca: pathlib.Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of a web server with these files; see `from_environment`."""
        return {
            "WEB_TLS_CERT": str(self.certificate),
            "WEB_TLS_KEY": str(self.key),
            "WEB_TLS_CLIENT_CA": str(self.client_ca or ""),
        }

    def context(self) -> ssl.SSLContext:
        """Return an SSL context.

        Raises OSError (also ssl.SSLError) for files that cannot be read or do not match.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key, password=_no_password)
        if self.client_ca:
            # Optional: browsers and API clients need no certificate.
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(self.client_ca)
        return context

    def stamp(self) -> tuple[object, ...]:
        """Return a value that changes when a file is replaced."""
        paths = [path for path in (self.certificate, self.key, self.client_ca) if path]
        stats = [os.stat(path) for path in paths]
        return tuple((stat.st_ino, stat.st_mtime_ns, stat.st_size) for stat in stats)


def from_environment() -> Files | None:
    """Return the files that the environment names. Raises ValueError for half of a pair."""
    paths = [env.text(f"WEB_TLS_{part}") for part in ("CERT", "KEY", "CLIENT_CA")]
    return from_paths(*paths)


def from_paths(certificate: str, key: str, client_ca: str) -> Files | None:
    """Return the files of these paths, "" for no file. Raises ValueError for half of a pair."""
    if not certificate and not key and not client_ca:
        return None
    if not certificate or not key:
        raise ValueError("TLS requires both a certificate and its key")
    return Files(
        pathlib.Path(certificate).absolute(),
        pathlib.Path(key).absolute(),
        pathlib.Path(client_ca).absolute() if client_ca else None,
    )


class Contexts:
    """Keeps an SSL context of the present files."""

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
                    self._context.sni_callback = self._use_current
            except OSError as error:
                if self._context is None:
                    raise
                log.warning("new TLS certificate not usable, keeping the previous one: %s", error)
            return self._context

    def _use_current(
        self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str, _context: ssl.SSLContext
    ) -> None:
        """Switch a connection to the present files: the event loop keeps the context that it started with."""
        connection.context = self.current()


def _no_password() -> str:
    """Raise an error: by default, OpenSSL would ask for a password at the terminal."""
    raise ssl.SSLError("the key is encrypted")
