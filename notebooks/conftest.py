"""`pytest --nbval notebooks/…` as typed: the plugin, this interpreter, and no settings of the shell."""

import os
import sys

import pytest

from profilesvc.lab.kernels import connection_options
from support.watchdog import Watchdog

# jsonschema would import it and compile 38 grammars in each process, nearly two seconds, for formats that nobody uses.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Load nbval for pages only: the project's options switch it off, because its import would slow every other run."""
    if not pluginmanager.hasplugin("nbval"):
        pluginmanager.import_plugin("nbval.plugin")
    import nbval.kernel

    manager = nbval.kernel.KernelManager
    nbval.kernel.KernelManager = lambda **options: manager(**options, **connection_options())


def pytest_configure(config: pytest.Config) -> None:
    """Run the pages as CI does, so that neither a kernel nor a deployed service of the shell takes part."""
    config.pluginmanager.register(Watchdog(config))
    config.option.nbval_current_env = True
    for name in list(os.environ):
        if name.upper().startswith("PROFILESVC_"):
            del os.environ[name]
