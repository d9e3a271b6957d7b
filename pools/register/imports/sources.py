"""NetBox sources: URL and sealed token, single imports, and a mirror that runs by a schedule, one way."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db.models import F, Q

from pools.core import errors
from pools.models import Clock, NetBoxSource, Now, RegisterImport, RowStatus
from pools.models.imports import ImportStatus as Status
from pools.platform import database, events
from pools.platform.imports import states
from pools.platform.outbound import credentials, secrets
from pools.platform.outbound.credentials import Access
from pools.platform.rest import parsing
from pools.register.imports import netbox
from pools.register.imports.files import Reading

LONGEST_TOKEN = 300
LEAST_MINUTES, MOST_MINUTES = 5, 7 * 24 * 60
_UNDER_WAY = Q(status__in=[Status.QUEUED, Status.DRAFTING, Status.COMMITTING])


def parse_url(value: object, field: str = "url") -> str:
    """Return the URL of a NetBox without `/api` and trailing slash. Raises InvalidInput."""
    url = credentials.parse_url(parsing.text(value, field), field=field)
    return url.rstrip("/").removesuffix("/api")


def parse_token(value: object, field: str = "token") -> str:
    """Return an API token of NetBox. Raises InvalidInput; the message does not repeat the token."""
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(field, "wrong_type", "must be a text")
    token = value.strip()
    if not 0 < len(token) <= LONGEST_TOKEN or not (token.isascii() and token.isprintable()):
        message = f"a token has 1 to {LONGEST_TOKEN} visible ASCII characters"
        raise errors.InvalidInput.for_field(field, "token", message)
    if " " in token:
        raise errors.InvalidInput.for_field(field, "token", "write the token without its scheme")
    return token


def parse_ca(value: object, field: str = "ca") -> str:
    """Return certificates in PEM, or "". Raises InvalidInput."""
    return credentials.parse_ca(parsing.text(value, field), field)


def parse_minutes(value: object, field: str = "every_minutes") -> int:
    """Return the minutes between two runs. Raises InvalidInput."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise errors.InvalidInput.for_field(field, "wrong_type", "must be a whole number", value)
    if not LEAST_MINUTES <= value <= MOST_MINUTES:
        message = f"is {LEAST_MINUTES} to {MOST_MINUTES} minutes"
        raise errors.InvalidInput.for_field(field, "out_of_range", message, value)
    return value


def create(values: Mapping[str, Any], *, token: str, author: events.Author) -> NetBoxSource:
    """Create a source; its token is sealed. Raises AlreadyExists, KeyRingInvalid."""
    ring = secrets.key_ring()
    with events.recorded_by(author):
        _refuse_second(values["name"])
        source = NetBoxSource.objects.create(**values, sealed="")
        source.sealed = ring.seal(token.encode(), owner=owner(source.pk))
        source.next_run_at = Now() if source.every_minutes else None
        source.save(update_fields=["sealed", "next_run_at"])
    return NetBoxSource.objects.select_related("cluster").get(pk=source.pk)


def change(
    source_id: int,
    values: Mapping[str, Any],
    *,
    token: str | None = None,
    author: events.Author,
    version: database.Version = None,
) -> NetBoxSource:
    """Change a source; without `token` it keeps its own. Raises NotFound, VersionMismatch, AlreadyExists.

    A token stays with its server: another URL needs the token again (InvalidInput `required`).
    """
    with events.recorded_by(author):
        source = _locked(source_id)
        database.require_version(source, version)
        if values.get("url", source.url) != source.url and token is None:
            message = "another URL needs the token again"
            raise errors.InvalidInput.for_field("token", "required", message)
        if values.get("name", source.name) != source.name:
            _refuse_second(values["name"])
        for name, value in values.items():
            setattr(source, name, value)
        if token is not None:
            source.sealed = secrets.key_ring().seal(token.encode(), owner=owner(source_id))
        source.next_run_at = Now() if source.every_minutes else None
        source.save()
    return NetBoxSource.objects.select_related("cluster").get(pk=source_id)


def delete(source_id: int, *, author: events.Author) -> None:
    """Delete a source; what it brought stays in the register. Raises NotFound."""
    with events.recorded_by(author):
        _locked(source_id).delete()


def _locked(source_id: int) -> NetBoxSource:
    source = NetBoxSource.objects.select_for_update().filter(pk=source_id).first()
    if source is None:
        raise errors.NotFound("There is no such NetBox source.")
    return source


def _refuse_second(name: str) -> None:
    if NetBoxSource.objects.filter(name=name).exists():
        raise errors.AlreadyExists(f"There is a NetBox source {name} already.")


def owner(source_id: int) -> str:
    """Return the owner that the sealed token of a source is bound to."""
    return f"netbox:{source_id}"


def read(source: NetBoxSource) -> Reading:
    """Read the NetBox completely. Raises ClusterFault."""
    token = secrets.key_ring().open(source.sealed, owner=owner(source.pk)).decode()
    return netbox.read(Access(source.url, ca=source.ca, token=token))


def reseal() -> secrets.ResealResult:
    """Seal all tokens with the newest key of the ring. Raises KeyRingInvalid."""
    rows = NetBoxSource.objects.all()
    return secrets.reseal(rows, lambda row: owner(row.pk), lambda row: row.name)


# --- imports of a source --------------------------------------------------------------------------


def start(
    source_id: int, *, mirror: bool, author: events.Author, user: Any = None
) -> RegisterImport:
    """Queue an import of a source: a draft, or with `mirror` a run that also releases what has vanished.

    Raises NotFound, ImportState if an import of the source is under way.
    """
    with events.recorded_by(author):
        source = _locked(source_id)
        if source.imports.filter(_UNDER_WAY).exists():
            raise errors.ImportState("An import of this NetBox is under way.")
        return _queue(source, mirror=mirror, author=author, user=user)


def _queue(
    source: NetBoxSource, *, mirror: bool, author: events.Author, user: Any = None
) -> RegisterImport:
    queued = RegisterImport.new(
        netbox_source=source,
        mirror=mirror,
        cluster_id=source.cluster_id,
        mapping=source.mapping,
        holder_kind=source.holder_kind,
        cooldown_seconds=source.cooldown_seconds,
        format="netbox-api",
        file_name=source.name,
        commit_wanted=mirror,
        skip_bad=mirror,
        user=user,
        **states.author_fields(author),
    )
    queued.save()
    return queued


def queue_due() -> list[int]:
    """Queue a run of each mirror that is due, and return the ids of the imports."""
    queued = []
    with events.recorded_by(events.WORKER):
        due = NetBoxSource.objects.select_for_update(skip_locked=True).filter(
            next_run_at__lte=Clock(), every_minutes__isnull=False
        )
        for source in due:
            NetBoxSource.objects.filter(pk=source.pk).update(
                next_run_at=Clock() + F("every_minutes") * timedelta(minutes=1)
            )
            if not source.imports.filter(_UNDER_WAY).exists():
                queued.append(_queue(source, mirror=True, author=events.WORKER).pk)
    return queued


def failed_mirrors() -> list[tuple[str, str, str]]:
    """Return (name, code, error) of each mirror whose last run failed; one that was switched off is no mirror."""
    runs = RegisterImport.objects.filter(mirror=True, status__in=[Status.COMMITTED, Status.FAILED])
    runs = runs.filter(netbox_source__every_minutes__isnull=False)
    runs = runs.order_by("netbox_source__name", "-pk")
    last = runs.distinct("netbox_source__name").select_related("netbox_source")
    failed = [run for run in last if run.status == Status.FAILED]
    return [(str(run.netbox_source), run.error_code, run.error) for run in failed]


def lacking_mirrors() -> list[tuple[str, int, int]]:
    """Return (name, id of the run, number of objects) of each source that lacks objects which nobody confirmed yet."""
    runs = RegisterImport.objects.filter(
        status=Status.COMMITTED, mirror=True, counts__has_key=RowStatus.VANISHED
    )
    rows = runs.exclude(netbox_source=None).values_list("netbox_source__name", "pk", "counts")
    return [(name, pk, counts[RowStatus.VANISHED]) for name, pk, counts in rows.order_by("pk")]
