"""Ports and addresses of all processes, and the environment variables that pass them on."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import quote

from devstack.errors import PortInUse, WrongSetting
from devstack.ports import free_port, is_free, split
from servicekit.run.addresses import check_http, check_nats, check_postgres
from servicekit.run.settings import Secret, check_listen

T = TypeVar("T")

SERVICES = ("schedule", "queue", "drafts", "publisher")
HOST = "127.0.0.1"
PREFIX = "POSTFLOW_"
EVERYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - recognised, not bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Ports to listen on; 0 takes a free one."""

    services: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(SERVICES, 0))
    metrics: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(SERVICES, 0))
    sandbox: int = 0
    postgres: int = 0
    nats: int = 0


WELL_KNOWN_PORTS = Ports(
    services={service: 50051 + index for index, service in enumerate(SERVICES)},
    metrics={service: 9464 + index for index, service in enumerate(SERVICES)},
    sandbox=50060,
)
FREE_PORTS = Ports()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A further process of a service, on free ports: it does its share of the background work; no service calls it."""

    service: str
    name: str
    listen: str
    metrics: str

    @classmethod
    def of(cls, service: str, number: int) -> Self:
        return cls(
            service=service,
            name=f"{service}-{number}",
            listen=f"{HOST}:{free_port()}",
            metrics=f"{HOST}:{free_port()}",
        )

    @property
    def addresses(self) -> dict[str, str]:
        return {
            _variable(self.service, "LISTEN"): self.listen,
            _variable(self.service, "METRICS_LISTEN"): self.metrics,
        }


class Layout:
    """Addresses as the caller's environment gives them, else by the ports. Free ports are chosen here, once."""

    def __init__(self, ports: Ports, given: Mapping[str, str]) -> None:
        self._given = given
        self.listen = {service: self._address(service, "LISTEN", ports.services[service]) for service in SERVICES}
        self.metrics = {
            service: self._address(service, "METRICS_LISTEN", ports.metrics[service]) for service in SERVICES
        }
        self.external_sandbox = given.get("POSTFLOW_PUBLISHER_SANDBOX_URL")
        self.external_nats = given.get("POSTFLOW_NATS_URL")
        self.external_databases = {
            service: url for service in SERVICES if (url := given.get(f"{PREFIX}{service.upper()}_DATABASE_URL"))
        }
        self._check_urls()
        self.sandbox_listen = self._address("sandbox", "LISTEN", ports.sandbox)
        self.sandbox_url = self.external_sandbox or f"http://{_reached(self.sandbox_listen)}"

    @property
    def targets(self) -> dict[str, str]:
        """Addresses at which a client on this machine reaches each service."""
        return {service: self._given.get(_variable(service, "TARGET")) or self.local(service) for service in SERVICES}

    def local(self, service: str) -> str:
        """Returns the address of our own process, also when others are sent elsewhere."""
        return _reached(self.listen[service])

    def _check_urls(self) -> None:
        for service, url in self.external_databases.items():
            _check_address(_variable(service, "DATABASE_URL"), check_postgres, Secret(url))
        if self.external_sandbox:
            _check_address("POSTFLOW_PUBLISHER_SANDBOX_URL", check_http, self.external_sandbox)
        if self.external_nats:
            _check_address("POSTFLOW_NATS_URL", check_nats, self.external_nats)

    def check_ports(self, services: tuple[str, ...]) -> None:
        for service in services:
            self._check(service, "LISTEN", f"{service}, gRPC", self.listen[service])
            self._check(service, "METRICS_LISTEN", f"{service}, metrics", self.metrics[service])
        if not self.external_sandbox:
            self._check("sandbox", "LISTEN", "sandbox provider", self.sandbox_listen)

    def environment(
        self, service: str, database_url: str, nats_url: str, credentials_keys: str, mails: str = ""
    ) -> dict[str, str]:
        """Returns the whole environment of a service's process.

        `credentials_keys` is the path of a file, `mails` that of a folder, into which mails go instead of out.
        """
        settings = {
            _variable(service, "DATABASE_URL"): database_url,
            "POSTFLOW_NATS_URL": nats_url,
            _variable(service, "LISTEN"): self.listen[service],
            _variable(service, "METRICS_LISTEN"): self.metrics[service],
            **{_variable(other, "TARGET"): target for other, target in self.targets.items()},
        }
        defaults = {"POSTFLOW_ENVIRONMENT": "development", "PYTHONTZPATH": ""}
        if service == "publisher":
            settings["POSTFLOW_PUBLISHER_SANDBOX_URL"] = self.sandbox_url
            defaults["POSTFLOW_PUBLISHER_CREDENTIALS_KEYS_FILE"] = credentials_keys
            # Nobody needs to listen there: the address bar shows what the sandbox sends back.
            defaults["POSTFLOW_PUBLISHER_REDIRECT_URIS"] = "http://localhost/connected"
            if mails and f"{PREFIX}MAIL_URL" not in self._given:
                defaults["POSTFLOW_PUBLISHER_MAIL_URL"] = f"file://{quote(mails)}"
        databases_of_others = {_variable(other, "DATABASE_URL") for other in SERVICES if other != service}
        given = {name: value for name, value in self._given.items() if name not in databases_of_others}
        return defaults | inherited() | given | settings

    def _address(self, service: str, setting: str, port: int) -> str:
        variable = _variable(service, setting)
        address = self._given.get(variable) or f"{HOST}:{port}"
        _check_address(variable, check_listen, address)
        host, wanted = split(address)
        return f"{_shown(host)}:{wanted or free_port()}"

    def _check(self, service: str, setting: str, what: str, address: str) -> None:
        host, port = split(address)
        if not is_free(host, port):
            raise PortInUse(what, port, f"stop what listens there, or set {_variable(service, setting)}=HOST:PORT")


def inherited() -> dict[str, str]:
    """Returns our own environment without PostFlow's settings, which must be passed on purpose."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}


def settings_only(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns what a service reads of an environment: its own settings, those of OpenTelemetry, and where zones are."""
    return {name: value for name, value in environment.items() if name.startswith((PREFIX, "OTEL_", "PYTHONTZPATH"))}


def given_by_caller() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}


def console_script(service: str, scripts: Path) -> Path:
    return scripts / f"postflow-{service}"


def _check_address(variable: str, check: Callable[[T], None], value: T) -> None:
    try:
        check(value)
    except ValueError as error:
        raise WrongSetting(f"{variable}: {error}") from None


def _reached(listen: str) -> str:
    """Returns the address at which a client on this machine reaches that listener."""
    host, port = split(listen)
    return f"{_shown(HOST if host in EVERYWHERE else host)}:{port}"


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _variable(service: str, setting: str) -> str:
    return f"{PREFIX}{service.upper()}_{setting}"
