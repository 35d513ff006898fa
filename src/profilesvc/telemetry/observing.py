"""The choice of the observer: traces if a collector is configured, else nothing."""

from profilesvc.fixtures import how_to_install
from profilesvc.settings import PREFIX, Settings, SettingsError
from profilesvc.telemetry.observer import Observer


def open_observer(settings: Settings) -> Observer:
    """Return the observer of the settings.

    Raises:
        SettingsError: The packages of the extra `otel` are not installed.
    """
    if not settings.tracing.endpoint:
        return Observer()
    try:
        from profilesvc.telemetry.tracing import Tracing
    except ImportError as error:
        hint = f"requires the extra `otel`: {how_to_install('otel')} ({error})"
        raise SettingsError(f"{PREFIX}TRACING__ENDPOINT {hint}") from None
    return Tracing(settings.tracing)
