"""Replays cases: recorded inputs and what must come of them, against a built `twodoor`."""
