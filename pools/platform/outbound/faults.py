"""What a cluster can answer instead of what was asked, one class for each thing a caller acts on.

None of them says that an object is gone except ObjectAbsent: unknown is not absent. A message never
holds a credential; what a server said is shortened and made printable.
"""

from __future__ import annotations

from dataclasses import dataclass

from pools.core import errors


@dataclass(frozen=True)
class Cause:
    """One of the `details.causes` of a Kubernetes Status: what is wrong with which field."""

    field: str
    message: str
    reason: str = ""


class ClusterFault(errors.IpamError):
    """The cluster did not do what was asked."""

    code = "cluster_fault"
    reason = "ClusterFault"
    permanent = False

    def __init__(
        self, message: str = "", *, status: int = 0, causes: tuple[Cause, ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status  # of HTTP; 0 when there was no answer
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
    """The API server's certificate is not trusted, or it refuses ours."""

    code = "cluster_tls"
    reason = "TLSRefused"


class MalformedResponse(ClusterFault):
    """The answer is not one of a Kubernetes API server."""

    code = "cluster_garbled"
    reason = "Garbled"


class TooBusy(ClusterFault):
    """The API server asks to come back later."""

    code = "cluster_busy"
    reason = "TooManyRequests"

    def __init__(self, message: str = "", *, status: int = 0, retry_after: float = 0) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after  # seconds; 0 when the server did not say


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


class KindAbsent(ClusterFault):
    """The API server does not serve this kind: its CRD is missing."""

    code = "crd_missing"
    reason = "CRDMissing"


class NotFound(ClusterFault):
    """There is no object of that name."""

    code = "object_absent"
    reason = "NotFound"


class Gone(ClusterFault):
    """The resource version is too old; list again."""

    code = "resource_version_gone"
    reason = "Expired"


class StaleVersion(ClusterFault):
    """The object changed since it was read, or it is another one of the same name."""

    code = "stale_version"
    reason = "Conflict"


class AlreadyExists(ClusterFault):
    """An object of that name exists in the cluster."""

    code = "object_exists"
    reason = "AlreadyExists"


class FieldConflict(ClusterFault):
    """Another manager owns fields that would be changed."""

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
