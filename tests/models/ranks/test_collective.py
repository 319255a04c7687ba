"""PyTorch's own sums, as ranks with GPUs have them: here over Gloo, as this needs no GPU; each rank a process."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import torch

CODE = """
import json, socket, sys
import torch
from models.ranks.collective import Collective
from models.ranks.meeting import Announced, Place

class Met:
    def __init__(self, rank, listener):
        self.place = Place(rank=rank, size=2, host="here", others=(), trains=True)
        self.listener = listener
    def met(self):
        return [Announced(rank, "here", "127.0.0.1", [int(sys.argv[2])]) for rank in range(2)]
    def listeners(self):
        return [self.listener]

rank = int(sys.argv[1])
listener = socket.socket(fileno=int(sys.argv[3])) if rank == 0 else None
together = Collective(Met(rank, listener), device=torch.device("cpu"), seconds=60, stall_seconds=60)
whole, rounded, later = (torch.arange(5.0) * (rank + 1) / 3 for _ in range(3))
together.sum(whole)
together.sum(rounded, sent_as=torch.bfloat16)
finished = together.start(later)
finished()
everybody = [each.tolist() for each in together.gather(torch.tensor([float(rank)]))]
print(json.dumps([whole.tolist(), rounded.tolist(), later.tolist(), everybody]))
together.close()
"""


def test_it_sums_as_ranks_do_over_their_own_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, number = listener.getsockname()[1], listener.fileno()
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", CODE, str(rank), str(port), str(number)],
                pass_fds=[number],
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        said = [each.communicate(timeout=120)[0] for each in ranks]
    assert said[0] == said[1]
    whole, rounded, later, everybody = json.loads(said[0])
    torch.testing.assert_close(torch.tensor(whole), torch.arange(5.0))
    assert later == whole
    assert rounded == torch.tensor(rounded).to(torch.bfloat16).tolist()
    torch.testing.assert_close(torch.tensor(rounded), torch.arange(5.0), rtol=2**-6, atol=0.0)
    assert everybody == [[0.0], [1.0]]
