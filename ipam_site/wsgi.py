import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipam_site.settings")
# The web's limits on statements, see settings.py; a worker says IPAM_ROLE=worker.
os.environ.setdefault("IPAM_ROLE", "web")

from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()
