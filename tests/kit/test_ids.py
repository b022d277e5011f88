"""Identifiers: their shapes, their order, and that nobody can make one that is a path."""

from hypothesis import given
from hypothesis import strategies as st

from infra.kit import ids


@given(st.integers(0, 2**48 - 2))
def test_ulid_sorts_by_time_when_made_later(moment: int) -> None:
    assert ids.ulid(moment) < ids.ulid(moment + 1)
    assert ids.is_ulid(ids.ulid(moment))


def test_ids_do_not_repeat_when_many_are_made() -> None:
    assert len({ids.ulid(1) for _ in range(10_000)}) == 10_000
    assert len({ids.tenant_id() for _ in range(10_000)}) == 10_000


def test_tenant_id_fits_everywhere_when_made() -> None:
    for _ in range(1000):
        made = ids.tenant_id()
        assert ids.is_tenant_id(made)
        assert len(made) == 16
        assert set(made) <= set("abcdefghijklmnopqrstuvwxyz234567")


@given(st.text())
def test_text_is_no_id_when_it_could_be_a_path(text: str) -> None:
    if ids.is_tenant_id(text) or ids.is_ulid(text):
        assert text.isascii()
        assert text.isalnum()
        assert text == text.lower()


@given(st.text(), st.text())
def test_comparison_is_equality_when_secrets_are_any_text(a: str, b: str) -> None:
    assert ids.same(a, b) == (a == b)
    assert ids.same(a, a)


@given(st.text("abcdefghijklmnopqrstuvwxyz234567", min_size=1), st.integers(0, 10**6))
def test_instance_secret_differs_when_tenant_or_generation_does(tenant: str, n: int) -> None:
    made = ids.instance_secret("deployment", tenant, n)
    assert made == ids.instance_secret("deployment", tenant, n)
    assert made != ids.instance_secret("deployment", tenant, n + 1)
    assert made != ids.instance_secret("deployment", tenant + "a", n)
    assert made != ids.instance_secret("other", tenant, n)
    assert made != ids.instance_secret("deployment", f"{tenant}{n}", n)


def test_secret_is_stored_as_a_digest_that_does_not_tell_it() -> None:
    made = ids.secret("ak_")
    assert made.startswith("ak_")
    assert len(made) > 40
    assert made[3:] not in ids.digest(made)
    assert len(ids.digest(made)) == 64
