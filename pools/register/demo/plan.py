"""The address plan of the demo fleet."""

from __future__ import annotations

import pgtrigger

from pools.core import addresses
from pools.models import Container, ContainerEvent
from pools.platform import events
from pools.register.plan import containers

_CONTAINERS = {
    "10.0.0.0/8": ("Data centres", "All sites."),
    "10.32.0.0/11": ("Frankfurt", "Pods of the clusters in Frankfurt."),
    "10.64.0.0/11": ("Berlin", "Planned for pods of the clusters in Berlin."),
    "10.99.0.0/16": ("Laboratory", "VMs of the laboratory."),
    "203.0.113.0/24": ("Public", "Bought addresses."),
}
_MARK = "Demo fleet."  # begins each description, so that only these containers are deleted


def load(*, author: events.Author) -> None:
    """Create the containers that do not exist yet."""
    for text, (name, description) in _CONTAINERS.items():
        if not Container.objects.filter(cidr=text, space=None).exists():
            containers.create(
                addresses.parse_cidr(text),
                author=author,
                name=name,
                description=f"{_MARK} {description}",
            )


def forget() -> None:
    """Delete the containers and their events."""
    rows = Container.objects.filter(
        space=None, cidr__in=list(_CONTAINERS), description__startswith=_MARK
    )
    ids = list(rows.values_list("pk", flat=True))
    rows.delete()
    with pgtrigger.ignore():
        ContainerEvent.objects.filter(pgh_obj_id__in=ids).delete()
