"""A VM owner against every address of the site: nothing of others is seen, counted or told apart.

New addresses are swept by themselves: they come from the resolver, filters from the lists and the
OpenAPI description.
"""

import itertools
import re
from urllib.parse import quote

import pytest
from django.test import Client

from claims.models import Entry
from tests.claims import worlds
from tests.claims.access import answers, two_worlds
from tests.claims.access.sweeping import (
    ADMIN,
    API,
    ENOUGH,
    WRITES,
    alike,
    clients,
    combinations,
    kinds_of,
    some,
)


def all_answers(
    owner: two_worlds.Owner, asking: list[tuple[str, Client]]
) -> dict[str, tuple[int, str]]:
    """Of every address, filled with whatever is the owner's."""
    names = ["prod", "alpha", "web-0", "02:aa:aa:aa:aa:00", "10.60.0.20"]
    result = {}
    for prefix, client in asking:
        for address in answers.addresses(prefix):
            ids = owner.ids(kinds_of(address))
            values = {"int": ids, "word": ["claims"], "path": ids}
            item = [values.get(kind, [*ids, *names]) for kind in address.kinds]
            refusals = 0
            for combination in itertools.product(*item):
                path = address.filled(*(quote(str(part), safe="") for part in combination))
                status, text = answers.ask(client, "GET", path)
                result[path] = (status, answers.lasting(text))
                refusals = refusals + 1 if status in {403, 405} else 0
                if refusals == ENOUGH:
                    break
    return result


@pytest.mark.parametrize("owner", ["local", "cluster"], indirect=True)
def test_what_others_have_changes_nothing_that_is_seen(owner: two_worlds.Owner) -> None:
    """All pages, lists, counts and exports are the same with others and without them."""
    # Whoever says so, it is the same rights that pages ask for.
    asking = clients(owner)[: 2 if owner.author == "local" else 1]
    before = all_answers(owner, asking)
    two_worlds.add_foreign(owner)
    after = all_answers(owner, asking)
    for path, answer in after.items():
        assert answer[0] < 500, (path, answer)
        foreign_names = two_worlds.foreign_in(answer[1])
        assert not foreign_names, (path, foreign_names[:3])
        differs = answers.difference(before[path], answer)
        assert not differs, (path, differs)
    observed = [path for path, (status, _) in after.items() if status == 200]
    assert any("web-0" in after[path][1] for path in observed)


@pytest.mark.parametrize("prefix", [API, ADMIN, "webhooks/"])
def test_what_is_foreign_is_answered_like_what_is_absent(
    owner: two_worlds.Owner, prefix: str
) -> None:
    two_worlds.add_foreign(owner)
    client = owner.browser() if prefix == ADMIN else owner.api()
    ids, texts = two_worlds.foreign_values()
    for turn, address in enumerate(answers.addresses(prefix)):
        if not address.kinds:
            continue
        methods = {"GET", "POST"} if prefix == ADMIN else {"GET", *WRITES}
        # The API is asked for everything; pages, which cost more, and pairs for what they are about.
        is_single = prefix != ADMIN and len(address.kinds) == 1
        about = [ids[two_worlds.KINDS.index(kind)] for kind in kinds_of(address)]
        choices = (ids, texts) if is_single else (about, some(texts, turn, 2))
        refusals = 0
        for values in combinations(owner, address.kinds, *choices):
            path = address.filled(*(quote(str(value), safe="") for value in values))
            statuses = {method: alike(client, method, path) for method in sorted(methods)}
            codes = set(statuses.values())
            assert not any(200 <= status < 300 for status in codes), (path, statuses)
            methods -= {method for method, status in statuses.items() if status == 405}
            refusals = refusals + 1 if codes <= {403, 405} else 0
            if refusals == ENOUGH:
                break


def test_whoever_has_ones_address_is_not_named(owner: two_worlds.Owner) -> None:
    """The owner's entry and a foreign one have the same address; the pages say that, not whose."""
    two_worlds.add_foreign(owner)
    ippool = owner.ippools[1]
    foreign = Entry.objects.get(ippool=ippool, vm="zulu-vm-171")
    worlds.entry(ippool, foreign.mac, *foreign.ips, vm="web-7", namespace="alpha")
    own_values = [foreign.mac, foreign.ips[0].partition("/")[0]]
    for path, (status, text) in all_answers(owner, clients(owner)).items():
        foreign_names = two_worlds.foreign_in(
            re.sub("|".join(map(re.escape, own_values)), "", text)
        )
        assert not foreign_names, (path, status, foreign_names[:3])
