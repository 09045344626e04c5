"""A resilient FSDP training on a small transformer, with planned faults.

    torchrun --standalone --nproc-per-node 2 -m headway.exporter.training.loop --directory DIR

It trains with FSDP (gloo on CPUs, NCCL on GPUs), saves distributed checkpoints under DIR, restarts
inside its processes after faults, and records everything. Started again with the same DIR it goes
on where it stopped. SIGTERM makes all ranks save after the same step and end with status 143.
Nothing heavy is imported before it is needed: the processes that write checkpoints import this
module again.
"""

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from headway.exporter.recording.recorder import Recorder
from headway.exporter.training import stop
from headway.exporter.training.faults import (
    FAULT_TYPES,
    MEMORY,
    MOMENTS,
    SINGLE_FAULTS,
    PlannedFault,
    schedule,
    single,
)


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    described = argparse.ArgumentParser(
        prog="headway.exporter.training.loop",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = described.add_argument
    add("--directory", type=Path, required=True, help="folder that all ranks see")
    add("--name", default="demo", help="name of the run")
    add("--steps", type=int, default=400, help="optimizer steps to train")
    add("--checkpoint-every", type=int, default=40, help="steps between two checkpoints")
    add(
        "--save",
        choices=("sync", "async"),
        default="async",
        help="write checkpoints while training waits, or beside it; default: async",
    )
    add("--evaluate-every", type=int, default=0, help="steps between two evaluations; 0: never")
    add("--global-batch", type=int, default=8, help="samples of one step over all ranks")
    add("--seed", type=int, default=42, help="seed of weights, data and faults")
    add("--faults", type=int, default=0, help="faults to inject")
    add("--fault-after", type=int, default=10, help="first step without a fault after it")
    add(
        "--fault-types",
        default="exception",
        help=f"comma-separated types of faults, of {', '.join(FAULT_TYPES)}",
    )
    add("--fault-weights", help="comma-separated weights of the types; default: equal")
    add(
        "--fault",
        choices=SINGLE_FAULTS,
        help="one certain fault; preemption, node_lost and oom are left to somebody outside: the "
        "rank writes its process id to a file in DIR/faults and waits for SIGTERM or its death",
    )
    add(
        "--fault-at",
        choices=MOMENTS,
        help="when the fault strikes: while the model is built, in the first look for a "
        "checkpoint, after a step, in a save, in an evaluation; default: step, save for "
        "checkpoint_fail and checkpoint_torn",
    )
    add("--fault-rank", type=int, help="rank that the fault strikes; default: the last")
    add(
        "--fault-step",
        type=int,
        help="completed steps before the fault strikes; at load: steps in the checkpoint; "
        "default: 0 at startup and load, else half an interval after the first checkpoint",
    )
    add(
        "--recovery",
        choices=("in_process", "none"),
        default="in_process",
        help="restart inside the processes, or let a fault end them; default: in_process",
    )
    add("--max-restarts", type=int, default=20, help="restarts inside the processes")
    add(
        "--hang-timeout",
        type=float,
        default=60.0,
        help="seconds without progress after which a rank counts as hung inside the processes; "
        "a collective operation waits twice as long; default: 60",
    )
    add(
        "--grace",
        type=float,
        default=20.0,
        help="seconds after SIGTERM in which the last save must be done; default: 20",
    )
    return described


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one process of the training; return its exit status."""
    options = parser().parse_args(arguments)
    directory = options.directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    try:
        world_size = int(os.environ["WORLD_SIZE"])
        if (directory / MEMORY).exists():
            # Something has struck before, and the group may have shrunk since.
            world_size = max(world_size, 2, (options.fault_rank or 0) + 1)
        faults = _faults(options, world_size)
    except KeyError:
        print("WORLD_SIZE is not set: start this program with torchrun", file=sys.stderr)
        return 2
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    recorder = Recorder(run=options.name, checkpoints=directory / "checkpoints")
    request = stop.StopRequest(recorder, options.grace)
    request.listen()
    _quieten()
    with recorder.phase("import"):
        from headway.exporter.nvrx.in_process import RestartsExhaustedError
        from headway.exporter.training.trainer import Plan, run
    plan = Plan(
        directory=directory,
        steps=options.steps,
        checkpoint_every=options.checkpoint_every,
        global_batch=options.global_batch,
        seed=options.seed,
        save=options.save,
        evaluate_every=options.evaluate_every,
        recovery=options.recovery,
        max_restarts=options.max_restarts,
        hang_timeout=options.hang_timeout,
        faults=faults,
    )
    try:
        stopped = run(plan, recorder, request)
        recorder.end_attempt()
    except RestartsExhaustedError:
        raise  # what exhausted them was recorded when it struck
    except KeyboardInterrupt as interrupt:
        recorder.end_attempt(interrupt)
        return 128 + signal.SIGINT
    except Exception as error:
        if request.was_made:  # the others are leaving, too: what breaks now is no fault
            print(f"broke after SIGTERM: {error!r}", file=sys.stderr)
            stopped = True
        else:
            recorder.end_attempt(error)
            raise
    finally:
        recorder.close()
    return stop.STATUS if stopped else 0


def _faults(options: argparse.Namespace, world_size: int) -> tuple[PlannedFault, ...]:
    """Return the faults that the options ask for, in the order of their steps.

    Raises:
        ValueError: what cannot be planned.
    """
    weights = options.fault_weights
    faults = schedule(
        seed=options.seed,
        num_faults=options.faults,
        after_step=options.fault_after,
        max_steps=options.steps,
        world_size=world_size,
        types=options.fault_types.split(","),
        weights=None if weights is None else [float(x) for x in weights.split(",")],
    )
    if options.fault is None:
        return faults
    one = single(
        kind=options.fault,
        at=options.fault_at,
        rank=options.fault_rank,
        step=options.fault_step,
        max_steps=options.steps,
        world_size=world_size,
        checkpoint_every=options.checkpoint_every,
        evaluate_every=options.evaluate_every,
    )
    return tuple(sorted((*faults, one), key=lambda fault: fault.step))


def _quieten() -> None:
    """Silence what torch says about this machine in every process, and use one core each."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    harmless = "The pynvml package is deprecated"
    warnings.filterwarnings("ignore", message=harmless, category=FutureWarning)
    os.environ.setdefault("PYTHONWARNINGS", f"ignore:{harmless}:FutureWarning")


if __name__ == "__main__":
    sys.exit(main())
