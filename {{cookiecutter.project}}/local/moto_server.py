"""The emulated AWS: moto's server in a process of its own, which `emulator.py` starts.

Its arguments are file descriptors of open sockets to serve.
https://docs.getmoto.org/en/latest/docs/server_mode.html
"""

import functools
import json
import logging
import os
import sys
import threading
import time
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
from moto.sns.models import sns_backends
from moto.sqs import models as sqs_models
from moto.sqs.models import SQSBackend
from werkzeug.serving import make_server

PUBLISHED = "/_local/topics"
_receive = SQSBackend.receive_message


def _receive_in_order(self: Any, queue_name: str, *args: Any, **options: Any) -> Any:
    """Free the whole group of a FIFO batch that comes back.

    moto frees it message by message, and the last one overtakes the others.
    """
    pending = self.get_queue(queue_name).pending_messages
    pending -= {message for message in pending if message.visible}
    return _receive(self, queue_name, *args, **options)


def _is_retained(self: Any, queue_name: str, message: Any) -> bool:
    """Tell whether a queue still keeps a message.

    For this, moto builds every attribute of the queue, which reads every message several times.
    """
    period = float(self.get_queue(queue_name).message_retention_period)
    return bool(period + message.sent_timestamp / 1000 > time.time())


def _make_moto_faster() -> None:
    """Replace the slowest parts: half of each request, and most of a receive.

    Without this, a receive from a queue of 200 messages takes ten times as long as from one of 1.
    """
    modules = tuple(backends.list_of_moto_modules())
    replacements = (
        (backends, "list_of_moto_modules", lambda: modules),
        (responses, "method_names_from_class", functools.cache(method_names_from_class)),
        # moto makes two datetimes to read the clock, twice for each message of a queue.
        (sqs_models, "unix_time", time.time),
        (sqs_models, "unix_time_millis", lambda: time.time() * 1000),
        (SQSBackend, "is_message_valid_based_on_retention_period", _is_retained),
        (SQSBackend, "receive_message", _receive_in_order),
    )
    for owner, name, replacement in replacements:
        setattr(owner, name, replacement)


def _published() -> list[dict[str, str]]:
    """Return the messages of all topics; moto has no API for them."""
    topics = list(sns_backends[os.environ["MOTO_ACCOUNT_ID"]]["us-east-1"].topics.values())
    sent = [(topic.name, message) for topic in topics for message in topic.sent_notifications]
    return [{"topic": name, "subject": m[2] or "", "message": m[1]} for name, m in sent]


def _one_at_a_time(app: Callable[..., Any]) -> Callable[..., Any]:
    """Serialize the requests to DynamoDB.

    moto checks a write's condition and then writes, without a lock. It returns the stored item
    itself, which the next write changes while it is being read.
    """
    lock = threading.Lock()

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        if environ["PATH_INFO"] == PUBLISHED:
            start_response("200 OK", [("content-type", "application/json")])
            return [json.dumps(_published()).encode()]
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
    """Serve every socket from the same state, until killed."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    _make_moto_faster()
    app = _one_at_a_time(DomainDispatcherApplication(create_backend_app))
    for fd in sockets:
        server = make_server("127.0.0.1", 0, app, True, request_handler=_Handler, fd=fd)
        threading.Thread(target=server.serve_forever).start()


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]])
