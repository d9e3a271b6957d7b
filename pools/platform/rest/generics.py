"""DRF's generic views with our strict parts: one description of an object reads, answers, filters and documents it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

from rest_framework import generics, metadata, mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from pools.core import errors
from pools.platform import events, idempotency
from pools.platform.rest import filters, keyset, parsing, query, views

_VERBS = {"GET": "view", "POST": "add", "PUT": "change", "PATCH": "change", "DELETE": "delete"}


class Metadata(metadata.SimpleMetadata):
    """OPTIONS names the endpoint; what its bodies are is in the OpenAPI document."""

    def determine_actions(self, request: Request, view: Any) -> dict[str, Any]:
        return {}


class ModelPermissions(dict[str, tuple[str, ...]]):
    """What the methods of a view need: to view, add, change or delete rows of its model."""


class GenericView(views.View, generics.GenericAPIView[Any]):
    """An endpoint of one kind of object: `queryset`, `serializer_class`, `filterset_class`.

    `lookup_url_kwarg` names the parameter of the path that is the id. Unless a view states its `needs`, they
    are the permissions of the model of its queryset, as with DRF's DjangoModelPermissions.
    """

    metadata_class = Metadata
    pagination_class = keyset.KeysetPagination
    filter_backends = (filters.FilterBackend,)
    filterset_class: type[filters.FilterSet] | None = None
    orderings: Mapping[str, Sequence[str]] = {"id": ("id",)}
    ordering = "id"
    keys_only = False  # pages have only `pk` and the ordering's columns; the view reads the rest

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.queryset is not None and (not cls.needs or isinstance(cls.needs, ModelPermissions)):
            meta = cls.queryset.model._meta
            cls.needs = ModelPermissions(
                (method, (f"{meta.app_label}.{verb}_{meta.model_name}",))
                for method, verb in _VERBS.items()
                if hasattr(cls, method.lower())
            )

    @cached_property
    def parameters(self) -> query.Query:
        """The parameters of the request; `done` reports all that is wrong with them."""
        return query.Query(self.request)

    def field_names(self) -> list[str]:
        """The fields that `fields=` of the list may name."""
        serializer: Any = self.get_serializer_class()
        return answered_names(serializer)

    def get_object(self) -> Any:
        """The row of the path. NotFound, with the words of `absent`."""
        value = self.kwargs[self.lookup_url_kwarg or self.lookup_field]
        row = self.get_queryset().filter(**{self.lookup_field: value}).first()
        if row is None:
            raise errors.NotFound(self.absent)
        self.load([row])
        return row

    def paginate_queryset(self, queryset: Any) -> Any:
        rows = super().paginate_queryset(queryset)
        self.load(rows or [])
        return rows

    def load(self, rows: list[Any]) -> None:
        """Read for all rows at once what their serializer shows beside their columns."""

    def read(
        self,
        request: Request,
        serializer_class: type[serializers.BaseSerializer[Any]] | None = None,
        *,
        partial: bool = False,
        **context: Any,
    ) -> Any:
        """The validated body, a dict unless the serializer makes another value of it. InvalidInput with every problem."""
        chosen: Any = serializer_class or self.get_serializer_class()
        serializer = chosen(
            data=parsing.document(request, limit=self.largest_body), partial=partial,
            context={**self.get_serializer_context(), **context},
        )  # fmt: skip
        serializer.is_valid(raise_exception=True)
        return serializer.validated_data

    def represent(self, row: Any, serializer_class: Any = None) -> dict[str, Any]:
        """The row as it is answered; `load` is called for it."""
        self.load([row])
        chosen = serializer_class or self.get_serializer_class()
        shown: dict[str, Any] = chosen(row, context=self.get_serializer_context()).data
        return shown

    def author(self, reason: str = "") -> events.Author:
        """The author that is recorded with the events of a change."""
        return views.author(self.request, reason)

    def respond(self, row: Any, serializer_class: Any = None, **options: Any) -> Response:
        """The answer with a row that was read or changed; `options` are those of Response."""
        return Response(self.represent(row, serializer_class), **options)

    def create(self, work: Callable[[], Any]) -> Response:
        """Answer 201 with the row that `work` creates; under the same Idempotency-Key once more the same."""
        return self.once(self.request, lambda: self.represent(work()), status=201)

    def once(self, request: Request, work: Callable[[], Any], *, status: int = 200) -> Response:
        """Answer with what `work` returns, or once more with what was answered under the same Idempotency-Key."""
        stored = views.run_once(request, lambda: idempotency.StoredAnswer(status, work()))
        return Response(stored.answer, status=stored.status)


@cache
def answered_names(serializer: type[Any]) -> list[str]:
    """The names of the fields that an answer has. Kept, because DRF copies all fields for each instance."""
    fields: Mapping[str, Any] = serializer().fields
    return [name for name, field in fields.items() if not field.write_only]


class ListView(mixins.ListModelMixin, GenericView):
    """A list in pages."""

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return self.list(request, *args, **kwargs)


class DetailView(mixins.RetrieveModelMixin, GenericView):
    """One object."""

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return self.retrieve(request, *args, **kwargs)
