"""Rule `credentials-are-sealed`: bound to their cluster, and through a rotation of keys."""

import base64
import secrets as random

import pytest

from pools.platform.outbound import faults, secrets

OLD, NEW = random.token_urlsafe(32), random.token_urlsafe(32)
SECRET = b"canary \x00 token"


@pytest.fixture
def sealed() -> str:
    return secrets.KeyRing([OLD]).seal(SECRET, owner="cluster:1")


def test_what_was_sealed_is_opened(sealed: str) -> None:
    assert secrets.KeyRing([OLD]).open(sealed, owner="cluster:1") == SECRET
    assert "canary" not in sealed


def test_sealing_twice_gives_two_texts(sealed: str) -> None:
    assert secrets.KeyRing([OLD]).seal(SECRET, owner="cluster:1") != sealed


@pytest.mark.parametrize("owner", ["cluster:2", "cluster:", "cluster:11", ""])
def test_a_secret_copied_to_another_row_opens_nowhere(sealed: str, owner: str) -> None:
    with pytest.raises(faults.SecretForeign):
        secrets.KeyRing([OLD]).open(sealed, owner=owner)


def test_a_missing_key_is_named(sealed: str) -> None:
    with pytest.raises(faults.KeyMissing, match=secrets.key_name(sealed)):
        secrets.KeyRing([NEW]).open(sealed, owner="cluster:1")


def test_rotation(sealed: str) -> None:
    both = secrets.KeyRing([NEW, OLD])
    assert both.open(sealed, owner="cluster:1") == SECRET
    resealed = both.reseal(sealed, owner="cluster:1")
    assert secrets.key_name(resealed) == both.newest != secrets.key_name(sealed)
    assert secrets.KeyRing([NEW]).open(resealed, owner="cluster:1") == SECRET
    assert both.reseal(resealed, owner="cluster:1") == resealed
    with pytest.raises(faults.SecretForeign):
        both.reseal(sealed, owner="cluster:2")


@pytest.mark.parametrize("place", [0, 4, 14, 40, -1])
def test_a_damaged_text_is_told_from_a_missing_key(sealed: str, place: int) -> None:
    raw = list(sealed)
    raw[place] = "!" if place == -1 else ("a" if raw[place] != "a" else "b")
    with pytest.raises(faults.SecretUnreadable) as refusal:
        secrets.KeyRing([OLD]).open("".join(raw), owner="cluster:1")
    assert isinstance(refusal.value, faults.KeyMissing) == (place == 4)


@pytest.mark.parametrize("text", ["", "v1", "v2.00000000.x", "plain", "v1.00000000."])
def test_what_was_never_sealed_is_unreadable(text: str) -> None:
    with pytest.raises(faults.SecretUnreadable):
        secrets.KeyRing([OLD]).open(text, owner="cluster:1")


def test_both_alphabets_of_base64_are_one_key(sealed: str) -> None:
    raw = base64.urlsafe_b64decode(OLD + "=")
    plain = base64.b64encode(raw).decode()
    assert secrets.KeyRing([plain]).open(sealed, owner="cluster:1") == SECRET


@pytest.mark.parametrize(
    "keys", [[], [""], ["short"], ["x" * 44], [OLD, "ä" * 43], [OLD + "A"], ["canary" * 8]]
)
def test_a_wrong_key_is_named_by_its_place_only(keys: list[str]) -> None:
    with pytest.raises(faults.KeyRingInvalid) as refusal:
        secrets.KeyRing(keys)
    assert all(key not in str(refusal.value) for key in keys if key)


def test_a_ring_shows_no_key() -> None:
    assert OLD not in repr(secrets.KeyRing([OLD]))


def test_the_settings_hold_a_ring() -> None:
    ring = secrets.key_ring()
    assert ring.open(ring.seal(b"x", owner="a"), owner="a") == b"x"
