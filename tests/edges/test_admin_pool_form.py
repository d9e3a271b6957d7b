"""The form of a pool: errors beside the field, what was typed stays, a look before a loss."""

from typing import Any

import pytest
from django.urls import reverse

from pools.admin.pools import form
from pools.models import Pool, ReservedRange
from pools.platform.admin import forms as fields
from tests import factories, people

Row = tuple[str, str]


def data(*rows: Row, initial: int = 0, **changes: Any) -> dict[str, Any]:
    """A posted form; each row is a CIDR and its reserved ranges."""
    posted = {"cidrs-TOTAL_FORMS": len(rows), "cidrs-INITIAL_FORMS": initial, **changes}
    for number, (cidr, reserved) in enumerate(rows):
        posted |= {f"cidrs-{number}-cidr": cidr, f"cidrs-{number}-reserved": reserved}
    return posted


def new(*rows: Row, **changes: Any) -> dict[str, Any]:
    cluster = changes.pop("cluster", None) or factories.cluster()
    fields = {"cluster": cluster.pk, "name": "blue", "category": "pod", "mask_size_v4": "24"}
    return data(*rows, **{**fields, **changes})


def post(url: str, posted: dict[str, Any]) -> Any:
    return people.browser().post(url, posted)


def add(posted: dict[str, Any]) -> Any:
    return post(reverse("admin:pools_pool_add"), posted)


def edit(pool: Pool, posted: dict[str, Any]) -> Any:
    return post(reverse("admin:pools_pool_edit", args=[pool.pk]), {"version": 1, **posted})


def test_a_pool_of_both_families_with_reserved_ranges() -> None:
    rows = (("10.20.0.0/16", "10.20.0.0-10.20.0.99\n\n10.20.8.0/24"), ("", ""), ("fd00::/104", ""))
    answer = add(new(*rows, mask_size_v6="120", cooldown_seconds="24 hours"))
    pool = Pool.objects.get(name="blue")
    assert answer["Location"] == reverse("admin:pools_pool_change", args=[pool.pk])
    assert [str(cidr) for cidr in pool.cidrs.all()] == ["10.20.0.0/16", "fd00::/104"]
    assert pool.reserved_ranges.count() == 2
    assert (pool.mask_size_v4, pool.mask_size_v6, pool.cooldown_seconds) == (24, 120, 86400)


@pytest.mark.sample(16)
@pytest.mark.parametrize(
    ("rows", "changes", "where", "says"),
    [
        ([("10.0.0.1/24", "")], {}, "cidrs-0-cidr", "did you mean 10.0.0.0/24?"),
        ([("10.0.0.0/16", "10.0.0.9-10.0.0.1")], {}, "cidrs-0-reserved", "10.0.0.1-10.0.0.9?"),
        ([("10.0.0.0/16", "10.0.0.1\n10.1.0.0/24")], {}, "cidrs-0-reserved", "Line 1: "),
        ([("10.0.0.0/16", "10.1.0.0/24")], {}, "cidrs-0-reserved", "not wholly inside 10.0.0.0/16"),
        ([("", "10.1.0.0/24")], {}, "cidrs-0-cidr", "Enter the CIDR"),
        ([("10.0.0.0/16", "10.0.0.0/30\n10.0.0.1-10.0.0.2")], {}, "cidrs-0-reserved", "overlaps"),
        ([("10.0.0.0/16", ""), ("10.0.9.0/24", "")], {}, "cidrs-1-cidr", "overlaps 10.0.0.0/16"),
        ([("10.0.0.0/28", "")], {}, "mask_size_v4", "must be 28 to 32"),
        ([("fd00::/64", "")], {}, "mask_size_v6", "Enter the IPv6 mask size"),
        ([("10.0.0.0/16", "")], {"mask_size_v4": "33"}, "mask_size_v4", "must be 1 to 32"),
        ([("10.0.0.0/16", "")], {"mask_size_v4": "²"}, "mask_size_v4", "as a number"),
        ([("10.0.0.0/16", "")], {"name": "Blue"}, "name", "lower-case letters"),
        ([("10.0.0.0/16", "")], {"cooldown_seconds": "soon"}, "cooldown_seconds", "24 hours"),
        (
            [("10.0.0.0/16", "")],
            {"category": "instance", "cooldown_seconds": "59 minutes"},
            None,
            "at least 1 hour",
        ),
        ([], {"mask_size_v4": ""}, "mask_size_v4", "IPv4 or IPv6 part"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_an_error_stands_beside_its_field_and_nothing_is_lost(
    rows: list[Row], changes: dict[str, str], where: str | None, says: str
) -> None:
    posted = new(*rows, **changes)
    answer = add(posted)
    assert answer.status_code == 200
    assert not Pool.objects.exists()
    form = answer.context["form"]
    cidrs = form.cidrs
    if where and where.startswith("cidrs-"):
        _, number, field = where.split("-")
        messages = cidrs[int(number)].errors.get(field, [])
    else:
        messages = form.errors.get(where or "__all__", [])
    assert any(says in text for text in messages), (form.errors, cidrs.errors)
    text = answer.content.decode()
    assert all(cidr in text for cidr, _ in rows)
    assert all(line in text for _, reserved in rows for line in reserved.splitlines())


def test_a_name_that_is_taken_is_told() -> None:
    pool = factories.pool("10.0.0.0/24", name="blue")
    answer = add(new(("10.9.0.0/16", ""), cluster=pool.cluster))
    assert "already has a pool of this name" in answer.content.decode()


def test_what_never_changes_is_not_read() -> None:
    pool = factories.pool("10.0.0.0/24", name="fixed", mask=28)
    posted = data(("10.9.0.0/24", ""), initial=1, name="other", mask_size_v4="30", category="pod")
    assert edit(pool, posted).status_code == 302
    pool.refresh_from_db()
    assert (pool.name, pool.mask_size_v4, pool.category) == ("fixed", 28, "vm")
    assert str(pool.cidrs.get()) == "10.0.0.0/24"


def test_a_range_over_holders_is_confirmed_first() -> None:
    pool = factories.pool("10.0.0.0/24")
    block = factories.take(pool, factories.holder("vm-hit"))
    posted = data(("10.0.0.0/24", "10.0.0.0/28"), initial=1)
    answer = edit(pool, posted)
    text = answer.content.decode()
    assert answer.status_code == 200
    assert not ReservedRange.objects.exists()
    assert "vm-hit" in text
    assert "1 used block lies in the range" in text
    again = dict(answer.context["posted_values"])
    assert edit(pool, {**again, "_confirmed": "1"}).status_code == 302
    assert str(ReservedRange.objects.get()) == "10.0.0.0-10.0.0.15"
    assert factories.row(block).withheld


def test_what_only_adds_needs_no_confirmation() -> None:
    pool = factories.pool("10.0.0.0/24")
    assert edit(pool, data(("10.0.0.0/24", ""), ("10.1.0.0/24", ""), initial=1)).status_code == 302
    assert pool.cidrs.count() == 2


def test_a_cidr_in_use_cannot_be_taken_out() -> None:
    pool = factories.pool("10.0.0.0/24", "10.1.0.0/24")
    factories.take(pool, factories.holder("vm-there"))
    posted = data(("10.0.0.0/24", ""), ("10.1.0.0/24", ""), initial=2)
    answer = edit(pool, {**posted, "cidrs-0-remove": "on", "_confirmed": "1"})
    assert "vm-there" in str(answer.context["form"].cidrs[0].errors["cidr"])
    assert pool.cidrs.count() == 2


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0"),
        (90, "90"),
        (60, "1 minute"),
        (7200, "2 hours"),
        (86400, "1 day"),
        (172800, "2 days"),
    ],
)
def test_a_cooldown_is_offered_as_it_is_read(seconds: int, text: str) -> None:
    assert form.cooldown_text(seconds) == text
    assert fields.DurationField().clean(text) == seconds


def test_deleting_names_the_holders_and_refuses() -> None:
    pool = factories.pool("10.0.0.0/24")
    block = factories.take(pool, factories.holder("vm-keeps"))
    url = reverse("admin:pools_pool_delete", args=[pool.pk])
    client = people.browser()
    assert "vm-keeps" in client.get(url).content.decode()
    assert "vm-keeps" in client.post(url, {}, follow=True).content.decode()
    assert Pool.objects.filter(pk=pool.pk).exists()
    factories.give_back(block)
    assert client.post(url, {}).status_code == 302
    assert not Pool.objects.filter(pk=pool.pk).exists()


def test_capacity_is_previewed_with_and_without_first_and_last_addresses() -> None:
    cluster = factories.cluster()
    data = {
        "cluster": cluster.pk, "name": "public", "category": "ipv4", "mask_size_v4": "32",
        "cidrs-TOTAL_FORMS": "1", "cidrs-INITIAL_FORMS": "0", "cidrs-0-cidr": "198.51.100.0/30",
        "allow_first_ip": "on", "_preview": "1",
    }  # fmt: skip
    answer = people.browser().post(reverse("admin:pools_pool_add"), data)
    (capacity,) = answer.context["form"].capacities
    assert (capacity.chosen, capacity.without, capacity.with_both) == (3, 2, 4)
    assert not Pool.objects.exists()
