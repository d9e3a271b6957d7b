"""The base of all serializers: DRF's, as strict as the readers of manifests and files.

Unknown and read-only fields are refused, all problems are reported at once with their dotted paths, and a
refusal is an `InvalidInput` with our stable codes instead of DRF's ValidationError, which cannot carry
the refused value.
"""

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.fields import empty

from pools.core import errors, object_reader
from pools.platform.rest import fields as rest_fields

NULL_MESSAGE = "null is not allowed for this field; omit the field to keep its value"
_READ_ONLY = "is computed and cannot be set"


class Serializer(serializers.Serializer[Any]):
    """One JSON object. A null of an optional field is absence, as in Kubernetes; of a PATCH (`partial`)
    it is refused, unless the field allows it.

    `validated_data` has the fields that were sent, and the defaults of those that were not.
    """

    empty_allowed = False  # whether `{}` is a request
    # What the API page sends, where the examples of all fields together are refused.
    example: ClassVar[Mapping[str, Any] | None] = None

    def run_validation(self, data: Any = empty) -> Any:
        """The validated values. InvalidInput with every problem of the object."""
        if not isinstance(data, Mapping):
            code = "wrong_type" if self.parent else "object_expected"
            raise errors.InvalidInput.for_field("", code, "an object is expected", data)
        if not data and not self.empty_allowed and self.parent is None:
            names = ", ".join(name for name, _ in self._writable())
            message = f"an object with at least one of {names} is expected"
            raise errors.InvalidInput.for_field("", "object_expected", message)
        return self.validate(self.to_internal_value(data))

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        report = object_reader.ProblemReport()
        self.report_names(data, report)
        values: dict[str, Any] = {}
        for name, field in self._writable():
            value = data.get(name, empty)
            if value is None and not field.allow_null:
                if self._is_partial():
                    report.add(name, "wrong_type", NULL_MESSAGE)
                    continue
                value = empty
            with report.collect(name):
                _validate_field(field, value, values, partial=self._is_partial())
                if field.source in values and (validate := getattr(self, f"validate_{name}", None)):
                    values[field.source] = validate(values[field.source])
        report.raise_any()
        return values

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """The fields of a row or a dict. Without DRF's copies of the fields for each answer."""
        return {
            name: None if value is None else show(value)
            for name, read, show in _readers(type(self), isinstance(instance, dict))
            if (value := read(instance)) is not empty
        }

    def _writable(self) -> list[tuple[str, serializers.Field[Any, Any, Any, Any]]]:
        return [(name, field) for name, field in self.fields.items() if not field.read_only]

    def _is_partial(self) -> bool:
        """Only the object of a PATCH itself is partial: an object inside of it is whole."""
        return self.partial and self.parent is None

    def report_names(self, data: Mapping[str, Any], report: object_reader.ProblemReport) -> None:
        """Report the fields that the object does not have; a serializer adds which of them belong together."""
        for name in data:
            field = self.fields.get(name)
            if field is None:
                names = ", ".join(name for name, _ in self._writable())
                report.add(name, "unknown_field", f"unknown field; known here: {names}")
            elif field.read_only:
                report.add(name, "read_only_field", _READ_ONLY)


class Representation(Serializer):
    """An object that is only answered: every field is read only, and present in each answer."""

    # Fields may have these names of DRF's attributes: the metaclass takes declared fields off the class.
    create: Any
    errors: Any
    fields: Any
    source: Any

    def get_fields(self) -> dict[str, Any]:
        declared = super().get_fields()
        for field in declared.values():
            field.read_only, field.required = True, False
        return declared


class ByFamilySerializer(Representation):
    """What a pool has of IPv4, of IPv6 or of both."""

    def to_representation(self, instance: Mapping[int, Any]) -> dict[str, Any]:
        return super().to_representation(
            {f"ipv{family}": value for family, value in instance.items()}
        )


class ReasonSerializer(Representation):
    """Why something is as it is: a stable code, and a sentence."""

    code = rest_fields.TextField()
    message = rest_fields.TextField()


_Reader = tuple[str, Callable[[Any], Any], Callable[[Any], Any]]


@cache
def _readers(serializer: type[Serializer], is_dict: bool) -> tuple[_Reader, ...]:
    """(name, how its value is read, how it is shown) of each field that is answered."""
    return tuple(
        (name, _reader(field, field.source or name, is_dict), field.to_representation)
        for name, field in serializer().fields.items()
        if not field.write_only
    )


def _reader(field: Any, source: str, is_dict: bool) -> Callable[[Any], Any]:
    """A field that says `required=False` is left out of the answer if the dict lacks it."""
    if source == "*":
        return lambda row: row
    first, *others = source.split(".")
    if is_dict and not others and is_optional(field):
        return lambda row: row.get(source, empty)
    read: Callable[[Any], Any] = itemgetter(first) if is_dict else attrgetter(first)
    if not others:
        return read

    def read_related(row: Any) -> Any:
        value = read(row)
        if value is None and not is_dict:  # no related row
            return None
        for part in others:
            value = value[part] if isinstance(value, dict) else getattr(value, part)
        return value

    return read_related


def is_optional(field: serializers.Field[Any, Any, Any, Any]) -> bool:
    """True for a field that was declared with `required=False`: DRF forgets it of read-only fields."""
    return _declared_options(field).get("required") is False


def _declared_options(field: Any) -> dict[str, Any]:
    """The keyword arguments with which a field was declared; DRF keeps them to copy the field."""
    options: dict[str, Any] = field._kwargs
    return options


def _validate_field(
    field: serializers.Field[Any, Any, Any, Any],
    value: Any,
    values: dict[str, Any],
    *,
    partial: bool,
) -> None:
    """Put the validated value, or the default of an absent one, under the field's source."""
    if value is empty:
        if field.required and not partial:
            raise errors.InvalidInput.for_field("", "required", _required_message(field))
        if not partial and field.default is not empty:
            values[field.source or ""] = field.get_default()
        return
    if value is None:
        values[field.source or ""] = None
        return
    values[field.source or ""] = field.run_validation(value)


def _required_message(field: serializers.Field[Any, Any, Any, Any]) -> str:
    """`error_messages={"required": ...}` of the field; DRF's own words speak of fields of forms."""
    messages = _declared_options(field).get("error_messages") or {}
    return str(messages.get("required", "is required"))


class HolderSerializer(Serializer):
    """Who holds a block: a kind such as `instance`, its id, and its uid where there is one."""

    kind = rest_fields.NamespaceField()
    id = rest_fields.IdentifierField()
    uid = rest_fields.IdentifierField(required=False, default="")
