"""`manage.py rotate_keys`: a new key in front of the ring, all credentials under it, the old one away."""

import io
import secrets as random
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from pools.clusters import connections
from pools.clusters.reconcile import connecting
from pools.models import Connection, ConnectionEvent
from tests import factories
from tests.kube import certificates, kubeconfigs

pytestmark = pytest.mark.django_db
CA = certificates.Authority().pem


def _connected(token: str) -> Connection:
    text = kubeconfigs.text("https://10.1.2.3:6443", CA, token=token)
    source = connections.from_kubeconfig(text)
    terms = connections.Terms()
    return connections.connect(
        factories.cluster(), source, terms, author=factories.BY, offline=True
    )


def _rotate() -> str:
    out = io.StringIO()
    call_command("rotate_keys", stdout=out, stderr=out)
    return out.getvalue()


def test_rotated_and_the_old_key_taken_away(settings: Any) -> None:
    first, second = _connected("token-a"), _connected("token-b")
    old, new = settings.IPAM_KEY_RING[0], random.token_urlsafe(32)
    settings.IPAM_KEY_RING = [new, old]
    events = ConnectionEvent.objects.count()
    assert _rotate() == "2 re-encrypted, 0 already encrypted with the newest key.\n"
    assert _rotate() == "0 re-encrypted, 2 already encrypted with the newest key.\n"
    settings.IPAM_KEY_RING = [new]
    for row, token in ((first, "token-a"), (second, "token-b")):
        row.refresh_from_db()
        assert connecting.cluster_access(row).token == token
    assert ConnectionEvent.objects.count() == events


def test_a_key_that_went_too_early_is_told_of_each_cluster(settings: Any) -> None:
    lost = _connected("token-a")
    settings.IPAM_KEY_RING = [random.token_urlsafe(32)]
    _connected("token-b")
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 could not be decrypted"):
        call_command("rotate_keys", stdout=out, stderr=out)
    assert f"{lost.cluster.name}: key_missing" in out.getvalue()


def test_no_ring_at_all(settings: Any) -> None:
    settings.IPAM_KEY_RING = []
    with pytest.raises(CommandError, match="key_ring_invalid"):
        _rotate()
