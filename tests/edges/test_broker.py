"""The URL of the broker: one server, or a group under Redis Sentinel."""

from __future__ import annotations

from urllib.parse import urlsplit

import kombu
import pytest
from django.core.exceptions import ImproperlyConfigured

from ipam_site import broker

GROUP = "redis+sentinel://u%40:p%2Fw@10.0.0.1:26380,[fd00::1],s.example.org:1/2?master=m&sentinel_password=s%26"


def test_a_group_is_read_as_it_is_written() -> None:
    group = broker.parse_group(GROUP)
    assert group == broker.Group(
        master="m",
        sentinels=(("10.0.0.1", 26380), ("fd00::1", 26379), ("s.example.org", 1)),
        username="u@",
        password="p/w",
        sentinel_password="s&",
        database=2,
    )


def test_kombu_reads_the_same_out_of_its_url() -> None:
    url, options = broker.celery_settings(GROUP, seconds=3)
    connection = kombu.Connection(url, transport_options=options)
    assert (connection.userid, connection.password) == ("u@", "p/w")
    assert (connection.hostname, connection.virtual_host) == ("10.0.0.1", "2")
    assert [urlsplit(part).port for part in connection.alt] == [26380, 26379, 1]
    assert urlsplit(connection.alt[1]).hostname == "fd00::1"
    assert options["sentinel_kwargs"]["password"] == "s&"
    # A sentinel that hangs must not hang its client.
    assert options["sentinel_kwargs"]["socket_timeout"] == 3


def test_one_server_keeps_its_url() -> None:
    url = "rediss://:p@h:6379/0?ssl_cert_reqs=required"
    assert broker.parse_group(url) is None
    assert broker.celery_settings(url, seconds=1)[0] == url


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://h:1/0",
        "redis+sentinel://h:1/0?master=",
        "redis+sentinel://h:1/0?master=m&mastr=x",
        "redis+sentinel://h:1/zero?master=m",
        "redis+sentinel:///0?master=m",
        "redis+sentinel://h:1,,/0?master=m",
        "redis+sentinel://h:port/0?master=m",
        "redis+sentinel://h:99999/0?master=m",
    ],
)
def test_what_is_no_group_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="REDIS_URL") as refusal:
        broker.parse_group(url.replace("//", "//:secret@"))
    assert "secret" not in str(refusal.value)
