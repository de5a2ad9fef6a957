"""The emulated AWS: moto's server in a process of its own, which `emulator.py` starts.

Its arguments are the numbers of the sockets to serve, which are open already.
https://docs.getmoto.org/en/latest/docs/server_mode.html
"""

import functools
import logging
import sys
import threading
from collections.abc import Callable
from typing import Any

from moto import backends
from moto.core import responses
from moto.core.utils import method_names_from_class
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)  # fmt: skip
from moto.sqs.models import SQSBackend
from werkzeug.serving import make_server

_receive = SQSBackend.receive_message


def _receive_in_order(self: Any, queue_name: str, *args: Any, **options: Any) -> Any:
    """Free the group of a FIFO batch that comes back as a whole.

    moto frees it message by message, so that the last one overtakes the others.
    """
    pending = self.get_queue(queue_name).pending_messages
    pending -= {message for message in pending if message.visible}
    return _receive(self, queue_name, *args, **options)


def _cache_what_is_constant() -> None:
    """Spare a quarter of every request: two things that moto works out each time."""
    modules = tuple(backends.list_of_moto_modules())
    setattr(backends, "list_of_moto_modules", lambda: modules)  # noqa: B010
    names = functools.cache(method_names_from_class)
    setattr(responses, "method_names_from_class", names)  # noqa: B010


def _one_at_a_time(app: Callable[..., Any]) -> Callable[..., Any]:
    """Let no two requests to DynamoDB overlap.

    moto looks at a write's condition and then writes, with no lock between; and it gives out the
    stored item itself, which the next write changes under the reader's eyes.
    """
    lock = threading.Lock()

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        if not environ.get("HTTP_X_AMZ_TARGET", "").startswith("DynamoDB"):
            return app(environ, start_response)
        with lock:
            return list(app(environ, start_response))

    return serve


class _Handler(MotoRequestHandler):
    """Keeps connections open, and sends head and body of an answer in one packet."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True


def main(sockets: list[int]) -> None:
    """Serve until killed. Every socket shares the same state."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    setattr(SQSBackend, "receive_message", _receive_in_order)  # noqa: B010 - a method, to mypy
    _cache_what_is_constant()
    app = _one_at_a_time(DomainDispatcherApplication(create_backend_app))
    for fd in sockets:
        server = make_server("127.0.0.1", 0, app, True, request_handler=_Handler, fd=fd)
        threading.Thread(target=server.serve_forever).start()


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]])
