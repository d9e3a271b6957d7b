import pathlib
from typing import Any
from urllib import parse

import pytest
from django.core import exceptions

from ipam_site import broker, database_url, env


@pytest.mark.parametrize(
    ("reader", "default", "value", "expected"),
    [
        pytest.param(env.boolean, True, None, True, id="boolean-default"),
        pytest.param(env.boolean, True, "", True, id="boolean-empty-is-not-set"),
        pytest.param(env.boolean, True, "0", False, id="boolean-0"),
        pytest.param(env.boolean, False, " Yes ", True, id="boolean-yes"),
        pytest.param(env.integer, 7, None, 7, id="integer-default"),
        pytest.param(env.integer, 7, "12", 12, id="integer"),
        pytest.param(env.text, "a", None, "a", id="text-default"),
        pytest.param(env.text, "a", " b ", "b", id="text-trimmed"),
        pytest.param(env.words, ["a"], None, ["a"], id="words-default"),
        pytest.param(env.words, ["a"], "b, c,,", ["b", "c"], id="words"),
    ],
)
def test_reader(
    reader: Any,
    default: object,
    value: str | None,
    expected: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if value is not None:
        monkeypatch.setenv("X", value)
    assert reader("X", default) == expected


@pytest.mark.parametrize(
    ("reader", "default", "value"),
    [
        pytest.param(env.boolean, False, "maybe", id="boolean"),
        pytest.param(env.boolean, False, "2", id="boolean-number"),
        pytest.param(env.integer, 1, "-1", id="integer-negative"),
        pytest.param(env.integer, 1, "1.5", id="integer-fraction"),
        pytest.param(env.integer, 1, "٣", id="integer-other-digits"),
    ],
)
def test_a_wrong_value_is_loud_and_names_the_variable(
    reader: Any, default: object, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("X", value)
    with pytest.raises(exceptions.ImproperlyConfigured, match="X must be"):
        reader("X", default)


def test_a_secret_is_the_variable_or_the_line_of_a_file(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "url"
    file.write_text("postgresql://u:p@h/n\n")
    assert env.secret("X") == ""
    monkeypatch.setenv("X_FILE", str(file))
    assert env.secret("X") == "postgresql://u:p@h/n"
    monkeypatch.setenv("X", "a")
    assert env.secret("X") == "a"


@pytest.mark.parametrize(
    "content", [None, "", "\n", "a\nb\n"], ids=["none", "empty", "blank", "two"]
)
def test_a_secret_that_cannot_be_read_stops_the_start(
    content: str | None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "url"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("X_FILE", str(file))
    with pytest.raises(exceptions.ImproperlyConfigured, match="X_FILE"):
        env.secret("X")


def _entry(**parts: object) -> dict[str, object]:
    empty = {"NAME": "n", "USER": "", "PASSWORD": "", "HOST": "", "PORT": "", "OPTIONS": {}}
    return {**empty, **parts}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param("postgresql:///n", _entry(), id="name-only"),
        pytest.param("postgres://h/n", _entry(HOST="h"), id="short-scheme"),
        pytest.param(
            "postgresql://u:p@h:5433/n",
            _entry(USER="u", PASSWORD="p", HOST="h", PORT="5433"),
            id="everything",
        ),
        pytest.param(
            "postgresql://u%40corp:p%2F%3A%23@h/n%20m",
            _entry(USER="u@corp", PASSWORD="p/:#", HOST="h", NAME="n m"),
            id="percent-decoded",
        ),
        pytest.param(
            "postgresql://u:p?#[@h/n",
            _entry(USER="u", PASSWORD="p?#[", HOST="h"),
            id="until-the-at",
        ),
        pytest.param("postgresql://[::1]:5432/n", _entry(HOST="::1", PORT="5432"), id="ipv6"),
        pytest.param(
            "postgresql:///n?host=/run/postgresql", _entry(HOST="/run/postgresql"), id="socket"
        ),
        pytest.param(
            "postgresql://u:%40%2F%23%3F%5B%C3%A4@%2FRun%2FPg:5433/n",
            _entry(USER="u", PASSWORD="@/#?[ä", HOST="/Run/Pg", PORT="5433"),
            id="socket-as-host",
        ),
        pytest.param(
            "postgresql://ü:pä+s@[fe80::1]/n?application_name=a+b",
            _entry(USER="ü", PASSWORD="pä+s", HOST="fe80::1", OPTIONS={"application_name": "a+b"}),
            id="unicode-and-plus",
        ),
        pytest.param(
            "postgresql://h/n?sslmode=verify-full&sslrootcert=/a%20b.pem",
            _entry(HOST="h", OPTIONS={"sslmode": "verify-full", "sslrootcert": "/a b.pem"}),
            id="options",
        ),
    ],
)
def test_database_url(url: str, expected: dict[str, object]) -> None:
    assert database_url.parse_url(url) == expected


@pytest.mark.parametrize(
    ("url", "why"),
    [
        pytest.param("mysql://u:s3cret@h/n", "must begin with postgresql://", id="scheme"),
        pytest.param("u:s3cret@h/n", "must begin with postgresql://", id="no-scheme"),
        pytest.param("postgresql://u:s3cret@h", "one /database-name", id="no-name"),
        pytest.param("postgresql://u:s3cret@h/a/b", "one /database-name", id="two-names"),
        pytest.param("postgresql://u:s3cret@h:x/n", "host or port", id="port-text"),
        pytest.param("postgresql://u:s3cret@[::1/n", "option", id="open-bracket"),
        pytest.param("postgresql://u:s3cret@h/n#x", "%23", id="bare-hash"),
        pytest.param("postgresql://u:s3cret@h/n?sslmod=require", "unknown", id="misspelt-option"),
        *(
            pytest.param(
                f"postgresql://u:{password}@h:5432/n?sslmode=require", "percent-encode", id=password
            )
            for password in (
                "p/s3cret",
                "5/s3cret",
                "s3cret@x",
                "s3cret@x/y",
                "s3cret/#?[",
            )
        ),
        pytest.param("postgresql://u:%FFs3cret@h/n", "UTF-8", id="no-utf-8"),
        pytest.param("postgresql://h/n?sslpassword=s3cret", "sslpassword", id="seen-by-ps"),
        pytest.param("postgresql://h/n?sslmode", "query", id="option-without-value"),
    ],
)
def test_a_wrong_database_url_says_why_without_the_password(url: str, why: str) -> None:
    with pytest.raises(exceptions.ImproperlyConfigured) as caught:
        database_url.parse_url(url)
    assert why in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("password", ["p/s3cret", "5/s3cret", "p?s3cret", "p#s3cret", "p[s3cret"])
@pytest.mark.parametrize(
    "form",
    ["redis://:{}@h:6379/0", "redis://u:{}@h:6379/0", "redis+sentinel://u:{}@h:1,i:2/0?master=m"],
)
def test_a_password_of_redis_that_ends_its_url(form: str, password: str) -> None:
    with pytest.raises(exceptions.ImproperlyConfigured, match="REDIS_URL") as caught:
        broker.celery_settings(form.format(password), seconds=1)
    assert "s3cret" not in str(caught.value)
    broker.celery_settings(form.format(parse.quote(password, safe="")), seconds=1)
