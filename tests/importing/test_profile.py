"""A log of an unknown program, described by a profile."""

import pytest

from headway.cli import main
from headway.importing.profile import ProfileError, read_profile
from imported import one_run, spent, utc, written

PROFILE = r"""
name = "our-trainer"
log_interval = 10
warm_up = 2
first_step = 0

[time]
pattern = '^(?P<time>\d\d\.\d\d\.\d{4} \d\d:\d\d:\d\d)'
layout = "%d.%m.%Y %H:%M:%S"

[[line]]
says = "step"
pattern = 'it (?P<step>\d+)/(?P<target>\d+) took (?P<duration>[\d.]+) loss (?P<loss>\S+)'
units = { duration = "ms" }
example = "01.12.2026 08:00:10 it 9/500 took 1000.0 loss 2.31"

[[line]]
says = "save_finished"
pattern = 'wrote state of it (?P<step>\d+) in (?P<duration>[\d:]+)'
example = "01.12.2026 08:00:10 wrote state of it 19 in 00:05"

[[line]]
says = "save_failed"
pattern = 'could not write state of it (?P<step>\d+)'
example = "01.12.2026 08:00:10 could not write state of it 29"

[[line]]
says = "resumed"
pattern = 'continuing after it (?P<step>\d+)'
example = "01.12.2026 08:00:10 continuing after it 19"
"""
LOG = """\
01.12.2026 08:00:10 it 9/500 took 1000.0 loss 2.5
01.12.2026 08:00:20 it 19/500 took 1000.0 loss 2.4
01.12.2026 08:00:25 wrote state of it 19 in 00:05
01.12.2026 08:00:35 it 29/500 took 1000.0 loss 2.3
01.12.2026 08:00:36 could not write state of it 29
01.12.2026 08:05:00 continuing after it 19
01.12.2026 08:05:10 it 29/500 took 1000.0 loss 2.3
01.12.2026 08:05:20 it 39/500 took 1000.0 loss 2.2
"""


def test_a_profile_gives_the_ledger_of_a_log_that_nobody_knows(capsys, tmp_path):
    profile = written(tmp_path, PROFILE, "our.toml")
    log = written(tmp_path, LOG)

    run = one_run(capsys, profile, log, kind="profile")

    told = [(a["resumed"], a["first_step"], a["last_step"]) for a in run["attempt_list"]]
    assert told == [(0, 1, 30), (20, 21, 40)]
    assert run["steps"]["target"] == 500
    assert spent(run)["rolled_back"] == pytest.approx(10, abs=1)  # stamps are whole seconds
    assert [one["state"] for one in run["checkpoints"]] == ["claimed", "failed"]
    assert [(s["step"], s["durable"]) for s in run["log"]["checkpoint_saves"]] == [(20, True)]
    assert utc(run["as_of"]).isoformat() == "2026-12-01T08:05:20"
    assert run["log"]["last_step_seen"] == 39


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            ('example = "01.12.2026 08:00:10 it 9', 'example = "it nine'),
            "does not find its example",
        ),
        (("(?P<step>\\d+)/", "(\\d+)/"), "needs the group 'step'"),
        (('"ms"', '"fortnights"'), "choose one of"),
        (('says = "step"', 'says = "hop"'), "choose one of"),
        (("took (?P", "took ((?P"), "is wrong"),
        (("log_interval = 10", "log_intervall = 10"), "known:"),
        (("log_interval = 10", "log_interval = -1"), "number of steps"),
        (("(?P<loss>", "(?P<lost>"), "no group 'lost'"),
        (('layout = "%d', 'layouts = "%d'), "known:"),
        (("[time]", "[time"), "no TOML"),
    ],
)
def test_a_profile_that_does_not_fit_is_refused_where_it_is_wrong(change, complaint):
    with pytest.raises(ProfileError, match=complaint):
        read_profile(PROFILE.replace(*change))


def test_a_refused_profile_names_its_file(capsys, tmp_path):
    profile = written(tmp_path, "name = 1\n", "our.toml")

    assert main(["import", "profile", str(profile), str(written(tmp_path, LOG))]) == 2
    assert "our.toml" in capsys.readouterr().err
