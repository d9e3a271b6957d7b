"""Kubernetes label selectors: matchLabels and matchExpressions, all of which must hold."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from pools.core import errors, object_reader


class Operator(enum.Enum):
    """What is said of the label `key`; an absent label is in no set."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@dataclass(frozen=True)
class Requirement:
    """One condition; `values` is empty for Exists and DoesNotExist."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def met_by(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case Operator.IN:
                return labels.get(self.key) in self.values
            case Operator.NOT_IN:
                return labels.get(self.key) not in self.values
            case Operator.EXISTS:
                return self.key in labels
            case Operator.DOES_NOT_EXIST:
                return self.key not in labels


@dataclass(frozen=True)
class Selector:
    """A label selector; without requirements it matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.met_by(labels) for requirement in self.requirements)


def parse(value: object, *, field: str = "") -> Selector:
    """A selector from its JSON form.

    Raises InvalidInput with all problems: object_expected, unknown_field, wrong_type, required,
    selector_operator, selector_values.
    """
    if not isinstance(value, dict):
        raise errors.InvalidInput.of(field, "object_expected", "an object is expected", value)
    report = object_reader.Report()
    part = object_reader.Fields(value, field, report)
    part.only("matchLabels", "matchExpressions")
    labels = (
        Requirement(key, Operator.IN, frozenset([text]))
        for key, text in part.texts("matchLabels").items()
        if isinstance(text, str)
    )
    expressions = (_requirement(entry) for entry in part.objects("matchExpressions"))
    selector = Selector((*labels, *(found for found in expressions if found)))
    report.raise_any()
    return selector


def _requirement(part: object_reader.Fields) -> Requirement | None:
    part.only("key", "operator", "values")
    key, operator = part.parse("key", _text), part.parse("operator", _operator)
    values = [_value(part, at, item) for at, item in part.items("values")]
    if key is None or operator is None:
        return None
    needs_values = operator in (Operator.IN, Operator.NOT_IN)
    if needs_values != bool(values):
        some = "at least one value" if needs_values else "no values"
        message = f"{operator.value} has {some}"
        part.report.add(part.path("values"), "selector_values", message)
    return Requirement(key, operator, frozenset(values))


def _value(part: object_reader.Fields, at: str, item: object) -> str:
    with part.report.collecting():
        return _text(item, at)
    return ""


def _text(value: object, at: str) -> str:
    if not isinstance(value, str):
        raise errors.InvalidInput.of(at, "wrong_type", "must be a text", value)
    return value


def _operator(value: object, at: str) -> Operator:
    try:
        return Operator(value)
    except ValueError:
        known = ", ".join(operator.value for operator in Operator)
        message = f"the operator is one of {known}"
        raise errors.InvalidInput.of(at, "selector_operator", message, value) from None
