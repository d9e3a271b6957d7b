"""Tags, owners and custom fields of NetBox's prefixes and aggregates: those of containers and of CIDRs of pools here.

Custom fields that refer to other objects, or have several values or JSON, are readable texts here, and ids on the way back.
"""

from typing import Any

import pytest

from pools import models
from pools.platform import attributes as custom_fields
from pools.register import pools
from pools.register.imports import drafts
from pools.register.plan import containers
from tests import factories, people
from tests.edges import api as apis
from tests.register_imports import sources
from tests.register_imports.netbox_server import NetBox, nested
from tests.register_imports.sources import BY, counts, exported, rows_of, table
from tests.register_imports.test_netbox_mirror import confirm, run, source
from tests.register_imports.test_netbox_odd_objects import AGGREGATES, PREFIXES, list_csv

pytestmark = pytest.mark.django_db(transaction=True)


def define(
    name: str, type_: str = "text", kinds: str = "cidr container", **more: Any
) -> models.CustomField:
    values = {"name": name, "label": name.replace("_", " ").capitalize(), "type": type_}
    return custom_fields.create({**values, "object_types": kinds.split(), **more}, author=BY)


def tag(name: str, slug: str = "") -> dict[str, Any]:
    return {"id": 1, "url": "x", "display": name, "name": name, "slug": slug or name.lower()}


def attributes(cidr: str) -> tuple[list[str], str, dict[str, str]]:
    rows = [*models.Container.objects.filter(cidr=cidr), *models.PoolCIDR.objects.filter(cidr=cidr)]
    (row,) = rows
    return row.tags, row.owner, row.custom_fields


def reasons(made: models.RegisterImport) -> list[tuple[str, str, str]]:
    pairs = ((row, why) for row in rows_of(made) for why in row.reasons)
    return [(str(row.cidr), row.status, f"{why['code']}: {why['message']}") for row, why in pairs]


def fill(server: NetBox) -> None:
    aggregate = server.aggregate("10.0.0.0/8", "RFC 1918")
    aggregate |= {"tags": [tag("Private")], "custom_fields": {"cost_center": 7}}
    server.prefix("10.1.0.0/16", "container", tags=[tag("Campus")])
    fields = {"cost_center": 12.5, "stage": "live", "approved": True, "note_to_self": None}
    server.prefix(
        "10.1.1.0/24",
        owner=nested("Net Team"),
        tags=[tag("Prod"), tag("Old One", "old_one")],
        custom_fields=fields,
    )


@pytest.mark.exhaustive
def test_they_are_set_kept_followed_and_restored(server: NetBox) -> None:
    define("cost_center", "number")
    define("stage", "choice", choices=["test", "live"])
    fill(server)
    mirror = source(server)
    first = run(mirror)
    assert counts(first) == {"new": 3}
    assert attributes("10.0.0.0/8") == (["private"], "", {"cost_center": "7"})
    assert attributes("10.1.0.0/16") == (["campus"], "", {})
    assert attributes("10.1.1.0/24") == (
        ["old-one", "prod"], "Net Team", {"cost_center": "12.5", "stage": "live"}
    )  # fmt: skip
    assert counts(run(mirror)) == {"unchanged": 3}
    cidr = models.PoolCIDR.objects.get()
    ours = {"tags": [*cidr.tags, "ours"], "owner": "me", "custom_fields": {"stage": "test"}}
    pools.change_cidr(cidr.pk, ours, author=BY)
    assert counts(run(mirror)) == {"unchanged": 3}
    before = [attributes(cidr) for cidr in ("10.0.0.0/8", "10.1.0.0/16", "10.1.1.0/24")]
    server.objects["aggregates"][0] |= {"tags": [], "custom_fields": {"cost_center": None}}
    changed = {"tags": [tag("Prod"), tag("New")], "custom_fields": {"cost_center": 3}}
    server.objects["prefixes"][1] |= changed
    second = run(mirror)
    assert counts(second) == {"changed": 2, "unchanged": 1}
    assert attributes("10.0.0.0/8") == ([], "", {})
    # `stage` is removed there; the owner, which did not change there, stays what it is here.
    assert attributes("10.1.1.0/24") == (["new", "ours", "prod"], "me", {"cost_center": "3"})
    sources.undo(second)
    assert [attributes(cidr) for cidr in ("10.0.0.0/8", "10.1.0.0/16", "10.1.1.0/24")] == before
    server.objects["aggregates"].clear()
    third = confirm(run(mirror))
    assert counts(third)["released"] == 1
    sources.undo(third)
    assert attributes("10.0.0.0/8") == (["private"], "", {"cost_center": "7"})


def test_an_undo_keeps_what_was_changed_after_the_import(server: NetBox) -> None:
    for name in ("cost_center", "stage", "floor"):
        define(name)
    server.prefix("10.1.0.0/16", "container", description="Old", tags=[tag("Campus")])
    prefix = server.prefix("10.1.1.0/24", description="Old", owner=nested("Net Team"), tags=[tag("Prod")],
                           custom_fields={"cost_center": "7", "stage": "live"})  # fmt: skip
    server.range("10.1.1.10/24", "10.1.1.19/24", description="Old")
    mirror = source(server)
    run(mirror)
    prefix |= {"description": "New", "owner": nested("Other Team")}
    prefix["tags"] = [tag("Prod"), tag("New"), tag("Lab")]
    prefix["custom_fields"] = {"cost_center": "8", "stage": None, "floor": "2"}
    server.objects["prefixes"][0] |= {"description": "New", "tags": [tag("Site")]}
    server.objects["ip-ranges"][0]["description"] = "New"
    second = run(mirror)
    assert counts(second) == {"changed": 3}
    cidr = models.PoolCIDR.objects.get()
    assert attributes("10.1.1.0/24") == (
        ["lab", "new", "prod"], "Other Team", {"cost_center": "8", "floor": "2"}
    )  # fmt: skip
    ours = {"tags": ["new", "ours"], "owner": "me", "custom_fields": {"cost_center": "9"}}
    pools.change_cidr(cidr.pk, ours, author=BY)
    container = models.Container.objects.get()
    containers.change(container.pk, {"description": "Ours"}, author=BY)
    models.ReservedRange.objects.update(reason="Ours")
    sources.undo(second)
    # `new` and `floor` came with the import, `stage` went; `prod` was removed by hand.
    assert attributes("10.1.1.0/24") == (
        ["ours"], "me", {"cost_center": "9", "stage": "live"}
    )  # fmt: skip
    assert models.Pool.objects.get().description == "Old"
    container.refresh_from_db()
    assert (container.description, container.tags) == ("Ours", ["campus"])
    assert models.ReservedRange.objects.get().reason == "Ours"


def test_what_has_no_place_is_told_and_set_when_it_has_one(server: NetBox) -> None:
    define("cost_center", "number", kinds="pool")  # not of CIDRs
    define("stage", "choice", choices=["test"])
    fill(server)
    server.prefix("10.1.2.0/24", tags=[tag("Überlang", "x" * 60)])
    mirror = source(server)
    first = run(mirror, mirror=False)
    assert first.notes == []
    absent = "there is no such custom field here; the value is kept beside the object"
    tags = "a tag has 1 to 50 letters a-z, digits, '-', '.', ':' and '/', with a letter or digit at both ends"
    assert reasons(first) == [
        ("10.0.0.0/8", "new", f"unknown_custom_field: cf_cost_center: {absent}"),
        ("10.1.1.0/24", "new", f"unknown_custom_field: cf_cost_center: {absent}"),
        ("10.1.1.0/24", "new", "invalid_choice: cf_stage: must be one of test"),
        ("10.1.1.0/24", "new", f"unknown_custom_field: cf_approved: {absent}"),
        ("10.1.2.0/24", "new", f"tag: tags: {tags}"),
    ]
    page = people.browser().get(f"/admin/pools/import/{first.pk}/change/").content.decode()
    for text in ("old_one, prod", "cost_center", "12.5", absent):
        assert text in page
    define("approved")
    sources.commit(first)  # by the definitions of now
    assert attributes("10.1.1.0/24") == (["old-one", "prod"], "Net Team", {"approved": "true"})
    again = run(mirror, mirror=False)
    assert counts(again) == {"unchanged": 4}
    drafts.IMPORTS.cancel(again.pk, author=BY)
    row = models.CustomField.objects.get(name="stage")
    custom_fields.change(row, {"choices": ["test", "live"]}, author=BY)
    assert counts(run(mirror)) == {"changed": 1, "unchanged": 3}
    assert attributes("10.1.1.0/24")[2] == {"approved": "true", "stage": "live"}


def test_files_have_them_by_name_slug_and_label() -> None:
    define("cost_center", "number")
    rows = list_csv(
        [*PREFIXES, "Cost center", "Rack"],
        {"Prefix": "10.1.1.0/24", "Status": "Active", "VRF": "Global", "Tags": "Prod,Old. One", "Cost center": "12.50", "Rack": "7"},
    )  # fmt: skip
    form = table(
        ("prefix", "status", "vrf", "tags", "cf_cost_center", "cf_stage"),
        [("10.1.2.0/24", "active", "", "prod,edge", "5", "live")],
    )
    private = {"Aggregate": "10.0.0.0/8", "RIR": "RFC 1918", "Tags": "Private"}
    aggregates = list_csv(AGGREGATES, private)
    cluster = factories.cluster()
    draft = sources.draft(rows, form, aggregates, cluster=cluster)
    assert [note["message"] for note in draft.notes if note["code"] == "ignored_columns"] == [
        "file1.csv: columns that are not read: Tenant Group, Scope Type, VLAN Group, Owner Group, Rack",
        "file3.csv: columns that are not read: Tenant Group, Owner Group",
    ]
    assert [code.partition(":")[0] for _, _, code in reasons(draft)] == ["unknown_custom_field"]
    path = f"imports/{draft.pk}/rows/2/"
    values = {"tags": "Prod, Core", "custom_fields": {"cost_center": "6"}}
    corrected = apis.Api()("PATCH", path, values).json()
    assert corrected["texts"]["cf_cost_center"] == "6", corrected
    sources.commit(draft)
    assert attributes("10.0.0.0/8") == (["private"], "", {})
    assert attributes("10.1.1.0/24") == (["old-one", "prod"], "", {"cost_center": "12.5"})
    assert attributes("10.1.2.0/24") == (["core", "prod"], "", {"cost_center": "6"})
    sources.undo(draft)
    assert not models.PoolCIDR.objects.exists()


def test_they_go_back_to_netbox(server: NetBox) -> None:
    define("cost_center", "number")
    fill(server)
    server.range("10.1.1.200/24", "10.1.1.210/24", "reserved", tags=[tag("Printers")])
    more = {"tags": [tag("Edge"), tag("Core")], "custom_fields": {"Ticket": "T-1"}}
    server.address("10.1.1.5/24", dns_name="a.example", **more)
    server.address("10.1.1.6/24", dns_name="b.example")
    run(source(server))
    cidr = models.PoolCIDR.objects.get()
    ours = {"tags": ["old-one", "ours"], "custom_fields": {"cost_center": 13}}
    pools.change_cidr(cidr.pk, ours, author=BY)
    (aggregate,) = exported("aggregates")
    assert (aggregate["tags"], aggregate["cf_cost_center"]) == ("private", "7")
    container, prefix = exported("prefixes")
    assert (container["tags"], container["cf_cost_center"]) == ("campus", "")
    assert prefix["tags"] == "old_one,ours"  # `prod` was removed here
    assert (prefix["cf_cost_center"], prefix["cf_stage"], prefix["cf_approved"]) == ("13", "live", "true")  # fmt: skip
    assert "cf_unset" not in prefix
    first, second = exported("ip-addresses")
    assert (first["tags"], first["cf_Ticket"], second["tags"]) == ("core,edge", "T-1", "")
    assert exported("ip-ranges")[0]["tags"] == "printers"
    block = models.Block.objects.get(cidr="10.1.1.5/32")
    imported = apis.Api()("GET", f"blocks/{block.pk}/").json()["imported"]
    assert imported["details"]["tags"] == "core,edge"


def test_attributes_of_infoblox_and_phpipam_become_custom_fields() -> None:
    define("region")
    infoblox = (
        b"header-networkcontainer,address*,netmask*,EA-Region,EA-Floor\n"
        b"networkcontainer,10.0.0.0,255.0.0.0,EMEA,3\n"
    )
    phpipam = table(
        ("Section", "Subnet", "Description", "VLAN", "VRF", "Master Subnet", "Region"),
        [("Customers", "10.10.1.0/24", "Customer 1", 100, "", "10.10.0.0/16", "APAC")],
    )
    draft = sources.draft(infoblox, phpipam)
    (note,) = draft.notes
    assert note["message"] == "file1.csv: columns that are not read: EA-Floor"
    sources.commit(draft)
    assert attributes("10.0.0.0/8")[2] == {"region": "EMEA"}
    assert attributes("10.10.1.0/24")[2] == {"region": "APAC"}


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
    same = {"stages": "test,live", "facts": '{"id": 1, "größe": [1, null]}'}
    assert before == same | {"device": "sw1 (rack 7)", "vlans": "Büro (10),Lab (20)"}
    assert counts(run(mirror)) == {"unchanged": 1}

    (row,) = exported("prefixes")
    columns = {name: text for name, text in row.items() if name.startswith("cf_")}
    others = {f"cf_{name}": text for name, text in same.items()}
    assert columns == others | {"cf_device": "3", "cf_vlans": "12,13"}

    prefix["custom_fields"]["device"] = reference(4, "sw1 (rack 7)", name="sw1")
    prefix["custom_fields"]["vlans"] = None
    second = run(mirror)
    assert counts(second) == {"changed": 1}  # another device of the same name, too
    assert attributes(PREFIX)[2] == {k: v for k, v in before.items() if k != "vlans"}
    assert exported("prefixes")[0]["cf_device"] == "4"
    sources.undo(second)
    assert attributes(PREFIX)[2] == before
    assert exported("prefixes")[0]["cf_device"] == "3"


def test_a_value_that_was_changed_here_goes_back_as_its_text(server: NetBox) -> None:
    define("device", kinds="cidr")
    server.prefix(PREFIX, custom_fields=dict(VALUES))
    run(source(server))
    cidr = models.PoolCIDR.objects.get()
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
    assert not models.CustomField.objects.exists()
    assert counts(run(mirror)) == {"unchanged": 2}
