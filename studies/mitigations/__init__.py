"""A study of mitigations: designed first, then run, then judged by conditions that were fixed before."""
