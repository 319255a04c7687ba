"""What containers get along: archives that YARN unpacks in their working directory, under names of ours."""

from __future__ import annotations

from dataclasses import dataclass

PYTHON, JAVA = "environment", "java"
SUFFIXES = (".tar.gz", ".tgz", ".zip")  # YARN unpacks by the name


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """Addresses on HDFS; empty is a node's own."""

    python_archive: str = ""
    java_archive: str = ""
    java_inside: str = ""  # the directory in that archive in which bin/java lies; empty: its top

    @property
    def archives(self) -> tuple[str, ...]:
        given = {PYTHON: self.python_archive, JAVA: self.java_archive}
        return tuple(f"{address}#{name}" for name, address in given.items() if address)

    @property
    def environment(self) -> dict[str, str]:
        """Of each container. The NodeManager puts its working directory in place of {{PWD}}; a $PWD would be ours."""
        if not self.java_archive:
            return {}
        return {"JAVA_HOME": "/".join(filter(None, ["{{PWD}}", JAVA, self.java_inside]))}
