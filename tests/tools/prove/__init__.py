"""Run synthetic jobs through a generated project under injected faults, and check the promises.

    python -m tests.tools.prove [PROJECT] [--jobs 500] [--seed 1]

The campaign proves the kit's code, not the user's: in a copy of the project it replaces `work.py`
and the payload schema by its own. Everything else runs as it stands on the laptop stack.

- `project.py` recognizes a generated project, tells its engine, and copies it.
- `queue/` and `durable/` hold what depends on the engine: the AWS calls that its functions make
  (`points.py`), its deliveries (`engine.py`), and the synthetic work (`work.py`).
- `fault_plan.py` assigns faults to jobs, by a seed.
- `fault_injector.py` runs inside the sandboxes, between the functions and the emulated AWS.
- `campaign.py` sends the jobs, `client.py` follows them, `effect_log.py` records what they do.
- `promises.py` checks the records against the promises; `report.py` prints the result.
"""
