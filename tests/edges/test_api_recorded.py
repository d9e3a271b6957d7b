"""REST answers as it did when its answers were recorded (tests/edges/recorded.py)."""

import pytest

from tests.edges import api as apis, recorded
from tests.security import everything


@pytest.mark.django_db
def test_the_answers_of_before(request: pytest.FixtureRequest) -> None:
    created = everything.create()
    api = apis.Api()
    api.client.raise_request_exception = False
    if request.config.getoption("--record-answers"):
        requests = list(recorded.requests_of_today(created))
        recorded.write(
            [{**case, "answer": recorded.answer(api, created, case)} for case in requests]
        )
        return
    different = []
    for item in recorded.read():
        answer = recorded.answer(api, created, item)
        if answer != item["answer"]:
            different.append((item, answer))
    assert not different, (
        "\n".join(
            f"{case['method']} {case['path']} {case.get('parameters') or case.get('body')}\n  then {case['answer']}\n  now  {answer}"
            for case, answer in different[:20]
        )
        + f"\n{len(different)} answers differ"
    )
