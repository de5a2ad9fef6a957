"""Every AWS call that the functions make, by name: the points at which a fault can strike.

The campaign kills a function before and after each call. It throttles the call, loses its answer,
or lets its condition fail. A call that is missing here fails the campaign: give it a name, and say
which scenario leads to it. The usual crash points, by these names:

    before the claim                         WorkerFunction killed before "claim"
    after it                                 after "claim"
    during work                              at "work", which is no call
    between work and its record              before "complete"
    after the record, before the message     after "complete", and before and after all that
    is acknowledged                          "announcement begins" to "announcement ends"
    inside once, before the effect           after "once begins"
    between the effect and its record        before "once ends"
    between store and hand-over              ApiFunction killed after "store"
"""

from tests.tools.prove.engine import Calls
from tests.tools.prove.faults import (
    API,
    DEAD_LETTERS,
    KILLED_AFTER,
    KILLED_BEFORE,
    THROTTLED,
    TRIES,
    WORKER,
    Call,
    Fault,
)

CALLS: Calls = {
    API: {
        "store": Call("PutItem JobsTable"),
        "send": Call("SendMessage"),
        "adopt": Call("UpdateItem JobsTable adopted", after=(Fault(API, "store", KILLED_AFTER),)),
        "withdraw": Call("DeleteItem JobsTable", after=(Fault(API, "send", THROTTLED, TRIES),)),
        "look": Call("GetItem JobsTable"),
        "cancel": Call(
            "UpdateItem JobsTable cancelled",
            "is cancelled in the queue",
            after=(Fault(WORKER, "claim", KILLED_BEFORE),),
        ),
        "ask to stop": Call("UpdateItem JobsTable cancel_requested", "is cancelled"),
        "retry": Call("UpdateItem JobsTable queued retry_of", "is retried"),
    },
    WORKER: {
        "take back": Call("UpdateItem JobsTable queued retry_of", "is retried"),
        "claim": Call("UpdateItem JobsTable running attempts"),
        "report": Call("UpdateItem JobsTable progress", "takes longer"),
        "look": Call("GetItem JobsTable", "works in silence"),
        "once begins": Call("PutItem IdempotencyTable in work"),
        "once ends": Call("UpdateItem IdempotencyTable in work"),
        "once is undone": Call("DeleteItem IdempotencyTable in work", "fails in an effect"),
        "complete": Call("UpdateItem JobsTable completed"),
        "fail": Call("UpdateItem JobsTable failed", "fails for good"),
        "release": Call("UpdateItem JobsTable queued", "fails once"),
        "stop": Call("UpdateItem JobsTable cancelled", "is cancelled"),
        # Only in batches, and the campaign has none. A crash beside it leaves one message too many.
        "send again": Call("SendMessage", scenario=""),
        "hide": Call("ChangeMessageVisibility", "fails once"),
        "announcement begins": Call("PutItem IdempotencyTable"),
        "announce": Call("Publish"),
        "announcement ends": Call("UpdateItem IdempotencyTable"),
        "announcement is undone": Call(
            "DeleteItem IdempotencyTable", after=(Fault(WORKER, "announce", THROTTLED, TRIES),)
        ),
    },
    DEAD_LETTERS: {
        "look": Call("GetItem JobsTable", "fails always"),
        "give up": Call("UpdateItem JobsTable failed", "fails always"),
        "drop": Call(
            "UpdateItem JobsTable cancelled",
            "is cancelled",
            after=(
                Fault(WORKER, "report", KILLED_BEFORE),
                Fault(WORKER, "stop", KILLED_BEFORE, 10),
            ),
        ),
        "announcement begins": Call("PutItem IdempotencyTable", "fails always"),
        "announce": Call("Publish", "fails always"),
        "announcement ends": Call("UpdateItem IdempotencyTable", "fails always"),
        "announcement is undone": Call(
            "DeleteItem IdempotencyTable",
            "fails always",
            after=(Fault(DEAD_LETTERS, "announce", THROTTLED, TRIES),),
        ),
    },
}
