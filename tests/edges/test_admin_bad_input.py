"""The bad-input catalogue through the admin's forms: the codes of every other door, nothing is
written, and what was typed stays in the form.
"""

from typing import Any

import pytest
from django import forms
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from pools.models import Block, Cluster, Pool, PoolCIDR, ReservedRange
from tests import factories, people
from tests.core import catalogue

WITHIN = {4: "10.0.0.0/8", 6: "fd00::/16"}
Post = tuple[str, dict[str, Any], str]  # URL, what is posted, the field with the value


def _is_v6(value: object) -> bool:
    return ":" in str(value)[:20].replace("::ffff:", "")  # a mapped address is an IPv4 one


def _pool(cidr: object, *, reserved: object = "", field: str, **fields: Any) -> Post:
    sizes = {"mask_size_v6": "128"} if ":" in str(cidr)[:20] else {"mask_size_v4": "32"}
    cluster = factories.cluster().pk
    posted = {"cluster": cluster, "name": "blue", "category": "vm", **sizes, **fields}
    posted |= {"cidrs-TOTAL_FORMS": 1, "cidrs-INITIAL_FORMS": 0}
    posted |= {"cidrs-0-cidr": cidr, "cidrs-0-reserved": reserved}
    return reverse("admin:pools_pool_add"), posted, field


def _cidr(case: catalogue.Case) -> Post:
    return _pool(case.value, field="cidrs-0-cidr")


def _range(case: catalogue.Case) -> Post:
    within = case.within or WITHIN[6 if _is_v6(case.value) else 4]
    return _pool(within, reserved=case.value, field="cidrs-0-reserved")


def _reserve(case: catalogue.Case) -> Post:
    pool = factories.pool(str(case.within or WITHIN[6 if _is_v6(case.value) else 4]))
    url = reverse("admin:pools_pool_reserve", args=[pool.pk])
    return url, {"range": case.value, "reason": "why", "_confirmed": "1"}, "range"


def _mask_size(case: catalogue.Case) -> Post:
    prefix = case.within if isinstance(case.within, str) else WITHIN[case.within or 4]
    field = "mask_size_v6" if ":" in prefix else "mask_size_v4"
    return _pool(prefix, field=field, **{field: str(case.value)})


def _name(case: catalogue.Case) -> Post:
    return _pool("10.0.0.0/24", field="name", name=case.value)


def _cluster_name(case: catalogue.Case) -> Post:
    return reverse("admin:pools_cluster_add"), {"name": case.value}, "name"


def _cooldown(case: catalogue.Case) -> Post:
    return _pool("10.0.0.0/24", field="cooldown_seconds", cooldown_seconds=str(case.value))


def _allocate(field: str, case: catalogue.Case) -> Post:
    pool = factories.pool("10.0.0.0/29", "fd00::/120")
    url = reverse("admin:pools_pool_allocate", args=[pool.pk])
    return url, {"kind": "vm", "id": "vm-1", "family": "4", field: case.value}, field


def _reason(case: catalogue.Case) -> Post:
    pool = factories.pool("10.0.0.0/29")
    url = reverse("admin:pools_pool_reserve", args=[pool.pk])
    posted = {"range": "10.0.0.0/30", "reason": case.value, "_confirmed": "1"}
    return url, posted, "reason"


FORMS: dict[str, dict[str, Any]] = {
    "cidr": {"pool": _cidr},
    "range": {"pool": _range, "reserve": _reserve},
    "mask_size": {"pool": _mask_size},
    "name": {"pool": _name, "cluster": _cluster_name},
    "cooldown": {"pool": _cooldown},
    "address": {"allocate": lambda case: _allocate("exact", case)},
    "identifier": {
        f"allocate {field}": lambda case, field=field: _allocate(field, case)
        for field in ("id", "org", "env")
    },
    "reason": {"reserve": _reason},
}
CASES = [
    pytest.param(param.values[0], make, id=f"{param.id}-{form}")
    for kind, created in FORMS.items()
    for param in catalogue.params(door="form", kinds=(kind,))
    for form, make in created.items()
    # An exact block may be written with its prefix; the other addresses of the catalogue may not.
    if param.id != "address-is-complete/prefix-at-address"
]


def _rows() -> list[int]:
    return [model.objects.count() for model in (Cluster, Pool, PoolCIDR, ReservedRange, Block)]


@pytest.mark.sample(204)
@pytest.mark.parametrize(("case", "make"), CASES)
def test_the_form_says_what_the_catalogue_says(case: catalogue.Case, make: Any) -> None:
    url, posted, field = make(case)
    before = _rows()
    answer = people.browser().post(url, posted)
    if "code" not in case.expect:
        _accepted(answer, field)
        return
    assert answer.status_code == 200
    assert _rows() == before
    form, name = _place(answer, field)
    codes = [error.code for error in form.errors.as_data().get(name, [])]
    assert case.expect["code"] in codes
    assert case.expect.get("says", "") in _told(form, name)
    assert form[name].value() == posted[field]


def _place(answer: Any, field: str) -> tuple[forms.BaseForm, str]:
    row = field.startswith("cidrs-")
    name = field.removeprefix("cidrs-0-")
    return (answer.context["form"].cidrs.forms[0] if row else answer.context["form"]), name


def _told(form: forms.BaseForm, name: str) -> str:
    return " ".join(form.errors[name])


# An address that is well written may still not be one of the pool.
_ELSEWHERE = {"outside_pool", "not_a_block", "mixed_family", "reserved_address"}


def _accepted(answer: Any, field: str) -> None:
    if answer.status_code == 302:
        return
    form, name = _place(answer, field)
    codes = {error.code for error in form.errors.as_data().get(name, [])}
    assert codes, form.errors
    assert codes <= _ELSEWHERE


@pytest.mark.sample(36)
@pytest.mark.parametrize("way", ["box", "file"])
@pytest.mark.parametrize("case", catalogue.params(door="command", kinds=("document",)))
def test_manifests_are_read_as_strictly(case: catalogue.Case, way: str) -> None:
    cluster = factories.cluster()
    before = _rows()
    posted: dict[str, Any] = {"cluster": cluster.pk, "_commit": "1"}
    content = case.value if isinstance(case.value, bytes) else str(case.value).encode()
    if way == "file" or isinstance(case.value, bytes):
        posted["file"] = SimpleUploadedFile("pools.yaml", content)
    else:
        posted["text"] = case.value
    answer = people.browser().post(reverse("admin:import"), posted)
    if "code" not in case.expect:
        assert answer.status_code == 302
        return
    assert answer.status_code == 200
    assert _rows() == before
    form = answer.context["form"]
    codes = {error.code for item in form.errors.as_data().values() for error in item}
    codes |= {problem.code for report in answer.context["reports"] for problem in report.problems}
    assert case.expect["code"] in codes, (form.errors, answer.context["reports"])
    if "text" in posted:
        assert form["text"].value() == case.value
