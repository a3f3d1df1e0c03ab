"""Reads a flame graph that py-spy has written: which functions are dearest."""

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_FRAME = re.compile(
    r"<title>(.*?) \([\d,]+ samples?, [\d.]+%\)</title><rect [^>]*?y=\"(\d+)\"[^>]*? fg:x=\"(\d+)\" fg:w=\"(\d+)\""
)
_BEGINNINGS = ("<module> ", "main ", "run_main ", "_run (servicekit/run/", "Runner.run ", "Thread.", "all")
Shares = Sequence[tuple[str, float]]


class Frame(NamedTuple):
    """A box: `samples` from `start` on were taken inside this function, called as the box above says."""

    function: str
    depth: int
    start: int
    samples: int


def dearest(svg: str, count: int) -> tuple[Shares, Shares]:
    """Returns the functions with the largest shares of all samples: by themselves, and with all that they call.

    The second list leaves out what every process begins with.
    """
    frames = list(read(svg))
    total = max((frame.samples for frame in frames), default=0)
    own, inclusive = Counter[str](), Counter[str]()
    open_ones: list[Frame] = []
    for frame in sorted(frames, key=lambda each: (each.start, each.depth)):
        while open_ones and (frame.depth <= open_ones[-1].depth or frame.start >= _end(open_ones[-1])):
            open_ones.pop()
        if open_ones and open_ones[-1].function in own:
            own[open_ones[-1].function] -= frame.samples
        own[frame.function] += frame.samples
        # A function that calls itself is counted once.
        if frame.function not in {each.function for each in open_ones}:
            inclusive[frame.function] += frame.samples
        open_ones.append(frame)
    for name in [name for name in inclusive if name.startswith(_BEGINNINGS)]:
        del inclusive[name]
    return _shares(own, total, count), _shares(inclusive, total, count)


def read(svg: str) -> Iterator[Frame]:
    """Yields the boxes in any order; the depth grows with the way from the root, which is at the top."""
    for name, y, start, samples in _FRAME.findall(svg):
        yield Frame(html.unescape(name), int(y), int(start), int(samples))


def _end(frame: Frame) -> int:
    return frame.start + frame.samples


def _shares(samples: Counter[str], total: int, count: int) -> Shares:
    found = [(name, number / total) for name, number in samples.most_common() if number > 0]
    return found[:count]
