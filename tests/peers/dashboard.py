"""A real Horizon with magnum-ui, and persons before it, as a peer.

    dashboard.py KEYSTONE_URL REGION PASSWORD FOLDER

Horizon is served over HTTP from this process; each person has a browser's cookies and logs in by the form of its first
page. What the forms of magnum-ui send is asked for by its path below /api/container_infra. No browser runs the scripts of a
page.
"""
import os
import re
import socketserver
import sys
import threading
import wsgiref.simple_server

import peer

KEYSTONE, REGION, PASSWORD, FOLDER = sys.argv[1:]
os.environ.update(DJANGO_SETTINGS_MODULE='dashboard_settings', DASHBOARD_KEYSTONE_URL=KEYSTONE, DASHBOARD_FOLDER=FOLDER)

import requests  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402

_persons = {}


class Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True


class Handler(wsgiref.simple_server.WSGIRequestHandler):
    def address_string(self):
        return self.client_address[0]


class Person:
    """A browser, as far as cookies go."""

    def __init__(self, base):
        self.base, self.session = base, requests.Session()

    def log_in(self, user, password):
        """By the form, to the region; whether that was let through."""
        form = self.session.get(f'{self.base}/auth/login/').text
        token = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', form).group(1)
        answer = self.session.post(f'{self.base}/auth/login/', allow_redirects=False, data={
            'username': user, 'password': password, 'region': 'default', 'csrfmiddlewaretoken': token})
        if answer.status_code != 302:
            return False
        answer = self.session.get(f'{self.base}/auth/switch_services_region/{REGION}/', allow_redirects=False)
        answer.raise_for_status()
        return True

    def ask(self, method, path, body=None):
        """As the scripts of a page ask: what the dashboard answers as JSON, or as text where it is none."""
        headers = {'X-Requested-With': 'XMLHttpRequest', 'X-CSRFToken': self.session.cookies.get('csrftoken', '')}
        answer = self.session.request(method, self.base + path, json=body, headers=headers, allow_redirects=False)
        try:
            told = answer.json()
        except ValueError:
            told = answer.text
        return {'status': answer.status_code, 'told': told, 'type': answer.headers.get('Content-Type', '')}


def log_in(user, password=PASSWORD):
    _persons[user] = Person(BASE)
    return _persons[user].log_in(user, password)


def ask(user, method, path, body=None):
    return _persons[user].ask(method, path, body)


if __name__ == '__main__':
    server = Server(('127.0.0.1', 0), Handler)
    server.set_app(get_wsgi_application())
    BASE = f'http://127.0.0.1:{server.server_port}'
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # Its first page takes a while.
    requests.get(f'{BASE}/auth/login/').raise_for_status()
    peer.emit({'event': 'ready'})
    peer.serve({'log_in': log_in, 'ask': ask})
