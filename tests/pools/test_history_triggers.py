"""What keeps the triggers of the history cheap, and that they record each column."""

import pgtrigger
import pytest
from django.db import connection

from pools.models import Block, BlockEvent
from tests import factories

pytestmark = pytest.mark.django_db


def test_asking_whether_to_do_nothing_opens_no_subtransaction() -> None:
    """The last migration that adds triggers must run rules.sql again."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT l.lanname, prosrc FROM pg_proc p JOIN pg_language l ON l.oid = prolang"
            " WHERE proname = '_pgtrigger_should_ignore'"
        )
        ((language, source),) = cursor.fetchall()
    assert language == "sql"
    assert "EXCEPTION" not in source


def test_django_pgtrigger_can_still_switch_them_off() -> None:
    pool = factories.pool("10.0.0.0/24")
    with pgtrigger.ignore("pools.Block:updated_update"):
        factories.take(pool)
    assert not BlockEvent.objects.exists()
    factories.take(pool)
    assert BlockEvent.objects.count() == 1


@pytest.mark.parametrize("column", ["holder_id", "holder_kind", "holder_uid", "org", "env"])
def test_whoever_a_held_block_belongs_to_is_recorded(column: str) -> None:
    block = factories.take(factories.pool("10.0.0.0/24", category="vm"))
    before = BlockEvent.objects.count()
    Block.objects.filter(pk=block["id"]).update(**{column: "other"})
    last = BlockEvent.objects.order_by("-pgh_id").first()
    assert BlockEvent.objects.count() == before + 1
    assert (getattr(last, column), last.pgh_label) == ("other", "changed")


def test_a_change_of_nothing_is_no_event() -> None:
    block = factories.take(factories.pool("10.0.0.0/24"))
    before = BlockEvent.objects.count()
    Block.objects.filter(pk=block["id"]).update(withheld=True)
    Block.objects.filter(pk=block["id"]).update(org=block["org"])
    assert BlockEvent.objects.count() == before


def test_a_batch_records_every_column_as_the_row_is() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.ask(pool, *factories.holders(3))
    names = [field.attname for field in BlockEvent._meta.fields if not field.name.startswith("pgh")]
    events = list(BlockEvent.objects.order_by("pgh_id").values_list("pgh_obj_id", *names))
    assert events == list(
        Block.objects.filter(state="held").order_by("id").values_list("id", *names)
    )
