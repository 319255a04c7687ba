"""EMNIST's digits: the same hands as MNIST's and many more, by Cohen, Afshar, Tapson and van Schaik.

Its files hold each image transposed, columns first; here they stand upright, as MNIST's do.
"""

from __future__ import annotations

from pipeline.datasets.fetch import Archive, Site
from pipeline.datasets.idx import idx_layout
from pipeline.datasets.images import ImageSet
from pipeline.datasets.sources import Split

FILES: dict[Split, tuple[str, str]] = {
    "train": ("emnist-digits-train-images-idx3-ubyte", "emnist-digits-train-labels-idx1-ubyte"),
    "test": ("emnist-digits-test-images-idx3-ubyte", "emnist-digits-test-labels-idx1-ubyte"),
}
ARCHIVE = Archive(
    name="gzip.zip",
    checksum="fb9bb67e33772a9cc0b895e4ecf36d2cf35be8b709693c3564cea2a019fcda8e",
    members={f"gzip/{name}.gz": f"{name}.gz" for pair in FILES.values() for name in pair},
)
SITE = "https://biometrics.nist.gov/cs_links/EMNIST/"

EMNIST = ImageSet(
    name="emnist",
    title="EMNIST (digits)",
    columns=784,
    classes=10,
    rows={"train": 240_000, "test": 40_000},
    content=None,  # no registry has it, so it was not here to be recorded: the checksum of its archive is known
    is_balanced=True,
    layouts=(idx_layout(FILES, inside="gzip", is_transposed=True),),
    archive=ARCHIVE,
    ways=(Site(address=SITE, files={ARCHIVE.name: ARCHIVE.checksum}),),
    advice=f"put {SITE}{ARCHIVE.name}, or its four files of emnist-digits, into a directory",
)
