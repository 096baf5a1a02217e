"""How long a test waits for something that has to come. Only a test that fails waits to the end, so that a machine with
other work makes none fail."""

from __future__ import annotations

PATIENCE = 60.0
"""Seconds."""
MILLISECONDS = 1000 * PATIENCE
"""The same for Playwright, whose own patience with an expectation is 5 seconds."""
