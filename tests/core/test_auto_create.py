"""The pools that Cilium's operator creates at its start."""

from __future__ import annotations

import pytest

from pools.core import errors
from pools.core.cilium import configuration


@pytest.mark.parametrize(
    ("text", "pools"),
    [
        ("", []),
        (" \n", []),
        (
            "default=ipv4-cidrs:10.20.30.0/27,192.168.1.0/27;ipv4-mask-size:27",
            [("default", {4: (["10.20.30.0/27", "192.168.1.0/27"], 27)})],
        ),
        (
            "default=ipv4-cidrs: 10.10.0.0/16; ipv4-mask-size: 24;,"
            "other=ipv6-cidrs:fd00::/104;ipv6-mask-size:120;allow-first-ip:true",
            [("default", {4: (["10.10.0.0/16"], 24)}), ("other", {6: (["fd00::/104"], 120)})],
        ),
    ],
)
def test_pools(text: str, pools: list) -> None:
    pod_ippools = configuration.parse(text)
    assert [
        (
            pool.name,
            {
                family: ([str(entry.cidr) for entry in part.cidrs], part.mask_size)
                for family, part in pool.families.items()
            },
        )
        for pool in pod_ippools
    ] == pools
    assert [pool.allow_first_ip for pool in pod_ippools] == [
        pool.name == "other" for pool in pod_ippools
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "wrong_type"),
        ("default", "auto_create_syntax"),
        ("=ipv4-cidrs:10.0.0.0/16;ipv4-mask-size:24", "auto_create_syntax"),
        ("a=ipv4-cidr:10.0.0.0/16;ipv4-mask-size:24", "auto_create_syntax"),
        ("a=ipv4-cidrs:10.0.0.0/16;ipv4-mask-size:x", "auto_create_syntax"),
        ("a=ipv4-cidrs:10.0.0.0/16;ipv4-mask-size:24;allow-last-ip:yes", "auto_create_syntax"),
        ("a=ipv4-cidrs:10.0.0.1/16;ipv4-mask-size:24", "host_bits_set"),
        ("a=ipv4-cidrs:10.0.0.0/16", "required"),
        ("a=", "required"),
        (
            "a=ipv4-cidrs:10.0.0.0/16;ipv4-mask-size:24,a=ipv4-cidrs:10.1.0.0/16;ipv4-mask-size:24",
            "duplicate_key",
        ),
    ],
)
def test_refused(text: object, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        configuration.parse(text)
    assert caught.value.code == code
    assert caught.value.problems[0].field.startswith("auto-create-cilium-pod-ip-pools")
