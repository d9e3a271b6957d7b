"""The filter of entries offers each namespace once, without reading all entries."""

from claims.entries import entries
from claims.models import Entry
from pools.register.demo import demo


def test_used_namespaces_are_the_distinct_ones() -> None:
    assert entries.used_namespaces(5) == []
    demo.load()
    names = Entry.objects.exclude(namespace="").order_by("namespace")
    expected = list(names.values_list("namespace", flat=True).distinct())
    assert len(expected) > 1
    assert entries.used_namespaces(500) == expected
    assert entries.used_namespaces(1) == expected[:1]
