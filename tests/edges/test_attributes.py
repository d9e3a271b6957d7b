"""Tags, owner and custom fields of clusters, pools, CIDRs and networks, over REST and in the admin."""

import csv
import io
import json
from typing import Any

import pytest
from django.urls import reverse

from pools.models import Cluster, CustomField, Event, Pool
from tests import people
from tests.edges import api as apis

ALL = ["cluster", "pool", "cidr", "network", "container"]
PART = {"mask_size": 24, "cidrs": ["10.20.0.0/16"]}
POOL = {"cluster": "prod", "name": "green", "category": "pod", "ipv4": PART}
NETWORK = {
    "cluster": "prod", "name": "cluster_udn_blue", "kind": "cudn", "topology": "layer2",
    "role": "primary", "lifecycle": "Persistent", "subnets": ["10.100.0.0/16"], "namespaces": ["blue"],
}  # fmt: skip
RACK = {"name": "rack", "label": "Rack", "type": "number", "object_types": ALL}
STAGE = {
    "name": "stage", "label": "Stage", "type": "choice", "choices": ["test", "live"], "object_types": ALL,
}  # fmt: skip
WIKI = {"name": "wiki", "label": "Wiki", "type": "link", "object_types": ["pool"]}
VALUES = {
    "tags": ["Team Net", "ipv4"],
    "owner": "net@example.org",
    "custom_fields": {"rack": 12.50, "stage": "live"},
}
SHOWN = {
    "tags": ["ipv4", "team-net"],
    "owner": "net@example.org",
    "custom_fields": {"rack": "12.5", "stage": "live"},
}


_MODELS = {"cidr": "pools_poolcidr", "network": "claims_network"}


@pytest.fixture
def api() -> apis.Api:
    api = apis.Api()
    api.cluster()
    for definition in (RACK, STAGE, WIKI):
        api.create("custom-fields/", definition)
    return api


def _places(api: apis.Api) -> dict[str, str]:
    """The path of an object of each kind."""
    pool = api.create("pools/", POOL)["id"]
    cidr = api("GET", f"pools/{pool}/cidrs/").json()["results"][0]["id"]
    network = api.create("networks/", NETWORK)["id"]
    container = api.create("containers/", {"cidr": "10.0.0.0/8"})["id"]
    return {
        "cluster": "clusters/prod/",
        "pool": f"pools/{pool}/",
        "cidr": f"pools/{pool}/cidrs/{cidr}/",
        "network": f"networks/{network}/",
        "container": f"containers/{container}/",
    }


def _code(answer: Any) -> tuple[int, str, str]:
    document = answer.json()
    problems = document["errors"]
    return answer.status_code, document["code"], problems[0]["field"] if problems else ""


@pytest.mark.sample(6)
@pytest.mark.parametrize("kind", ALL)
def test_every_kind_is_written_read_filtered_and_recorded(api: apis.Api, kind: str) -> None:
    place = _places(api)[kind]
    answer = api("PATCH", place, VALUES)
    assert answer.status_code == 200, answer.content
    document = api("GET", place).json()
    assert {name: document[name] for name in SHOWN} == SHOWN
    event_type = "pool.cidr_changed" if kind == "cidr" else f"{kind}.changed"
    assert Event.objects.filter(type=event_type).exists()
    rows = place.rstrip("/").rpartition("/")[0] + "/"
    for query, count in (
        ("tag=ipv4&tag=team%20net", 1),
        ("tag=ipv4&tag=other", 0),
        ("owner=net@example.org", 1),
        ("owner=nobody", 0),
        ("cf_rack=12.50&cf_stage=live", 1),
        ("cf_rack=12.50&cf_stage=test", 0),
    ):
        results = api("GET", f"{rows}?{query}").json()["results"]
        assert len(results) == count, query
    for query in ("cf_colour=x", "cf_stage=blue", "cf_rack=x", "tag=-"):
        assert api("GET", f"{rows}?{query}").status_code == 400, query


def test_new_objects_have_them_at_once(api: apis.Api) -> None:
    pool = api.create("pools/", POOL)
    cidrs = f"pools/{pool['id']}/cidrs/"
    for path, body in (
        ("clusters/", {"name": "two"}),
        ("pools/", POOL | {"name": "blue", "ipv4": {"mask_size": 24, "cidrs": ["10.30.0.0/16"]}}),
        ("networks/", NETWORK),
        ("containers/", {"cidr": "10.0.0.0/8"}),
        (cidrs, {"cidr": "10.50.0.0/16"}),
    ):
        refused = api("POST", path, body | {"custom_fields": {"rack": "x"}})
        assert _code(refused) == (400, "number", "custom_fields.rack"), path
        document = api.create(path, body | VALUES)
        assert {name: document[name] for name in SHOWN} == SHOWN, path


@pytest.mark.exhaustive
def test_a_change_keeps_other_fields_and_null_removes_one(api: apis.Api) -> None:
    place = _places(api)["pool"]
    api("PATCH", place, VALUES)
    document = api("PATCH", place, {"custom_fields": {"rack": None}}).json()
    assert document["custom_fields"] == {"stage": "live"}
    assert document["tags"] == SHOWN["tags"]
    assert api("PATCH", place, {"tags": []}).json()["tags"] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"custom_fields": {"stage": "blue"}}, "invalid_choice", "custom_fields.stage"),
        ({"tags": ["ok", "-"]}, "tag", "tags.1"),
    ],
)
def test_wrong_values_change_nothing(
    api: apis.Api, change: dict[str, Any], code: str, field: str
) -> None:
    place = _places(api)["pool"]
    assert _code(api("PATCH", place, change | {"description": "new"})) == (400, code, field)
    assert api("GET", place).json()["description"] == ""


def test_a_required_field_must_have_a_value(api: apis.Api) -> None:
    place = _places(api)["pool"]
    definition = api("GET", "custom-fields/?name=rack").json()["results"][0]["id"]
    assert api("PATCH", f"custom-fields/{definition}/", {"required": True}).status_code == 200
    refusal = (400, "required", "custom_fields.rack")
    for path, body in (
        ("pools/", POOL | {"name": "blue"}),
        ("clusters/", {"name": "two"}),
        ("networks/", NETWORK | {"name": "cluster_udn_red"}),
        ("containers/", {"cidr": "192.168.0.0/16"}),
        (f"{place}cidrs/", {"cidr": "10.50.0.0/16"}),
    ):
        assert _code(api("POST", path, body)) == refusal, path
    assert _code(api("PATCH", place, {"custom_fields": {"stage": "live"}})) == refusal
    assert api("PATCH", place, {"description": "other fields"}).status_code == 200


def test_a_definition_in_use_is_renamed_with_its_values_but_not_removed(api: apis.Api) -> None:
    places = _places(api)
    for place in places.values():
        api("PATCH", place, VALUES)
    rows = {row["name"]: row["id"] for row in api("GET", "custom-fields/").json()["results"]}
    stage, rack = (f"custom-fields/{rows[name]}/" for name in ("stage", "rack"))
    for change in (
        {"choices": ["test"]},
        {"type": "text", "choices": []},
        {"object_types": ["cluster"]},
    ):
        answer = api("PATCH", stage, change)
        assert (answer.status_code, answer.json()["code"]) == (409, "custom_field_in_use"), change
    assert "1 pool" in api("DELETE", stage).json()["detail"]
    assert api("PATCH", stage, {"choices": ["live", "new"]}).status_code == 200  # none has `test`
    version = api("GET", places["pool"]).json()["version"]
    assert api("PATCH", rack, {"name": "rack_number", "label": "Rack no."}).status_code == 200
    for place in places.values():
        values = api("GET", place).json()["custom_fields"]
        assert values == {"rack_number": "12.5", "stage": "live"}
    assert api("GET", places["pool"]).json()["version"] == version + 1
    for place in places.values():
        api("PATCH", place, {"custom_fields": {"stage": None}})
    assert api("DELETE", stage).status_code == 204


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"name": "rack__row"}, "custom_field_name"),
        ({"name": "stage"}, "already_exists"),
        ({"type": "choice"}, "required"),
        ({"choices": ["a"]}, "choices_not_allowed"),
        ({"type": "choice", "choices": ["a", "a"]}, "repeated"),
        ({"type": "choice", "choices": [str(number) for number in range(101)]}, "too_many"),
        ({"object_types": ["block"]}, "invalid_choice"),
    ],
)
def test_wrong_definitions_are_refused(api: apis.Api, change: dict[str, Any], code: str) -> None:
    body = RACK | {"name": "other"} | change
    assert api("POST", "custom-fields/", body).json()["code"] == code


def test_a_name_that_another_request_takes_meanwhile_is_refused(
    api: apis.Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CustomField, "full_clean", lambda _row: None)  # it was free a moment ago
    answer = api("POST", "custom-fields/", RACK | {"object_types": ["pool", "pool"]})
    assert (answer.status_code, answer.json()["code"]) == (409, "already_exists")
    changed = api.create("custom-fields/", RACK | {"name": "row", "object_types": ["pool"] * 2})
    assert changed["object_types"] == ["pool"]


def test_an_import_gives_them_to_its_pools(api: apis.Api) -> None:
    manifest = json.dumps(
        {
            "apiVersion": "cilium.io/v2alpha1",
            "kind": "CiliumPodIPPool",
            "metadata": {"name": "imported"},
            "spec": {"ipv4": {"cidrs": ["10.30.0.0/16"], "maskSize": 24}},
        }
    )
    body = {"cluster": "prod", "manifest": manifest, **VALUES}
    assert api("POST", "pools/import/", body).status_code == 201
    assert Pool.objects.get(name="imported").tags == SHOWN["tags"]
    assert Pool.objects.get(name="imported").custom_fields == SHOWN["custom_fields"]
    assert api("POST", "pools/import/", body).json()["reports"][0]["result"] == "unchanged"
    refused = api("POST", "pools/import/", body | {"custom_fields": {"rack": "x"}})
    assert refused.status_code == 400


def test_metrics_have_the_labels_of_the_setting(api: apis.Api, settings: Any) -> None:
    from pools.clusters import fleet as cluster_metrics
    from pools.core import metric_labels
    from pools.register import metrics

    places = _places(api)
    api("PATCH", places["pool"], VALUES)
    api("PATCH", places["cluster"], VALUES)
    settings.IPAM_METRIC_LABELS = metric_labels.parse_labels(
        ["owner", "tag:ipv4", "field:stage", "field:none"]
    )
    added = {
        "attribute_owner": "net@example.org",
        "tag_ipv4": "true",
        "field_stage": "live",
        "field_none": "",
    }
    pool_labels = [dict(value.labels) for value in metrics.values()]
    assert all(labels | added == labels for labels in pool_labels if labels["pool"] == "green")
    orphans = [
        dict(value.labels)
        for value in cluster_metrics.sample_values()
        if value.family.name == "ipam_orphans_detected"
    ]
    assert orphans == [{"cluster": "prod", **added}]


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ALL)
def test_forms_lists_filters_and_exports_have_them(api: apis.Api, kind: str) -> None:
    places = _places(api)
    api("PATCH", places[kind], VALUES)
    browser = people.browser()
    model = _MODELS.get(kind, f"pools_{kind}")
    number = api("GET", places[kind]).json()["id"]
    form = browser.get(reverse(f"admin:{model}_edit", args=[number])).content.decode()
    assert 'name="tags" value="ipv4, team-net"' in form
    assert 'name="custom_fields.rack" value="12.5"' in form
    rows = reverse(f"admin:{model}_changelist")
    for query, count in (
        ("tag=ipv4&tag=team-net", 1),
        ("tag=x", 0),
        ("cf_stage=live", 1),
        ("cf_stage=test", 0),
        ("cf_stage=test&cf_stage=live", 1),
        ("tag=%00", 0),
        ("cf_stage=%00", 0),
        ("owner=net@example.org", 1),
    ):
        changelist = browser.get(f"{rows}?{query}").context["cl"]
        assert changelist.result_count == count, query
    label = model.replace("_", ".")
    chosen = {"column": ["tags", "owner", "cf_rack", "cf_stage"]}
    browser.post(reverse("admin:list_columns", args=[label]), chosen)
    page = browser.get(rows).content.decode()
    assert "team-net" in page
    assert "12.5" in page
    export = browser.get(f"{rows}export/csv/")
    text = b"".join(export.streaming_content).decode()
    row = next(row for row in csv.DictReader(io.StringIO(text)) if row["owner"])
    assert (row["tags"], row["custom_fields_rack"]) == ("ipv4, team-net", "12.5")


def test_a_filter_offers_the_most_frequent_values_and_the_chosen_ones(api: apis.Api) -> None:
    tags = [f"t{number}" for number in range(50)]
    for number in range(5):
        api.create("clusters/", {"name": f"c{number}", "tags": [f"{number}-{tag}" for tag in tags]})
    api.create("clusters/", {"name": "last", "tags": ["zz-rare"]})
    api.create("clusters/", {"name": "c8", "tags": ["zz-often"]})
    api.create("clusters/", {"name": "c9", "tags": ["zz-often"]})
    rows = reverse("admin:pools_cluster_changelist")
    changelist = people.browser().get(f"{rows}?tag=zz-rare").context["cl"]
    (spec,) = (spec for spec in changelist.filter_specs if spec.parameter_name == "tag")
    offered = [value for value, _label in spec.lookup_choices]
    assert offered[-2:] == ["zz-often", "zz-rare"]
    assert len(offered) == 201
    assert spec.label() == "tags: zz-rare"
    assert changelist.result_count == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ALL)
def test_several_rows_are_changed_at_once(api: apis.Api, kind: str) -> None:
    places = _places(api)
    api("PATCH", places[kind], VALUES)
    browser = people.browser()
    model = _MODELS.get(kind, f"pools_{kind}")
    number = api("GET", places[kind]).json()["id"]
    url = f"{reverse(f'admin:{model}_bulk_edit')}?id={number}"
    data = {
        "id": number, "reason": "tidy", "change_add_tags": "on", "add_tags": "New, b",
        "change_remove_tags": "on", "remove_tags": "ipv4", "change_owner": "on", "owner": "",
        "change_custom_fields.stage": "on", "custom_fields.stage": "test",
    }  # fmt: skip
    preview = browser.post(url, data)
    assert preview.context["agreed"], preview.content.decode()
    browser.post(url, data | {"_confirmed": preview.context["agreed"]})
    document = api("GET", places[kind]).json()
    assert document["tags"] == ["b", "new", "team-net"]
    assert document["owner"] == ""
    assert document["custom_fields"] == {"rack": "12.5", "stage": "test"}


def test_the_form_of_a_pool_saves_them(api: apis.Api) -> None:
    browser = people.browser()
    data = {
        "cluster": Cluster.objects.get().pk,
        "name": "typed", "category": "pod", "mask_size_v4": "24", "tags": "One Two, b",
        "owner": "me", "custom_fields.rack": "007", "cidrs-TOTAL_FORMS": "1", "cidrs-INITIAL_FORMS": "0",
        "cidrs-0-cidr": "10.40.0.0/16", "custom_fields.wiki": "javascript:alert(1)",
    }  # fmt: skip
    refused = browser.post(reverse("admin:pools_pool_add"), data)
    assert "http:// or https://" in refused.content.decode()
    answer = browser.post(
        reverse("admin:pools_pool_add"), data | {"custom_fields.wiki": "https://w.example"}
    )
    assert answer.status_code == 302, answer.content.decode()
    pool = Pool.objects.get(name="typed")
    assert (pool.tags, pool.owner) == (["b", "one-two"], "me")
    assert pool.custom_fields == {"rack": "7", "wiki": "https://w.example"}
    page = browser.get(reverse("admin:pools_pool_change", args=[pool.pk])).content.decode()
    assert 'href="https://w.example" rel="noopener noreferrer"' in page


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ALL)
def test_a_form_of_before_a_definition_changed_loses_no_value(api: apis.Api, kind: str) -> None:
    place = _places(api)[kind]
    api("PATCH", place, VALUES)
    browser = people.browser()
    number = api("GET", place).json()["id"]
    url = reverse(f"admin:{_MODELS.get(kind, f'pools_{kind}')}_edit", args=[number])
    form = browser.get(url).context["form"]
    data = {name: form[name].value() for name in form.fields}
    data = {name: str(value) for name, value in data.items() if value not in (None, False)}
    data |= {"cidrs-TOTAL_FORMS": "0", "cidrs-INITIAL_FORMS": "0", "owner": "new@example.org"}
    rack = api("GET", "custom-fields/?name=rack").json()["results"][0]["id"]
    api("PATCH", f"custom-fields/{rack}/", {"name": "rack_number"})
    refused = browser.post(url, data)
    assert "renamed or deleted meanwhile" in refused.content.decode()
    assert api("GET", place).json()["custom_fields"] == {"rack_number": "12.5", "stage": "live"}
    del data["custom_fields.rack"]  # a page of before the field was defined
    browser.post(url, data)
    document = api("GET", place).json()
    assert document["custom_fields"] == {"rack_number": "12.5", "stage": "live"}
    if kind in {"cidr", "container"}:  # the forms of the others have a version, or more parts
        assert document["owner"] == "new@example.org"


@pytest.mark.exhaustive
def test_definitions_are_managed_in_the_admin(api: apis.Api) -> None:
    browser = people.browser()
    url = reverse("admin:pools_customfield_add")
    data = {
        "name": "tier",
        "label": "Tier",
        "type": "choice",
        "choices": "a\nb",
        "object_types": ["pool"],
    }
    assert "name the choices" in browser.post(url, data | {"choices": ""}).content.decode().lower()
    assert browser.post(url, data).status_code == 302
    number = api("GET", "custom-fields/?name=tier").json()["results"][0]["id"]
    place = _places(api)["pool"]
    api("PATCH", place, {"custom_fields": {"tier": "a"}})
    change = reverse("admin:pools_customfield_change", args=[number])
    refused = browser.post(change, data | {"choices": "b"}).content.decode()
    assert "used by 1 pool" in refused
    browser.post(change, data | {"name": "level"})
    assert api("GET", place).json()["custom_fields"] == {"level": "a"}
    delete = reverse("admin:pools_customfield_delete", args=[number])
    assert "used by 1 pool" in browser.post(delete, follow=True).content.decode()
    assert browser.get(reverse("admin:pools_customfield_changelist")).status_code == 200
