"""The life of a process: settings, logs, telemetry, background loops, start and drain."""

from servicekit.run.loops import Background, Loop
from servicekit.run.main import run_main
from servicekit.run.process import Process, serve
from servicekit.run.settings import Environment, ProcessSettings, Secret, SettingsError
from servicekit.run.transient import is_transient

__all__ = [
    "Background",
    "Environment",
    "Loop",
    "Process",
    "ProcessSettings",
    "Secret",
    "SettingsError",
    "is_transient",
    "run_main",
    "serve",
]
