"""Rule `server-url-is-strict`."""

from __future__ import annotations

import pytest

from pools.core import errors
from pools.platform.outbound import guard


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
