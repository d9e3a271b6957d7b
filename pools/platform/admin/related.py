"""Filters and fields by a row of another table: a menu while they are few, else a name with suggestions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from itertools import islice
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from django import forms
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse, reverse_lazy
from django.utils.translation import gettext
from unfold.contrib.filters.forms import SearchForm

from pools.core import errors
from pools.platform import search
from pools.platform.admin import filters, forms as fields, lists, pages, preferences

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MENU = 200  # rows of a menu; it is on each page of the list
SUGGESTIONS = 20
MOST_NAMES = 5000  # values of a column in which suggestions are looked for


@dataclass(frozen=True)
class RelatedRows:
    """The rows that a user may choose, and the columns that make their names: `cluster__name`, `name`."""

    rows: Callable[[HttpRequest], QuerySet[Any]]
    names: tuple[str, ...]

    def choices(self, rows: QuerySet[Any], limit: int | None = None) -> list[tuple[str, str]]:
        """Return (id, name) of rows, by name."""
        values = rows.order_by(*self.names).values_list("pk", *self.names)[:limit]
        return [(str(pk), "/".join(filter(None, parts))) for pk, *parts in values]

    def name_lines(self, rows: QuerySet[Any], ids: Iterable[int]) -> str:
        """Return the names of the rows with the ids, one per line, then the ids of rows that are gone."""
        names = dict(self.choices(rows.filter(pk__in=ids)))
        return "\n".join([*names.values(), *(key for key in map(str, ids) if key not in names)])

    def find(self, rows: QuerySet[Any], text: str) -> list[tuple[str, str]]:
        """Return (id, name) of the row with an id or a whole name, or []."""
        if key := lists.parse_id(text):
            return self.choices(rows.filter(pk=key))
        return self._find_name(rows, text)

    def _find_name(self, rows: QuerySet[Any], text: str) -> list[tuple[str, str]]:
        parts = [*text.split("/"), *[""] * (len(self.names) - 1 - text.count("/"))]
        if len(parts) != len(self.names) or "\0" in text:  # PostgreSQL refuses it in a text
            return []
        return self.choices(rows.filter(**dict(zip(self.names, parts, strict=True))))

    def parse_line(self, rows: QuerySet[Any], text: str, *, field: str) -> int:
        """Return the id in a line of `name_lines`; InvalidInput (`not_found`) for an unknown name."""
        text = text.strip()
        key = self.parse_name(rows, text)
        if not key:
            raise errors.InvalidInput.for_field(field, "not_found", unknown_name(text), text)
        return key

    def parse_name(self, rows: QuerySet[Any], text: str) -> int:
        """Return the id of the row with a whole name, else the id that the text is, else 0."""
        return next((int(pk) for pk, _name in self._find_name(rows, text)), lists.parse_id(text))

    def suggest(self, rows: QuerySet[Any], text: str) -> list[str]:
        """Return names of rows that contain each part of a text; the parts end at blanks and slashes."""
        parts = text.replace("/", " ").split()
        conditions = [
            reduce(or_, (Q(**{f"{name}__icontains": part}) for name in self.names))
            for part in parts
        ]
        named = rows.filter(reduce(and_, conditions, Q()))
        return [name for _id, name in self.choices(named, SUGGESTIONS)]

    def are_many(self, rows: QuerySet[Any]) -> bool:
        """Whether the rows are too many for a menu."""
        return rows.order_by()[: MENU + 1].count() > MENU


def unknown_name(text: str) -> str:
    return gettext("Nothing has the name %(name)s.") % {"name": text}


class RelatedFilter(filters.ChoiceFilter):
    """A filter by a related row; its value is an id, or a name where names are typed."""

    related: RelatedRows
    many = False

    def lookups(self, request: HttpRequest, _admin: Any) -> list[tuple[str, str]]:
        rows = self.related.rows(request)
        self.many = self.related.are_many(rows)
        if not self.many:
            return self.related.choices(rows)
        text = self.value() or ""
        choices = self.related.find(rows, text) if text else []
        if choices:
            self.used_parameters[str(self.parameter_name)] = choices[0][0]
        return choices or [(text, text)]

    def choices(self, changelist: Any) -> Iterator[Any]:
        if self.many:
            yield _typed(self, changelist, str(dict(self.lookup_choices)[self.value() or ""]))
        else:
            yield from super().choices(changelist)

    @classmethod
    def suggest(cls, request: HttpRequest, text: str) -> list[str]:
        return cls.related.suggest(cls.related.rows(request), text)


class NamesFilter(filters.ValuesFilter):
    """A filter by the values of a column: a menu while they are few, else names, typed with blanks between them."""

    names: Callable[[HttpRequest, int], list[str]]
    many = False

    def lookups(self, request: HttpRequest, _admin: Any) -> list[tuple[str, str]]:
        names = self.names(request, MENU + 1)
        self.many = len(names) > MENU
        if self.many:
            self._values = " ".join(self._values).split()
            names = self._values or [""]
        return [(name, name) for name in names]

    def choices(self, changelist: Any) -> Iterator[Any]:
        if self.many:
            yield _typed(self, changelist, " ".join(self._values))
        else:
            yield from super().choices(changelist)

    @classmethod
    def suggest(cls, request: HttpRequest, text: str) -> list[str]:
        """Return the first names that contain a text, of the first that there are."""
        names = (name for name in cls.names(request, MOST_NAMES) if text in name)
        return list(islice(names, SUGGESTIONS))


def _typed(filter_: filters.ChoiceFilter, changelist: Any, shown: str) -> dict[str, Any]:
    """Return a choice that is a text field with suggestions."""
    name = str(filter_.parameter_name)
    label = gettext(" By %(filter_title)s ") % {
        "filter_title": filter_.title
    }  # as Django's filters
    form = SearchForm(name=name, label=label, data={name: shown})
    url = reverse("admin:list_names", args=[preferences.list_name(changelist.model_admin), name])
    form.fields[name].widget.attrs |= _suggested_from(url)
    return {"form": form}


def _suggested_from(url: str) -> dict[str, str]:
    return {"data-names": url, "autocomplete": "off"}


def by_row(
    title: StrOrPromise, parameter: str, related: RelatedRows, apply: filters.Apply
) -> type[RelatedFilter]:
    """Filter with a function of the request, the rows and the id of the chosen related row."""
    return filters.subclass(RelatedFilter, title, parameter, related=related, apply=apply)


def by_key(
    title: StrOrPromise, parameter: str, related: RelatedRows, lookup: str
) -> type[RelatedFilter]:
    """Filter by a foreign key, also of a related row; a value that names no row matches none."""
    return by_row(title, parameter, related, filters.apply_key(lookup))


def by_names(
    title: StrOrPromise, parameter: str, names: Callable[[HttpRequest, int], list[str]]
) -> type[NamesFilter]:
    """Filter by the values of a column; `names` returns the first of them, up to a number."""
    return filters.subclass(NamesFilter, title, parameter, names=names, lookup=parameter)


def names_view(request: HttpRequest, list_name: str, parameter: str) -> HttpResponse:
    """Return the names that a filter of a list offers for `q`, as JSON: `{"names": […]}`."""
    model_admin = preferences.list_or_404(request, list_name)
    for choice in model_admin.get_list_filter(request):
        if hasattr(choice, "suggest") and choice.parameter_name == parameter:
            return _names(request, partial(choice.suggest, request))
    raise Http404(gettext("There is no such filter."))


Suggest = Callable[[HttpRequest, str], list[str]]
_offered: dict[str, RelatedRows] = {}
_suggested: dict[str, tuple[str, Suggest]] = {}


def offer(name: str, permission: str, related: RelatedRows) -> str:
    """Let users with a permission read the names of rows at `admin:names`; return the name of the offer."""
    _offered[name] = related
    return offer_names(
        name, permission, lambda request, text: related.suggest(related.rows(request), text)
    )


def offer_names(name: str, permission: str, suggest: Suggest) -> str:
    """As `offer`, for names that are no rows: `suggest` returns those that contain a text."""
    if name in _suggested:
        raise ValueError(f"{name} are offered twice")
    _suggested[name] = permission, suggest
    return name


def offered_view(request: HttpRequest, offered: str) -> HttpResponse:
    """Return the names that a field of a form offers for `q`, as JSON: `{"names": […]}`."""
    if offered not in _suggested:
        raise Http404(gettext("There are no such names."))
    permission, suggest = _suggested[offered]
    pages.require(request, permission)
    return _names(request, partial(suggest, request))


def _names(request: HttpRequest, suggest: Callable[[str], list[str]]) -> HttpResponse:
    text = request.GET.get("q", "")[: search.LONGEST].replace("\0", " ")
    return JsonResponse({"names": suggest(text)[:SUGGESTIONS]})


def name_widget(offered: str, *, placeholder: str = "") -> forms.Widget:
    """Return a text field that suggests the names of an offer."""
    url: Any = reverse_lazy("admin:names", args=[offered])  # forms are made before the URLs
    return fields.text(placeholder=placeholder, **_suggested_from(url))


class RelatedField(forms.ModelChoiceField[Any]):
    """A row of another table: a menu while they are few, else its name, typed.

    `offered` is the name of an offer, which suggests names; the field may have fewer rows. An id is
    accepted for a name, as links to forms have it.
    """

    def __init__(self, offered: str, queryset: QuerySet[Any], **options: Any) -> None:
        self._offered = offered
        super().__init__(queryset, **{"widget": fields.select(), **options})

    @property
    def _related(self) -> RelatedRows:
        return _offered[self._offered]

    @property
    def _rows(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.queryset  # type: ignore[assignment]  # None only before __init__
        return rows

    def get_bound_field(self, form: forms.BaseForm, field_name: str) -> forms.BoundField:
        if self._related.are_many(self._rows):
            self.widget = name_widget(self._offered, placeholder=str(self.empty_label))
            self.widget.is_required = self.required
        return super().get_bound_field(form, field_name)

    def prepare_value(self, value: Any) -> Any:
        if isinstance(self.widget, forms.Select):
            return super().prepare_value(value)
        key = getattr(value, "pk", value)
        if isinstance(key, str):  # typed, or the id in a link
            key = self._related.parse_name(self._rows, key.strip())
        return next((name for _id, name in self._related.choices(self._rows.filter(pk=key))), value)

    def to_python(self, value: Any) -> Any:
        text = str(value or "").strip()
        if not self._related.are_many(self._rows) or not text:
            return super().to_python(value)
        row = self._rows.filter(pk=self._related.parse_name(self._rows, text)).first()
        if row is None:
            raise forms.ValidationError(unknown_name(text), code="not_found")
        return row
