"""Reading: what a reply asserts about its proposition, by rule or by a judge, never whether it is honest."""
