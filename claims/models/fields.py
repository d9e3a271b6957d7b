"""Field types of the VM networks."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from netfields import MACAddressField

from claims.core import macs
from pools.core import errors


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
