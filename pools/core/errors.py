"""The errors of the register: one class for each case that a caller can handle.

A class has a stable `code` (REST `code`, CSV report, event). The edges map classes to HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VALUE_SHOWN = 64


@dataclass(frozen=True)
class FieldProblem:
    """One problem of one field.

    `field` is the dotted path in the caller's document (`ipv4.cidrs.0.cidr`; "" for the whole
    document). `code` is stable, such as `host_bits_set`. `message` says what would be valid. `value`
    is the invalid value as a string of at most 64 characters.
    """

    field: str
    code: str
    message: str
    value: str = ""

    def under(self, prefix: str) -> FieldProblem:
        """Return the problem with `prefix` before its path."""
        field = f"{prefix}.{self.field}" if self.field else prefix
        return FieldProblem(field, self.code, self.message, self.value)


def display_value(value: object) -> str:
    """Return a value as a short printable string; control and bidi characters are escaped."""
    text = _text(value)
    printable = "".join(
        char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[: VALUE_SHOWN + 1]
    )
    return printable if len(printable) <= VALUE_SHOWN else printable[: VALUE_SHOWN - 1] + "…"


def sentence(message: str) -> str:
    """Return a message with a capital and a full stop; messages of problems are parts of sentences."""
    text = capitalize(message)
    return text if text.endswith((".", "?", "!")) else f"{text}."


def capitalize(text: str) -> str:
    """Capitalize a text unless its first word is a path, an address or a name with its own spelling.

    A name that is a plain word cannot be told from one: messages begin with what it names ("the VM web …").
    """
    first_word = text.split(" ", 1)[0].rstrip(",.;:")
    return text[:1].upper() + text[1:] if first_word.isalpha() else text


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    kind = f"<{type(value).__name__}>"
    if isinstance(value, list | tuple | dict | set | bytes | bytearray):
        return kind  # may be huge, or nested deeper than str() can follow
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - an error report must not fail on what it reports
        return kind


class IpamError(Exception):
    """The request was refused; nothing was changed."""

    code = "ipam_error"
    names_another = ""  # "cluster" or "pool", if the message names another one

    def __init__(self, message: str = "", *, problems: Sequence[FieldProblem] = ()) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.problems = tuple(problems)
        self.extra: Mapping[str, Any] = {}  # further members of its problem document
        super().__init__(self.message)


class InvalidInput(IpamError):
    """The input is not valid."""

    code = "invalid"

    @classmethod
    def for_field(cls, field: str, code: str, message: str, value: object = "") -> InvalidInput:
        """Return an error with one problem; the error has the code of the problem."""
        return cls.all([FieldProblem(field, code, message, display_value(value))])

    @classmethod
    def all(cls, problems: Sequence[FieldProblem]) -> InvalidInput:
        """Return an error with these problems; it has their code if they share one."""
        codes = {problem.code for problem in problems}
        error = cls("; ".join(p.message for p in problems[:3]), problems=problems)
        if len(codes) == 1:
            error.code = codes.pop()
        return error

    def under(self, prefix: str) -> InvalidInput:
        """Return the error with `prefix` before the paths of its problems."""
        return InvalidInput.all([problem.under(prefix) for problem in self.problems])


class InvalidAnnotation(InvalidInput):
    """An annotation of the object is invalid."""


class NotFound(IpamError):
    """There is no such object."""

    code = "not_found"


class NotAllowed(IpamError):
    """You do not have permission for this action."""

    code = "permission_denied"


class TokenScope(NotAllowed):
    """The token is limited and may not be used for this."""

    code = "token_scope"


class Conflict(IpamError):
    """The current state of the register does not permit this."""

    code = "conflict"


class PoolExhausted(Conflict):
    """The pool has no block left."""

    code = "ipam_exhausted"


class AlreadyAllocated(Conflict):
    """The block is held by another holder."""

    code = "already_allocated"


class OnePerHolder(Conflict):
    """A holder has at most one block of each family here."""

    code = "one_per_holder"
    names_another = "pool"


class CoolingDown(Conflict):
    """The block was released recently and is in cooldown."""

    code = "cooling_down"

    def __init__(self, message: str = "", *, retry_after: float = 0) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class ReservedAddress(Conflict):
    """The address is withheld from allocation."""

    code = "reserved_address"


class HolderChanged(Conflict):
    """The block has another holder now."""

    code = "holder_changed"


class StaleSequence(Conflict):
    """A newer report was received before."""

    code = "stale_sequence"


class SequenceReused(Conflict):
    """Another report has this sequence number."""

    code = "sequence_reused"


class NotLeaked(Conflict):
    """The block is not leaked: its holder was not missing from two complete observations."""

    code = "not_leaked"


class ReferencedAgain(Conflict):
    """The block's holder is referenced again."""

    code = "referenced_again"


class CIDRInUse(Conflict):
    """Blocks of the CIDR are held or in cooldown."""

    code = "cidr_in_use"


class PoolInUse(Conflict):
    """Blocks of the pool are held or in cooldown."""

    code = "pool_in_use"


class NetworkInUse(Conflict):
    """An IPPool, claims or workloads use the network."""

    code = "network_in_use"


class QuotaExceeded(Conflict):
    """The namespace would have more addresses than its VM owners may take."""

    code = "quota_exceeded"


class CustomFieldInUse(Conflict):
    """Objects have values of the custom field."""

    code = "custom_field_in_use"


class EnvironmentInUse(Conflict):
    """The environment holds blocks, or requests of it are pending."""

    code = "environment_in_use"


class CIDROverlap(Conflict):
    """The CIDR overlaps another CIDR of the address space."""

    code = "cidr_overlap"
    names_another = "pool"


class NoFreePrefix(Conflict):
    """The network container has no free prefix of this length."""

    code = "no_free_prefix"


class RangesOverlap(Conflict):
    """The reserved range overlaps another of the same CIDR."""

    code = "ranges_overlap"


class ImmutableInUse(Conflict):
    """The field cannot be changed after the pool is created."""

    code = "immutable_in_use"


class AlreadyExists(Conflict):
    """An object with this name exists."""

    code = "already_exists"


class StepNotDue(Conflict):
    """Another step of the migration comes first."""

    code = "step_not_due"


class ObjectChanged(Conflict):
    """The object or the managers of its fields changed since the preview. Preview it again."""

    code = "object_changed"


class ClusterDecides(Conflict):
    """The pool follows its cluster. Change it in the cluster."""

    code = "cluster_decides"


class SameCluster(Conflict):
    """This cluster is registered under another name."""

    code = "same_cluster"
    names_another = "cluster"


class ConnectionPaused(Conflict):
    """The connection is paused."""

    code = "connection_paused"


class ImportState(Conflict):
    """The import is in another state."""

    code = "import_state"


class ImportHasBadRows(Conflict):
    """Rows of the import are in conflict or refused."""

    code = "import_has_bad_rows"


class ImportInUse(Conflict):
    """Objects of the import are in use, or were changed since."""

    code = "import_in_use"


class IdempotencyMismatch(IpamError):
    """The Idempotency-Key was used with another request."""

    code = "idempotency_key_reused"


class VersionMismatch(IpamError):
    """The object changed since it was read."""

    code = "version_mismatch"


class Unavailable(IpamError):
    """The database is unavailable. Nothing was allocated."""

    code = "ipam_unavailable"


class Recovering(Unavailable):
    """Recovery mode is active: nothing is allocated until every cluster was listed once."""

    code = "ipam_recovering"

    def __init__(self, message: str = "", *, clusters: str = "") -> None:
        super().__init__(message)
        self.clusters = (
            clusters  # names of the first clusters that are still to be listed, comma separated
        )


class NotManaged(Conflict):
    """Objects of this kind are not written to the cluster: it is observed, or the managed resource is off."""

    code = "not_managed"
