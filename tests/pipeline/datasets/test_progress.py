"""What is told: plain lines where nobody looks on."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from pipeline.datasets.progress import Progress

TOP = Path(__file__).parent.parent.parent.parent


def test_without_a_terminal_there_are_plain_lines(capsys):
    with Progress().bytes("fetching", 10) as advance:
        advance(5)
    Progress().say("done")
    assert capsys.readouterr() == ("", "fetching\ndone\n")


def test_on_a_terminal_there_is_a_bar():
    master, slave = pty.openpty()
    code = (
        "from pipeline.datasets.progress import Progress\n"
        "with Progress().bytes('fetching [x]', 10) as advance: advance(10)\n"
    )
    environment = os.environ | {"TERM": "xterm", "PYTHONPATH": str(TOP), "COLUMNS": "80"}
    subprocess.run([sys.executable, "-c", code], stderr=slave, env=environment, check=True, timeout=60)
    os.close(slave)
    shown = os.read(master, 1 << 16).decode()
    os.close(master)
    assert "fetching [x]" in shown
    assert "10/10" in shown
