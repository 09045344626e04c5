"""Provisioned Grafana dashboards and data sources."""
