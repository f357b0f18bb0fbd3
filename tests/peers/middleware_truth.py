"""What the real oslo.middleware makes of requests.

Reads a file of cases, prints what each gives, as JSON:

proxies   {"headers": [[name, value]…]}                              -> {"base", "client"}
cors      {"options": {…}, "method", "headers": {…}}                 -> {"status", "headers"}
health    {"disabled": bool, "backends": […], "method", "accept"}    -> {"status", "type", "body"}
"""

import json
import os
import sys
import tempfile

import webob
from oslo_config import cfg
from oslo_middleware import cors, healthcheck, http_proxy_to_wsgi


def environ(headers, **more):
    found = {"REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "PATH_INFO": "/", "wsgi.url_scheme": "http",
             "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "9511", "REMOTE_ADDR": "127.0.0.1", **more}
    for name, value in headers:
        key = "HTTP_" + name.upper().replace("-", "_")
        found[key] = found[key] + "," + value if key in found else value
    return found


def proxies(cases):
    conf = cfg.ConfigOpts()
    conf([])
    seen = {}

    def application(environment, start_response):
        request = webob.Request(environment)
        seen.update(base=request.application_url, client=request.remote_addr)
        start_response("200 OK", [])
        return [b""]

    middleware = http_proxy_to_wsgi.HTTPProxyToWSGI(application, conf)
    conf.set_override("enable_proxy_headers_parsing", True, group="oslo_middleware")
    for case in cases:
        webob.Request(environ(case["headers"])).get_response(middleware)
        yield dict(seen)


def cors_answers(cases):
    def application(environment, start_response):
        # As the API answers: no route takes OPTIONS.
        status = "405 Method Not Allowed" if environment["REQUEST_METHOD"] == "OPTIONS" else "200 OK"
        start_response(status, [("Vary", "OpenStack-API-Version")])
        return [b""]

    for case in cases:
        middleware = cors.CORS(application, case["options"])
        request = webob.Request(environ(case["headers"].items(), REQUEST_METHOD=case["method"]))
        response = request.get_response(middleware)
        yield {"status": response.status_int, "headers": {k.lower(): v for k, v in response.headers.items()}}


def health(cases):
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "disable")
    for case in cases:
        if case["disabled"]:
            open(path, "w").close()
        elif os.path.exists(path):
            os.remove(path)
        application = healthcheck.Healthcheck.app_factory(
            {}, backends=",".join(case["backends"]), disable_by_file_path=path, enable_by_file_paths=path)
        headers = [] if case["accept"] is None else [("Accept", case["accept"])]
        response = webob.Request(environ(headers, REQUEST_METHOD=case["method"])).get_response(application)
        yield {"status": response.status_int, "type": response.content_type, "body": response.text}


if __name__ == "__main__":
    topic, path = sys.argv[1:]
    with open(path) as file:
        cases = json.load(file)
    print(json.dumps(list({"proxies": proxies, "cors": cors_answers, "health": health}[topic](cases))))
