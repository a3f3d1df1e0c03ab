"""Measures PostFlow on embedded servers, each figure beside a floor or a target from the same run."""
