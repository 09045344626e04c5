#!/usr/bin/env bash
# Slurm TaskProlog: what it prints as `export NAME=value` is in the environment of the job's tasks.
spools=${HEADWAY_SPOOLS:-/var/spool/headway}
echo "export HEADWAY_SPOOL=$spools/${SLURM_JOB_ID:?the task prolog runs in a job}"
