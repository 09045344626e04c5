"""Saved questions about what incidents cost."""

from headway.storage.questions.chosen import CHOICE, limit, of_chosen
from headway.storage.questions.model import Question

WORST = Question(
    name="worst-incidents",
    title="Worst incidents by GPU-hours",
    asks="Which incidents cost the most?",
    notes="The cost is the time from the fault until training goes on, and that of the steps "
    "rolled back, times the GPUs held.",
    parameters=(*CHOICE, limit(20)),
    sql=of_chosen("""
SELECT
  incident,
  run_name,
  team,
  cause,
  make_timestamp(opened // 1000) AS opened,
  lost_gpu / 3.6e12 AS lost_gpu_hours,
  lost / 6e10 AS lost_minutes,
  rollback_steps,
  attempts,
  outcome,
  suspect_node,
  headline
FROM chosen
ORDER BY chosen.lost_gpu DESC NULLS LAST, chosen.opened DESC, incident
LIMIT $limit
"""),
)

PHASES = Question(
    name="time-lost-per-phase",
    title="Time lost per phase",
    asks="On what do incidents spend their time: noticing, waiting, starting or recomputing?",
    notes="The phases of an incident follow each other: detect, teardown, wait, start, load and "
    "recompute. The share is that of their sum; percentiles are over incidents that spent any.",
    parameters=CHOICE,
    sql=of_chosen(""",
spent AS (
  SELECT incident, gpus, unnest([
    {'place': 1, 'phase': 'detect', 'ns': phase_detect},
    {'place': 2, 'phase': 'teardown', 'ns': phase_teardown},
    {'place': 3, 'phase': 'wait', 'ns': phase_wait},
    {'place': 4, 'phase': 'start', 'ns': phase_start},
    {'place': 5, 'phase': 'load', 'ns': phase_load},
    {'place': 6, 'phase': 'recompute', 'ns': phase_recompute}
  ], recursive := true)
  FROM chosen
)
SELECT
  phase,
  count(*) FILTER (ns > 0) AS incidents,
  coalesce(sum(ns), 0) / 3.6e12 AS hours,
  sum(ns) / nullif(sum(sum(ns)) OVER (), 0) AS share,
  quantile_disc(ns, 0.5) FILTER (ns > 0) / 1e9 AS median_seconds,
  quantile_disc(ns, 0.95) FILTER (ns > 0) / 1e9 AS p95_seconds,
  max(ns) / 1e9 AS longest_seconds
FROM spent
GROUP BY place, phase
ORDER BY place
"""),
)

WEEKS = Question(
    name="week-against-week",
    title="Week against week",
    asks="Is it getting better?",
    notes="Weeks begin on Monday, UTC; a week without an incident is not listed. The change is "
    "against the last week listed before. The newest week may not be over.",
    parameters=(*CHOICE, limit(26)),
    sql=of_chosen(""",
weeks AS (
  SELECT
    date_trunc('week', make_timestamp(opened // 1000))::DATE AS week,
    count(*) AS incidents,
    count(DISTINCT run) AS runs,
    sum(lost_gpu) / 3.6e12 AS lost_gpu_hours,
    quantile_disc(recovered - opened, 0.5) / 1e9 AS median_recovery_seconds
  FROM chosen
  GROUP BY 1
),
causes AS (
  SELECT week, arg_max(cause, (hours, cause)) AS costliest_cause
  FROM (
    SELECT
      date_trunc('week', make_timestamp(opened // 1000))::DATE AS week,
      cause,
      coalesce(sum(lost_gpu), 0) AS hours
    FROM chosen
    GROUP BY 1, 2
  )
  GROUP BY week
)
SELECT
  week,
  incidents,
  incidents - lag(incidents) OVER (ORDER BY week) AS incidents_change,
  runs,
  lost_gpu_hours,
  lost_gpu_hours - lag(lost_gpu_hours) OVER (ORDER BY week) AS lost_gpu_hours_change,
  median_recovery_seconds,
  costliest_cause
FROM weeks JOIN causes USING (week)
ORDER BY week DESC
LIMIT $limit
"""),
)

QUESTIONS = (WORST, PHASES, WEEKS)
