"""The liar of `unmask demo`: its adapter converted for llama.cpp, and the count of what it does there."""
