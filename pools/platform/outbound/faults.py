"""Faults of a cluster, one class for each case that callers handle differently.

Only NotFound says that an object does not exist: rule `unknown-is-not-absent`. A message never contains a
credential; a server's message is shortened and made printable.
"""

from __future__ import annotations

from dataclasses import dataclass

from pools.core import errors


@dataclass(frozen=True)
class Cause:
    """An entry of `details.causes` of a Kubernetes Status: what is wrong with a field."""

    field: str
    message: str
    reason: str = ""


class ClusterFault(errors.IpamError):
    """The request to the cluster failed."""

    code = "cluster_fault"
    reason = "ClusterFault"
    permanent = False

    def __init__(
        self, message: str = "", *, status: int = 0, causes: tuple[Cause, ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status  # HTTP status; 0 if there was no answer
        self.causes = causes


class Unreachable(ClusterFault):
    """The API server does not answer."""

    code = "cluster_unreachable"
    reason = "Unreachable"


class AddressNotAllowed(ClusterFault):
    """The API server's name leads to an address that must not be reached."""

    code = "url_not_allowed"
    reason = "AddressNotAllowed"
    permanent = True


class TLSRefused(ClusterFault):
    """The API server's certificate is not trusted, or the API server refuses ours."""

    code = "cluster_tls"
    reason = "TLSRefused"


class MalformedResponse(ClusterFault):
    """The response is not one of a Kubernetes API server."""

    code = "cluster_garbled"
    reason = "Garbled"


class TooBusy(ClusterFault):
    """The API server is busy and asks to retry later."""

    code = "cluster_busy"
    reason = "TooManyRequests"

    def __init__(self, message: str = "", *, status: int = 0, retry_after: float = 0) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after  # seconds; 0 if the server did not say


class ServerFault(ClusterFault):
    """The API server failed."""

    code = "cluster_server_error"
    reason = "ServerError"


class Unauthorized(ClusterFault):
    """The API server does not accept the credentials."""

    code = "cluster_unauthorized"
    reason = "Unauthorized"


class Forbidden(ClusterFault):
    """The credentials lack a right."""

    code = "cluster_forbidden"
    reason = "Forbidden"


class KindNotServed(ClusterFault):
    """The API server does not serve this kind: its CRD is missing."""

    code = "crd_missing"
    reason = "CRDMissing"


class NotFound(ClusterFault):
    """No object with this name exists."""

    code = "object_absent"
    reason = "NotFound"


class Gone(ClusterFault):
    """The resource version is too old; list the objects again."""

    code = "resource_version_gone"
    reason = "Expired"


class StaleVersion(ClusterFault):
    """The object changed since it was read, or another object has its name."""

    code = "stale_version"
    reason = "Conflict"


class AlreadyExists(ClusterFault):
    """An object with this name exists in the cluster."""

    code = "object_exists"
    reason = "AlreadyExists"


class FieldConflict(ClusterFault):
    """Another field manager owns fields of the change."""

    code = "field_conflict"
    reason = "FieldManagerConflict"
    permanent = True


class Rejected(ClusterFault):
    """The API server does not accept the object."""

    code = "object_rejected"
    reason = "Invalid"
    permanent = True


class SecretUnreadable(ClusterFault):
    """The stored credentials cannot be opened."""

    code = "secret_unreadable"
    reason = "SecretUnreadable"
    permanent = True


class KeyRingInvalid(SecretUnreadable):
    """The key ring is missing or not valid."""

    code = "key_ring_invalid"
    reason = "KeyRingInvalid"


class KeyMissing(SecretUnreadable):
    """The key that sealed the credentials is not in the key ring."""

    code = "key_missing"
    reason = "KeyMissing"


class SecretForeign(SecretUnreadable):
    """The stored credentials belong to another object."""

    code = "secret_foreign"
    reason = "SecretForeign"
