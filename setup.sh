#!/bin/sh
# Checks the machine and keeps .venv. `check` prints one line: what is wrong, or `ready`, or `install` where that is due.
# The check of Python and Java uses nothing but the shell, so that it can speak on the barest machine.
set -eu
mode=${1:-}
case $0 in */*) cd "${0%/*}" ;; esac

PYTHONS="Python 3.11 or 3.12 (on Debian: apt-get install python3 python3-venv), or name one with PYTHON=..."
JAVAS="Java 17 (on Debian: apt-get install openjdk-17-jdk-headless), or name one with JAVA_HOME"

fail() {
    if [ "$mode" = check ]; then echo "Error: $*"; else echo "Error: $*" >&2; fi
    exit 1
}

python_version() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

# Sets python to the first command that is a Python of ours, and version. A shim of pyenv is there and yet fails:
# only running it tells.
find_python() {
    python=
    found=
    for candidate in ${PYTHON:-python3.12 python3.11 python3}; do
        version=$(python_version "$candidate") || continue
        case $version in
        3.11 | 3.12)
            if "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then
                python=$candidate
                return
            fi
            found="${found:+$found, }Python $version without the module venv ($candidate)"
            ;;
        *) found="${found:+$found, }Python $version ($candidate)" ;;
        esac
    done
    if [ -n "${PYTHON:-}" ]; then
        fail "PYTHON=$PYTHON is ${found:-no Python that runs}; install $PYTHONS"
    fi
    fail "found ${found:-no Python}; install $PYTHONS"
}

# Sets java and java_version.
find_java() {
    java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    modules=$("$java" --list-modules 2>/dev/null) || modules=
    case $modules in
    *java.base@*)
        java_version=${modules#*java.base@}
        java_version=${java_version%%[!0-9.]*}
        ;;
    *)
        # Java 8 has no modules to list.
        java_version=$("$java" -version 2>&1) || fail "found no Java that runs${JAVA_HOME:+ in JAVA_HOME=$JAVA_HOME}; install $JAVAS"
        java_version=${java_version#*version \"}
        java_version=${java_version%%[!0-9._]*}
        ;;
    esac
    major=${java_version%%.*}
    case $major in
    '' | *[!0-9]*) fail "found a Java of unknown version ($java); install $JAVAS" ;;
    esac
    [ "$major" -ge 17 ] || fail "found Java $java_version ($java), and Spark needs 17 or newer; install $JAVAS"
    case $modules in
    *jdk.incubator.vector@*) ;;
    *) fail "found Java $java_version ($java) without the module jdk.incubator.vector that Spark needs; install a complete $JAVAS" ;;
    esac
}

is_made_from() {
    [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]
}

find_java
version=$(python_version .venv/bin/python) || version=
# Scripts in .venv hold the path of the checkout: one that was moved needs a new .venv.
if [ -n "${PYTHON:-}" ] || ! is_made_from .venv/place "$PWD, Python $version"; then
    find_python
fi
place="$PWD, Python $version"
sources="$place
$(cksum setup.py setup.sh constraints.txt)"
# The archive of Spark's classes fits one Java only.
classes="$sources, Java $java_version ($java)"

case $mode in
check)
    if [ -x .venv/bin/python ] && is_made_from .venv/installed "$sources" && is_made_from .venv/warmed "$classes"; then
        echo ready
    else
        echo install
    fi
    ;;
install)
    if [ ! -x .venv/bin/python ] || ! is_made_from .venv/place "$place"; then
        "$python" -m venv --clear .venv
        echo "$place" >.venv/place
    fi
    if ! is_made_from .venv/installed "$sources"; then
        echo "Setting up .venv with Python $version; the first time some 7 GB are installed."
        export PIP_DISABLE_PIP_VERSION_CHECK=1
        rm -f .venv/installed
        # setuptools first: packages without a wheel are then built with the pinned one, not with the newest.
        .venv/bin/python -m pip install -q -c constraints.txt setuptools wheel
        .venv/bin/python -m pip install -q -c constraints.txt --no-build-isolation -e '.[dev]'
        echo "$sources" >.venv/installed
    fi
    .venv/bin/python -m pipeline.warm
    echo "$classes" >.venv/warmed
    ;;
*)
    fail "write ./setup.sh check or ./setup.sh install"
    ;;
esac
