#!/usr/bin/env bash
# Slurm Prolog: makes the job's folder of spools on this node and starts an agent for it, which runs
# as the job's user, because the folder is that user's. Needs task_prolog.sh for the tasks' variables.
# A prolog that fails drains the node, so this one says what went wrong and never fails.
set -u
spools=${HEADWAY_SPOOLS:-/var/spool/headway}
headway=${HEADWAY_PROGRAM:-/opt/headway/bin/headway}
configuration=${HEADWAY_AGENT_ENV:-/etc/headway/agent.env}
job=${SLURM_JOB_ID:?the prolog runs in a job}
user=${SLURM_JOB_UID:?the prolog runs in a job}
group=${SLURM_JOB_GID:-$user}
folder=$spools/$job

say() { logger --tag headway -- "$*" 2> /dev/null || printf 'headway: %s\n' "$*" >&2; }

if ! install -d -m 0755 "$spools" || ! install -d -m 0700 -o "$user" -g "$group" "$folder"; then
  say "cannot make $folder: job $job is trained without an agent on this node"
  exit 0
fi
if [ -r "$configuration" ]; then
  set -a
  # shellcheck source=/dev/null
  . "$configuration"
  set +a
fi
switch=()
if [ "$(id -u)" != "$user" ]; then
  switch=(setpriv "--reuid=$user" "--regid=$group" --clear-groups --)
fi
# In a session of its own and without the prolog's files: slurmd waits until those are closed.
# shellcheck disable=SC2016  # the inner shell expands them
setsid --fork "${switch[@]}" /bin/sh -c \
  'echo $$ > "$1/agent.pid" && exec "$2" agent --spool "$1" > "$1/agent.log" 2>&1' \
  sh "$folder" "$headway" < /dev/null > /dev/null 2>&1 ||
  say "cannot start an agent for job $job"
exit 0
