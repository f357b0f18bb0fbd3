"""Magnum's API as a WSGI server loads it. Magnum reads its options from a command line, which gunicorn has for itself:
the configuration file stands in MAGNUM_TEST_CONFIG."""
import os
import sys

sys.argv = ['magnum-api', '--config-file', os.environ['MAGNUM_TEST_CONFIG']]

from magnum.wsgi.api import application  # noqa: E402,F401
