"""Field types and SQL expressions that the tables share."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.indexes import OpClass
from django.db.models import DateTimeField, F, Func, Value
from netfields import InetAddressField


class HostAddressField(InetAddressField):
    """An `inet` that is one address, without a prefix length.

    A class of its own because netfields leaves `store_prefix_length` out of `deconstruct()`, so
    that historic models would read `10.0.0.6/32` where the real ones read `10.0.0.6`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["store_prefix_length"] = False
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]


def equal_in_gist(column: str) -> tuple[Func, str]:
    """`column WITH =` inside a GiST exclusion constraint, without the extension btree_gist."""
    return Func(F(column), F(column), Value("[]"), function="int8range"), "&&"


def no_overlap(*, name: str, within: str, column: str, message: str) -> ExclusionConstraint:
    """No two rows with the same `within` (a foreign key's column) may have overlapping CIDRs."""
    return ExclusionConstraint(
        name=name,
        index_type="GIST",
        expressions=[equal_in_gist(within), (OpClass(column, name="inet_ops"), "&&")],
        violation_error_message=message,
        violation_error_code="cidr_overlap",
    )


class Now(Func):
    """The register's clock (pools/sql/clock.sql)."""

    function = "ipam_now"
    template = "%(function)s()"
    output_field = DateTimeField()


class Clock(Func):
    """This very moment by the register's clock (pools/sql/clock.sql), however long a transaction lasts."""

    function = "ipam_clock"
    template = "%(function)s()"
    output_field = DateTimeField()
