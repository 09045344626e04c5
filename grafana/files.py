"""The files of `grafana/`: dashboards, and provisioning of them and of the data sources."""

import json
from collections.abc import Mapping

from headway.grafana.boards import BOARDS
from headway.grafana.layout import board_object

_DATA_SOURCES = """\
# Written by `headway generate`; change the declaration instead.
apiVersion: 1
datasources:
  - name: Prometheus
    type: prometheus
    uid: headway-prometheus
    access: proxy
    url: http://127.0.0.1:9090
    jsonData:
      timeInterval: 15s
      alertmanagerUid: headway-alertmanager
  - name: Alertmanager
    type: alertmanager
    uid: headway-alertmanager
    access: proxy
    url: http://127.0.0.1:9093
    jsonData:
      implementation: prometheus
  - name: Headway
    type: yesoreyeram-infinity-datasource
    uid: headway-api
    access: proxy
    url: http://127.0.0.1:8750
    jsonData:
      allowedHosts: ["http://127.0.0.1:8750"]
"""
_PROVIDERS = """\
# Written by `headway generate`; change the declaration instead.
apiVersion: 1
providers:
  - name: Headway
    folder: Headway
    type: file
    allowUiUpdates: false
    options:
      path: /var/lib/grafana/dashboards/headway
      foldersFromFilesStructure: false
"""


def files() -> Mapping[str, str]:
    """Return every file by its path in the repository."""
    return {
        "grafana/provisioning/datasources/headway.yaml": _DATA_SOURCES,
        "grafana/provisioning/dashboards/headway.yaml": _PROVIDERS,
        **{
            f"grafana/dashboards/{board.uid}.json": json.dumps(
                board_object(board, BOARDS), indent=2
            )
            + "\n"
            for board in BOARDS
        },
    }
