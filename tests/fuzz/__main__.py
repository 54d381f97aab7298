"""Random tests without end: python -m tests.fuzz [TARGET ...] --minutes 5 --seed 1.

Problems, batches, sums, saved results and files are drawn at random and every claim about them is checked. Failures are
saved as small files, which ``--replay`` tries again; put one into tests/fuzz/saved to make it a test. Exits with 1 if
anything failed.
"""

import argparse
import json
import secrets
import sys
import warnings
from pathlib import Path

from tests.fuzz.runner import COUNTED, Run, say, told
from tests.fuzz.targets import TARGETS, everything, target
from tests.fuzz.workers import spread


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "targets", nargs="*", help=f"{', '.join(TARGETS)}, problems:KIND, tamper:KIND or files:READER; all by default"
    )
    parser.add_argument("--minutes", type=float, help="for all targets together; 5 by default, unless --count is given")
    parser.add_argument("--count", type=int, help="cases for each target")
    parser.add_argument("--seed", type=int, help="drawn and printed by default")
    parser.add_argument("--workers", type=int, default=1, help="processes that the cases are spread over")
    parser.add_argument("--first", type=int, default=0, help="number of the first case, to try one again")
    parser.add_argument("--failures", type=Path, default=Path(".cache/fuzz"), help="folder for what fails")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="try saved failures again")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)  # of infinities and overflow, which are what is tried here
    if options.replay:
        return replay(options.replay)
    try:
        chosen = {name: target(name) for name in options.targets or everything()}
    except ValueError as error:
        parser.error(str(error))
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    minutes = 5.0 if options.minutes is None and options.count is None else options.minutes
    say(f"seed {seed}; {', '.join(chosen)}")
    if not options.targets and len(chosen) < len(TARGETS):
        say("guided is left out: atheris is not installed; python -m pip install -e '.[fuzz]'")
    reports = []
    try:
        for named, one in chosen.items():
            run = Run(one, seed, options.failures)
            seconds = None if minutes is None else 60 * minutes / len(chosen)
            limits = {"seconds": seconds, "count": options.count, "first": options.first}
            try:
                if options.workers > 1:
                    run = spread(named, seed, options.failures, workers=options.workers, **limits)
                else:
                    run.go(**limits)
            finally:
                reports.append(run.report())
    except KeyboardInterrupt:
        say("stopped")
    failed = sum(sum(report["failed"].values()) for report in reports)
    if options.json:
        print(json.dumps(reports, indent=1))
    else:
        for report in reports:
            print(f"{report['target']}: {report['cases']} cases in {report['seconds']} s, seed {report['seed']}")
            for part in ("counts", "slowest", "failed"):
                for name, value in report[part].items():
                    if ": " in name and name.rpartition(": ")[2] in COUNTED:
                        continue  # told by kind below
                    print(
                        f"  {'FAILED ' if part == 'failed' else ''}{name}: {value}{' s' if part == 'slowest' else ''}"
                    )
            for kind, counts in report["kinds"].items():
                print(f"  {told(kind, counts)}")
        print(f"{failed} claims failed" + (f"; see {options.failures}" if failed else ""))
    return 1 if failed else 0


def replay(paths: list[Path]) -> int:
    failed = 0
    for path in paths:
        data = json.loads(path.read_text())
        claims = target(data["target"]).replay(data["case"])
        failed += len(claims)
        print(f"{path.name}: {'; '.join(f'{c.claim}: {c.detail}' for c in claims) or 'holds now'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
