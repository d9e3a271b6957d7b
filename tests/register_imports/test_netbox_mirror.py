"""NetBox over its REST API: what is read, and a mirror that follows it one way and never releases on a doubt."""

import threading
from ipaddress import ip_network
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from pools.core import errors
from pools.models import Block, Container, NetBoxSource, Pool, RegisterImport, ReservedRange
from pools.platform import database
from pools.platform.imports import worker
from pools.platform.outbound import faults
from pools.register.allocator import allocation
from pools.register.imports import drafts as import_drafts, netbox, sources
from tests import eventually, factories, people
from tests.edges import api as apis
from tests.register_imports import netbox_server
from tests.register_imports.netbox_server import NetBox, nested
from tests.register_imports.sources import BY, counts, undo

pytestmark = pytest.mark.django_db(transaction=True)


# Transactions of this database that wait for a lock.
WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


def fill(server: NetBox) -> None:
    server.aggregate("10.0.0.0/8", "RFC 1918")
    server.prefix("10.1.0.0/16", "container")
    server.prefix("10.1.1.0/24", tenant=nested("Acme"), description="office", site="Berlin")
    server.range("10.1.1.200/24", "10.1.1.210/24", "reserved", description="printers")
    server.address("10.1.1.5/24", dns_name="web.example", tenant=nested("Acme"))
    server.address("10.1.1.6/24", assigned_object={"name": "eth0", "device": nested("sw-1")})
    server.address("10.1.1.7/24", "deprecated")


def source(server: NetBox, **values: Any) -> NetBoxSource:
    token = values.pop("token", netbox_server.TOKEN)
    created = {"name": "dc", "url": server.url, "ca": netbox_server.AUTHORITY.pem}
    created |= {"cluster": factories.cluster(), "every_minutes": 60}
    return sources.create({**created, **values}, token=token, author=BY)


def run(made: NetBoxSource, *, mirror: bool = True) -> RegisterImport:
    queued = sources.start(made.pk, mirror=mirror, author=BY)
    worker.process_import(queued.pk)
    return RegisterImport.objects.get(pk=queued.pk)


def filled(server: NetBox, **values: Any) -> NetBoxSource:
    """Return a mirror of a NetBox with objects of all kinds, which ran once."""
    fill(server)
    mirror = source(server, **values)
    run(mirror)
    return mirror


def confirm(made: RegisterImport) -> RegisterImport:
    """Release all that the source of a run lacks."""
    return import_drafts.confirm_vanished(made.pk, author=BY)


def held() -> dict[str, tuple[str, str]]:
    rows = Block.objects.filter(state="held").values_list("cidr", "holder_id", "org")
    return {str(cidr): (holder, org) for cidr, holder, org in rows}


@pytest.mark.sample(4)
@pytest.mark.parametrize("version", [(3, 7), (4, 2)])
@pytest.mark.parametrize("token", [netbox_server.TOKEN, netbox_server.TOKEN_V2])
def test_everything_is_read_in_pages(server: NetBox, token: str, version: tuple[int, int]) -> None:
    server.version = version
    fill(server)
    first = run(source(server, token=token))
    assert (first.status, first.error) == ("committed", "")
    assert counts(first) == {"new": 7}
    assert held() == {"10.1.1.5/32": ("web.example", "Acme"), "10.1.1.6/32": ("sw-1", "")}
    assert {str(row.cidr) for row in Container.objects.all()} == {"10.0.0.0/8", "10.1.0.0/16"}
    assert Pool.objects.get().description == "office"
    spans = set(ReservedRange.objects.values_list("first", "last", "reason"))
    assert {(str(a), str(b), why) for a, b, why in spans} == {
        ("10.1.1.200", "10.1.1.210", "printers"),
        ("10.1.1.7", "10.1.1.7", "deprecated"),
    }
    pages = [path for path, _ in server.requests if "ip-addresses" in path]
    assert len(pages) == 2


def test_the_mirror_follows_additions_changes_and_releases(server: NetBox) -> None:
    mirror = filled(server)
    assert counts(run(mirror)) == {"unchanged": 7}
    server.objects["ip-addresses"][0]["dns_name"] = "www.example"
    server.address("10.1.1.8/24", dns_name="new.example")
    del server.objects["ip-addresses"][1]
    third = run(mirror)
    assert counts(third) == {"new": 1, "changed": 1, "unchanged": 5, "vanished": 1}
    others = {"10.1.1.5/32": ("www.example", "Acme"), "10.1.1.8/32": ("new.example", "")}
    assert held() == {**others, "10.1.1.6/32": ("sw-1", "")}  # until somebody confirms it
    assert counts(confirm(third)) == {"new": 1, "changed": 1, "unchanged": 5, "released": 1}
    assert held() == others
    released = Block.objects.get(cidr="10.1.1.6/32")
    assert (released.state, released.holder_id) == ("cooling", "sw-1")
    assert counts(run(mirror)) == {"unchanged": 7}


def test_only_the_newest_run_asks(server: NetBox) -> None:
    mirror = filled(server)
    gone = server.objects["ip-addresses"].pop(1)
    second, third = run(mirror), run(mirror)
    second.refresh_from_db()
    assert (counts(second), counts(third)) == ({"unchanged": 6}, {"unchanged": 6, "vanished": 1})
    assert sources.lacking_mirrors() == [("dc", third.pk, 1)]
    with pytest.raises(errors.NotFound):
        import_drafts.confirm_vanished(second.pk, [1], author=BY)
    server.objects["ip-addresses"].insert(1, gone)
    assert counts(run(mirror)) == {"unchanged": 7}
    assert sources.lacking_mirrors() == []
    assert "10.1.1.6/32" in held()


def test_a_run_waits_for_a_confirmation_without_a_deadlock(server: NetBox) -> None:
    mirror = filled(server)
    del server.objects["ip-addresses"][1]
    second = run(mirror)
    outcome: list[Any] = []
    has_lock = threading.Event()

    def confirm_slowly() -> None:
        try:
            with transaction.atomic():
                RegisterImport.objects.select_for_update().get(pk=second.pk)
                has_lock.set()
                eventually.until(lambda: database.rows(WAITING, []))
                outcome.append(confirm(second))
        except DatabaseError as error:
            outcome.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=confirm_slowly)
    thread.start()
    assert has_lock.wait(10)
    third = run(mirror)
    thread.join(30)
    assert [type(result) for result in outcome] == [RegisterImport]
    assert (third.status, counts(third)) == ("committed", {"unchanged": 6})


def test_what_is_kept_belongs_to_the_mirror_no_longer(server: NetBox) -> None:
    mirror = filled(server)
    del server.objects["ip-addresses"][:2]
    second = run(mirror)
    rows = second.rows.filter(status="vanished").order_by("values__first")
    kept = rows.first()
    assert kept is not None
    remaining = import_drafts.confirm_vanished(second.pk, [kept.number], keep=True, author=BY)
    assert counts(remaining) == {"unchanged": 5, "vanished": 1}
    with pytest.raises(errors.NotFound):
        import_drafts.confirm_vanished(second.pk, [kept.number], author=BY)
    assert counts(confirm(second)) == {"unchanged": 5, "released": 1}
    assert held() == {"10.1.1.5/32": ("web.example", "Acme")}
    assert counts(run(mirror)) == {"unchanged": 5}


def test_the_confirmation_over_rest(server: NetBox) -> None:
    mirror = filled(server)
    del server.objects["ip-addresses"][:2]
    path = f"imports/{run(mirror).pk}/"
    api = apis.Api()
    rows = api("GET", f"{path}rows/?status=vanished").json()["results"]
    by_address = {row["first"]: row["number"] for row in rows}
    assert by_address.keys() == {"10.1.1.5", "10.1.1.6"}
    numbers = {"rows": [by_address["10.1.1.5"]]}
    assert apis.Api("viewer")("POST", f"{path}release/", numbers).status_code == 403
    apis.refused(api("POST", f"{path}release/", {"rows": [999]}), 404, "not_found")
    apis.refused(api("POST", f"{path}keep/", {"rows": ["x"]}), 400, "wrong_type")
    kept = api("POST", f"{path}keep/", numbers).json()
    assert (kept["counts"]["vanished"], kept["counts"]["released"]) == (1, 0)
    released = api("POST", f"{path}release/", {}).json()
    assert (released["counts"]["vanished"], released["counts"]["released"]) == (0, 1)
    assert held() == {"10.1.1.5/32": ("web.example", "Acme")}


def test_the_confirmation_on_the_page(server: NetBox) -> None:
    mirror = filled(server)
    del server.objects["ip-addresses"][:]
    second, browser = run(mirror), people.browser()
    url = f"/admin/pools/import/{second.pk}/change/"
    page = browser.get(url).content.decode()
    assert "3 objects are gone from the source" in page
    assert "Release all" not in people.browser("viewer").get(url).content.decode()
    assert people.browser("viewer").get(url, {"ask": "release"}).status_code == 403
    first = second.rows.get(status="vanished", values__first="10.1.1.5")
    browser.post(url, {"action": "keep", "row": first.number})
    question = browser.get(url, {"ask": "release"}).content.decode()
    assert "2 objects that the source has no more" in question
    after = browser.post(f"{url}?ask=release", {"action": "release"}, follow=True).content.decode()
    assert "gone from the source</h2>" not in after
    assert (held(), ReservedRange.objects.count()) == ({"10.1.1.5/32": ("web.example", "Acme")}, 1)


def test_what_changed_hands_before_it_was_confirmed_stays(server: NetBox) -> None:
    mirror = filled(server, cooldown_seconds=0)
    del server.objects["ip-addresses"][1]
    second = run(mirror)
    pool = Pool.objects.get()
    allocation.release(
        Block.objects.get(cidr="10.1.1.6/32").pk, factories.holder("sw-1", kind="host"), author=BY
    )
    factories.take(pool, factories.holder("vm-9"), cidr="10.1.1.6/32")
    confirm(second)
    assert held()["10.1.1.6/32"] == ("vm-9", "")


def test_what_others_hold_is_never_released(server: NetBox) -> None:
    mirror = filled(server)
    pool = Pool.objects.get()
    factories.take(pool, factories.holder("vm-1"))
    run(mirror)
    assert "vm-1" in {holder for holder, _ in held().values()}


def test_a_holder_of_another_kind_with_the_same_id_is_another_holder(server: NetBox) -> None:
    mirror = filled(server, holder_kind="host")
    Pool.objects.update(cooldown_seconds=0)
    block = Block.objects.get(cidr="10.1.1.6/32")
    allocation.release(block.pk, factories.holder("sw-1", kind="host"), author=BY)
    factories.take(Pool.objects.get(), factories.holder("sw-1", kind="vm"), cidr="10.1.1.6/32")
    del server.objects["ip-addresses"][1]
    assert "vanished" not in counts(run(mirror))
    assert held()["10.1.1.6/32"] == ("sw-1", "")


def test_a_pool_with_a_reserved_range_of_others_stays(server: NetBox) -> None:
    server.prefix("10.1.1.0/24")
    server.prefix("10.1.2.0/24")
    mirror = source(server)
    run(mirror)
    factories.reserve(Pool.objects.get(cidrs__cidr="10.1.1.0/24"), "10.1.1.9-10.1.1.9")
    server.objects["prefixes"].clear()
    second = run(mirror)
    assert counts(second) == {"vanished": 2}
    assert counts(confirm(second)) == {"vanished": 1, "released": 1}
    assert ReservedRange.objects.get().pool_cidr.cidr == ip_network("10.1.1.0/24")


@pytest.mark.sample(4)
@pytest.mark.parametrize("status", [500, 401, 403, 404])
def test_a_reading_that_fails_releases_nothing(server: NetBox, status: int) -> None:
    mirror = filled(server)
    before = held()
    server.objects["ip-addresses"].clear()
    server.before_page = lambda name, _: server.statuses.extend([status] * (name == "ip-ranges"))
    failed = run(mirror)
    assert failed.status == "failed"
    assert failed.error_code.startswith("cluster_")
    assert held() == before
    assert [name for name, _, _ in sources.failed_mirrors()] == ["dc"]


def test_a_list_that_does_not_stand_still_releases_nothing(server: NetBox) -> None:
    mirror = filled(server)

    def disturb(name: str, offset: int) -> None:
        if name == "ip-addresses" and offset:
            server.address(f"10.1.1.{20 + len(server.objects[name])}/24")

    server.before_page = disturb
    failed = run(mirror)
    assert (failed.status, failed.error_code) == ("failed", "changed_while_reading")


def test_a_list_that_is_shifted_while_it_is_read_is_read_again(server: NetBox) -> None:
    """One has gone and another has come between two pages: none that is there is taken for gone."""
    mirror = filled(server)
    gone = server.objects["ip-addresses"][0]

    def disturb(name: str, offset: int) -> None:
        if name == "ip-addresses" and offset and gone in server.objects[name]:
            server.objects[name].remove(gone)
            server.address("10.1.1.9/24")

    server.before_page = disturb
    second = run(mirror)
    assert counts(second) == {"new": 1, "vanished": 1, "unchanged": 6}
    assert [str(row.first) for row in second.rows.filter(status="vanished")] == ["10.1.1.5"]


def test_a_row_that_cannot_be_read_is_not_absent(server: NetBox) -> None:
    mirror = filled(server)
    server.objects["ip-addresses"][0]["address"] = "10.1.1.5%eth0/24"
    second = run(mirror)
    assert counts(second) == {"invalid": 1, "unchanged": 6, "new": 1}  # a range withholds it, too
    assert "10.1.1.5/32" in held()
    assert counts(run(mirror)) == {"invalid": 1, "unchanged": 7}


def test_a_refused_token_fails_with_what_netbox_says(server: NetBox) -> None:
    failed = run(source(server, token="0" * 40))
    assert (failed.status, failed.error_code) == ("failed", "cluster_forbidden")
    assert failed.error.endswith(": Invalid v1 token")


def test_the_token_is_sealed_and_stays_with_its_server(server: NetBox) -> None:
    created = source(server)
    assert netbox_server.TOKEN not in created.sealed
    with pytest.raises(errors.InvalidInput):
        sources.change(created.pk, {"url": "https://example.org:443"}, author=BY)


def test_loopback_is_refused_without_the_setting(server: NetBox, settings: Any) -> None:
    settings.IPAM_ALLOW_LOOPBACK_NETBOX = False
    with pytest.raises(faults.AddressNotAllowed):
        netbox.read(server.access())
    assert server.requests == []


def test_a_schedule_queues_a_run_when_it_is_due(server: NetBox) -> None:
    fill(server)
    source(server)
    (queued,) = sources.queue_due()
    assert sources.queue_due() == []
    worker.process_import(queued)
    assert RegisterImport.objects.get(pk=queued).status == "committed"


def test_what_was_there_before_is_never_released(server: NetBox) -> None:
    """Also if the mirror has written what NetBox says about it."""
    cluster = factories.cluster()
    ours = factories.pool("10.1.1.0/24", name="ours", within=cluster)
    empty = factories.pool("10.1.2.0/24", name="empty", within=cluster)
    holder = factories.holder("web.example", kind="host")
    factories.take(ours, holder, cidr="10.1.1.5/32")
    server.prefix("10.1.1.0/24", description="Office", comments="note")
    server.prefix("10.1.2.0/24", description="Lab", comments="note")
    server.address("10.1.1.5/24", dns_name="web.example", description="desk 7")
    server.prefix("10.9.9.0/24")
    mirror = source(server, cluster=cluster)
    assert counts(run(mirror)) == {"changed": 3, "new": 1}
    server.objects["ip-addresses"].clear()
    del server.objects["prefixes"][:2]
    assert "vanished" not in counts(run(mirror))
    assert held() == {"10.1.1.5/32": ("web.example", "")}
    assert {*Pool.objects.filter(pk__in=[ours.pk, empty.pk])} == {ours, empty}


def test_a_range_that_grows_stays_reserved(server: NetBox) -> None:
    """Also between two runs: nothing of it may be allocated meanwhile."""
    server.prefix("10.1.1.0/24")
    grown = server.range("10.1.1.50/24", "10.1.1.60/24", "reserved")
    mirror = source(server)
    run(mirror)
    grown["end_address"] = "10.1.1.70/24"
    second = run(mirror)
    assert counts(second) == {"new": 1, "unchanged": 1, "released": 1}
    assert ReservedRange.objects.get().span == "10.1.1.50-10.1.1.70"
    assert counts(run(mirror)) == {"unchanged": 2}
    undo(second)
    assert ReservedRange.objects.get().span == "10.1.1.50-10.1.1.60"
