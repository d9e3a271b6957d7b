"""Create, change and delete network containers: the CIDRs of the address plan that group others.

A container holds nothing by itself: it nests in other containers freely, and its deletion changes nothing
of what it contains.
"""

from collections.abc import Mapping

from django.db import models

from pools.core import addresses, errors
from pools.models import AddressSpace, Container
from pools.platform import advisory_locks, attributes, database, events


def create(
    cidr: addresses.Network,
    *,
    author: events.Author,
    space: AddressSpace | None = None,
    **values: object,
) -> Container:
    """Create a container; without an address space it is one of the fleet. Raises AlreadyExists, InvalidInput."""
    with events.recorded_by(author):
        advisory_locks.lock_plan()
        container = Container(cidr=cidr, space=space)
        attributes.assign(container, values)
        _refuse_second(container)
        database.save(container)
    return container


def change(
    container_id: int,
    values: Mapping[str, object],
    *,
    author: events.Author,
    version: database.Version = None,
) -> Container:
    """Change the CIDR, the name, the description or the attributes.

    Raises NotFound, VersionMismatch, AlreadyExists, InvalidInput.
    """
    with events.recorded_by(author):
        advisory_locks.lock_plan()
        attributes.lock_definitions(values)
        container = _get_locked(container_id, version)
        attributes.assign(container, values)
        _refuse_second(container)
        container.version += 1
        database.save(container)
    return container


def delete(container_id: int, *, author: events.Author, version: database.Version = None) -> None:
    """Delete a container; what is inside stays. Raises NotFound, VersionMismatch."""
    with events.recorded_by(author):
        advisory_locks.lock_plan()
        _get_locked(container_id, version).delete()


def find_space(text: str) -> AddressSpace | None:
    """Return the address space of this name: `CLUSTER`, or `CLUSTER/NETWORK` of an isolated network."""
    cluster, _, name = text.partition("/")
    if "\0" in text:  # PostgreSQL text cannot contain it
        return None
    spaces = AddressSpace.objects.select_related("cluster")
    return spaces.filter(cluster__name=cluster, name=name).first()


def _get_locked(container_id: int, version: database.Version) -> Container:
    rows: models.QuerySet[Container] = Container.objects.select_related("space__cluster")
    container = rows.filter(pk=container_id).first()
    if container is None:
        raise errors.NotFound("There is no such network container.")
    database.require_version(container, version)
    return container


def _refuse_second(container: Container) -> None:
    rows = Container.objects.filter(cidr=str(container.cidr), space=container.space)
    if rows.exclude(pk=container.pk).exists():
        scope = f"The address space {container.space}" if container.space else "The fleet"
        raise errors.AlreadyExists(f"{scope} already has a container {container.cidr}.")
