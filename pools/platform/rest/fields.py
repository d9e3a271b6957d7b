"""Fields of serializers: each is read by a parser of `core`, and names its type in the OpenAPI document."""

from collections.abc import Callable
from functools import partial
from typing import Any

from drf_spectacular.drainage import set_override
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty

from pools.core import addresses, block_fields, errors, holders, object_reader
from pools.platform.rest import parsing

Parser = Callable[[object, str], Any]  # (value, dotted path) -> value; InvalidInput


class ParsedField(serializers.Field[Any, Any, Any, Any]):
    """A field whose values a parser reads; it is shown as it is stored."""

    parser: Parser = staticmethod(lambda value, _path: value)

    def __init__(
        self, parser: Parser | None = None, *, schema: dict[str, Any] | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self._parser = parser or self.parser
        if schema is not None:
            set_override(self, "field", schema)

    def run_validation(self, data: Any = empty) -> Any:
        """The parsed value of one that was sent; InvalidInput. Validators of DRF are not used: the parser says it all."""
        return self.to_internal_value(data)

    def to_internal_value(self, data: Any) -> Any:
        return self._parser(data, "")

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field({"type": "string"})
class TextField(ParsedField):
    """Any text; wrong_type."""

    parser: Parser = staticmethod(parsing.text)

    def to_representation(self, value: Any) -> Any:
        return str(value)


# The name of a cluster or a pool, and a DNS label such as the name of a namespace; k8s_name.
NameField = partial(TextField, holders.parse_name)
NamespaceField = partial(TextField, holders.parse_label)
# The id of a holder, an organization or an environment.
IdentifierField = partial(TextField, holders.parse_identifier)
# One line about a thing, or nothing; why somebody does something, a required line; free text of several lines.
DescriptionField = partial(TextField, holders.parse_description)
ReasonField = partial(TextField, holders.parse_reason)
NoteField = partial(TextField, holders.parse_note)


@extend_schema_field({"type": "boolean"})
class FlagField(ParsedField):
    """true or false; wrong_type."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise errors.InvalidInput.for_field("", "wrong_type", "true or false is expected", data)
        return data


class IntegerField(serializers.IntegerField):
    """A whole number between two, both included; wrong_type, out_of_range."""

    def run_validation(self, data: Any = empty) -> Any:
        return parsing.integer(
            data, "", least=self.min_value or 0, most=self.max_value or (1 << 62)
        )

    def to_representation(self, value: Any) -> int:
        return int(value)


class ChoiceField(serializers.ChoiceField):
    """One of some words; wrong_type, invalid_choice."""

    def run_validation(self, data: Any = empty) -> Any:
        return parsing.choice(data, "", tuple(self.choices))

    def to_representation(self, value: Any) -> Any:
        """The word; null for the empty one that stands for no choice in the database."""
        return str(value) or None


@extend_schema_field({"type": "string", "format": "cidr", "example": "10.20.0.0/16"})
class CIDRField(TextField):
    """A CIDR without host bits; shown as text."""

    parser: Parser = staticmethod(addresses.parse_cidr)


class BlockField(CIDRField):
    """A CIDR or a bare address, as the CIDR of this block."""

    parser: Parser = staticmethod(addresses.parse_block)


@extend_schema_field({"type": "string", "format": "ip", "example": "2001:db8::1"})
class AddressField(TextField):
    """One address without a prefix length."""

    parser: Parser = staticmethod(addresses.parse_address)


@extend_schema_field({"type": "string", "format": "ip-range", "example": "10.20.0.0-10.20.0.99"})
class RangeField(TextField):
    """The first and the last address of a range with a hyphen between."""

    parser: Parser = staticmethod(addresses.parse_range)


@extend_schema_field({"type": "integer", "minimum": 0, "maximum": 315360000})
class CooldownField(ParsedField):
    """Seconds until a released block may be allocated again."""

    parser: Parser = staticmethod(holders.parse_cooldown)


@extend_schema_field({"type": "string", "format": "date-time"})
class TimeField(ParsedField):
    """A time; RFC 3339 with a zone, shown in UTC with `Z`."""

    parser: Parser = staticmethod(parsing.timestamp)

    def to_representation(self, value: Any) -> str | None:
        return block_fields.format_time(value)


@extend_schema_field({"type": "string", "format": "date"})
class DateField(TextField):
    """A day in UTC; only shown."""


@extend_schema_field({"type": "string", "format": "decimal", "example": "65534"})
class CountField(TextField):
    """A count of addresses, which may be larger than JSON's numbers: decimal text."""


@extend_schema_field({"type": "number"})
class RatioField(ParsedField):
    """A share from 0 to 1, with six digits."""

    def to_representation(self, value: Any) -> float:
        return round(float(value), 6)


@extend_schema_field(
    {"type": "object", "additionalProperties": {"type": "string"}, "example": {"app": "shop"}}
)
class StringMapField(ParsedField):
    """Labels or annotations: an object whose values are strings; wrong_type."""

    def to_internal_value(self, data: Any) -> dict[str, str]:
        report = object_reader.ProblemReport()
        holder = object_reader.Fields({"": data}, "", report)
        strings = holder.string_map("")
        if report.problems:
            raise errors.InvalidInput.all([_relative(problem) for problem in report.problems])
        return strings


def _relative(problem: errors.FieldProblem) -> errors.FieldProblem:
    return errors.FieldProblem(
        problem.field.lstrip("."), problem.code, problem.message, problem.value
    )


@extend_schema_field({"type": "object", "additionalProperties": True, "example": {}})
class ObjectField(ParsedField):
    """Any JSON object, taken and shown as it is; wrong_type."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise errors.InvalidInput.for_field("", "wrong_type", "an object is expected", data)
        return data


class ListField(serializers.ListField):
    """A list whose items `child` reads, or that a parser reads as a whole; wrong_type.

    `max_length` comes with a `min_length`. The problems of an item have its index in their path.
    """

    def __init__(self, parser: Parser | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._parser = parser

    def run_validation(self, data: Any = empty) -> Any:
        if self._parser is not None:
            try:
                return self._parser(data, "")
            except errors.InvalidInput as error:  # the field has no name here: paths begin with "."
                raise errors.InvalidInput.all([*map(_relative, error.problems)]) from error
        if self.max_length is not None:
            self._check_length(data)
        elif not isinstance(data, list):
            raise errors.InvalidInput.for_field("", "wrong_type", "a list is expected", data)
        report = object_reader.ProblemReport()
        items = []
        for index, item in enumerate(data):
            with report.collect(str(index)):
                items.append(self.child.run_validation(item))
        report.raise_any()
        return items

    def _check_length(self, data: Any) -> None:
        least, most = self.min_length or 0, self.max_length or 0
        if not isinstance(data, list) or not least <= len(data) <= most:
            message = f"a list of {least} to {most} {self.field_name} is expected"
            raise errors.InvalidInput.for_field("", "wrong_type", message)

    def to_representation(self, data: Any) -> list[Any]:
        """The items of a list or of a related manager."""
        show = self.child.to_representation
        return [show(item) for item in (data.all() if hasattr(data, "all") else data)]
