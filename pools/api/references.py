"""references/: inventory reports, in which tooling lists the holders that still use blocks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeGuard

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import lookups
from pools.api.schemas import leaks
from pools.core import block_fields, errors, holders, object_reader
from pools.models import Cluster, ReferenceFeed
from pools.platform.rest import pagination, parsing, query, views
from pools.register.leaks import references
from pools.register.leaks.references import MOST_HOLDERS, ReferencedHolder

LARGEST = 32 * 1024 * 1024  # bytes: 200,000 holders with Kubernetes names and uids
_SEQUENCES = 1 << 63
_FIELDS = ("cluster", "holder_kind", "sequence", "complete", "holders", "removed", "observed_at")
_HOLDER_FIELDS = frozenset({"id", "uid", "org"})


class References(views.View):
    needs = {"GET": ("pools.view_referencefeed",), "POST": ("pools.report_references",)}

    @extend_schema(**leaks.FEEDS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = ReferenceFeed.objects.all()
        if cluster := parameters.parse("cluster", lookups.cluster):
            rows = rows.filter(cluster=cluster)
        if kind := parameters.text("holder_kind"):
            rows = rows.filter(holder_kind=kind)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=leaks.FEED_FIELDS,
                shape=_shapes,
            )
        )

    @extend_schema(**leaks.REPORT)
    def post(self, request: Request) -> views.Answer:
        report = parse_report(parsing.fields(request, *_FIELDS, limit=LARGEST))
        return views.answer(references.ingest_report(report, author=views.author(request)))


def parse_report(body: object_reader.Fields) -> references.ReferenceReport:
    """Return the report of the body.

    Raises InvalidInput with all problems: unknown_cluster, k8s_name, out_of_range,
    conflicting_fields, …
    """
    cluster = body.parse("cluster", _cluster)
    kind = body.parse("holder_kind", _kind)
    sequence = body.parse("sequence", _sequence)
    if body.data.get("complete") is None:
        body.report.add("complete", "required", "set whether the report lists all holders")
    complete = body.flag("complete")
    if not body.has("holders"):
        body.report.add("holders", "required", "is required")
    present_holders, removed = _holders(body, "holders"), _holders(body, "removed")
    observed_at = body.parse("observed_at", _moment) if body.has("observed_at") else None
    if complete and body.has("removed"):
        message = "a complete report lists all holders and removes those that it does not list"
        body.report.add("removed", "conflicting_fields", message)
    elif repeated_holders := set(present_holders) & set(removed):
        message = f"{min(repeated_holders).id} is also listed in holders"
        body.report.add("removed", "conflicting_fields", message)
    body.report.raise_any()
    if cluster is None or kind is None or sequence is None:
        raise AssertionError("unreachable: the missing field was reported")
    return references.ReferenceReport(
        cluster, kind, sequence, complete, present_holders, removed, observed_at
    )


def _cluster(value: object, field: str) -> Cluster:
    return lookups.cluster(parsing.text(value, field), field)


def _kind(value: object, field: str) -> str:
    return holders.parse_name(value, field=field, kind="label")


def _sequence(value: object, field: str) -> int:
    return parsing.integer(value, field, least=0, most=_SEQUENCES - 1)


def _moment(value: object, field: str) -> datetime:
    return query.moment(parsing.text(value, field), field).astimezone(UTC)


def _holders(body: object_reader.Fields, key: str) -> list[ReferencedHolder]:
    values = body.data.get(key)
    if values is None:
        return []
    if not isinstance(values, list):
        body.report.add(key, "wrong_type", "a list is expected", values)
        return []
    if len(values) > MOST_HOLDERS:
        body.report.add(key, "out_of_range", f"at most {MOST_HOLDERS} holders in one report")
        return []
    holders_ = []
    for index, value in enumerate(values):
        holder = _plain_holder(value)
        if holder is None:
            with body.report.collecting():
                holder = _parse_holder(value, f"{key}.{index}")
        if holder is not None:
            holders_.append(holder)
        elif len(body.report.problems) >= _SHOWN:
            break
    return holders_


_SHOWN = 100  # problems in one response


def _plain_holder(value: Any) -> ReferencedHolder | None:
    """Return a valid holder of printable ASCII, else None.

    The fast path for nearly all of the hundred thousand holders of a report.
    """
    if not (isinstance(value, dict) and _HOLDER_FIELDS.issuperset(value)):
        return None
    name, uid, org = value.get("id"), value.get("uid", ""), value.get("org", "")
    if not (_is_plain(name) and ("uid" not in value or _is_plain(uid))):
        return None
    return ReferencedHolder(name, uid, org) if "org" not in value or _is_plain(org) else None


def _is_plain(text: object) -> TypeGuard[str]:
    return (
        isinstance(text, str)
        and text.isascii()
        and text.isprintable()
        and 0 < len(text) <= holders.LONGEST_IDENTIFIER
        and text[0] != " " != text[-1]
    )


def _parse_holder(value: object, field: str) -> ReferencedHolder:
    if not isinstance(value, dict):
        raise errors.InvalidInput.for_field(field, "wrong_type", "an object is expected", value)
    body = object_reader.Fields(value, field, object_reader.ProblemReport())
    body.only("id", "uid", "org")
    name = body.parse("id", _identifier)
    uid = body.parse("uid", _identifier) if body.has("uid") else None
    org = body.parse("org", _identifier) if body.has("org") else None
    body.report.raise_any()
    return ReferencedHolder(name or "", uid or "", org or "")


def _identifier(value: object, field: str) -> str:
    return holders.parse_identifier(value, field=field)


def _shapes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = Cluster.objects.in_bulk({row["cluster_id"] for row in rows})
    return [
        {
            "id": row["id"],
            "cluster": names[row["cluster_id"]].name,
            "holder_kind": row["holder_kind"],
            "sequence": row["sequence"],
            "holders": row["answer"].get("holders", 0),
            "reporter": row["reporter"],
            "reported_at": block_fields.time(row["reported_at"]),
            "complete_at": block_fields.time(row["complete_at"]),
        }
        for row in rows
    ]
