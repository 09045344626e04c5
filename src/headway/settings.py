"""Every setting of every process: one frozen dataclass each, one sentence per option.

A value is taken from the argument, else the environment (`HEADWAY_<SECTION>_<OPTION>`), else the
file (`[section]` of the TOML file named by `HEADWAY_CONFIG`), else the default. No variable is
read at import time and none outside this module. Standard library only.
"""

import os
import re
import types
import typing
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from headway.redaction import masked

CONFIG_VARIABLE = "HEADWAY_CONFIG"
GOODPUT_TARGET = 0.9
"""Training goodput that runs are to reach unless somebody says another."""
_PREFIX = "HEADWAY_"


class SettingError(ValueError):
    """A setting whose value cannot be used."""


class Settings:
    """Base of the settings of one process."""

    __slots__ = ()
    section: ClassVar[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings(Settings):
    """What every service can be told about its log, which is its standard error."""

    log_format: Annotated[
        str, "Form of the log: `text` for people, `json` for one object a line."
    ] = "text"
    log_level: Annotated[str, "What is logged: from `debug`, `info`, `warning` or `error` on."] = (
        "info"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderSettings(Settings):
    """Recorder, in the training process."""

    section: ClassVar[str] = "recorder"
    run: Annotated[str | None, "Name of the run, where the program gives none."] = None
    run_id: Annotated[
        str | None, "Identity that tells two runs of one name apart; also HEADWAY_RUN_ID."
    ] = None
    spool: Annotated[
        Path | None, "Folder of the spools; default: `headway` in the temporary folder."
    ] = None
    spool_limit: Annotated[int, "Largest size of one rank's spool in bytes."] = 256 * 1024**2
    shared: Annotated[
        bool, "Let the group of the folder of the spools read and delete this rank's spool."
    ] = False
    enabled: Annotated[bool, "Record at all."] = True
    exit_delay: Annotated[float, "Longest delay at exit in seconds."] = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings(ServiceSettings):
    """Node agent."""

    section: ClassVar[str] = "agent"
    spool: Annotated[
        Path | None, "Folder of the spools; default: `headway` in the temporary folder."
    ] = None
    endpoint: Annotated[str, "Address of the collector."] = "http://127.0.0.1:8750"
    token: Annotated[str | None, "Token for the collector."] = None
    ca_file: Annotated[
        Path | None,
        "File of the authorities (PEM) that may vouch for the collector, and for who takes "
        "metrics; default: the system's.",
    ] = None
    interval: Annotated[float, "Seconds between two looks at the spools."] = 1.0
    batch: Annotated[int, "Most records in one export."] = 5000
    steps_interval: Annotated[
        float, "Longest time in seconds for which completed steps wait to travel with later ones."
    ] = 2.0
    clock_interval: Annotated[
        float, "Seconds between two comparisons of the node's clock with the collector's."
    ] = 60.0
    host: Annotated[str, "Address of the agent's own metrics."] = "127.0.0.1"
    port: Annotated[
        int,
        "Port of the agent's own metrics; 0 chooses a free one, and so does a default that is "
        "taken.",
    ] = 8751
    state: Annotated[Path | None, "Folder for what the agent remembers; default: the spools'."] = (
        None
    )
    memory: Annotated[bool, "Watch how short of memory the node is."] = True
    gpus: Annotated[bool, "Watch the node's GPUs through their driver (NVML)."] = True
    gpu_interval: Annotated[float, "Seconds between two readings of the GPUs."] = 15.0
    gpu_deadline: Annotated[
        float, "Seconds after which a question to the GPUs' driver counts as hung."
    ] = 10.0
    gpu_exporters: Annotated[
        str | None,
        "Addresses of other exporters' GPU metrics (DCGM, NVSentinel, gpud), with commas between.",
    ] = None
    nics: Annotated[bool, "Watch the error counters of the network adapters."] = True
    nic_interval: Annotated[float, "Seconds between two readings of the adapters."] = 30.0
    kernel_log: Annotated[
        str,
        "Kernel log to read: `kmsg`, `journal`, the path of a file, `off`, or `auto` for the "
        "first that can be read.",
    ] = "auto"
    gpu_policy: Annotated[
        Path | None, "TOML file with the site's own classes of GPU faults; default: none."
    ] = None
    otlp_metrics: Annotated[
        str | None,
        "Address that metrics are pushed to by OTLP, such as http://collector:4318/v1/metrics; "
        "default: none.",
    ] = None
    otlp_metrics_interval: Annotated[float, "Seconds between two pushes of metrics."] = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorSettings(ServiceSettings):
    """Collector."""

    section: ClassVar[str] = "collector"
    host: Annotated[str, "Address to listen on."] = "127.0.0.1"
    port: Annotated[
        int, "Port to listen on; 0 chooses a free one, and so does a default that is taken."
    ] = 8750
    database: Annotated[Path, "DuckDB file."] = Path("headway.duckdb")
    tokens: Annotated[
        Path, "File of the tokens that `headway token` makes; it is read again when it changes."
    ] = Path("headway-tokens.json")
    token: Annotated[str | None, "A token that may do everything, beside those of the file."] = None
    tls_certificate: Annotated[
        Path | None, "Certificate chain (PEM) with which it speaks TLS; default: none."
    ] = None
    tls_key: Annotated[Path | None, "Private key of the certificate (PEM)."] = None
    connections: Annotated[int, "Most connections at a time; a further one is turned away."] = 8192
    request_timeout: Annotated[
        float, "Seconds in which a request must have arrived whole, or it is turned away."
    ] = 60.0
    body_limit: Annotated[int, "Largest inflated request in bytes."] = 32 * 1024**2
    commit_interval: Annotated[float, "Longest time between two commits in seconds."] = 0.2
    commit_records: Annotated[int, "Records that force a commit."] = 10_000
    queue_limit: Annotated[
        int,
        "Most bytes of requests on their way into the store, inflated; more are turned away.",
    ] = 256 * 1024**2
    ledger_limit: Annotated[
        int,
        "About how many bytes of events stay in memory for the ledgers; beyond it runs are read "
        "again from the database when somebody asks.",
    ] = 1024**3
    step_retention_days: Annotated[
        float,
        "Days after which raw records of steps expire and sums stay; 0 keeps them for good.",
    ] = 14.0
    gpu_hour_price: Annotated[
        float | None,
        "What an hour of one GPU costs, for the money that lost time is; default: none.",
    ] = None
    currency: Annotated[str, "Currency of that price, as it is printed."] = "USD"
    alerting: Annotated[bool, "Watch the alert rules and tell whom the alerts file says."] = True
    alerts_file: Annotated[
        Path | None,
        "TOML file with thresholds, receivers and routes of alerts; default: all in the log.",
    ] = None
    alerts_state: Annotated[
        Path | None,
        "File in which alerting remembers what it told whom; default: beside the database.",
    ] = None
    alertmanager: Annotated[
        str | None,
        "Address of an Alertmanager that takes the alerts instead of the own notifier.",
    ] = None
    dashboard_url: Annotated[str, "Address of the dashboard, for the links in alerts."] = (
        "http://127.0.0.1:8752"
    )
    goodput_target: Annotated[
        float,
        "Training goodput that runs are to reach, 0 to 1; a run's label of this name goes first.",
    ] = GOODPUT_TARGET


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardSettings(ServiceSettings):
    """Dashboard."""

    section: ClassVar[str] = "dashboard"
    host: Annotated[str, "Address to listen on."] = "127.0.0.1"
    port: Annotated[
        int, "Port to listen on; 0 chooses a free one, and so does a default that is taken."
    ] = 8752
    refresh: Annotated[float, "Seconds between two refreshes of a live page."] = 5.0
    oidc_metadata_url: Annotated[
        str | None,
        "Address of the OpenID provider's configuration, with which people sign in; default: none.",
    ] = None
    oidc_client_id: Annotated[str | None, "Name of the dashboard at that provider."] = None
    oidc_client_secret: Annotated[str | None, "Its secret there; better not as an option."] = None
    oidc_redirect_url: Annotated[
        str | None,
        "Address of the dashboard followed by /oauth2callback, as the provider knows it.",
    ] = None
    cookie_secret: Annotated[
        str | None, "At least 32 random characters that sign the cookie; better not as an option."
    ] = None
    user_header: Annotated[
        str | None, "Header in which a trusted proxy says who reads; default: none is trusted."
    ] = None
    allowed_users: Annotated[
        str | None, "Who may read, such as ana@example.org,*@example.com; default: all signed in."
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings(Settings):
    """Client of the collector: dashboard and command line."""

    section: ClassVar[str] = "client"
    endpoint: Annotated[str, "Address of the collector."] = "http://127.0.0.1:8750"
    token: Annotated[str | None, "Token for the collector."] = None
    ca_file: Annotated[
        Path | None,
        "File of the authorities (PEM) that may vouch for the collector; default: the system's.",
    ] = None
    timeout: Annotated[float, "Seconds to wait for an answer."] = 10.0


SETTINGS: tuple[type[Settings], ...] = (
    RecorderSettings,
    AgentSettings,
    CollectorSettings,
    DashboardSettings,
    ClientSettings,
)
"""Every process that has settings, in the order of the reference page."""

ALIASES: Mapping[str, str] = {
    "HEADWAY_RECORDER_RUN_ID": "HEADWAY_RUN_ID",
    "HEADWAY_RECORDER_RUN": "HEADWAY_RUN",
    "HEADWAY_RECORDER_SPOOL": "HEADWAY_SPOOL",
    "HEADWAY_AGENT_SPOOL": "HEADWAY_SPOOL",
    "HEADWAY_AGENT_ENDPOINT": "HEADWAY_ENDPOINT",
    "HEADWAY_CLIENT_ENDPOINT": "HEADWAY_ENDPOINT",
    "HEADWAY_AGENT_TOKEN": "HEADWAY_TOKEN",
    "HEADWAY_COLLECTOR_TOKEN": "HEADWAY_TOKEN",
    "HEADWAY_CLIENT_TOKEN": "HEADWAY_TOKEN",
    "HEADWAY_AGENT_CA_FILE": "HEADWAY_CA_FILE",
    "HEADWAY_CLIENT_CA_FILE": "HEADWAY_CA_FILE",
    "HEADWAY_AGENT_LOG_FORMAT": "HEADWAY_LOG_FORMAT",
    "HEADWAY_COLLECTOR_LOG_FORMAT": "HEADWAY_LOG_FORMAT",
    "HEADWAY_DASHBOARD_LOG_FORMAT": "HEADWAY_LOG_FORMAT",
    "HEADWAY_AGENT_LOG_LEVEL": "HEADWAY_LOG_LEVEL",
    "HEADWAY_COLLECTOR_LOG_LEVEL": "HEADWAY_LOG_LEVEL",
    "HEADWAY_DASHBOARD_LOG_LEVEL": "HEADWAY_LOG_LEVEL",
}
"""Short names shared by several processes; the long name wins."""

_READ_ELSEWHERE = (
    CONFIG_VARIABLE,
    "HEADWAY_LAUNCH",  # set by `headway run` for its command
    *("HEADWAY_SPOOLS", "HEADWAY_PROGRAM", "HEADWAY_AGENT_ENV", "HEADWAY_EPILOG_SECONDS"),  # Slurm
)
_OF_KUBERNETES = re.compile(r".+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)\w*)")
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://")
"""What Kubernetes gives every container for each Service, by names like ours where it is ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One setting as the documentation shows it."""

    name: str
    variable: str
    alias: str | None
    kind: type
    default: Any
    sentence: str


S = TypeVar("S", bound=Settings)


def options(declaration: type[Settings]) -> tuple[Option, ...]:
    """Return the settings of one process in the order of their declaration."""
    hints = typing.get_type_hints(declaration, include_extras=True)
    found = []
    for item in fields(declaration):  # type: ignore[arg-type]  # each subclass is a dataclass
        base, sentence = typing.get_args(hints[item.name])
        if typing.get_origin(base) in (typing.Union, types.UnionType):
            (base,) = (part for part in typing.get_args(base) if part is not type(None))
        variable = f"HEADWAY_{declaration.section}_{item.name}".upper()
        found.append(
            Option(
                name=item.name,
                variable=variable,
                alias=ALIASES.get(variable),
                kind=base,
                default=None if item.default is MISSING else item.default,
                sentence=sentence,
            )
        )
    return tuple(found)


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
        if name.startswith(_PREFIX) and name not in known
        if not _OF_KUBERNETES.fullmatch(name) and not _SERVICE_ADDRESS.match(value)
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
    return option.name == "port" and _SERVICE_ADDRESS.match(value) is not None


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


_HIGHEST_PORT = 65_535
_WORDS = {"1": True, "true": True, "yes": True, "on": True}
_WORDS |= {"0": False, "false": False, "no": False, "off": False}

_WORDS_OF = {"log_format": ("text", "json"), "log_level": ("debug", "info", "warning", "error")}


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
