"""The mark of work that waits for the requests of people at the provider."""

from profilesvc.domain.request import RequestInfo, current_request, in_background, serving


def test_block_is_in_the_background_and_its_request_is_not() -> None:
    info = RequestInfo(actor="user:1")
    token = serving.set(info)
    try:
        with in_background():
            assert current_request().background
            assert current_request().actor == "user:1"
        assert current_request() is info
        assert not info.background
    finally:
        serving.reset(token)
