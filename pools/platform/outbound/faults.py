"""Faults of a cluster, one class for each case that callers handle differently, and which errors of urllib3, ssl and
sockets become which.

Only NotFound says that an object does not exist: rule `unknown-is-not-absent`. A message never contains a
credential; a server's message is shortened and made printable.
"""

import http.client
import ssl
from collections.abc import Iterable
from dataclasses import dataclass

from urllib3 import exceptions

from pools.core import errors, redaction


@dataclass(frozen=True)
class Cause:
    """An entry of `details.causes` of a Kubernetes Status: what is wrong with a field."""

    field: str
    message: str
    reason: str = ""


class ClusterFault(errors.IpamError):
    """The request to the cluster failed."""

    code = "cluster_fault"

    def __init__(
        self, message: str = "", *, status: int = 0, causes: tuple[Cause, ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status  # HTTP status; 0 if there was no answer
        self.causes = causes


class Unreachable(ClusterFault):
    """The API server does not answer."""

    code = "cluster_unreachable"


class AddressNotAllowed(ClusterFault):
    """The API server's name leads to an address that must not be reached."""

    code = "url_not_allowed"


class TLSRefused(ClusterFault):
    """The API server's certificate is not trusted, or the API server refuses ours."""

    code = "cluster_tls"


class MalformedResponse(ClusterFault):
    """The response is not one of a Kubernetes API server."""

    code = "cluster_garbled"


class TooBusy(ClusterFault):
    """The API server is busy and asks to retry later."""

    code = "cluster_busy"

    def __init__(self, message: str = "", *, status: int = 0, retry_after: float = 0) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after  # seconds; 0 if the server did not say


class ServerFault(ClusterFault):
    """The API server failed."""

    code = "cluster_server_error"


class Unauthorized(ClusterFault):
    """The API server does not accept the credentials."""

    code = "cluster_unauthorized"


class Forbidden(ClusterFault):
    """The credentials lack a right."""

    code = "cluster_forbidden"


class KindNotServed(ClusterFault):
    """The API server does not serve this kind: its CRD is missing."""

    code = "crd_missing"


class NotFound(ClusterFault):
    """No object with this name exists."""

    code = "object_absent"


class Gone(ClusterFault):
    """The resource version is too old; list the objects again."""

    code = "resource_version_gone"


class StaleVersion(ClusterFault):
    """The object changed since it was read, or another object has its name."""

    code = "stale_version"


class AlreadyExists(ClusterFault):
    """An object with this name exists in the cluster."""

    code = "object_exists"


class FieldConflict(ClusterFault):
    """Another field manager owns fields of the change."""

    code = "field_conflict"


class Rejected(ClusterFault):
    """The API server does not accept the object."""

    code = "object_rejected"


class SecretUnreadable(ClusterFault):
    """The stored credentials cannot be opened."""

    code = "secret_unreadable"


class KeyRingInvalid(SecretUnreadable):
    """The key ring is missing or not valid."""

    code = "key_ring_invalid"


class KeyMissing(SecretUnreadable):
    """The key that sealed the credentials is not in the key ring."""

    code = "key_missing"


class SecretForeign(SecretUnreadable):
    """The stored credentials belong to another object."""

    code = "secret_foreign"


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


def fault_of(error: BaseException) -> ClusterFault:
    """Return the fault that an error of urllib3, ssl or a socket means."""
    if isinstance(error, ClusterFault):
        return error
    tls = _tls_error(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        message = printable_message(tls.verify_message)
        return TLSRefused(f"the server's certificate is refused: {message}")
    if tls is not None and not isinstance(tls, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        reason = printable_message(tls.reason) or "it was refused"
        return TLSRefused(f"no TLS connection: {reason}")
    if isinstance(error, exceptions.ConnectTimeoutError):
        return Unreachable("no connection in time")
    if isinstance(error, TimeoutError | exceptions.TimeoutError):
        return Unreachable("no answer in time")
    if isinstance(error, exceptions.NewConnectionError):
        return Unreachable("the connection was refused, or there is no way to the server")
    return Unreachable("the connection was cut")


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
