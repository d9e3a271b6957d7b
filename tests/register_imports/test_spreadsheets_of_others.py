"""Spreadsheets of other hands: French headers, headers that nobody knows, gateways, characters of web pages."""

from __future__ import annotations

import pytest

from pools.core import errors
from pools.models import Block, PoolCIDR, ReservedRange
from pools.register.imports import drafts
from tests import factories
from tests.register_imports import sources
from tests.register_imports.sources import counts, rows_of

pytestmark = pytest.mark.django_db


def test_a_french_table() -> None:
    text = (
        "Adresse IP;Nom d\u2019hôte;Commentaire;Sous-réseau;Utilisateur\r\n"
        "10.1.0.6;poste-1;étage 2;10.1.0.0/24;Dupont\r\n"
    )
    draft = sources.draft(text.encode("cp1252"), cluster=factories.cluster())
    assert counts(draft) == {"new": 2}
    prefix, address = rows_of(draft)
    assert (str(prefix.cidr), address.holder_id, address.description) == (
        "10.1.0.0/24", "Dupont", "étage 2",
    )  # fmt: skip
    networks = "Réseau;Masque;Libellé;Client\n10.7.0.0;255.255.255.0;Siège;ACME\n".encode()
    (network,) = rows_of(sources.draft(networks, cluster=factories.cluster()))
    assert (str(network.cidr), network.description, network.org) == ("10.7.0.0/24", "Siège", "ACME")


def test_a_header_that_nobody_knows_is_not_taken_for_a_row() -> None:
    """Its columns would be taken by their position: the tenant for a description."""
    unknown = b"IP-osoite,Isanta,Asiakas\n10.1.0.6,host-1,Acme\n"
    with pytest.raises(errors.InvalidInput, match="no header row found"):
        sources.draft(unknown, cluster=factories.cluster())
    titled = b"Our addresses\n\n10.1.0.0/24,Office\n"
    draft = sources.draft(titled, cluster=factories.cluster())
    assert counts(draft) == {"new": 1, "invalid": 1}  # nothing is left out without a word


def test_a_gateway_beside_prefixes_and_addresses_is_reserved() -> None:
    files = (
        b"Network,Gateway,VLAN,Owner\n10.1.0.0 /24,10.1.0.1,10,Bob\n10.2.0.0/24,10.2.0.254/24,,\n10.3.0.0/24,0.0.0.0,,\n",
        b"IP,Hostname,Default Gateway\n10.1.0.5,a,10.1.0.1\n10.1.0.6,b,10.1.0.1\n10.1.0.1,rtr,10.1.0.1\n",
    )
    cluster = factories.cluster()
    draft = sources.draft(*files, cluster=cluster)
    assert not {"invalid", "conflict"} & counts(draft).keys()
    drafts.IMPORTS.commit(draft.pk, author=sources.BY)
    reserved = ReservedRange.objects.order_by("first").values_list("first", "reason")
    assert [(str(first), reason) for first, reason in reserved] == [
        ("10.1.0.1", "gateway"),
        ("10.2.0.254", "gateway"),
    ]
    assert Block.objects.get(cidr="10.1.0.1/32").holder_id == "rtr"
    assert PoolCIDR.objects.get(cidr="10.1.0.0/24").owner == "Bob"
    assert set(counts(sources.draft(*files, cluster=cluster))) == {"unchanged"}


def test_blanks_and_invisible_characters_of_web_pages() -> None:
    text = "prefix,description,tenant\n10.1.0.0/24,a\u200bb\u00adc\u00a0d,Acme\u00a0GmbH\u200e\n"
    (row,) = rows_of(sources.draft(text.encode(), cluster=factories.cluster()))
    assert (row.status, row.description, row.org) == ("new", "abc d", "Acme GmbH")
