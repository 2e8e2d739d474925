"""The built-in tasks: a model, its data and how well it does, ready to train.

A task is one file with one `Task`; `TASKS` lists them.
"""

from riffle._core import UsageError
from riffle.tasks.chars import CHARS
from riffle.tasks.clicks import CLICKS
from riffle.tasks.digits import DIGITS
from riffle.tasks.images import IMAGES
from riffle.tasks.task import Examples, Loaded, Task

__all__ = ["TASKS", "Examples", "Loaded", "Task", "task_named"]

TASKS = {task.name: task for task in (DIGITS, CHARS, CLICKS, IMAGES)}


def task_named(name: str) -> Task:
    """The task; a wrong name is answered with the right ones."""
    if name not in TASKS:
        raise UsageError(f"no task '{name}'; known: {', '.join(TASKS)}")
    return TASKS[name]
