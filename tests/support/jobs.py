"""The jobs of operations/schedule.py, for tests that run one of them."""

from profilesvc.operations import schedule
from profilesvc.services.jobs import Job


def job_named(name: str) -> Job:
    """Return a job that has no state."""
    listed = [*schedule.CORE, *(job for jobs in schedule.room_jobs().values() for job in jobs)]
    return next(job for job in listed if job.name == name)
