"""Rules `server-url-is-strict` and `outbound-addresses-are-guarded`: a name is judged by where it leads."""

import ipaddress
import itertools
import pathlib
import socket

import pytest

from pools.core import errors
from pools.platform.outbound import faults, guard


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://10.0.0.1:6443", "https://10.0.0.1:6443"),
        ("https://api.example.org", "https://api.example.org:443"),
        ("https://api.example.org:443/", "https://api.example.org:443"),
        ("HTTPS://API.Example.org:6443", "https://api.example.org:6443"),
        ("https://[fd00::A]:6443", "https://[fd00::a]:6443"),
        (
            "https://rancher.example/k8s/clusters/c-m-1.x",
            "https://rancher.example:443/k8s/clusters/c-m-1.x",
        ),
        ("https://kind-control-plane:34567", "https://kind-control-plane:34567"),
        ("https://api.example.org.:6443", "https://api.example.org.:6443"),
    ],
)
def test_a_good_url_gets_its_canonical_form(text: str, url: str) -> None:
    assert guard.parse_url(text).url == url
    assert guard.parse_url(url).url == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10.0.0.1:6443",
        "//10.0.0.1",
        "http://10.0.0.1:6443",
        "file:///etc/passwd",
        "ftp://10.0.0.1",
        "gopher://10.0.0.1:6379/_INFO",
        "https://",
        "https://:6443",
        "https:10.0.0.1",
        "https://user:canary@10.0.0.1",
        "https://canary@10.0.0.1",
        "https://10.0.0.1#@evil.example",
        "https://10.0.0.1?x=1",
        "https://10.0.0.1/?",
        "https://10.0.0.1/a/../b",
        "https://10.0.0.1/%2e%2e",
        "https://10.0.0.1//a",
        "https://10.0.0.1\\@evil.example",
        "https://10.0.0.1 ",
        "https://10.0.0.1\r\nHost: x",
        "https://10.0.\t0.1",
        "https://2130706433",  # 127.0.0.1
        "https://0x7f000001",
        "https://0x7f.1",
        "https://0177.0.0.1",
        "https://127.1",
        "https://10.0.0.01",
        "https://10.0.0.1.",
        "https://256.0.0.1",
        "https://1.2.3.4.5",
        "https://[::1%25lo]",
        "https://[fe80::1%eth0]:6443",
        "https://[::1",
        "https://[10.0.0.1]",
        "https://[v1.x]",
        "https://①②⑦.0.0.1",
        "https://exämple.org",
        "https://a..b",
        "https://-a.example",
        f"https://{'a' * 64}.example",
        f"https://{'a.' * 200}example",
        "https://10.0.0.1:0",
        "https://10.0.0.1:22",
        "https://10.0.0.1:25",
        "https://10.0.0.1:80",
        "https://10.0.0.1:6379",
        "https://10.0.0.1:5432",
        "https://10.0.0.1:65536",
        "https://10.0.0.1:٣٤",
        "https://10.0.0.1:-1",
        "https://10.0.0.1/" + "a" * 3000,
    ],
)
def test_a_bad_url_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(errors.InvalidInput) as refusal:
        guard.parse_url(text)
    assert refusal.value.code == "url_not_allowed"
    assert refusal.value.problems[0].field == "server"
    assert "canary" not in f"{refusal.value} {refusal.value.problems}"


TARGET = guard.parse_url("https://api.example.org:6443")
LOOPBACK = ["127.0.0.1", "127.255.0.9", "::1"]
FORBIDDEN = [
    "0.0.0.0",  # noqa: S104 - refused, not bound
    "0.1.2.3",
    "169.254.169.254",
    "169.254.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "::",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "64:ff9b:1::7f00:1",
    "::ffff:127.0.0.1",  # IPv4-mapped
    "::ffff:169.254.169.254",
    "::ffff:0:169.254.169.254",  # IPv4-translated
    "::127.0.0.1",  # IPv4-compatible
    "64:ff9b::a9fe:a9fe",  # NAT64
    "2002:7f00:1::",  # 6to4
    "2002:a9fe:a9fe::1",
    "2001:0:a9fe:a9fe::",  # Teredo, server
    "2001:0:505:505:0:0:5601:5601",  # Teredo, client 169.254.169.254
    "fd00::5efe:a9fe:a9fe",  # ISATAP
]
ALLOWED = ["10.0.0.1", "172.16.3.4", "192.168.1.1", "100.64.0.1", "8.8.8.8", "fd00::1"]
ALLOWED += ["2606:4700::1", "64:ff9b::a00:1", "::ffff:10.0.0.1", "2002:a00:1::1"]


def _judged(address: str, *, allow_loopback: bool = False) -> list[str]:
    return guard.resolve(TARGET, allow_loopback=allow_loopback, resolver=lambda *_: [address])


@pytest.mark.parametrize("address", [*FORBIDDEN, *LOOPBACK])
def test_a_forbidden_address_is_refused(address: str) -> None:
    with pytest.raises(faults.AddressNotAllowed, match=r"api\.example\.org"):
        _judged(address)


@pytest.mark.parametrize("address", FORBIDDEN)
def test_allowing_loopback_allows_nothing_else(address: str) -> None:
    with pytest.raises(faults.AddressNotAllowed):
        _judged(address, allow_loopback=True)


@pytest.mark.parametrize("address", LOOPBACK)
def test_loopback_may_be_allowed(address: str) -> None:
    assert _judged(address, allow_loopback=True) == [address]


@pytest.mark.parametrize("address", ALLOWED)
def test_private_and_public_addresses_are_allowed(address: str) -> None:
    assert _judged(address) == [address]


def test_one_forbidden_address_refuses_all() -> None:
    with pytest.raises(faults.AddressNotAllowed):
        guard.resolve(TARGET, resolver=lambda *_: ["10.0.0.1", "169.254.169.254"])


def test_a_name_that_nobody_knows_is_unreachable() -> None:
    def nobody(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    with pytest.raises(faults.Unreachable):
        guard.resolve(TARGET, resolver=nobody)
    with pytest.raises(faults.Unreachable):
        guard.resolve(TARGET, resolver=lambda *_: [])


@pytest.mark.parametrize("address", ["fe80::1%eth0", "localhost", "0x7f000001"])
def test_what_a_resolver_gives_must_be_plain_addresses(address: str) -> None:
    with pytest.raises(faults.AddressNotAllowed):
        _judged(address)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_the_systems_resolver_is_judged_too(host: str) -> None:
    target = guard.parse_url(f"https://{host}:6443")
    with pytest.raises(faults.AddressNotAllowed):
        guard.resolve(target)
    result = guard.resolve(target, allow_loopback=True)
    assert all(ipaddress.ip_address(item).is_loopback for item in result)


def _own_addresses() -> list[str]:
    """The addresses of this machine's interfaces besides loopback, as its kernel lists them."""
    result = []
    local = pathlib.Path("/proc/net/fib_trie").read_text().splitlines()
    for line, following in itertools.pairwise(local):
        if "/32 host LOCAL" in following:
            result.append(line.rpartition(" ")[2])
    table = pathlib.Path("/proc/net/if_inet6").read_text().splitlines()
    result += [str(ipaddress.IPv6Address(int(line.split()[0], 16))) for line in table]
    addresses = [ipaddress.ip_address(text) for text in dict.fromkeys(result)]
    return [
        str(address) for address in addresses if not (address.is_loopback or address.is_link_local)
    ]


@pytest.mark.skipif(not _own_addresses(), reason="this machine has no address but loopback")
def test_an_address_of_an_interface_is_refused_by_name_and_in_every_form() -> None:
    for own_address in _own_addresses():
        forms = (
            [own_address]
            if ":" in own_address
            else [
                own_address,
                f"::ffff:{own_address}",
                f"64:ff9b::{own_address}",
                f"::{own_address}",
            ]
        )
        for form in forms:
            with pytest.raises(faults.AddressNotAllowed, match="address of this machine"):
                _judged(form)
        with pytest.raises(faults.AddressNotAllowed, match="SETTING=1 allows it"):
            guard.resolve(
                TARGET,
                loopback_setting="SETTING",
                resolver=lambda *_, address=own_address: [address],
            )
        assert _judged(own_address, allow_loopback=True) == [own_address]
        for form in forms[1:]:
            with pytest.raises(faults.AddressNotAllowed):
                _judged(form, allow_loopback=True)
