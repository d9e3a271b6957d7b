"""The manifest of a VM on the pages of what gives it its addresses, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext

from claims.access import namespaces
from claims.models import Network
from claims.workloads import vm_manifests
from pools.core import errors
from pools.platform import documents
from pools.platform.admin import pages


@dataclass(frozen=True)
class VMText:
    text: str = ""
    why_not: str = ""


def manifest_text(
    network: Network,
    *,
    vm: str,
    namespace: str,
    mac: str | None,
    scope: namespaces.Scope,
    what: str,
) -> VMText:
    """`what` names that whose page it is: `the entry`."""
    if not vm or not namespace:
        return VMText(
            why_not=(gettext("It is not known of which VM %(what)s is.") % {"what": what})
        )
    try:
        manifest = vm_manifests.vm_manifest(
            network, vm=vm, namespace=namespace, mac=mac, scope=scope
        )
    except errors.IpamError as error:
        return VMText(why_not=pages.sentence(error.message))
    return VMText(text=documents.dump_yaml(manifest))
