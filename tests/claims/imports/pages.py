"""Browsers and pages for the tests of the import pages."""

from typing import Any

from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from claims.access import memberships
from claims.models import NAD, Network, VMImport
from tests.claims import worlds

NEW = "admin:pools_import_add"


def browser(role: str = "operator") -> Client:
    user = User.objects.create(username=role, is_staff=True)
    user.groups.set([Group.objects.get(name=role)])
    client = Client()
    client.force_login(user)
    return client


def owner(network: Network, *namespaces: str) -> Client:
    """Somebody who owns the VMs of these namespaces, which use the network."""
    for namespace in namespaces:
        NAD.objects.create(network=network, namespace=namespace, name="n")
    client = browser("vm-owner")
    user = User.objects.get(username="vm-owner")
    memberships.create(network.cluster, list(namespaces), author=worlds.BY, user=user)
    return client


def text(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status, answer.status_code
    return " ".join(answer.content.decode().split())


def url(of: VMImport) -> str:
    return reverse("admin:pools_import_change", args=[of.pk])


def page(client: Client, of: VMImport, **query: Any) -> str:
    return text(client.get(url(of), query))


def do(client: Client, of: VMImport, action: str, **said: Any) -> str:
    """A button of the page; the page that comes after it."""
    return text(client.post(url(of), {"action": action, **said}, follow=True))


def typed(network: Network, **more: Any) -> dict[str, Any]:
    """What the form of a new import sends."""
    said = {
        "kind": "one",
        "where": f"network-{network.pk}",
        "target": "ippool",
        "namespace": "shop",
    }
    return said | {"vm": "web", "mac": "00:50:56:00:00:01", "ips": "10.0.0.5"} | more


def file(content: bytes, name: str = "vms.csv") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)
