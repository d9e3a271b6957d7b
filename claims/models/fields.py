"""Field types of the VM networks."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Func
from netfields import CidrAddressField, MACAddressField

from claims.core import macs
from pools.core import errors


class _ComputedAddress(CidrAddressField):
    """A CIDR that belongs to no model, which netfields asks for the type of the column."""

    def get_db_prep_value(self, value: Any, *_args: Any, **_more: Any) -> str:
        return str(value)


class FirstAddress(Func):
    """The lowest address of a column with a list of addresses, as a CIDR; without any, the highest of all.

    Lists are ordered by it. IPv4 comes before IPv6.
    """

    template = (
        "COALESCE((SELECT min(split_part(ip, '/', 1)::inet) FROM unnest(%(expressions)s) AS ip),"
        " 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'::inet)::cidr"
    )
    output_field = _ComputedAddress()  # type: ignore[no-untyped-call]  # netfields has no types


class MACField(MACAddressField):
    """A `macaddr` column; in Python a string in lower case with colons, as `macs.parse_mac` returns it."""

    def from_db_value(self, value: Any, *_args: Any) -> str | None:
        return None if value is None else str(value)

    def to_python(self, value: Any) -> str | None:
        if value in (None, ""):
            return None
        try:
            return macs.parse_mac(str(value), lenient=True)
        except errors.InvalidInput as error:
            raise ValidationError(error.message, code=error.code) from error

    def get_prep_value(self, value: Any) -> str | None:
        return self.to_python(value)

    def get_db_prep_value(self, value: Any, *_args: Any, **_more: Any) -> str | None:
        return self.get_prep_value(value)
