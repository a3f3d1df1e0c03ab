"""What the subcommands share: where they are added, and how they say that something is wrong."""

import argparse
import sys
from typing import TypeAlias

Subcommands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - argparse has no public name


def complain(program: str, text: str, code: int) -> int:
    """Writes the first line of the text and returns the exit code."""
    first = text.partition("\n")[0]
    sys.stderr.write(f"{program}: {first}\n")
    return code
