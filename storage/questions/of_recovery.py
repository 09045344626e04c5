"""Saved questions about how recovery went, and from which checkpoint."""

from headway.storage.questions.chosen import CHOICE, RUN, TEAM, limit, of_chosen
from headway.storage.questions.model import Question

PERCENTILES = Question(
    name="recovery-by-cause",
    title="Recovery times by cause",
    asks="How long does recovery take after each cause, and how often does it fail?",
    notes="Times run from the opening until the first step after resuming, of incidents in which "
    "an attempt held; each percentile is one of the measured times.",
    parameters=CHOICE,
    sql=of_chosen(""",
ended AS (
  SELECT
    *,
    CASE WHEN outcome NOT IN ('open', 'not_recovered') THEN recovered - opened END AS took
  FROM chosen
)
SELECT
  cause,
  count(*) AS incidents,
  count(*) FILTER (outcome = 'not_recovered') AS not_recovered,
  count(*) FILTER (outcome = 'open') AS open,
  quantile_disc(took, 0.5) / 1e9 AS median_seconds,
  quantile_disc(took, 0.95) / 1e9 AS p95_seconds,
  max(took) / 1e9 AS longest_seconds,
  sum(lost_gpu) / 3.6e12 AS lost_gpu_hours
FROM ended
GROUP BY cause
ORDER BY incidents DESC, cause
"""),
)

ATTEMPTS = Question(
    name="attempts-per-recovery",
    title="Attempts per recovery",
    asks="How many attempts does it take until one holds?",
    notes="The layer is the one whose attempt held. Escalated means that an outer layer had to "
    "take over.",
    parameters=CHOICE,
    sql=of_chosen("""
SELECT
  cause,
  layer,
  count(*) AS incidents,
  count(*) FILTER (outcome = 'held_at_first') AS held_at_first,
  count(*) FILTER (outcome = 'held_after_retries') AS held_after_retries,
  count(*) FILTER (outcome = 'escalated') AS escalated,
  count(*) FILTER (outcome = 'not_recovered') AS not_recovered,
  count(*) FILTER (outcome = 'open') AS open,
  quantile_disc(attempts, 0.5) AS median_attempts,
  max(attempts) AS most_attempts
FROM chosen
GROUP BY cause, layer
ORDER BY incidents DESC, cause, layer
"""),
)

ROLLBACK = Question(
    name="rollback-by-checkpoint-interval",
    title="Rollback by checkpoint interval",
    asks="What does a longer checkpoint interval cost in rolled back steps, and save in writing?",
    notes="The interval is the one that the run's newest configuration before the incident named. "
    "Shares are of the elapsed time of the runs that had an incident with that interval.",
    parameters=CHOICE,
    sql=of_chosen(""",
told AS (
  SELECT run, checkpoint_interval, min(time) AS since
  FROM v_configurations
  WHERE checkpoint_interval IS NOT NULL
  GROUP BY run, checkpoint_interval, attempt
),
intervals AS (
  SELECT c.*, told.checkpoint_interval
  FROM chosen AS c ASOF LEFT JOIN told ON told.run = c.run AND c.opened >= told.since
),
shares AS (
  SELECT
    checkpoint_interval,
    sum(rolled_back) / nullif(sum(elapsed), 0) AS rolled_back_share,
    sum(checkpoint_save) / nullif(sum(elapsed), 0) AS saving_share
  FROM (SELECT DISTINCT run, checkpoint_interval FROM intervals) JOIN v_runs USING (run)
  GROUP BY checkpoint_interval
)
SELECT
  i.checkpoint_interval AS interval_steps,
  count(DISTINCT i.run) AS runs,
  count(*) AS incidents,
  quantile_disc(i.rollback_steps, 0.5) AS median_rollback_steps,
  quantile_disc(i.rollback_steps, 0.95) AS p95_rollback_steps,
  max(i.rollback_steps) AS most_rollback_steps,
  quantile_disc(i.rollback, 0.5) / 6e10 AS median_rollback_minutes,
  any_value(s.rolled_back_share) AS rolled_back_share,
  any_value(s.saving_share) AS saving_share
FROM intervals AS i
  LEFT JOIN shares AS s ON s.checkpoint_interval IS NOT DISTINCT FROM i.checkpoint_interval
GROUP BY i.checkpoint_interval
ORDER BY i.checkpoint_interval NULLS LAST
"""),
)

FRESHNESS = Question(
    name="freshness-at-fault",
    title="Checkpoint freshness at each fault",
    asks="How old was the newest durable checkpoint when it broke?",
    notes="The newest save that counted as durable when the incident opened; its state is that of "
    "today, so one that later failed to load reads revoked. No checkpoint: the run had none yet.",
    parameters=(*CHOICE, limit(200)),
    sql=of_chosen(""",
durable AS (
  SELECT run, checkpoint, step, state, durable_since
  FROM v_checkpoints
  WHERE durable_since IS NOT NULL
)
SELECT
  c.incident,
  c.run_name,
  make_timestamp(c.opened // 1000) AS opened,
  c.cause,
  d.checkpoint,
  d.step,
  d.state,
  (c.opened - d.durable_since) / 6e10 AS age_minutes,
  c.rollback_steps,
  c.rollback / 6e10 AS rollback_minutes
FROM chosen AS c ASOF LEFT JOIN durable AS d ON d.run = c.run AND c.opened >= d.durable_since
ORDER BY age_minutes DESC NULLS FIRST, c.opened DESC, c.incident
LIMIT $limit
"""),
)

TIMEOUTS = Question(
    name="longest-phases",
    title="Longest phases against timeouts",
    asks="Which timeout is about to kill a healthy rank, and which would notice a hang too late?",
    notes="The ratio is the longest stretch of a phase over the timeout that guards it. Near 1 the "
    "timeout is too short for this run; far below, a hang of that phase is noticed late.",
    parameters=(RUN, TEAM, limit(100)),
    sql="""\
SELECT
  r.run_name,
  p.phase,
  p.timeout,
  p.longest / 1e9 AS longest_seconds,
  p.timeout_limit / 1e9 AS timeout_seconds,
  p.ratio,
  p.rank,
  p.run
FROM v_longest_phases AS p JOIN v_runs AS r ON r.run = p.run
WHERE ($run IS NULL OR $run IN (r.run, r.run_name))
  AND ($team IS NULL OR r.team = $team)
  AND p.timeout IS NOT NULL
ORDER BY p.ratio DESC, r.run_name, p.run, p.phase, p.timeout
LIMIT $limit
""",
)

QUESTIONS = (PERCENTILES, ATTEMPTS, ROLLBACK, FRESHNESS, TIMEOUTS)
