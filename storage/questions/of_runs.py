"""Saved questions about what runs were told to do."""

from headway.events import NOTE_SUBJECTS
from headway.storage.questions.chosen import RUN, TEAM, limit
from headway.storage.questions.model import Parameter, Question

CHANGES = Question(
    name="what-changed",
    title="What changed between attempts",
    asks="What did an attempt do differently from the one before it?",
    notes="Every setting that differs from the configuration before it in the same run, the newest "
    "change first; durations are in ns. Empty before: the setting is new; empty after: it is gone.",
    parameters=(
        RUN,
        TEAM,
        Parameter(name="setting", sentence="Only settings whose name holds this text."),
        limit(200),
    ),
    sql="""\
WITH told AS (
  SELECT run, coalesce(attempt, producer) AS attempt, min(time) AS at_time,
    arg_min(content, (coalesce(rank, 0), time)) AS content
  FROM v_configurations
  WHERE run IS NOT NULL
  GROUP BY run, coalesce(attempt, producer)
),
numbered AS (
  SELECT *, row_number() OVER (PARTITION BY run ORDER BY at_time, attempt) AS place
  FROM told
),
settings AS (
  SELECT n.run, n.place, ltrim(t.fullkey, '$.') AS setting, t.atom ->> '$' AS value
  FROM numbered AS n, json_tree(n.content) AS t
  WHERE t.atom IS NOT NULL
),
later AS (
  SELECT n.run, n.place, s.setting, s.value
  FROM numbered AS n JOIN settings AS s ON s.run = n.run AND s.place = n.place
  WHERE n.place > 1
),
earlier AS (
  SELECT n.run, n.place, s.setting, s.value
  FROM numbered AS n JOIN settings AS s ON s.run = n.run AND s.place = n.place - 1
),
changed AS (
  SELECT run, place, setting, earlier.value AS before, later.value AS after
  FROM earlier FULL JOIN later USING (run, place, setting)
  WHERE earlier.value IS DISTINCT FROM later.value
)
SELECT
  r.run_name,
  make_timestamp(n.at_time // 1000) AS changed_at,
  a.number AS attempt_number,
  c.setting,
  c.before,
  c.after,
  c.run,
  n.attempt
FROM changed AS c
  JOIN numbered AS n ON n.run = c.run AND n.place = c.place
  JOIN v_runs AS r ON r.run = c.run
  LEFT JOIN v_attempts AS a ON a.run = c.run AND a.attempt = n.attempt
WHERE ($run IS NULL OR $run IN (r.run, r.run_name))
  AND ($team IS NULL OR r.team = $team)
  AND ($setting IS NULL OR contains(c.setting, $setting))
ORDER BY n.at_time DESC, c.run, c.setting
LIMIT $limit
""",
)

NOTES = Question(
    name="what-people-wrote",
    title="What people wrote",
    asks="What did people note, decide or correct?",
    notes="Notes, labels, acknowledgements and corrections, the newest first.",
    parameters=(
        Parameter(name="search", sentence="Only what holds these words, in any case."),
        Parameter(name="about", sentence="Only what is about such a thing.", choices=NOTE_SUBJECTS),
        Parameter(name="run", sentence="Only what is about this run, by its identity."),
        limit(100),
    ),
    sql="""\
SELECT
  make_timestamp(time // 1000) AS said,
  author,
  action,
  about,
  subject,
  text,
  cause,
  labels,
  run
FROM v_remarks
WHERE ($run IS NULL OR run = $run)
  AND ($about IS NULL OR about = $about)
  AND ($search IS NULL OR contains(
    lower(concat_ws(' ', text, author, cause, labels)), lower($search)))
ORDER BY time DESC
LIMIT $limit
""",
)

QUESTIONS = (CHANGES, NOTES)
