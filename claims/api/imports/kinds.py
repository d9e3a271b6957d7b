"""The kinds of imports in REST, and who may do what with them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework.request import Request

from claims.api.imports import vm
from claims.imports import drafts
from claims.models import VMImport
from pools.api import imports
from pools.core import errors
from pools.models import Import, RegisterImport
from pools.platform.imports.lifecycle import Imports
from pools.platform.rest import generics, token_scopes
from pools.platform.rest.serializers import Serializer
from pools.register.imports import drafts as register_drafts

VM, REGISTER = VMImport.KIND, RegisterImport.KIND


@dataclass(frozen=True)
class ImportKind:
    """What REST knows of one kind of imports. The serializers of a change read a part of its fields (PATCH)."""

    engine: Imports[Any]
    answer: type[imports.ImportSerializer]
    detail: type[imports.ImportSerializer]
    row: type[imports.ImportRowSerializer]
    row_filter: type[imports.ImportRowFilter]
    new: type[imports.NewImportSerializer]
    change: type[Serializer]
    row_change: type[Serializer]
    build: Callable[..., Import]  # of the request, the uploads and the values of `new`
    change_mapping: Callable[..., Import]
    load_rows: Callable[[Any, list[Any]], None]

    @property
    def new_in_json(self) -> type[imports.NewImportSerializer]:
        """Return the description of a new import in JSON, which has no file."""
        name = self.new.__name__.replace("Serializer", "BodySerializer")
        return type(name, (self.new,), {"file": None, "__doc__": self.new.__doc__})


KINDS = {
    REGISTER: ImportKind(
        register_drafts.IMPORTS,
        answer=imports.RegisterImportSerializer,
        detail=imports.RegisterImportSerializer,
        row=imports.RegisterImportRowSerializer,
        row_filter=imports.RegisterRowFilter,
        new=imports.NewRegisterImportSerializer,
        change=imports.RegisterImportChangeSerializer,
        row_change=imports.RegisterImportRowChangeSerializer,
        build=imports.new_register_import,
        change_mapping=imports.change_register_mapping,
        load_rows=imports.load_register_rows,
    ),
    VM: ImportKind(
        drafts.IMPORTS,
        answer=vm.VMImportSerializer,
        detail=vm.VMImportDetailSerializer,
        row=vm.VMImportRowSerializer,
        row_filter=vm.VMRowFilter,
        new=vm.NewVMImportSerializer,
        change=vm.VMImportChangeSerializer,
        row_change=vm.VMImportRowChangeSerializer,
        build=vm.new_vm_import,
        change_mapping=vm.change_vm_mapping,
        load_rows=vm.load_vm_rows,
    ),
}


def any_kind(component: str, part: str, field: str | None = "kind", **options: Any) -> Any:
    """Return the description of a serializer of each kind; `field` of an answer names its kind."""
    return PolymorphicProxySerializer(
        component_name=component,
        # The page of the API shows an example of the first one.
        serializers={name: getattr(KINDS[name], part) for name in (VM, REGISTER)},
        resource_type_field_name=field,
        **options,
    )


# --- permissions ----------------------------------------------------------------------------------


def permitted(request: Request, verb: str) -> dict[str, ImportKind]:
    """Return the kinds of which the user may view, add or change imports.

    A token of one cluster or pool is limited to those of VMs, whose rows stay in the import's cluster.
    """
    limits = token_scopes.limits_of(request.auth)
    is_confined = limits is not None and limits.is_confined
    return {
        name: kind
        for name, kind in KINDS.items()
        if (name == VM or not is_confined) and kind.engine.permits(request.user, verb)
    }


def require(request: Request, name: str, verb: str) -> None:
    """Raise NotAllowed or TokenScope unless the user may view, add or change imports of the kind."""
    if name not in permitted(request, verb):
        generics.require(request, KINDS[name].engine.permission(verb))
        raise errors.TokenScope(
            "This token is limited to one cluster, imports of this kind are not."
        )


class HasKindPermission(generics.HasPermission):
    """The user may do what the view's `needs` say with imports of some kind of its `only_kinds`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not request.user or not request.user.is_authenticated:
            return False
        for verb in view.verbs():
            if not permitted(request, verb).keys() & {*view.only_kinds}:
                for name in view.only_kinds:
                    permission = KINDS[name].engine.permission(verb)
                    token_scopes.explain_missing(request.auth, [permission])
                return False
        return True


class ImportViews(generics.ListViewSet):
    """Endpoints of the imports that the user may see.

    `needs` has what a method does with an import: `view`, `add` or `change` it.
    """

    lookup_url_kwarg = "import_id"
    absent = "There is no such import."
    permission_classes = (HasKindPermission,)
    needs = {"GET": ("view",), "POST": ("add",), "PATCH": ("change",)}
    only_kinds: tuple[str, ...] = tuple(KINDS)

    def verbs(self) -> tuple[str, ...]:
        """Return what the method does with an import; nothing for methods that need a login only."""
        method = str(self.request.method)
        return self.needs.get("GET" if method == "HEAD" else method, ())

    @cached_property
    def import_of_path(self) -> Any:
        """The import. Raises NotFound for one that the user may not see, else NotAllowed."""
        for name, kind in permitted(self.request, "view").items():
            rows = kind.engine.visible(self.request.user).filter(pk=self.kwargs["import_id"])
            if name in self.only_kinds and (row := rows.first()) is not None:
                for verb in self.verbs():
                    require(self.request, name, verb)
                return row
        raise errors.NotFound(self.absent)

    @property
    def kind(self) -> ImportKind:
        return KINDS[self.import_of_path.kind]

    def actor(self) -> dict[str, Any]:
        return {"author": self.author(), "user": self.request.user}
