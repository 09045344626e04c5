#!/usr/bin/env bash
# Slurm Epilog: lets the job's agent ship what is there and end, and removes the folder when all of it
# was shipped. What is left is kept, for `headway import spool FOLDER`.
# An epilog that fails drains the node, so this one says what went wrong and never fails.
set -u
spools=${HEADWAY_SPOOLS:-/var/spool/headway}
job=${SLURM_JOB_ID:?the epilog runs in a job}
user=${SLURM_JOB_UID:?the epilog runs in a job}
patience=${HEADWAY_EPILOG_SECONDS:-30}
folder=$spools/$job

say() { logger --tag headway -- "$*" 2> /dev/null || printf 'headway: %s\n' "$*" >&2; }

# The number comes from a file of the user's: it counts only if it names this folder's agent.
agent_of() {
  local process
  process=$(head -c 20 "$folder/agent.pid" 2> /dev/null) || return 1
  case $process in '' | *[!0-9]*) return 1 ;; esac
  [ "$(stat -c %u "/proc/$process" 2> /dev/null)" = "$user" ] || return 1
  tr '\0' ' ' < "/proc/$process/cmdline" 2> /dev/null | grep -qF -- " agent --spool $folder " || return 1
  printf '%s' "$process"
}

if process=$(agent_of); then
  kill -TERM "$process"
  deadline=$((SECONDS + patience))
  while agent_of > /dev/null && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.2; done
  if agent_of > /dev/null; then
    say "the agent of job $job did not end within $patience s"
    kill -KILL "$process"
  fi
fi
left=$(find "$folder" -mindepth 2 -maxdepth 2 -name header 2> /dev/null | wc -l)
kept=$(find "$folder/refused" -type f 2> /dev/null | wc -l)
if [ "$left" -eq 0 ] && [ "$kept" -eq 0 ]; then
  rm -rf -- "$folder"
else
  say "$left spools and $kept refused batches of job $job are kept in $folder: headway import spool $folder"
fi
exit 0
