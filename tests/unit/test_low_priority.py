"""The mark of work that waits for the requests of people at the provider."""

from profilesvc.domain.request import RequestInfo, current_request, low_priority, serving


def test_only_the_calls_of_the_block_wait_for_those_of_people() -> None:
    info = RequestInfo(actor="user:1")
    token = serving.set(info)
    try:
        with low_priority():
            assert current_request().background
            assert current_request().actor == "user:1"
        assert current_request() is info
        assert not info.background
    finally:
        serving.reset(token)
