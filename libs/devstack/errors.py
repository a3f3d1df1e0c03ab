"""Errors around the servers, worded so that a person can act on them."""


class StackError(Exception):
    """Carries a message that is printed as it is and says what to do."""

    exit_code = 1


class WrongSetting(StackError):
    """Says that only another setting helps. A service ends with the same exit code."""

    exit_code = 2


class PortInUse(WrongSetting):
    def __init__(self, what: str, port: int, advice: str = "stop what listens there or choose another port") -> None:
        super().__init__(f"port {port} ({what}) is already in use: {advice}")
        self.port = port


class FolderInUse(StackError):
    pass
