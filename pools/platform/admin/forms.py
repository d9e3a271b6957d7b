"""Form fields and widgets that several forms use; the fields read values by the register's parsers."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy
from unfold import widgets

from pools.core import addresses, errors, holders, periods
from pools.platform import database

Value = TypeVar("Value")

_TEXT = addresses.InputSource.TEXT
_parse_range = partial(addresses.parse_range, source=_TEXT)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(-?[0-9]{1,99})\s*(?:(s|m|h|d)[a-z]*)?", re.IGNORECASE)


def text(**attrs: str) -> forms.Widget:
    """An input of one line."""
    return widgets.UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", **attrs})


def addresses_text(**attrs: str) -> forms.Widget:
    """An input of one line for addresses: monospaced, without spell checking."""
    return text(**{"class": "cad-mono-input", "spellcheck": "false", **attrs})


def lines(rows: int, **attrs: str) -> forms.Widget:
    """A text area for addresses."""
    attributes = {"rows": str(rows), "class": "cad-mono-input", "spellcheck": "false", **attrs}
    return widgets.UnfoldAdminTextareaWidget(attrs=attributes)


def with_free_cidrs(widget: Any, length: int) -> forms.Widget:
    """Let an input of CIDRs offer free ones, of this prefix length unless another is typed (find_free.html)."""
    widget.free_length = length
    return widget  # type: ignore[no-any-return]  # unfold's widgets have no such attribute


def password() -> forms.Widget:
    """An input of a secret that the browser neither shows nor fills."""
    return widgets.UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})


def select() -> forms.Widget:
    return widgets.UnfoldAdminSelectWidget()


def ticks() -> forms.Widget:
    """A list of checkboxes."""
    return widgets.UnfoldAdminCheckboxSelectMultipleWidget()


def tick() -> forms.Widget:
    return widgets.UnfoldBooleanWidget()


class ParsedField(forms.CharField):
    """A text field with one of the register's parsers; empty becomes None unless the field is required."""

    widget = addresses_text

    def __init__(self, parse: Any, **options: Any) -> None:
        self._parse = parse
        options.setdefault("widget", addresses_text())
        super().__init__(strip=False, **options)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text.strip():
            if self.required:
                raise forms.ValidationError(self.error_messages["required"], code="required")
            return None
        return parse(self._parse, text)


def parse(parser: Callable[[Any], Value], value: object) -> Value:
    """Return what a parser reads; its problems are errors of the field."""
    try:
        return parser(value)
    except errors.InvalidInput as error:
        raise forms.ValidationError([*map(validation_error, error.problems)]) from None


def validation_error(problem: errors.FieldProblem) -> forms.ValidationError:
    """Return a problem as a form error, with its code."""
    return forms.ValidationError(errors.sentence(problem.message), code=problem.code)


def cidr_field(**options: Any) -> ParsedField:
    return ParsedField(partial(addresses.parse_cidr, source=_TEXT), **options)


def block_field(**options: Any) -> ParsedField:
    """A block as a CIDR; an address means its block of one address."""
    return ParsedField(partial(addresses.parse_block, source=_TEXT), **options)


def address_field(**options: Any) -> ParsedField:
    """One address without a prefix length."""
    return ParsedField(_parse_address, **options)


def _parse_address(text: str) -> str:
    return str(addresses.parse_address(text, source=addresses.InputSource.TEXT))


def addresses_field(**options: Any) -> LinesField:
    """Addresses without prefix lengths, one per line."""
    options.setdefault("widget", lines(2))
    return LinesField(_parse_address, **options)


def range_field(**options: Any) -> ParsedField:
    return ParsedField(_parse_range, **options)


def name_field(**options: Any) -> ParsedField:
    """The name of a Kubernetes object."""
    options.setdefault("widget", text())
    return ParsedField(lambda t: holders.parse_name(t.strip(addresses.BLANKS)), **options)


def identifier_field(**options: Any) -> ParsedField:
    """The id of a holder, an organization or an environment."""
    options.setdefault("widget", text())
    return ParsedField(lambda t: holders.parse_identifier(t.strip(addresses.BLANKS)), **options)


def reason_field(**options: Any) -> ParsedField:
    """The reason for a change."""
    options.setdefault("widget", text())
    options.setdefault("help_text", gettext_lazy("Recorded in the history."))
    return ParsedField(holders.parse_reason, **options)


class ReasonForm(forms.Form):
    """Asks for the reason of an action."""

    reason = reason_field(label=gettext_lazy("Reason"))


def description_field() -> ParsedField:
    """The description of an object, which may be empty."""
    return reason_field(label=gettext_lazy("Description"), required=False, help_text="")


def note_field(**options: Any) -> ParsedField:
    """Free text of several lines."""
    options.setdefault("widget", widgets.UnfoldAdminTextareaWidget(attrs={"rows": "3"}))
    return ParsedField(holders.parse_note, **options)


class LinesField(forms.CharField):
    """Values that one of the register's parsers reads, one per line; an error has the number of its line."""

    def __init__(self, parse: Any, **options: Any) -> None:
        self._parse = parse
        super().__init__(required=False, strip=False, **options)

    def clean(self, value: Any) -> Any:
        values: list[Any] = []
        line_errors: list[forms.ValidationError] = []
        for number, line in enumerate(super().clean(value).splitlines(), start=1):
            if not line.strip():
                continue
            try:
                values.append(self._parse(line))
            except errors.InvalidInput as error:
                line_errors += [
                    forms.ValidationError(
                        _("Line %(number)d: %(message)s")
                        % {"number": number, "message": problem.message},
                        code=problem.code,
                    )
                    for problem in error.problems
                ]
        if line_errors:
            raise forms.ValidationError(line_errors)
        return tuple(values)


class TimeField(forms.DateTimeField):
    """A time in the user's zone. In the hour that clocks repeat it is the first one, unless the text has an offset."""

    def to_python(self, value: Any) -> datetime | None:
        try:
            moment = super().to_python(value)
        except forms.ValidationError as error:
            if error.code != "ambiguous_timezone":
                raise
            moment = (error.params or {})["datetime"].replace(
                tzinfo=timezone.get_current_timezone()
            )
        try:
            return moment and holders.parse_timestamp(moment.isoformat())
        except errors.InvalidInput as error:
            message = _("Enter a time between the years 2000 and 2199.")
            raise forms.ValidationError(message, code=error.problems[0].code) from error

    def prepare_value(self, value: Any) -> Any:
        """Return a time as the widget shows it, the second one of a repeated hour with its offset."""
        if isinstance(value, datetime) and (local := timezone.localtime(value)).fold:
            return local.isoformat(" ", "minutes")
        return super().prepare_value(value)


class PeriodField(forms.CharField):
    """A point in time, a day, a month or a span until now, as people write it; empty becomes None.

    Its value may come from the picker of `period.html`, too.
    """

    def __init__(self) -> None:
        widget = _PeriodInput(
            attrs={
                "class": "cad-input cad-input-time",
                "placeholder": _("2026-11-19 14:02, yesterday, last week, 7 d"),
                "autocomplete": "off",
                "list": "periods",
            }
        )
        super().__init__(label=_("Time"), required=False, widget=widget)

    def clean(self, value: Any) -> periods.Period | None:
        text = super().clean(value)
        if not text:
            return None
        now = timezone.localtime(database.now())
        return parse(lambda text: periods.parse_period(text, now), text)


class _PeriodInput(forms.TextInput):
    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        """Return what was typed, else what was picked where no script copies it to the field."""
        return super().value_from_datadict(data, files, name) or data.get(f"{name}_picked")


class RangesField(LinesField):
    """Reserved ranges."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("widget", lines(2, placeholder="10.20.0.0-10.20.0.99"))
        super().__init__(_parse_range, **options)


class DurationField(forms.CharField):
    """A duration: seconds, or a number with a unit (`30 days`, `24h`, `90 min`); empty becomes None."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("widget", text(placeholder="24 hours"))
        super().__init__(required=False, **options)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        match = _DURATION.fullmatch(text)
        if match is None:
            raise forms.ValidationError(
                _("Enter a number with its unit: 90 minutes, 24 hours, 30 days, or 0."),
                code="duration",
            )
        return parse(holders.parse_cooldown, int(match[1]) * _UNITS[(match[2] or "s").lower()])
