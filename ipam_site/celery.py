"""The Celery application; settings.py and library_settings.py have its settings."""

import os
from typing import Any

import celery
from celery import signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipam_site.settings")

app = celery.Celery("cadastre")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.worker_process_init.connect
def _tune_garbage_collection(**_: object) -> None:
    from pools.platform import heartbeat  # noqa: PLC0415  # imports settings

    heartbeat.collect_seldom()


@signals.worker_process_shutdown.connect
def _write_measures(**_: object) -> None:
    """Write the counters of a worker's child process, which ends without running exit handlers."""
    from pools.platform import (  # noqa: PLC0415  # imports settings
        process_metrics,
    )

    process_metrics.flush()


# --- heartbeats: pools/platform/heartbeat.py ------------------------------------------------------

_name = "worker"  # the name of this process; child processes of a worker inherit it


def _report_progress(**_: object) -> None:
    from pools.platform import (  # noqa: PLC0415  # imports settings
        heartbeat,
    )

    heartbeat.touch(_name)


@signals.celeryd_init.connect
def _worker_begins(options: dict[str, Any] | None = None, **_: object) -> None:
    global _name  # noqa: PLW0603  # one process, one name
    queues = (options or {}).get("queues") or ()
    _name = "reconciler" if "ipam.clusters" in queues else "worker"
    _report_progress()
    signals.task_prerun.connect(_report_progress)
    signals.task_postrun.connect(_report_progress)


@signals.beat_init.connect
def _beat_begins(**_: object) -> None:
    global _name  # noqa: PLW0603
    _name = "beat"
    _report_progress()
    # This signal also comes while the broker is unavailable.
    signals.before_task_publish.connect(_report_progress)
