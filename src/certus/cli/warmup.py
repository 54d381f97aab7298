"""certus warmup: compile kernels before they are needed."""

from time import perf_counter
from typing import Annotated

from certus.cli.arguments import Argument, Option
from certus.cli.messages import FAULT, complain, print_json, say
from certus.cli.options import JsonLines
from certus.cli.progress import counted
from certus.warmup import FEATURES, calls_of, chosen, warm


def warmup(
    features: Annotated[
        list[str] | None, Argument(metavar="[FEATURE]...", help=f"Of {', '.join(FEATURES)}; without any, all of these")
    ] = None,
    workers: Annotated[
        int | None, Option(min=1, help="Processes, of about 400 MB each", show_default="all processors")
    ] = None,
    list_: Annotated[bool, Option("--list", help="Say what the features are, and compile nothing")] = False,
    json: JsonLines = False,
) -> int:
    """Compile kernels before they are needed, in several processes.

    Kernels are kept: what is there already is only loaded. Without this each is compiled when it is first used.
    """
    names = chosen(features or ())
    if list_:
        width = max(map(len, names))
        for name in names:
            about = FEATURES[name].about
            print_json({"feature": name, "about": about}) if json else print(f"{name:<{width}}  {about}")
        return 0
    begun, failed = perf_counter(), 0
    total = len(calls_of(names))
    with counted("compiling kernels") as show:
        for number, done in enumerate(warm(names, workers=workers), start=1):
            show(number, total)
            if done.error:
                failed += 1
                complain(f"{done.feature}, {done.call}: {done.error}")
            elif json:
                print_json({"feature": done.feature, "call": done.call, "seconds": round(done.seconds, 3)})
            else:
                print(f"{done.feature}: {done.call}, {done.seconds:.1f} s", flush=True)
    say(f"certus: {total - failed} of {total} ready in {perf_counter() - begun:.0f} s.")
    return FAULT if failed else 0
