"""The topology of a network shows a VM owner the objects of their namespaces, and nothing else."""

from __future__ import annotations

import pytest
from django.urls import reverse

from claims.models import NAD
from tests.claims import worlds
from tests.claims.access.test_find_and_start import browser

pytestmark = pytest.mark.django_db


def test_an_owner_sees_the_objects_of_their_namespaces() -> None:
    network = worlds.network()
    ippool = worlds.ippool(network)
    for number, namespace in enumerate(("shop", "bank"), start=5):
        NAD.objects.create(
            network=network, namespace=namespace, name="n", allow_persistent_ips=True
        )
        mac, address = f"02:00:00:00:00:0{number}", f"10.0.0.{number}/24"
        worlds.entry(ippool, mac, address, vm="web", namespace=namespace)
        worlds.claim(network, "web", address, namespace=namespace, mac=mac)
        worlds.workload(network, f"vm-{namespace}", mac, address, namespace=namespace)
    url = reverse("admin:claims_network_topology", args=[network.pk])
    viewer = browser("viewer").get(url).content.decode()
    owner = browser(namespace="shop").get(url).content.decode()
    for text in ("02:00:00:00:00:06", "10.0.0.6", "bank/vm-bank"):
        assert text in viewer, text
        assert text not in owner, text
    for text in ("02:00:00:00:00:05", "10.0.0.5", "shop/vm-shop"):
        assert text in owner, text
    assert browser(namespace="other").get(url).status_code == 404
