"""What a search looks for in the tables of the address space (`pools.platform.search`)."""

from django.contrib.auth.models import Group, User
from django.db.models import Model
from knox.models import AuthToken

from pools.models import (
    Alert,
    AllocationRequest,
    Block,
    CIDRMigration,
    Cluster,
    Container,
    CustomField,
    Drift,
    Environment,
    Event,
    Finding,
    Import,
    Leak,
    NetBoxSource,
    ObservedCIDR,
    ObservedObject,
    Pool,
    PoolCIDR,
    RegisterRow,
    ReservedRange,
    SyncRun,
    WebhookTarget,
)
from pools.platform.search import Searched

_HOLDER = ("holder_kind", "holder_id", "holder_uid")
_OBJECT = ("cluster__name", "kind", "namespace", "name")
_ATTRIBUTES = ("owner", "tags", "custom_fields")
_ROW_TEXTS = ("org", "holder_id", "pool_name", "space_name", "description")

# In the order in which Find and the palette show them.
COLUMNS: dict[type[Model], Searched] = {
    Cluster: Searched(("name", "description", *_ATTRIBUTES), ("cluster_prefix",)),
    Pool: Searched(
        ("cluster__name", "name", "description", *_ATTRIBUTES),
        parts={PoolCIDR: "pool_id"},
    ),
    Block: Searched(("org", "env", *_HOLDER), ("cidr",), keys={"pool_id": Pool}),
    Environment: Searched(("cluster__name", "org", "env", "description", "reason", "message")),
    Container: Searched(("space__cluster__name", "name", "description", *_ATTRIBUTES), ("cidr",)),
    PoolCIDR: Searched(
        ("pool__cluster__name", "pool__name", *_ATTRIBUTES),
        ("cidr",),
        parts={ReservedRange: "pool_cidr_id"},
    ),
    CIDRMigration: Searched(
        ("pool__cluster__name", "pool__name", "started_by", "reason"), ("cidr", "to")
    ),
    ReservedRange: Searched(("reason",), ("first", "last")),
    ObservedCIDR: Searched(
        ("space__cluster__name", "kind", "namespace", "name", "role", "detail"), ("cidr",)
    ),
    ObservedObject: Searched((*_OBJECT, "uid", "problem")),
    AllocationRequest: Searched(("org", "env", *_HOLDER[:2], "last_error"), keys={"pool_id": Pool}),
    Leak: Searched(
        ("cluster__name", "block__pool__name", "block__org", "block__env", *_HOLDER, "source"),
        ("block__cidr",),
    ),
    Alert: Searched(("title", "detail", "subject", "acknowledged_reason", "acknowledged_by")),
    Finding: Searched(("cluster__name", "kind", "subject", "message", "code")),
    Drift: Searched(
        (*_OBJECT, "path", "desired", "observed", "managers", "conflict", "ignored_reason")
    ),
    Import: Searched(("cluster__name", "file_name", "actor", "error", "request_id")),
    NetBoxSource: Searched(("name", "url", "cluster__name")),
    SyncRun: Searched(("cluster__name", "trigger", "error_code", "error")),
    WebhookTarget: Searched(("name", "url")),
    CustomField: Searched(("name", "label", "description")),
    AuthToken: Searched(("user__username", "scope__description")),
    User: Searched(("username", "first_name", "last_name", "email")),
    Group: Searched(("name",)),
    Event: Searched(
        (
            "org",
            "env",
            "holder_kind",
            "holder_id",
            "cidr",
            "message",
            "reason",
            "actor",
            "request_id",
        ),
        keys={"pool_id": Pool, "cluster_id": Cluster},
    ),
    RegisterRow: Searched(
        ("texts",),
        json=tuple(f"values__{name}" for name in _ROW_TEXTS),
        json_cidrs=("values__cidr", "values__first", "values__last"),
    ),
}
