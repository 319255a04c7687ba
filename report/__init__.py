"""From records to knowledge: tables, statistics, figures, a page and a verdict, as pure functions."""
