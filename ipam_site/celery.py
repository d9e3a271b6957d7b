"""The Celery application; its settings stand in settings.py, each with its reason."""

import os

import celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipam_site.settings")

app = celery.Celery("cadastre")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
