"""Every AWS call that the functions make, by name: the points at which a fault can strike.

The campaign kills a function before and after each call. It throttles the call, loses its answer,
or lets its condition fail. A call that is missing here fails the campaign: give it a name, and say
which scenario leads to it. The usual crash points, by these names:

    before the claim                         WorkerFunction killed before "claim"
    after it                                 after "claim"
    during work                              at "work", which is no call
    between steps                            at "run", which is none either
    between work and its record              before "complete"
    after the record, before the end         after "complete", and before and after all that
    of the execution                         "announcement begins" to "announcement ends"
    inside once, before the effect           after "once begins"
    between the effect and its record        before "once ends"
    between store and hand-over              ApiFunction killed after "store"
"""

from tests.tools.prove.engine import Calls
from tests.tools.prove.faults import (
    API,
    BROKEN,
    DEAD_LETTERS,
    DENIED,
    KILLED_AFTER,
    KILLED_BEFORE,
    WORKER,
    Call,
    Fault,
)

_GIVEN_UP = Fault(WORKER, "import again", BROKEN)
"""The execution fails in the middle, and becomes a dead letter."""

CALLS: Calls = {
    API: {
        "store": Call("PutItem JobsTable"),
        "send": Call("Invoke"),
        "adopt": Call("UpdateItem JobsTable adopted", after=(Fault(API, "store", KILLED_AFTER),)),
        "withdraw": Call("DeleteItem JobsTable", after=(Fault(API, "send", DENIED),)),
        "look": Call("GetItem JobsTable"),
        "cancel": Call(
            "UpdateItem JobsTable cancelled",
            "is cancelled in the queue",
            after=(Fault(WORKER, "claim", KILLED_BEFORE),),
        ),
        "ask to stop": Call("UpdateItem JobsTable cancel_requested", "is cancelled"),
        "stop the execution": Call("StopDurableExecution", "is cancelled"),
        "answer": Call("SendDurableExecutionCallbackSuccess", "asks"),
        "resume": Call("UpdateItem JobsTable running", "asks"),
        "retry": Call("UpdateItem JobsTable queued retry_of", "is retried"),
    },
    WORKER: {
        "checkpoint": Call("CheckpointDurableExecution"),
        "take back": Call("UpdateItem JobsTable queued retry_of", "is retried"),
        "claim": Call("UpdateItem JobsTable running attempts execution"),
        "note position": Call("UpdateItem JobsTable crashes position"),
        "count a crash": Call(
            "UpdateItem JobsTable crashes", after=(Fault(WORKER, "run", KILLED_BEFORE, 2),)
        ),
        "look": Call("GetItem JobsTable"),
        "report": Call("UpdateItem JobsTable progress", "takes longer"),
        "release": Call("UpdateItem JobsTable queued", "fails once"),
        "restart": Call("UpdateItem JobsTable running attempts", "fails once"),
        "wait": Call("UpdateItem JobsTable waiting"),
        "resume": Call("UpdateItem JobsTable running"),
        "once begins": Call("PutItem IdempotencyTable in work"),
        "once ends": Call("UpdateItem IdempotencyTable in work"),
        "once is undone": Call("DeleteItem IdempotencyTable in work", "fails in an effect"),
        "complete": Call("UpdateItem JobsTable completed"),
        "fail": Call("UpdateItem JobsTable failed", "fails for good"),
        "stop": Call(
            "UpdateItem JobsTable cancelled",
            "is cancelled",
            after=(Fault(API, "stop the execution", KILLED_BEFORE, 8),),
        ),
        "announcement begins": Call("PutItem IdempotencyTable"),
        "announce": Call("Publish"),
        "announcement ends": Call("UpdateItem IdempotencyTable"),
        "announcement is undone": Call(
            "DeleteItem IdempotencyTable", after=(Fault(WORKER, "announce", DENIED),)
        ),
    },
    DEAD_LETTERS: {
        "look": Call("GetItem JobsTable", "is given up", (_GIVEN_UP,)),
        "ask why": Call("GetDurableExecution", "is given up", (_GIVEN_UP,)),
        "give up": Call("UpdateItem JobsTable failed", "is given up", (_GIVEN_UP,)),
        "drop": Call(
            "UpdateItem JobsTable cancelled",
            "is cancelled",
            after=(Fault(API, "stop the execution", KILLED_AFTER, 20),),
        ),
        "announcement begins": Call("PutItem IdempotencyTable", "is given up", (_GIVEN_UP,)),
        "announce": Call("Publish", "is given up", (_GIVEN_UP,)),
        "announcement ends": Call("UpdateItem IdempotencyTable", "is given up", (_GIVEN_UP,)),
        "announcement is undone": Call(
            "DeleteItem IdempotencyTable",
            "is given up",
            after=(_GIVEN_UP, Fault(DEAD_LETTERS, "announce", DENIED)),
        ),
    },
}
