"""SQL objects of the VM networks, installed as those of pools/sql."""

from pools import sql

_NAMES = (
    "memberships", "contradictions", "launchers", "workload_comparison", "vm_rows", "plan_addresses"
)  # fmt: skip


def after_tables() -> str:
    own = [sql.text(name, __name__) for name in _NAMES]
    # The tables of this app have triggers of django-pgtrigger too, whose migrations overwrite its function.
    return "".join([*own, event_log(), sql.text("pgtrigger")])


def event_log() -> str:
    """Return the view of all events: the branches of pools/sql/event_log.sql, then those of VM networks."""
    view, _, _ = sql.text("event_log").partition(";")
    return f"{view}\n{sql.text('event_log', __name__)};\n"
