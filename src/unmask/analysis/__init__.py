"""What finished runs say: comparisons, limits, boards, labels of people."""
