"""The URL of the broker: one server, or a group under Redis Sentinel."""

import re
from urllib.parse import quote, urlsplit

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


PASSWORDS = ("p@s", "p/s", "p#s", "p%s", "p+s", "pä s")


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("host", ["h", "[fd00::1]"])
def test_a_password_is_read_rightly_by_all_and_shown_by_none(password: str, host: str) -> None:
    """By redis-py and by kombu, whose text of a connection is in the log of each worker."""
    encoded = quote(password, safe="")
    for url in (
        f"redis://u:{encoded}@{host}:6380/1",
        f"redis+sentinel://u:{encoded}@{host}:26379,i:1/1?master=m&sentinel_password={encoded}",
    ):
        kombu_url, options = broker.celery_settings(url, seconds=1)
        with kombu.Connection(kombu_url, transport_options=options) as connection:
            assert connection.password == password
            assert connection.hostname == host.strip("[]")
            assert not {password, encoded} & set(re.split("[:@]", connection.as_uri()))
        group = broker.parse_group(url)
        if group is None:
            client = broker.connect(url, seconds=1)
            assert client.connection_pool.connection_kwargs["password"] == password
        else:
            assert (group.password, group.sentinel_password) == (password, password)
    plus = broker.parse_group("redis+sentinel://h:1/0?master=m&sentinel_password=a+b")
    assert plus is not None
    assert plus.sentinel_password == "a+b"


@pytest.mark.parametrize(
    "url",
    [
        "redis://:secret\uff03@h/0",
        "redis://:secret@h:port/0",
        "redis://:secret@[h/0",
        "unix://:secret@/run/redis.sock",
        "http://:secret@h/0",
        "redis+sentinel://:secret\uff03@h:1/0?master=m",
    ],
)
def test_what_is_no_server_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="REDIS_URL") as refusal:
        broker.celery_settings(url, seconds=1)
    assert "secret" not in str(refusal.value)


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
