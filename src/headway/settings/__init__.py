"""Every setting of every process, declared once.

A value is taken from the argument, else the environment (`HEADWAY_<SECTION>_<OPTION>`), else the
file (`[section]` of the TOML file named by `HEADWAY_CONFIG`), else the default. No variable is
read at import time and none outside this package. Standard library only.
"""

from headway.settings.declarations import (
    CONFIG_VARIABLE,
    GOODPUT_TARGET,
    SETTINGS,
    AgentSettings,
    ClientSettings,
    CollectorSettings,
    DashboardSettings,
    RecorderSettings,
    ServiceSettings,
    SettingError,
    Settings,
)
from headway.settings.options import ALIASES, Option, options
from headway.settings.reading import load, sources, unread_variables

__all__ = [
    "ALIASES",
    "CONFIG_VARIABLE",
    "GOODPUT_TARGET",
    "SETTINGS",
    "AgentSettings",
    "ClientSettings",
    "CollectorSettings",
    "DashboardSettings",
    "Option",
    "RecorderSettings",
    "ServiceSettings",
    "SettingError",
    "Settings",
    "load",
    "options",
    "sources",
    "unread_variables",
]
