"""Translation of errors of urllib3, ssl and sockets into faults: why there was no complete answer."""

from __future__ import annotations

import http.client
import re
import ssl

from urllib3 import exceptions

from pools.platform.outbound import faults

_LONGEST = 500  # characters of a server's message that are kept


# Errors of urllib3, ssl and sockets if there is no complete answer.
NO_ANSWER = (exceptions.HTTPError, http.client.HTTPException, OSError)


_WEBHOOK_KEY = re.compile(r"\bcadw_[\w-]{16,}")


def printable_message(text: object) -> str:
    """Return a server's message, shortened and printable; "" if it is no string.

    The key of a webhook is removed: an API server quotes the URL of a webhook that it could not call.
    """
    if not isinstance(text, str):
        return ""
    text = _WEBHOOK_KEY.sub("cadw_…", text)
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
