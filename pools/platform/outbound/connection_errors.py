"""Translation of errors of urllib3, ssl and sockets into faults: why there was no complete answer."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterable

from urllib3 import exceptions

from pools.core import redaction
from pools.platform.outbound import faults

_LONGEST = 500  # characters of a server's message that are kept
_READ = 8000  # characters that are searched for secrets, so that none is cut off before it is found


# Errors of urllib3, ssl and sockets if there is no complete answer.
NO_ANSWER = (exceptions.HTTPError, http.client.HTTPException, OSError)


def printable_message(text: object, secrets: Iterable[str] = ()) -> str:
    """Return a server's message, shortened, printable and without credentials; "" if it is no string.

    Servers repeat what they were sent: headers in an error, the URL of a webhook with its key. `secrets` are the
    exact ones that this server was sent.
    """
    if not isinstance(text, str):
        return ""
    text = redaction.redact(text[:_READ], secrets)
    return "".join(char if char.isprintable() else " " for char in text[:_LONGEST]).strip()


def fault_of(error: BaseException) -> faults.ClusterFault:
    """Return the fault that an error of urllib3, ssl or a socket means."""
    if isinstance(error, faults.ClusterFault):
        return error
    tls = _tls_error(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        message = printable_message(tls.verify_message)
        return faults.TLSRefused(f"the server's certificate is refused: {message}")
    if tls is not None and not isinstance(tls, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        reason = printable_message(tls.reason) or "it was refused"
        return faults.TLSRefused(f"no TLS connection: {reason}")
    if isinstance(error, exceptions.ConnectTimeoutError):
        return faults.Unreachable("no connection in time")
    if isinstance(error, TimeoutError | exceptions.TimeoutError):
        return faults.Unreachable("no answer in time")
    if isinstance(error, exceptions.NewConnectionError):
        return faults.Unreachable("the connection was refused, or there is no way to the server")
    return faults.Unreachable("the connection was cut")


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """Return the error of ssl that caused an error of urllib3 or of the client."""
    for _ in range(8):
        if error is None or isinstance(error, ssl.SSLError):
            return error
        inner = next(
            (argument for argument in error.args if isinstance(argument, BaseException)), None
        )
        error = inner or error.__cause__ or error.__context__
    return None
