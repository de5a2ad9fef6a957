"""Proof of the README's promises: many jobs on the laptop stack, and faults at every point.

    python -m tests.prove [--jobs 500] [--seed 1]

`points.py` names every AWS call that the functions make; a function may be killed before and after
each of them. `deck.py` deals faults to jobs, by a seed. `sandbox.py` strikes them, between the
functions (`src/` as it is, but for `work.py`) and the emulated AWS. `campaign.py` runs it all.
`promises.py` holds what the stores, the owner and the witness say against the promises.
"""
