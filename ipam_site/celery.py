"""The Celery application; its settings stand in settings.py, each with its reason."""

import os
from typing import Any

import celery
from celery import signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipam_site.settings")

app = celery.Celery("cadastre")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.worker_process_shutdown.connect
def _write_measures(**_: object) -> None:
    """A child process of a worker ends without what Python does at an exit."""
    from pools.platform import (  # noqa: PLC0415  # not before the settings are read
        process_metrics,
    )

    process_metrics.flush()


# --- getting on: pools/platform/heartbeat.py ----------------------------------------------------------------

_name = "worker"  # which process this is; children of a worker inherit it


def _got_on(**_: object) -> None:
    from pools.platform import (  # noqa: PLC0415  # not before the settings are read
        heartbeat,
    )

    heartbeat.touch(_name)


@signals.celeryd_init.connect
def _worker_begins(options: dict[str, Any] | None = None, **_: object) -> None:
    global _name  # noqa: PLW0603  # one process, one name
    queues = (options or {}).get("queues") or ()
    _name = "reconciler" if "ipam.clusters" in queues else "worker"
    _got_on()
    signals.task_prerun.connect(_got_on)
    signals.task_postrun.connect(_got_on)


@signals.beat_init.connect
def _beat_begins(**_: object) -> None:
    global _name  # noqa: PLW0603
    _name = "beat"
    _got_on()
    # Also while the broker is away: before it is asked.
    signals.before_task_publish.connect(_got_on)
