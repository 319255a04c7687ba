"""Those who train one network together on executors, each on its share of the rows."""
