"""The Celery application; its settings stand in settings.py, each with its reason."""

import os

import celery
from celery import signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipam_site.settings")

app = celery.Celery("cadastre")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.worker_process_shutdown.connect
def _write_measures(**_: object) -> None:
    """A child process of a worker ends without what Python does at an exit."""
    from pools import measures  # noqa: PLC0415  # not before the settings are read

    measures.flush()
