"""The VM manifest on the pages of entries and claims, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from claims.access import namespaces
from claims.models import Network
from claims.workloads import vm_manifests
from pools.core import errors
from pools.platform import documents
from pools.platform.admin import pages


@dataclass(frozen=True)
class VMText:
    """A manifest, or the reason why there is none; one of them is empty."""

    text: str = ""
    why_not: str = ""


def manifest_text(
    network: Network,
    *,
    vm: str,
    namespace: str,
    mac: str | None,
    scope: namespaces.Scope,
    missing_vm_text: str,
) -> VMText:
    """Return the manifest of a VM as YAML, or the reason why it cannot be shown.

    `missing_vm_text` is the reason if the VM or its namespace is not known.
    """
    if not vm or not namespace:
        return VMText(why_not=missing_vm_text)
    try:
        manifest = vm_manifests.vm_manifest(
            network, vm=vm, namespace=namespace, mac=mac, scope=scope
        )
    except errors.IpamError as error:
        return VMText(why_not=pages.sentence(error.message))
    return VMText(text=documents.dump_yaml(manifest))
