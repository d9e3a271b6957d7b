"""What errors of urllib3, ssl and sockets mean: that there was no complete answer, and why."""

from __future__ import annotations

import http.client
import re
import ssl

from urllib3 import exceptions

from pools.platform.outbound import faults

_SAID = 500  # characters of a server's message that are kept


# What urllib3, ssl and the socket raise when there is no complete answer.
NO_ANSWER = (exceptions.HTTPError, http.client.HTTPException, OSError)


_WEBHOOK_KEY = re.compile(r"\bcadw_[\w-]{16,}")


def said(text: object) -> str:
    """What a server said, short and printable.

    An API server quotes the address of a webhook that it could not call, and with it our key.
    """
    if not isinstance(text, str):
        return ""
    text = _WEBHOOK_KEY.sub("cadw_…", text)
    return "".join(char if char.isprintable() else " " for char in text[:_SAID]).strip()


def no_answer(error: BaseException) -> faults.ClusterFault:
    """What it means that there was no (complete) answer: an error of urllib3, ssl or the socket."""
    if isinstance(error, faults.ClusterFault):
        return error
    tls = _tls_error(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        return faults.TLSRefused(f"the server's certificate is refused: {said(tls.verify_message)}")
    if tls is not None and not isinstance(tls, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return faults.TLSRefused(f"no TLS connection: {said(tls.reason) or 'it was refused'}")
    if isinstance(error, exceptions.ConnectTimeoutError):
        return faults.Unreachable("no connection in time")
    if isinstance(error, TimeoutError | exceptions.TimeoutError):
        return faults.Unreachable("no answer in time")
    if isinstance(error, exceptions.NewConnectionError):
        return faults.Unreachable("the connection was refused, or there is no way to the server")
    return faults.Unreachable("the connection was cut")


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """The error of ssl inside those of urllib3 and of the client."""
    for _ in range(8):
        if error is None or isinstance(error, ssl.SSLError):
            return error
        inner = next((each for each in error.args if isinstance(each, BaseException)), None)
        error = inner or error.__cause__ or error.__context__
    return None
