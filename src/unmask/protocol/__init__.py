"""The benchmark itself: what to ask, what a reply shows, what follows from it. Nothing here touches the outside."""
