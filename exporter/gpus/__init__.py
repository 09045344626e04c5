"""GPUs as their driver and other exporters see them; `docs/gpus.md` says what is recorded."""
