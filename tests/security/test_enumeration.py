"""Rule `answers-name-nobody`."""

import re

from tests.security.target import Answer, Target, Visitor

_PASSING = {"Date", "X-Request-Id", "Content-Length", "Expires", "Set-Cookie"}


def _said(answer: Answer, name: str) -> tuple[int, str, dict[str, str]]:
    text = re.sub(r'(csrfmiddlewaretoken" value|nonce)="[^"]*"', "", answer.text)
    headers = {key: value for key, value in answer.headers.items() if key not in _PASSING}
    return answer.status, text.replace(name, "NAME"), headers


def test_a_login_that_fails_tells_nothing_of_the_user(target: Target) -> None:
    replies = [
        _said(Visitor(target).login(name, "wrong"), name)
        for name in ("administrator", "administratox", "vera", "verx")
    ]
    assert replies[0][0] in {200, 429}
    assert [item for item in replies if item != replies[0]] == []


def test_tokens_that_are_wrong_are_wrong_alike(target: Target) -> None:
    viewer = target.tokens["viewer"]
    wrong = [
        viewer[:-1] + ("0" if viewer[-1] != "0" else "1"),
        "cad_" + "0" * 60,
        target.tokens["expired"],
    ]
    replies = [_said(target.rest("GET", "pools/", token=item), item) for item in wrong]
    bodies = {re.sub(r'"request_id": "[^"]*"', "", text) for _, text, _ in replies}
    assert ({status for status, _, _ in replies}, len(bodies)) == ({401}, 1)


def test_what_is_foreign_is_like_what_is_not_there(target: Target) -> None:
    network = {
        "cluster": "prod", "name": "cluster_udn_s32", "kind": "cudn", "topology": "layer2",
        "role": "primary", "lifecycle": "Persistent", "subnets": ["10.79.0.0/24"],
        "namespaces": ["zulu"],
    }  # fmt: skip
    foreign = str(target.rest("POST", "networks/", network).json()["id"])
    absent = "987654321"
    visitor = Visitor(target)
    visitor.login("vera")
    for path in ("", "manifest/", "workloads/", "addresses-for-mac/?mac=02:00:00:00:00:01"):
        replies = [
            _said(target.rest("GET", f"networks/{item}/{path}", token="vera"), f"/{item}/")
            for item in (foreign, absent)
        ]
        texts = [re.sub(r'"request_id": "[^"]*"', "", text) for _, text, _ in replies]
        assert texts[0] == texts[1], path
        assert replies[0][0] == replies[1][0] == 404, path
        assert replies[0][2] == replies[1][2], path
    for path in ("change", "history", "delete", "edit"):
        pages = [
            _said(visitor.ask("GET", f"/admin/claims/network/{item}/{path}/"), f"/{item}/")
            for item in (foreign, absent)
        ]
        assert pages[0] == pages[1], path
