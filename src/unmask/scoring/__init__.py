"""From outcomes to numbers: measures, guards, asides, panels of judges, the score. Nothing here touches the outside."""
