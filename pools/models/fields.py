"""Field types and SQL expressions that the tables share."""

from typing import Any

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.indexes import OpClass
from django.db.models import DateTimeField, F, Func, Value
from django_stubs_ext import StrOrPromise
from netfields import InetAddressField


class HostAddressField(InetAddressField):
    """An `inet` field with a single address, without a prefix length.

    A separate class, because netfields omits `store_prefix_length` in `deconstruct()`: the historic
    models of migrations would read `10.0.0.6/32` instead of `10.0.0.6`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["store_prefix_length"] = False
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]


def equal_in_gist(column: str) -> tuple[Func, str]:
    """Return `column WITH =` for a GiST exclusion constraint, without the extension btree_gist."""
    return Func(F(column), F(column), Value("[]"), function="int8range"), "&&"


def no_overlap(
    *, name: str, within: str, column: str, message: StrOrPromise
) -> ExclusionConstraint:
    """Return the constraint that CIDRs of rows with the same foreign key `within` do not overlap."""
    return ExclusionConstraint(
        name=name,
        index_type="GIST",
        expressions=[equal_in_gist(within), (OpClass(column, name="inet_ops"), "&&")],
        violation_error_message=message,
        violation_error_code="cidr_overlap",
    )


class Now(Func):
    """The start of the transaction by the register's clock (pools/sql/clock.sql)."""

    function = "ipam_now"
    template = "%(function)s()"
    output_field = DateTimeField()


class Clock(Func):
    """The present moment by the register's clock (pools/sql/clock.sql), also in a long transaction."""

    function = "ipam_clock"
    template = "%(function)s()"
    output_field = DateTimeField()
