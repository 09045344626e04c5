"""What somebody set: by argument, environment or file, checked, and what nothing reads."""

import os
import re
import typing
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from headway.redaction import masked
from headway.settings.declarations import CONFIG_VARIABLE, PREFIX, SETTINGS, SettingError, Settings
from headway.settings.options import ALIASES, Option, options

_READ_ELSEWHERE = (
    CONFIG_VARIABLE,
    "HEADWAY_LAUNCH",  # set by `headway run` for its command
    *("HEADWAY_SPOOLS", "HEADWAY_PROGRAM", "HEADWAY_AGENT_ENV", "HEADWAY_EPILOG_SECONDS"),  # Slurm
)
_OF_KUBERNETES = r".+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)\w*)"
_SERVICE_ADDRESS = r"(tcp|udp|sctp)://"
"""What Kubernetes gives every container for each Service, by names like ours where it is ours."""
_HIGHEST_PORT = 65_535
_WORDS = {"1": True, "true": True, "yes": True, "on": True}
_WORDS |= {"0": False, "false": False, "no": False, "off": False}
_WORDS_OF = {"log_format": ("text", "json"), "log_level": ("debug", "info", "warning", "error")}

S = TypeVar("S", bound=Settings)


def load(
    declaration: type[S],
    arguments: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> S:
    """Return the settings of one process; `environment` is the process's own by default.

    Raises:
        SettingError: a value that does not fit, an unknown option in the file, a missing file.
    """
    known = {option.name: option for option in options(declaration)}
    given = _given(declaration, arguments or {}, os.environ if environment is None else environment)
    return declaration(
        **{name: _cast(known[name], value, source) for name, (value, source) in given.items()}
    )


def sources(
    declaration: type[Settings], environment: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Return where each setting that is not the default comes from.

    Raises:
        SettingError: as `load`, for the file.
    """
    environment = os.environ if environment is None else environment
    return {name: source for name, (_, source) in _given(declaration, {}, environment).items()}


def unread_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return a sentence about each variable that is named like a setting and is none.

    `environment` is the process's own by default.
    """
    given = os.environ if environment is None else environment
    known = {option.variable for declaration in SETTINGS for option in options(declaration)}
    known |= {*ALIASES.values(), *_READ_ELSEWHERE}
    return [
        _unread(name, known)
        for name, value in sorted(given.items())
        if name.startswith(PREFIX) and name not in known
        if not re.fullmatch(_OF_KUBERNETES, name) and not re.match(_SERVICE_ADDRESS, value)
    ]


def _unread(name: str, known: Collection[str]) -> str:
    from difflib import get_close_matches  # only where one is wrong: training imports this module

    nearest = get_close_matches(name, sorted(known), n=1, cutoff=0.8)
    step = f"did you mean {nearest[0]}?" if nearest else "`headway doctor` shows what is set"
    return f"nothing reads the variable {name}; {step}"


def _given(
    declaration: type[Settings], arguments: Mapping[str, Any], environment: Mapping[str, str]
) -> dict[str, tuple[Any, str]]:
    """Return each setting that somebody gave, with who did."""
    stored = _file(declaration, environment)
    found: dict[str, tuple[Any, str]] = {}
    for option in options(declaration):
        if arguments.get(option.name) is not None:
            found[option.name] = (arguments[option.name], "the argument")
        elif option.variable in environment and not _of_a_service(option, environment):
            found[option.name] = (environment[option.variable], option.variable)
        elif option.alias is not None and option.alias in environment:
            found[option.name] = (environment[option.alias], option.alias)
        elif option.name in stored:
            source = f"[{declaration.section}] of {environment[CONFIG_VARIABLE]}"
            found[option.name] = (stored[option.name], source)
    return found


def _of_a_service(option: Option, environment: Mapping[str, str]) -> bool:
    """Return whether Kubernetes set this port's variable for a Service of the same name."""
    value = environment[option.variable]
    return option.name == "port" and re.match(_SERVICE_ADDRESS, value) is not None


def _file(declaration: type[Settings], environment: Mapping[str, str]) -> Mapping[str, Any]:
    path = environment.get(CONFIG_VARIABLE)
    if not path:
        return {}
    import tomllib  # only where a file is named: training processes import this module

    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingError(f"cannot read {path!r} named by {CONFIG_VARIABLE}: {error}") from error
    sections = [each.section for each in SETTINGS]
    for name, value in content.items():
        if name not in sections or not isinstance(value, dict):
            raise SettingError(
                f"{path} holds {name!r}, which is no section; known: [{'], ['.join(sections)}]"
            )
    section = content.get(declaration.section, {})
    known = [option.name for option in options(declaration)]
    for name in section:
        if name not in known:
            raise SettingError(
                f"unknown option {name!r} in [{declaration.section}] of {path}; "
                f"known: {', '.join(known)}"
            )
    return typing.cast(Mapping[str, Any], section)


def _cast(option: Option, value: Any, source: str) -> Any:
    try:
        if option.kind is bool:
            return value if isinstance(value, bool) else _WORDS[str(value).strip().lower()]
        cast = option.kind(value)
    except (KeyError, TypeError, ValueError) as error:
        raise SettingError(
            f"{option.name} must be {option.kind.__name__}, got {value!r} from {source}"
        ) from error
    wanted = _unmet(option, cast)
    if wanted is not None:
        shown = masked(repr(value))
        raise SettingError(f"{option.name} must be {wanted}, got {shown} from {source}")
    return cast


def _unmet(option: Option, value: Any) -> str | None:
    """Return what a value of the right type should have been, or None where it is fine."""
    if option.name == "port":
        return None if 0 <= value <= _HIGHEST_PORT else f"0 to {_HIGHEST_PORT}"
    if option.name == "ca_file":
        return None if value.is_file() else "the path of a file that is there"
    if option.name in _WORDS_OF:
        known = _WORDS_OF[option.name]
        return None if value in known else f"one of {', '.join(known)}"
    if option.name == "gpu_exporters":
        fits = all(re.match(r"https?://[^/\s]", each.strip()) for each in value.split(","))
        return None if fits else "addresses like http://127.0.0.1:9400/metrics"
    if option.name in ("endpoint", "otlp_metrics"):
        fits = re.match(r"https?://[^/\s]", value) is not None
        return None if fits else "an address like http://collector:8750"
    if option.kind in (int, float):
        return None if 0 <= value < float("inf") else "a number from 0 on"
    return None
