"""The settings of each process: one frozen dataclass each, one sentence per option."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

CONFIG_VARIABLE = "HEADWAY_CONFIG"
GOODPUT_TARGET = 0.9
"""Training goodput that runs are to reach unless somebody says another."""
PREFIX = "HEADWAY_"


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
