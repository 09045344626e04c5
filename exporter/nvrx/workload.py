"""The function that NVRx restarts, with its exceptions recorded where they are raised.

NVRx hands its hooks a deep copy of an exception: without traceback and cause, and where an
exception cannot be copied the restart itself fails. So exceptions are recorded inside of the
function, and one that cannot be copied is replaced. NVRx also reads the function's annotations
and fails on many; the function that it is given here has none but the one that it needs, which
must be real: this module may not postpone their evaluation.
"""

import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NoReturn, get_args

from nvidia_resiliency_ext.inprocess import CallWrapper  # type: ignore[import-untyped]

from headway.exporter.recording.recorder import Recorder


class WorkloadError(RuntimeError):
    """Stands for an exception of the training that cannot be copied, as NVRx needs."""


def watched(
    function: Callable[..., Any],
    recorder: Recorder,
    begun: Callable[[Any], None],
    is_consequence: Callable[[], bool],
) -> Callable[..., Any]:
    """Return the function for the wrapper; `begun` is told the wrapper of each call.

    Raises:
        TypeError: the annotations of `function` cannot be evaluated, and so nobody can tell
            which argument wants NVRx's `CallWrapper`.
    """
    wanted = _wanted(function)

    def attempt(*arguments: Any, _call_wrapper: CallWrapper = None, **options: Any) -> Any:
        begun(_call_wrapper)
        for name in wanted:
            options[name] = _call_wrapper
        try:
            return function(*arguments, **options)
        except (KeyboardInterrupt, SystemExit) as stop:
            recorder.exception(stop)
            raise
        except Exception as error:
            if not is_consequence():
                recorder.exception(error)
            _reraise(error)

    return attempt


def _wanted(function: Callable[..., Any]) -> list[str]:
    """Return the arguments that are annotated with NVRx's class, or as optional of it."""
    try:
        parameters = inspect.signature(function, eval_str=True).parameters
    except ValueError:  # a function of C says nothing of its arguments
        return []
    except Exception as error:  # whatever evaluating a stranger's text raises
        raise TypeError(
            f"the annotations of {getattr(function, '__qualname__', function)!s} cannot be "
            f"evaluated: {error}; annotate the argument that takes NVRx's wrapper with "
            "`inprocess.CallWrapper`, imported where the module can see it as it runs, not only "
            "under TYPE_CHECKING"
        ) from error
    return [
        name
        for name, parameter in parameters.items()
        if parameter.annotation is CallWrapper or CallWrapper in get_args(parameter.annotation)
    ]


@dataclass
class _State:
    """Stands for NVRx's state, which is copied by `dataclasses.asdict`."""

    fn_exception: Exception


def _reraise(error: Exception) -> NoReturn:
    try:
        asdict(_State(error))
    except Exception:  # whatever the copy of a stranger's exception raises
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
        raise WorkloadError(f"{kind}: {error}") from error
    raise error
