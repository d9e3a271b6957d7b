"""references/: who still refers to blocks, as tooling reports it."""

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

LARGEST = 32 * 1024 * 1024  # bytes: 200,000 holders with ids and uids as Kubernetes has them
_SEQUENCES = 1 << 63
_FIELDS = ("cluster", "holder_kind", "sequence", "complete", "holders", "removed", "observed_at")
_NAMED = frozenset({"id", "uid", "org"})


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
        report = read(parsing.fields(request, *_FIELDS, limit=LARGEST))
        return views.answer(references.ingest_report(report, author=views.author(request)))


def read(body: object_reader.Fields) -> references.ReferenceReport:
    """InvalidInput with all problems: unknown_cluster, k8s_name, out_of_range, conflicting_fields, …"""
    cluster = body.parse("cluster", _cluster)
    kind = body.parse("holder_kind", _kind)
    sequence = body.parse("sequence", _sequence)
    if body.data.get("complete") is None:
        body.report.add("complete", "required", "say whether these are all holders")
    complete = body.flag("complete")
    if not body.has("holders"):
        body.report.add("holders", "required", "is required")
    holders_, removed = _named(body, "holders"), _named(body, "removed")
    observed_at = body.parse("observed_at", _moment) if body.has("observed_at") else None
    if complete and body.has("removed"):
        message = "a complete report has all holders: who is not named is not there"
        body.report.add("removed", "conflicting_fields", message)
    elif both := set(holders_) & set(removed):
        message = f"{min(both).id} is among the holders, too"
        body.report.add("removed", "conflicting_fields", message)
    body.report.raise_any()
    if cluster is None or kind is None or sequence is None:
        raise AssertionError("unreachable: what is missing was reported")
    return references.ReferenceReport(
        cluster, kind, sequence, complete, holders_, removed, observed_at
    )


def _cluster(value: object, at: str) -> Cluster:
    return lookups.cluster(parsing.text(value, at), at)


def _kind(value: object, at: str) -> str:
    return holders.parse_name(value, field=at, kind="label")


def _sequence(value: object, at: str) -> int:
    return parsing.integer(value, at, least=0, most=_SEQUENCES - 1)


def _moment(value: object, at: str) -> datetime:
    return query.moment(parsing.text(value, at), at).astimezone(UTC)


def _named(body: object_reader.Fields, key: str) -> list[ReferencedHolder]:
    listed = body.data.get(key)
    if listed is None:
        return []
    if not isinstance(listed, list):
        body.report.add(key, "wrong_type", "a list is expected", listed)
        return []
    if len(listed) > MOST_HOLDERS:
        body.report.add(key, "out_of_range", f"at most {MOST_HOLDERS} holders in one report")
        return []
    found = []
    for index, value in enumerate(listed):
        named = _plain(value)
        if named is None:
            with body.report.collecting():
                named = _one(value, f"{key}.{index}")
        if named is not None:
            found.append(named)
        elif len(body.report.problems) >= _SHOWN:
            break
    return found


_SHOWN = 100  # problems of one report


def _plain(value: Any) -> ReferencedHolder | None:
    """A holder of plain ASCII without anything to report, which nearly all are: a hundred thousand."""
    if not (isinstance(value, dict) and _NAMED.issuperset(value)):
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


def _one(value: object, at: str) -> ReferencedHolder:
    if not isinstance(value, dict):
        raise errors.InvalidInput.for_field(at, "wrong_type", "an object is expected", value)
    body = object_reader.Fields(value, at, object_reader.ProblemReport())
    body.only("id", "uid", "org")
    name = body.parse("id", _identifier)
    uid = body.parse("uid", _identifier) if body.has("uid") else None
    org = body.parse("org", _identifier) if body.has("org") else None
    body.report.raise_any()
    return ReferencedHolder(name or "", uid or "", org or "")


def _identifier(value: object, at: str) -> str:
    return holders.parse_identifier(value, field=at)


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
