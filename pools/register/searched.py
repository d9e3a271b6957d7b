"""What a search looks for in the tables of the address space (`pools.platform.search`)."""

from django.contrib.auth.models import Group, User
from django.db.models import Model
from knox.models import AuthToken

from pools import models
from pools.platform.search import Searched

_HOLDER = ("holder_kind", "holder_id", "holder_uid")
_OBJECT = ("cluster__name", "kind", "namespace", "name")
_ATTRIBUTES = ("owner", "tags", "custom_fields")
_ROW_TEXTS = ("org", "holder_id", "pool_name", "space_name", "description")

# In the order in which Find and the palette show them.
COLUMNS: dict[type[Model], Searched] = {
    models.Cluster: Searched(("name", "description", *_ATTRIBUTES), ("cluster_prefix",)),
    models.Pool: Searched(
        ("cluster__name", "name", "description", *_ATTRIBUTES),
        parts={models.PoolCIDR: "pool_id"},
    ),
    models.Block: Searched(("org", "env", *_HOLDER), ("cidr",), keys={"pool_id": models.Pool}),
    models.Environment: Searched(
        ("cluster__name", "org", "env", "description", "reason", "message")
    ),
    models.Container: Searched(
        ("space__cluster__name", "name", "description", *_ATTRIBUTES), ("cidr",)
    ),
    models.PoolCIDR: Searched(
        ("pool__cluster__name", "pool__name", *_ATTRIBUTES),
        ("cidr",),
        parts={models.ReservedRange: "pool_cidr_id"},
    ),
    models.CIDRMigration: Searched(
        ("pool__cluster__name", "pool__name", "started_by", "reason"), ("cidr", "to")
    ),
    models.ReservedRange: Searched(("reason",), ("first", "last")),
    models.ObservedCIDR: Searched(
        ("space__cluster__name", "kind", "namespace", "name", "role", "detail"), ("cidr",)
    ),
    models.ObservedObject: Searched((*_OBJECT, "uid", "problem")),
    models.AllocationRequest: Searched(
        ("org", "env", *_HOLDER[:2], "last_error"), keys={"pool_id": models.Pool}
    ),
    models.Leak: Searched(
        ("cluster__name", "block__pool__name", "block__org", "block__env", *_HOLDER, "source"),
        ("block__cidr",),
    ),
    models.Alert: Searched(
        ("title", "detail", "subject", "acknowledged_reason", "acknowledged_by")
    ),
    models.Finding: Searched(("cluster__name", "kind", "subject", "message", "code")),
    models.Drift: Searched(
        (*_OBJECT, "path", "desired", "observed", "managers", "conflict", "ignored_reason")
    ),
    models.Import: Searched(("cluster__name", "file_name", "actor", "error", "request_id")),
    models.NetBoxSource: Searched(("name", "url", "cluster__name")),
    models.SyncRun: Searched(("cluster__name", "trigger", "error_code", "error")),
    models.WebhookTarget: Searched(("name", "url")),
    models.CustomField: Searched(("name", "label", "description")),
    AuthToken: Searched(("user__username", "scope__description")),
    User: Searched(("username", "first_name", "last_name", "email")),
    Group: Searched(("name",)),
    models.Event: Searched(
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
        keys={"pool_id": models.Pool, "cluster_id": models.Cluster},
    ),
    models.RegisterRow: Searched(
        ("texts",),
        json=tuple(f"values__{name}" for name in _ROW_TEXTS),
        json_cidrs=("values__cidr", "values__first", "values__last"),
    ),
}
