"""From records to knowledge: tables, statistics, figures, a page and a verdict. Pure functions, values in and bytes out."""
