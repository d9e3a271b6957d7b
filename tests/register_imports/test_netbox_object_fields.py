"""Custom fields of NetBox that refer to other objects, or have several values or JSON: readable texts here, ids on the way back."""

from __future__ import annotations

from typing import Any

import pytest

from pools.models import CustomField, PoolCIDR
from pools.register import pools
from pools.register.imports import drafts
from tests.edges import api as apis
from tests.register_imports.netbox_server import NetBox
from tests.register_imports.sources import BY, counts, exported
from tests.register_imports.test_imported_attributes import attributes, define, reasons
from tests.register_imports.test_netbox_mirror import run, source

pytestmark = pytest.mark.django_db(transaction=True)

PREFIX = "10.1.1.0/24"


def reference(pk: int, display: str, **more: Any) -> dict[str, Any]:
    """An object as NetBox nests it in `custom_fields`; one of an address has no name."""
    return {"id": pk, "url": f"https://netbox/api/dcim/devices/{pk}/", "display": display, **more}


VALUES: dict[str, Any] = {
    "device": reference(3, "sw1 (rack 7)", name="sw1"),
    "vlans": [reference(12, "Büro (10)"), reference(13, "Lab (20)")],
    "stages": ["test", "live"],
    "facts": {"id": 1, "größe": [1, None]},
    "nobody": None,
    "none": [],
}


def test_they_are_texts_that_follow_are_restored_and_go_back_by_id(server: NetBox) -> None:
    for name in ("device", "vlans", "stages", "facts"):
        define(name, kinds="cidr")
    prefix = server.prefix(PREFIX, custom_fields=dict(VALUES))
    mirror = source(server)
    assert counts(run(mirror)) == {"new": 1}
    before = attributes(PREFIX)[2]
    assert before == {
        "device": "sw1 (rack 7)",
        "vlans": "Büro (10),Lab (20)",
        "stages": "test,live",
        "facts": '{"id": 1, "größe": [1, null]}',
    }
    assert counts(run(mirror)) == {"unchanged": 1}

    (row,) = exported("prefixes")
    columns = {name: text for name, text in row.items() if name.startswith("cf_")}
    assert columns == {
        "cf_device": "3",
        "cf_vlans": "12,13",
        "cf_stages": "test,live",
        "cf_facts": '{"id": 1, "größe": [1, null]}',
    }

    prefix["custom_fields"]["device"] = reference(4, "sw1 (rack 7)", name="sw1")
    prefix["custom_fields"]["vlans"] = None
    second = run(mirror)
    assert counts(second) == {"changed": 1}  # another device of the same name, too
    assert attributes(PREFIX)[2] == {k: v for k, v in before.items() if k != "vlans"}
    assert exported("prefixes")[0]["cf_device"] == "4"
    drafts.IMPORTS.undo(second.pk, author=BY)
    assert attributes(PREFIX)[2] == before
    assert exported("prefixes")[0]["cf_device"] == "3"


def test_a_value_that_was_changed_here_goes_back_as_its_text(server: NetBox) -> None:
    define("device", kinds="cidr")
    server.prefix(PREFIX, custom_fields=dict(VALUES))
    run(source(server))
    cidr = PoolCIDR.objects.get()
    pools.change_cidr(cidr.pk, {"custom_fields": {"device": "sw9"}}, author=BY)
    assert exported("prefixes")[0]["cf_device"] == "sw9"


def test_a_correction_refers_to_nothing(server: NetBox) -> None:
    for name in ("device", "vlans"):
        define(name, kinds="cidr")
    server.prefix(PREFIX, custom_fields=dict(VALUES))
    draft = run(source(server), mirror=False)
    values = {"custom_fields": {"device": "sw9", "vlans": "Büro (10),Lab (20)"}}
    apis.Api()("PATCH", f"imports/{draft.pk}/rows/1/", values)
    details = draft.rows.get().details
    assert details["cf_device"] == "sw9"
    assert "ref_device" not in details
    assert details["ref_vlans"] == "12,13"  # the same text as before


def test_without_a_definition_and_beside_addresses_they_are_kept(server: NetBox) -> None:
    server.prefix(PREFIX, custom_fields={"owner_of": VALUES["device"]})
    many = [reference(number, f"device-{number:04}") for number in range(100)]
    server.address("10.1.1.5/24", dns_name="a.example", custom_fields={"Peers": many})
    mirror = source(server)
    first = run(mirror)
    text = "there is no such custom field here; the value is kept beside the object"
    assert reasons(first) == [(PREFIX, "new", f"unknown_custom_field: cf_owner_of: {text}")]
    assert exported("prefixes")[0]["cf_owner_of"] == "3"
    (address,) = exported("ip-addresses")
    assert address["cf_Peers"] == ",".join(str(number) for number in range(100))
    assert not CustomField.objects.exists()
    assert counts(run(mirror)) == {"unchanged": 2}
