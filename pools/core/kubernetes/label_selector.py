"""Kubernetes label selectors: matchLabels and matchExpressions, all of which must match."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from pools.core import errors, object_reader


class SelectorOperator(enum.Enum):
    """The operator of a requirement; an absent label is in no set."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@dataclass(frozen=True)
class Requirement:
    """One condition; `values` is empty for Exists and DoesNotExist."""

    key: str
    operator: SelectorOperator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case SelectorOperator.IN:
                return labels.get(self.key) in self.values
            case SelectorOperator.NOT_IN:
                return labels.get(self.key) not in self.values
            case SelectorOperator.EXISTS:
                return self.key in labels
            case SelectorOperator.DOES_NOT_EXIST:
                return self.key not in labels


@dataclass(frozen=True)
class Selector:
    """A label selector; without requirements it matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse(value: object, field: str = "") -> Selector:
    """Return a selector from its JSON form.

    Raises InvalidInput with all problems: object_expected, unknown_field, wrong_type, required,
    selector_operator, selector_values.
    """
    if not isinstance(value, dict):
        raise errors.InvalidInput.for_field(
            field, "object_expected", "an object is expected", value
        )
    report = object_reader.ProblemReport()
    part = object_reader.Fields(value, field, report)
    part.allow_only("matchLabels", "matchExpressions")
    labels = (
        Requirement(key, SelectorOperator.IN, frozenset([text]))
        for key, text in part.string_map("matchLabels").items()
        if isinstance(text, str)
    )
    expressions = (_requirement(entry) for entry in part.objects("matchExpressions"))
    selector = Selector((*labels, *(requirement for requirement in expressions if requirement)))
    report.raise_any()
    return selector


def _requirement(part: object_reader.Fields) -> Requirement | None:
    part.allow_only("key", "operator", "values")
    key, operator = part.parse("key", _text), part.parse("operator", _operator)
    values = [_value(part, path, item) for path, item in part.items("values")]
    if key is None or operator is None:
        return None
    needs_values = operator in (SelectorOperator.IN, SelectorOperator.NOT_IN)
    if needs_values != bool(values):
        requirement_text = "at least one value" if needs_values else "no values"
        message = f"{operator.value} has {requirement_text}"
        part.report.add(part.path("values"), "selector_values", message)
    return Requirement(key, operator, frozenset(values))


def _value(part: object_reader.Fields, path: str, item: object) -> str:
    with part.report.collect():
        return _text(item, path)
    return ""


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(path, "wrong_type", "must be a text", value)
    return value


def _operator(value: object, path: str) -> SelectorOperator:
    try:
        return SelectorOperator(value)
    except ValueError:
        names = ", ".join(operator.value for operator in SelectorOperator)
        message = f"the operator is one of {names}"
        raise errors.InvalidInput.for_field(path, "selector_operator", message, value) from None
