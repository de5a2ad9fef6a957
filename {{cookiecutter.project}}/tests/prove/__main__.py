"""`python -m tests.prove`: run a campaign and print its table; exit code 1 for a violation."""

import argparse
import sys

from tests.prove.campaign import Campaign
from tests.prove.deck import deal
from tests.prove.report import Report


def main() -> int:
    """Run the campaign that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.prove", description=__doc__)
    parser.add_argument("--jobs", type=int, default=500, help="how many; 500 by default")
    parser.add_argument("--seed", type=int, default=1, help="which fault hits which job")
    options = parser.parse_args()
    say = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    campaign = Campaign(deal(options.jobs, options.seed), say)
    campaign.run()
    report = Report(campaign.stories, campaign.odd)
    print(*report.lines(), sep="\n")
    print(
        f"{options.jobs} jobs, seed {options.seed}, in {campaign.seconds:.0f} s:"
        f" {report.violations} violations"
    )
    return 1 if report.violations else 0


sys.exit(main())
