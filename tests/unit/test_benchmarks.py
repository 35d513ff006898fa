"""The figures of `make bench`: a run without a response is reported, and does not end the measurement."""

import math

from benchmarks import page
from benchmarks.measure import Figures, in_turn

FAST: Figures = {"rate": 100.0, "cpu": 10.0, "p50": 1.0, "p99": 2.0, "bad": 0.0}
SILENT: Figures = {"rate": 0.0, "cpu": math.nan, "p50": math.nan, "p99": math.nan, "bad": 1.0}
WARM_UP = [FAST]


def measured(*peer: Figures) -> dict[str, Figures]:
    """Return the figures of the service, and of a peer with these runs."""
    runs = iter([dict(run) for run in [*WARM_UP, *peer]])
    return in_turn({"service": lambda: dict(FAST), "fastapi": lambda: next(runs)}, rounds=len(peer))


def test_a_round_in_which_a_peer_never_responds_is_left_out_of_its_ratios() -> None:
    slow = FAST | {"rate": 20.0, "cpu": 50.0}
    peer = measured(slow, SILENT, slow)["fastapi"]
    assert (peer["times_cpu"], peer["times_rate"], peer["rate"], peer["silent"]) == (5.0, 5.0, 20.0, 1)


def test_a_peer_that_never_responds_has_no_ratio() -> None:
    figures = measured(SILENT)
    assert math.isnan(figures["fastapi"]["times_rate"])
    results = {"bare ASGI": FAST, "databases": {"sqlite": {"list": figures}}}
    tables = page.tables(results)
    row = f"| {page.NAMES['fastapi']} | – | – | 0 | – | – | – | 100.0% |"  # noqa: RUF001 - a dash, as in the table
    assert row in tables
    assert "Rounds without any response, which the medians of CPU and times leave out: FastAPI" in tables


def test_a_service_that_responds_is_never_silent() -> None:
    assert measured(FAST)["service"]["silent"] == 0


def test_the_distance_to_the_anchors_is_a_ratio_of_the_same_rounds() -> None:
    quick = FAST | {"cpu": 4.0}
    figures = in_turn({"service": lambda: dict(FAST), "go": lambda: dict(quick)}, rounds=1)
    tables = page.tables({"bare ASGI": FAST, "databases": {"postgresql": {"list": figures}}})
    assert "| authenticated list of 50 posts | 10 | 4 | 2.5 |" in tables
    shares = {"list": {"Quart and Werkzeug": 0.26}, "status": {"Quart and Werkzeug": 0.271}}
    assert page.distances({"databases": {"postgresql": {"list": figures}}, "own": {"shares": shares}})[-1].endswith(
        "| Quart and Werkzeug | 26% | 27% |"
    )
    assert "Distance to the limit" not in page.tables({"bare ASGI": FAST, "databases": {"sqlite": {"list": figures}}})
