"""DRF's views and view sets with our strict parts: one description of an object reads, answers, filters and documents it."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any, ClassVar, cast

from django.db import transaction
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, path
from rest_framework import (
    decorators,
    generics,
    metadata,
    mixins,
    negotiation,
    permissions,
    routers,
    serializers,
    viewsets,
)
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from pools.core import errors
from pools.platform import database, documents, events, idempotency
from pools.platform.rest import authentication, filters, keyset, parsing, query, token_scopes
from pools.platform.rest.filters import Endpoint

# RFC 9110, 8.8.3 and 5.6.1: entity tags, and lists of them, in which elements may be empty. What
# repeats is possessive: a text that is none costs time in proportion to its length.
_ENTITY_TAG = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*+"'
_TAG = re.compile(_ENTITY_TAG)
_TAGS = re.compile(rf"[ \t,]*+{_ENTITY_TAG}(?:[ \t]*+,[ \t]*+(?:{_ENTITY_TAG})?)*+[ \t]*")
_VERBS = {"GET": "view", "POST": "add", "PUT": "change", "PATCH": "change", "DELETE": "delete"}


class HasPermission(permissions.BasePermission):
    """The user has the permissions that `needs` of the view lists for the method.

    A method that is not listed needs only a login (405 follows, or OPTIONS answers).
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        if not user or not user.is_authenticated:
            return False
        needed = view.needs.get("GET" if request.method == "HEAD" else request.method, ())
        missing = [name for name in needed if not user.has_perm(name)]
        if missing:
            token_scopes.explain_missing(request.auth, missing)
        return not missing


JSON = parsing.JSON
REQUEST_ID = "ipam.request_id"  # key in request.META; the site's middleware puts it there

Answer = HttpResponseBase
Needs = Mapping[str, tuple[str, ...]]


class OnlyJSON(negotiation.BaseContentNegotiation):
    """Always responds with JSON, whatever Accept says (RFC 9110 12.4.1 allows that)."""

    def select_parser(self, request: Request, parsers: Iterable[Any]) -> Any:
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[Any], format_suffix: str | None = None
    ) -> tuple[Any, str]:
        first = next(iter(renderers))
        return first, first.media_type


class Metadata(metadata.SimpleMetadata):
    """OPTIONS names the endpoint; what its bodies are is in the OpenAPI document."""

    def determine_actions(self, request: Request, view: Any) -> dict[str, Any]:
        return {}


class ModelPermissions(dict[str, tuple[str, ...]]):
    """What the methods of a view need: to view, add, change or delete rows of its model."""


def _is_storable(value: int | str) -> bool:
    """Return True if PostgreSQL could store such an id or name at all."""
    return value < 1 << 63 if isinstance(value, int) else "\0" not in value


def require(request: Request, permission: str) -> None:
    """Raise NotAllowed without a permission that only some bodies of a method need."""
    if not request.user.has_perm(permission):
        token_scopes.explain_missing(request.auth, [permission])
        raise errors.NotAllowed(f"This needs the permission {permission}.")


def key(request: Request, body: bytes | None = None) -> idempotency.Key | None:
    """Return the request's Idempotency-Key, which is bound to the user, method, URL and body.

    `body` replaces the body of the request where clients may write the same content in several ways.
    """
    header = request.META.get("HTTP_IDEMPOTENCY_KEY")
    if header is None:
        return None
    return idempotency.parse_key(
        header,
        user_id=request.user.pk or 0,
        method=request.method or "",
        path=request.get_full_path(),
        body=parsing.body(request) if body is None else body,
    )


def run_once(
    request: Request, work: Callable[[], idempotency.StoredAnswer], *, body: bytes | None = None
) -> idempotency.StoredAnswer:
    """Do the work, or return the answer that is stored under the same Idempotency-Key.

    The key is stored in the transaction of the work; an error in `work` rolls both back.
    """
    idempotency_key = key(request, body)
    if idempotency_key is None:
        return work()
    run_in_transaction = transaction.atomic(idempotency.run_once)
    return database.with_retries(partial(run_in_transaction, idempotency_key, work))


class GenericView(generics.GenericAPIView[Any]):
    """An endpoint of one kind of object: `queryset`, `serializer_class`, `filterset_class`.

    `lookup_url_kwarg` names the parameter of the path that is the id. Unless a view states its `needs`, they
    are the permissions of the model of its queryset, as with DRF's DjangoModelPermissions.
    """

    metadata_class = Metadata
    authentication_classes = (
        authentication.TokenAuthentication,
        authentication.SessionAuthentication,
    )
    permission_classes = (HasPermission,)
    content_negotiation_class = OnlyJSON
    parser_classes = (parsing.JSONParser,)
    needs: Needs = {}
    # What a limited token may do here (token_scopes.py).
    absent = "There is no such object."  # the answer for an object out of its cluster or pool
    posts_a_question = False  # POST changes nothing
    limited_by: tuple[str, ...] = ()  # filters of a list: cluster, pool
    limited_by_body = False  # POST is about the cluster that the body names
    idempotent: tuple[str, ...] = ()  # methods that heed an Idempotency-Key
    problem_statuses: tuple[
        int, ...
    ] = ()  # for the OpenAPI document, beside those of all endpoints
    largest_body = documents.LARGEST  # bytes
    pagination_class: Any = keyset.KeysetPagination
    filter_backends = (filters.FilterBackend,)
    filterset_class: type[filters.FilterSet] | None = None
    orderings: Mapping[str, Sequence[str]] = {"id": ("id",)}
    ordering = "id"
    keys_only = False  # pages have only `pk` and the ordering's columns; the view reads the rest
    versioned = (
        False  # answers have the row's `version` as ETag, and changes compare If-Match with it
    )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.queryset is not None and (not cls.needs or isinstance(cls.needs, ModelPermissions)):
            meta = cls.queryset.model._meta
            cls.needs = ModelPermissions(
                (method, (f"{meta.app_label}.{verb}_{meta.model_name}",))
                for method, verb in _VERBS.items()
                if issubclass(cls, ViewSet) or hasattr(cls, method.lower())
            )

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate and check permissions; there are no versions, formats or throttles."""
        self.format_kwarg = None
        request.version, request.versioning_scheme = None, None
        request.accepted_renderer, request.accepted_media_type = self.get_renderers()[0], JSON
        self.perform_authentication(request)
        self.check_permissions(request)
        token_scopes.enforce(request, self)
        if request.method in {"PATCH", "DELETE"} and not self.versioned:
            self.refuse_versions()
        if not all(map(_is_storable, kwargs.values())):
            raise errors.NotFound("There is no such object.")

    @cached_property
    def parameters(self) -> query.Query:
        """The parameters of the request; `done` reports all that is wrong with them."""
        return query.Query(self.request)

    def query_values(self, *, is_complete: bool = True) -> dict[str, Any]:
        """The values of the parameters that the endpoint declares; None for an absent one. InvalidInput.

        Unless `is_complete`, the view reports more problems before it raises them.
        """
        action = getattr(self, "action", None) or str(self.request.method).lower()
        declared: Mapping[str, filters.Filter] = getattr(self, action).parameters
        values = {name: declared[name].read(self.parameters, name) for name in declared}
        if is_complete:
            self.parameters.raise_problems()
        return values

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
        return events.Author(
            actor=self.request.user.get_username(),
            source="api",
            request_id=self.request.META.get(REQUEST_ID, ""),
            reason=reason,
        )

    def respond(self, row: Any, serializer_class: Any = None, **options: Any) -> Response:
        """The answer with a row that was read or changed; `options` are those of Response."""
        answer = self.represent(row, serializer_class)
        if self.versioned and answer["version"]:
            options["headers"] = {"ETag": f'"{answer["version"]}"'}
        return Response(answer, **options)

    def required_version(self, row: Any) -> int | None:
        """Return the version that If-Match requires; None without the header or for `*`.

        RFC 9110, 13.1.1. If the header lists several versions, the row's has to be among them.
        Weak tags and tags that are no version match nothing. Raises InvalidInput, VersionMismatch.
        """
        header = self.request.META.get("HTTP_IF_MATCH")
        if header is None or header.strip() == "*":
            return None
        if not _TAGS.fullmatch(header):
            message = 'If-Match is a list of ETags such as "3", "4", or *.'
            raise errors.InvalidInput.for_field("If-Match", "if_match", message, header)
        tags = [tag.strip('"') for tag in _TAG.findall(header) if not tag.startswith("W/")]
        numbers = [int(tag) for tag in tags if tag.isascii() and tag.isdigit() and len(tag) <= 18]
        if len(numbers) == 1:
            return numbers[0]
        if row.version not in numbers:
            raise errors.VersionMismatch
        present: int = row.version
        return present

    def refuse_versions(self) -> None:
        """Raise VersionMismatch for an If-Match other than `*`: what has no ETag matches none (RFC 9110, 13.1.1)."""
        if self.request.META.get("HTTP_IF_MATCH", "*").strip() != "*":
            raise errors.VersionMismatch("The object has no ETag: leave If-Match out, or send *.")

    def once(self, request: Request, work: Callable[[], Any], *, status: int = 200) -> Response:
        """Answer with what `work` returns, or once more with what was answered under the same Idempotency-Key."""
        self.parameters.raise_problems()
        stored = run_once(request, lambda: idempotency.StoredAnswer(status, work()))
        return Response(stored.answer, status=stored.status)


@cache
def answered_names(serializer: type[Any]) -> list[str]:
    """The names of the fields that an answer has. Kept, because DRF copies all fields for each instance."""
    fields: Mapping[str, Any] = serializer().fields
    return [name for name, field in fields.items() if not field.write_only]


class ViewSet(viewsets.ViewSetMixin, GenericView):
    """The endpoints of one kind of object, below one path; a base adds the list and the single object.

    `perform_create`, `perform_update` and `perform_destroy` are the services that change it, and their docstrings
    the summaries of the endpoints: without one of them there is no such endpoint. What else can be done with
    an object is an `@action`, which states its permissions in `needs`.
    """

    lookup_value_converter = "int"
    create_serializer_class: Any = None  # of bodies, unless they are those of `serializer_class`
    change_serializer_class: Any = None
    row_text = "One object."  # the summary of the endpoint that answers one
    perform_create: ClassVar[Callable[..., Any]]
    perform_update: ClassVar[Callable[..., Any]]
    perform_destroy: ClassVar[Callable[..., Any]]

    @classmethod
    def as_view(cls, actions: Any = None, **options: Any) -> Any:
        """The view of one path. What limits the list of a class, and makes its POST idempotent, is for the list alone."""
        needs = options.get("needs", cls.needs)
        if not {"list", "create"} & {*actions.values()}:
            options = {**_NOT_OF_LISTS, **options}
        methods = [method.upper() for method in actions]
        options["needs"] = {method: needs[method] for method in methods if method in needs}
        return super().as_view(actions, **options)

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        values = self.read(request, self.create_serializer_class)
        self.check_values(values)
        return self.once(request, lambda: self.represent(self.perform_create(values)), status=201)

    def partial_update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        values = self.read(request, self.change_serializer_class, partial=True, row=row)
        self.check_values(values, row)
        self.parameters.raise_problems()
        return self.respond(self.perform_update(row, values))

    def destroy(self, _request: Request, *args: Any, **kwargs: Any) -> Response:
        self.parameters.raise_problems()
        self.perform_destroy(self.get_object())
        return Response(status=204)

    def check_values(self, values: Any, row: Any = None) -> None:
        """Check what a body says beside its serializer, before an answer is stored under an Idempotency-Key."""


_ROW_METHODS = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}
_NOT_OF_LISTS = {
    "limited_by": (),
    "limited_by_body": False,
    "idempotent": (),
    "problem_statuses": (),
}


def post_action(
    *needs: str, idempotent: bool = False, **options: Any
) -> Callable[[Endpoint], Endpoint]:
    """An `@action` by POST, for whom these permissions are needed; `options` are those of DRF's decorator."""
    methods = ("POST",) if idempotent else ()
    options = {"detail": True, "needs": {"POST": needs}, "idempotent": methods, **options}
    decorate: Any = decorators.action(["post"], **options)
    return cast("Callable[[Endpoint], Endpoint]", decorate)


class ListViewSet(mixins.ListModelMixin, ViewSet):
    """A list in pages."""


class ModelViewSet(ListViewSet):
    """A list in pages, and each of its objects."""

    def retrieve(self, _request: Request, *args: Any, **kwargs: Any) -> Response:
        return self.respond(self.get_object())


HOOKS = {
    "create": "perform_create",
    "partial_update": "perform_update",
    "destroy": "perform_destroy",
}


class Router(routers.SimpleRouter):
    """DRF's router with our names of URLs: those of the list and of the single object, and those that actions say."""

    def __init__(self, list_name: str, name: str) -> None:
        super().__init__(use_regex_path=False)
        of_list, of_row = {"get": "list", "post": "create", "put": "replace"}, _ROW_METHODS
        self.routes = [
            routers.Route("{prefix}/", of_list, list_name, detail=False, initkwargs={}),
            routers.DynamicRoute("{prefix}/{url_path}/", "{url_name}", detail=False, initkwargs={}),
            routers.Route("{prefix}/{lookup}/", of_row, name, detail=True, initkwargs={}),
            routers.DynamicRoute(
                "{prefix}/{lookup}/{url_path}/", "{url_name}", detail=True, initkwargs={}
            ),
        ]

    def get_method_map(self, viewset: Any, method_map: Any) -> dict[str, str]:
        actions: dict[str, str] = super().get_method_map(viewset, method_map)
        return {
            method: action
            for method, action in actions.items()
            if hasattr(viewset, HOOKS.get(action, action))
            or getattr(viewset, action) is not getattr(ViewSet, action, None)
        }


def routes(*objects: tuple[str, type[ViewSet], str, str]) -> list[URLPattern | URLResolver]:
    """Return the URL patterns of view sets: path, view set, name of the list's URL, name of the single object's."""
    patterns: list[URLPattern | URLResolver] = []
    for prefix, viewset, list_name, name in objects:
        router = Router(list_name, name)
        router.register(prefix, viewset, name)
        patterns += router.urls
    return patterns


def endpoints(prefix: str, *routes: tuple[str, type[APIView], str]) -> list[URLPattern]:
    """Return the URL patterns of views below a prefix: the rest of the route, the view, the name of the URL."""
    return [path(f"{prefix}{route}", view.as_view(), name=name) for route, view, name in routes]


class ListView(mixins.ListModelMixin, GenericView):
    """A list in pages."""

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return self.list(request, *args, **kwargs)
