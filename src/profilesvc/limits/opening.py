"""Open counters by the settings: those of this process, or those of all processes in Redis or Valkey.

Modules are imported inside the functions, so that a command that counts nothing starts without them.
"""

from typing import TYPE_CHECKING

from profilesvc.domain.rates import Windows
from profilesvc.domain.time import Clock
from profilesvc.limits.settings import LimitSettings

if TYPE_CHECKING:
    from profilesvc.limits.allowance import Allowance
    from profilesvc.limits.budget import Budget


def open_windows(settings: LimitSettings, clock: Clock) -> Windows:
    """Return moving windows.

    Raises:
        ValueError: The address of the shared counters cannot be used.
    """
    from profilesvc.limits.counters import MemoryWindows

    memory = MemoryWindows(clock)
    if not settings.shared:
        return memory
    from profilesvc.limits.redis import SharedWindows

    return SharedWindows(settings.storage_url.get_secret_value(), memory)


def open_budget(settings: LimitSettings, clock: Clock) -> "Budget":
    """Return budgets of requests per minute."""
    from profilesvc.limits.budget import MemoryBudget

    memory = MemoryBudget(clock)
    if not settings.shared:
        return memory
    from profilesvc.limits.redis_budget import SharedBudget

    return SharedBudget(settings.storage_url.get_secret_value(), memory)


def open_allowance(settings: LimitSettings, clock: Clock) -> "Allowance":
    """Return the allowance of a day."""
    from profilesvc.limits.allowance import MemoryAllowance

    memory = MemoryAllowance(clock)
    if not settings.shared:
        return memory
    from profilesvc.limits.redis_allowance import SharedAllowance

    return SharedAllowance(settings.storage_url.get_secret_value(), memory)
