"""HTTP servers on loopback for the doubles."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class Handler(BaseHTTPRequestHandler):
    """Reads a request with a JSON body, and writes a reply with one."""

    protocol_version = "HTTP/1.1"
    # Small replies would wait for the client's acknowledgement otherwise.
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        """Standard error is for errors."""

    def handle_request(self, path: str, query: dict[str, str], body: Any) -> None:
        """Replies to a request; `path` is decoded and has no slash at its end."""
        raise NotImplementedError

    def do(self) -> None:
        """Every method."""
        raw = self._body()
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        self.handle_request(unquote(url.path).rstrip("/"), query, json.loads(raw) if raw else None)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do

    def reply(self, status: int, body: Any = None, headers: dict[str, str] | None = None) -> None:
        """Sends a reply."""
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _body(self) -> bytes:
        if "chunked" not in (self.headers.get("Transfer-Encoding") or ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().strip(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body


def serve(handler: type[Handler]) -> str:
    """Serves in threads of this process; returns the server's URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"
