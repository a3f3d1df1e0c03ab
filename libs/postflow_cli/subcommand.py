"""The parts that subcommands share: the place where they are added, and the way they report an error."""

import argparse
import sys
from typing import TypeAlias

Subcommands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - argparse has no public name


def complain(program: str, text: str, code: int) -> int:
    """Writes the first line of the text and returns the exit code."""
    first = text.partition("\n")[0]
    sys.stderr.write(f"{program}: {first}\n")
    return code
