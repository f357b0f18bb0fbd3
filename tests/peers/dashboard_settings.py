"""Horizon's own settings with what a deployment has to say, for dashboard.py, which tells it by DASHBOARD_… variables."""
import os
import pathlib

from openstack_dashboard.settings import *  # noqa: F401,F403

FOLDER = pathlib.Path(os.environ['DASHBOARD_FOLDER'])
OPENSTACK_KEYSTONE_URL = os.environ['DASHBOARD_KEYSTONE_URL']
ALLOWED_HOSTS = ['127.0.0.1']
SECRET_KEY = os.urandom(32).hex()
# One process, so sessions may be kept in it. Compressed files are known there, too: with the few entries of the default,
# a page would push its reader's session out.
CACHES = {'default': {'BACKEND': 'django.core.cache.backends.locmem.LocMemCache', 'OPTIONS': {'MAX_ENTRIES': 100000}}}
STATIC_ROOT = COMPRESS_ROOT = str(FOLDER / 'static')
COMPRESS_OFFLINE = False
