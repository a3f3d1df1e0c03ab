"""Addresses for a stack that runs beside others."""

from devstack.layout import SERVICES

ANY_PORTS = {
    "POSTFLOW_SANDBOX_LISTEN": "127.0.0.1:0",
    **{f"POSTFLOW_{service.upper()}_LISTEN": "127.0.0.1:0" for service in SERVICES},
    **{f"POSTFLOW_{service.upper()}_METRICS_LISTEN": "127.0.0.1:0" for service in SERVICES},
}
"""The environment in which every server listens on a free port."""
