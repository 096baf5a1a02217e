"""Logs of Inspect, in and out, and unmask as an Inspect task."""
