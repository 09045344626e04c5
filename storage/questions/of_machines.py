"""Saved questions about nodes and their faults."""

from headway.storage.questions.chosen import CHOICE, limit, of_chosen
from headway.storage.questions.model import Question

NODES = Question(
    name="nodes-in-most-incidents",
    title="Nodes that appear in most incidents",
    asks="Which nodes are suspected, or merely there, when it breaks?",
    notes="Suspected counts the incidents of which the evidence accuses the node, present those "
    "whose broken attempt had ranks on it; node-days are the time of all its attempts.",
    parameters=(*CHOICE, limit(20)),
    sql=of_chosen(""",
stays AS MATERIALIZED (SELECT * FROM v_stays),
there AS (
  SELECT s.node, count(DISTINCT c.incident) AS incidents
  FROM chosen AS c JOIN stays AS s ON s.run = c.run AND s.attempt = c.attempt
  GROUP BY s.node
),
suspected AS (
  SELECT
    suspect_node AS node,
    count(*) AS incidents,
    count(DISTINCT run) AS runs,
    string_agg(DISTINCT cause, ', ' ORDER BY cause) AS causes,
    sum(lost_gpu) / 3.6e12 AS lost_gpu_hours,
    max(opened) AS newest
  FROM chosen
  WHERE suspect_node IS NOT NULL
  GROUP BY suspect_node
),
use AS (SELECT node, sum(last_seen - first_seen) / 8.64e13 AS days FROM stays GROUP BY node)
SELECT
  node,
  coalesce(s.incidents, 0) AS suspected,
  coalesce(t.incidents, 0) AS present,
  u.days AS node_days,
  coalesce(s.runs, 0) AS runs,
  s.causes,
  coalesce(s.lost_gpu_hours, 0) AS lost_gpu_hours,
  make_timestamp(s.newest // 1000) AS newest_suspicion
FROM suspected AS s FULL JOIN there AS t USING (node) LEFT JOIN use AS u USING (node)
ORDER BY suspected DESC, lost_gpu_hours DESC, present DESC, node
LIMIT $limit
"""),
)

RATES = Question(
    name="faults-per-1000-node-days",
    title="Faults per 1,000 node-days",
    asks="How often do machines break, and how sure is that?",
    notes="Incidents by cause over the time for which attempts had ranks on nodes, counted until "
    "the last event of each. The interval holds 95 % (Byar's approximation of the Poisson "
    "interval; N. E. Breslow and N. E. Day, Statistical Methods in Cancer Research II, 1987, "
    "p. 69).",
    parameters=CHOICE,
    sql=of_chosen(""",
exposure AS (
  SELECT
    sum(greatest(
      least(s.last_seen, coalesce($until, s.last_seen))
        - greatest(s.first_seen, coalesce($since, s.first_seen)),
      0
    )) / 8.64e13 AS days
  FROM v_stays AS s JOIN v_runs AS r ON r.run = s.run
  WHERE ($run IS NULL OR $run IN (r.run, r.run_name)) AND ($team IS NULL OR r.team = $team)
),
counts AS (
  SELECT coalesce(cause, 'all causes') AS cause, count(*) AS n, grouping(cause) AS whole
  FROM chosen
  GROUP BY GROUPING SETS ((cause), ())
)
SELECT
  cause,
  n AS incidents,
  days AS node_days,
  1000 * n / nullif(days, 0) AS per_1000_node_days,
  CASE WHEN n = 0 THEN 0 ELSE
    1000 * n * pow(1 - 1 / (9 * n) - 1.96 / (3 * sqrt(n)), 3) / nullif(days, 0)
  END AS at_least,
  1000 * (n + 1) * pow(1 - 1 / (9 * (n + 1)) + 1.96 / (3 * sqrt(n + 1)), 3)
    / nullif(days, 0) AS at_most
FROM counts, exposure
ORDER BY whole DESC, n DESC, cause
"""),
)

QUESTIONS = (NODES, RATES)
