"""Settings that an account is connected with besides its secrets."""

from collections.abc import Mapping, Set

from servicekit.faults import InvalidField


def known_settings(settings: Mapping[str, str], known: Set[str]) -> None:
    """Raises InvalidField for a setting that the provider does not have."""
    if unknown := settings.keys() - known:
        raise InvalidField(
            f"settings.{min(unknown)}", f"unknown setting; the known ones are {', '.join(sorted(known))}"
        )
