"""The history of a site with several keys, and its part online."""

from profilesvc.dashboard.sites import listing as site_list
from profilesvc.domain.heartbeats import HISTORY, Period, Span, joined, online_share, periods
from profilesvc.domain.time import DAY, HOUR

NOW = 100 * DAY


def test_a_site_is_online_while_one_of_its_keys_is() -> None:
    runs = [Span(5, 9), Span(0, 3), Span(2, 4), Span(6, 7), Span(20, 21)]
    assert joined(runs) == [Span(0, 4), Span(5, 9), Span(20, 21)]
    assert joined([]) == []


def test_a_long_run_is_not_ended_by_a_shorter_one_within_it() -> None:
    long, short = Span(NOW - 10 * DAY, NOW), Span(NOW - 8 * DAY, NOW - 7 * DAY)
    assert {one.state for one in periods(joined([long, short]), NOW, NOW - 10 * DAY)} == {"online"}


def test_the_part_online_is_of_the_time_since_the_key_was_made() -> None:
    made = NOW - 10 * DAY
    half = periods([Span(made, NOW - 5 * DAY - 2 * HOUR)], NOW, made)
    assert online_share(half) == 0.5
    assert online_share([]) is None
    assert online_share(periods([], NOW, NOW)) is None


def test_a_percentage_is_never_rounded_up_to_100() -> None:
    nearly = [Period("online", 0, 99_999), Period("offline", 99_999, 100_000)]
    assert site_list.percent(nearly) == 99.9
    assert site_list.percent(nearly[:1]) == 100.0
    assert site_list.percent([]) is None


def test_the_bar_has_a_part_for_each_period_however_short() -> None:
    start = NOW - HISTORY
    bar = site_list.bar([Period("online", start, start + 1), Period("offline", start + 1, NOW)], NOW)
    assert bar.paths == {"online": "M0 0h1v9H0z", "offline": "M0 0h120v9H0z"}
