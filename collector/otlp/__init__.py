"""OTLP over HTTP: bodies, log records and spans in, answers out."""
