"""What the API server answers instead of an object: Status, with its code, reason and causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.kube.fake.kinds import Kind

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Refused(Exception):  # noqa: N818 - what happened
    """Ends a request with a Status object."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str = "",
        details: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason or REASONS[code]
        self.details = details
        self.metadata = metadata or {}

    def status(self) -> dict[str, Any]:
        """The Status object."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details is not None:
            body["details"] = self.details
        return body


class NoSuchPath(Exception):  # noqa: N818 - what happened
    """A path that nothing serves: 404 as plain text, as for a group that has no definition."""


def about(kind: Kind, name: str, /, **more: Any) -> dict[str, Any]:
    """The details of a Status about one object."""
    return {"name": name, **({"group": kind.group} if kind.group else {}), **more}


def not_found(kind: Kind, name: str) -> Refused:
    return Refused(
        404, f'{kind.resource} "{name}" not found', details=about(kind, name, kind=kind.plural)
    )


def conflict(kind: Kind, name: str, why: str) -> Refused:
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return Refused(409, message, details=about(kind, name, kind=kind.plural))


def already_exists(kind: Kind, name: str) -> Refused:
    return Refused(
        409,
        f'{kind.resource} "{name}" already exists',
        reason="AlreadyExists",
        details=about(kind, name, kind=kind.plural),
    )


def invalid(kind: Kind, name: str, causes: list[dict[str, str]]) -> Refused:
    lines = [f"{cause['field']}: {cause['message']}" for cause in causes]
    listed = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return Refused(
        422,
        f'{qualified} "{name}" is invalid: {listed}',
        details=about(kind, name, kind=kind.kind, causes=causes),
    )


def bad_request(message: str) -> Refused:
    return Refused(400, message)


def expired(message: str, **metadata: Any) -> Refused:
    return Refused(410, message, metadata=metadata)
