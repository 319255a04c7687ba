"""What a node of a cluster has for our jobs, as one line of JSON. Runs with whatever Python is there: old ones too."""

import json
import os
import platform
import sys

PACKAGES = ("numpy", "pyarrow")  # that jobs import


def version_of(name):
    """None where it is missing or does not load."""
    try:
        return getattr(__import__(name), "__version__", "unknown")
    except Exception as error:  # a library that does not load here has an error of its own
        sys.stderr.write("%s: %s\n" % (name, error))  # noqa: UP031  # of Python 2
        return None


def found_version_of(name):
    """The same without loading it: torch takes more memory than a small container has."""
    try:
        import importlib.metadata
        import importlib.util

        if importlib.util.find_spec(name) is None:
            return None
        return importlib.metadata.version(name)
    except Exception as error:  # of an old Python too, which is told besides
        sys.stderr.write("%s: %s\n" % (name, error))  # noqa: UP031  # of Python 2
        return None


def facts(also=()):
    packages = [(name, version_of(name)) for name in PACKAGES] + [(name, found_version_of(name)) for name in also]
    return {
        "host": os.environ.get("NM_HOST") or platform.node(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "packages": dict(packages),
        "distutils": version_of("distutils") is not None,  # which mrjob imports, and Python 3.12 has not
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(facts(sys.argv[1:])) + "\n")
