"""A site's file: what it changes, and that whatever is misspelt in it is refused."""

import re
from datetime import UTC, datetime

import pytest

from headway.alerts.catalogue import RULES
from headway.alerts.site import SiteError, site

ONE = '[receivers.a]\nkind = "log"\n'
MAIL = "[receivers.a]\nkind = 'email'\nto = 'a@b'\nsender = 'c@d'\nhost = 'mail.example.org'\n"


def test_a_rule_keeps_what_the_file_does_not_change() -> None:
    read = site(ONE + '[rules.RestartLoop]\nthreshold = 5\nseverity = "ticket"\nhold = 30')
    rule, before = read.rules["RestartLoop"], RULES["RestartLoop"]
    assert (rule.threshold, rule.severity, rule.hold) == (5, "ticket", 30)
    assert (rule.metric, rule.keep, rule.summary) == (before.metric, before.keep, before.summary)


def test_a_rule_can_be_put_out_of_use() -> None:
    assert set(RULES) - set(site(ONE + "[rules.Straggler]\noff = true").rules) == {"Straggler"}


def test_an_only_receiver_is_the_default_one() -> None:
    assert site(ONE).root.receiver == "a"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("default = ", "this is no TOML"),
        ("defualt = 'a'", "unknown option 'defualt'; known are default, rules"),
        ("default = 1\n" + ONE, "no receiver"),
        (ONE + "[rules.RestartLop]\nthreshold = 1", "no such rule; the catalogue has RestartLoop"),
        (ONE + "[rules.RestartLoop]\ntreshold = 1", "unknown option 'treshold'"),
        (ONE + "[rules.RestartLoop]\nthreshold = '3'", "threshold '3' is no number"),
        (ONE + "[rules.RestartLoop]\nthreshold = nan", "threshold nan is no number"),
        (ONE + "[rules.RestartLoop]\nseverity = 'loud'", "choose one of page, ticket, info, none"),
        (ONE + "[rules.RestartLoop]\nhold = -1", "no whole number of seconds"),
        (ONE + "[rules.RestartLoop]\noff = 'yes'", "off 'yes'; write true or false"),
        (ONE + "[[routes]]\nmatch = ['a=b']\ncontinue = 'true'", "continue 'true'; write true"),
        ("[receivers.a]\nkind = 'pager'", "kind 'pager'; choose one of pagerduty, slack"),
        ("[receivers.a]\nkind = 'pagerduty'", "pagerduty needs key; give it"),
        ("[receivers.a]\nkind = ['log']", "kind ['log']; choose one of pagerduty"),
        ("[receivers.a]\nkind = 'webhook'\nurl = 8080", "url 8080 is no text; write it in quotes"),
        ("[receivers.a]\nkind = 'webhook'\nurl = 'hook:80'", "url 'hook:80' is no address; begin"),
        ("[receivers.a]\nkind = 'webhook'\nurl = 'file:'", "url 'file:' is empty"),
        (MAIL + "port = '25'", "port '25' is no whole number; write it without quotes"),
        (MAIL + "port = true", "port True is no whole number"),
        (MAIL + "port = 0", "port 0 is none; choose one from 1 to 65535"),
        (MAIL + "tls = 'no'", "tls 'no' is neither true nor false"),
        (MAIL + "password = 5", "password is a secret"),
        ("[receivers.a]\nkind = 'pagerduty'\nkey = 'abcdef'", "key is a secret"),
        ("[receivers.a]\nkind = 'log'\ncolour = 1", "log has no option 'colour'; it has none"),
        (ONE + "[[routes]]\nmatch = ['team=a']\nreceiver = 'b'", "'b' is not declared"),
        (ONE + "[[routes]]\nmatch = ['team=a']\nreceiver = ['a']", "['a'] is not declared"),
        (ONE + "[[routes]]\nreceiver = 'a'", "match is empty"),
        (ONE + "[[routes]]\nmatch = 'team=a'", "match 'team=a'; write a list of texts"),
        (ONE + "[[routes]]\nmatch = ['team=a']\nmute = 'n'", "mute 'n'; write a list of texts"),
        (ONE + "[[routes]]\nmatch = ['team']\nreceiver = 'a'", "'team' is no matcher"),
        (ONE + "[[routes]]\nmatch = ['team=~\"(\"']\nreceiver = 'a'", "no regular expression"),
        (ONE + "[[routes]]\nmatch = ['team=a']\nmute = ['x']", "maintenance 'x' is not declared"),
        (ONE + "[[routes]]\nmatch = ['a=b']\nescalate_to = 'a'", "go together"),
        (ONE + "[maintenance.n]\ndays = 'sunday'", "days 'sunday'; write a list"),
        (ONE + "[maintenance.n]\ndays = ['sun']", "day 'sun'; choose from monday"),
        (ONE + "[maintenance.n]\nfrom = '25:00'", "no time of the day"),
        (ONE + "[maintenance.n]\nzone = 'Mars'", "zone 'Mars' is not known"),
        (
            ONE + "[maintenance.n]\nbegin = 2026-01-02T00:00:00\nend = 2026-01-01T00:00:00",
            "it ends at 2026-01-01",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(SiteError, match=re.escape(words)):
        site(text)


NIGHTS = ONE + (
    "[maintenance.n]\ndays = ['saturday']\nfrom = '22:00'\nto = '06:00'\nzone = 'Europe/Berlin'"
)


@pytest.mark.parametrize(
    ("moment", "holds"),
    [
        (datetime(2026, 11, 28, 20, 59, tzinfo=UTC), False),  # 21:59 on Saturday in Berlin
        (datetime(2026, 11, 28, 21, 0, tzinfo=UTC), True),
        (datetime(2026, 11, 29, 4, 59, tzinfo=UTC), True),
        (datetime(2026, 11, 29, 5, 0, tzinfo=UTC), False),
        (datetime(2026, 11, 29, 22, 0, tzinfo=UTC), False),
    ],
)
def test_a_window_goes_through_midnight_in_its_own_zone(moment: datetime, holds: bool) -> None:
    assert site(NIGHTS).maintenance["n"].holds(moment) is holds


def test_a_stretch_of_the_calendar_ends_before_its_end() -> None:
    text = ONE + (
        "[maintenance.m]\nbegin = 2026-12-24T18:00:00+01:00\nend = 2026-12-24T20:00:00+01:00"
    )
    window = site(text).maintenance["m"]
    assert window.holds(datetime(2026, 12, 24, 17, 0, tzinfo=UTC))
    assert not window.holds(datetime(2026, 12, 24, 19, 0, tzinfo=UTC))
