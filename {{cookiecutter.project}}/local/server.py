"""An HTTP server that hands every request, whatever its method, to one function.

Head and body of an answer leave in one packet; separate packets cost 40 ms a request.
https://datatracker.ietf.org/doc/html/rfc9112
"""

import io
import socketserver
from collections.abc import Callable
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from werkzeug.serving import DechunkedInput

BODY_LIMIT = 10 * 1024 * 1024  # bytes, of a request to API Gateway

Headers = list[tuple[str, str]]
Answer = tuple[int, Headers, bytes]
Respond = Callable[[str, str, Message, bytes | None], Answer]
"""Answers (method, target of the request line, headers, body); the body is None if too large."""


class Server(ThreadingHTTPServer):
    """A server that answers after `serve_forever`. Raises OSError for a port in use."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, respond: Respond) -> None:
        self.answer = respond
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind without a DNS lookup of the host's name, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        if self.server.socket.fileno() < 0:  # closed meanwhile; this connection was kept open
            self.close_connection = True
            return
        try:
            body = self._read_body()
        except (ValueError, OSError):  # its length is missing or wrong
            self.send_error(400)
            return
        if body is None:  # the rest stays unread
            self.close_connection = True
        self._send(*self.server.answer(self.command, self.path, self.headers, body))

    def _read_body(self) -> bytes | None:
        stream: Any = self.rfile
        length = int(self.headers.get("content-length") or 0)
        if length < 0:
            raise ValueError("a negative length")
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            stream, length = io.BufferedReader(DechunkedInput(stream)), BODY_LIMIT + 1
        elif length > BODY_LIMIT:
            return None
        body: bytes = stream.read(length)
        if stream is self.rfile and len(body) < length:
            raise ValueError("the body is cut short")
        return body if len(body) <= BODY_LIMIT else None

    def _send(self, status: int, headers: Headers, content: bytes) -> None:
        self.send_response_only(status)
        for name, value in (*headers, ("date", self.date_time_string())):
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("content-length", str(len(content)))
        if self.close_connection:
            self.send_header("connection", "close")
        self.end_headers()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(content)
