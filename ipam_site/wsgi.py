import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipam_site.settings")
# Selects the statement limits of web processes, see settings.py.
os.environ.setdefault("IPAM_ROLE", "web")

from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()
