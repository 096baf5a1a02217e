"""One function a result: what it says, as blocks."""
