"""A resilient FSDP training on a small transformer, with seeded faults.

    torchrun --standalone --nproc-per-node 2 -m headway.exporter.training.loop --directory DIR

It trains with FSDP (gloo on CPUs, NCCL on GPUs), saves asynchronous distributed checkpoints under
DIR, restarts inside its processes after faults, and records everything. Started again with the
same DIR it goes on where it stopped. Nothing heavy is imported before it is needed: the processes
that write checkpoints import this module again.
"""

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from headway.exporter.recorder import Recorder
from headway.exporter.training.faults import FAULT_TYPES, schedule


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
    add("--max-restarts", type=int, default=20, help="restarts inside the processes")
    return described


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one process of the training; return its exit status."""
    options = parser().parse_args(arguments)
    directory = options.directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    weights = options.fault_weights
    try:
        faults = schedule(
            seed=options.seed,
            num_faults=options.faults,
            after_step=options.fault_after,
            max_steps=options.steps,
            world_size=int(os.environ["WORLD_SIZE"]),
            types=options.fault_types.split(","),
            weights=None if weights is None else [float(x) for x in weights.split(",")],
        )
    except KeyError:
        print("WORLD_SIZE is not set: start this program with torchrun", file=sys.stderr)
        return 2
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    recorder = Recorder(run=options.name, checkpoints=directory / "checkpoints")
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
        max_restarts=options.max_restarts,
        faults=faults,
    )
    try:
        run(plan, recorder)
    except RestartsExhaustedError:
        raise  # what exhausted them was recorded when it struck
    except KeyboardInterrupt as stop:
        recorder.end_attempt(stop)
        return 128 + signal.SIGINT
    except Exception as error:
        recorder.end_attempt(error)
        raise
    finally:
        recorder.close()
    return 0


def _quieten() -> None:
    """Silence what torch says about this machine in every process, and use one core each."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    harmless = "The pynvml package is deprecated"
    warnings.filterwarnings("ignore", message=harmless, category=FutureWarning)
    os.environ.setdefault("PYTHONWARNINGS", f"ignore:{harmless}:FutureWarning")


if __name__ == "__main__":
    sys.exit(main())
