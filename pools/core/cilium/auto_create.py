"""Parser of `auto-create-cilium-pod-ip-pools`: the pools that Cilium's operator creates at its start.

The chart renders the Helm value autoCreateCiliumPodIPPools as
`default=ipv4-cidrs:10.10.0.0/16,10.11.0.0/16;ipv4-mask-size:24,other=…`. The operator never changes
an existing pool.
"""

from __future__ import annotations

import re

from pools.core import errors, object_reader
from pools.core.cilium import podippool

KEY = "auto-create-cilium-pod-ip-pools"  # of cilium-config; operator/option of cilium/cilium

# A comma separates CIDRs too: only a comma before `name=` separates pools.
_NEXT_POOL = re.compile(r",(?=[^,=;:]+=)")
_PARTS = {
    "ipv4-cidrs": ("ipv4", "cidrs"),
    "ipv4-mask-size": ("ipv4", "maskSize"),
    "ipv6-cidrs": ("ipv6", "cidrs"),
    "ipv6-mask-size": ("ipv6", "maskSize"),
}
_FLAGS = {"allow-first-ip": "allowFirstIP", "allow-last-ip": "allowLastIP"}


def parse(value: object, *, field: str = KEY) -> list[podippool.PodIPPool]:
    """Return the pools in the order of the value; an empty value has none.

    Raises InvalidInput wrong_type, auto_create_syntax, duplicate_key, and those of
    podippool.parse_document.
    """
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(field, "wrong_type", "must be a text", value)
    text = "".join(value.split())
    if not text:
        return []
    specs: object_reader.Json = {}
    for part in _NEXT_POOL.split(text):
        name, equals, spec = part.partition("=")
        if not (name and equals):
            raise _syntax(field, part)
        if name in specs:
            message = f'pool "{errors.display_value(name)}" is in the map twice'
            raise errors.InvalidInput.for_field(field, "duplicate_key", message, name)
        specs[name] = _spec(spec, field)
    try:
        return podippool.parse_document({podippool.HELM_VALUE: specs})
    except errors.InvalidInput as error:
        raise error.under(field) from None


def _spec(text: str, field: str) -> object_reader.Json:
    spec: object_reader.Json = {}
    for part in filter(None, text.split(";")):
        key, _, value = part.partition(":")
        if key in _FLAGS:
            spec[_FLAGS[key]] = _flag(value, field)
        elif key in _PARTS:
            family, name = _PARTS[key]
            parsed = value.split(",") if name == "cidrs" else _number(value, field)
            spec.setdefault(family, {})[name] = parsed
        else:
            raise _syntax(field, part)
    return spec


def _number(text: str, field: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", text):
        raise _syntax(field, text)
    return int(text)


def _flag(text: str, field: str) -> bool:
    if text not in ("true", "false"):
        raise _syntax(field, text)
    return text == "true"


def _syntax(field: str, text: str) -> errors.InvalidInput:
    message = "write pools as name=ipv4-cidrs:<cidr>,<cidr>;ipv4-mask-size:<number>,name=…"
    return errors.InvalidInput.for_field(field, "auto_create_syntax", message, text)
