"""Fashion-MNIST: ten kinds of clothing in MNIST's own form, by Han Xiao, Kashif Rasul and Roland Vollgraf."""

from __future__ import annotations

from pathlib import Path

from pipeline.datasets.fetch import Installed, Site
from pipeline.datasets.idx import idx_layout
from pipeline.datasets.images import ImageSet
from pipeline.datasets.mnist import IDX

FASHION_MNIST = ImageSet(
    name="fashion-mnist",
    title="Fashion-MNIST",
    columns=784,
    classes=10,
    rows={"train": 60_000, "test": 10_000},
    content="ca3ab2a37f845e1b8ae23cab1b51749a3011ba3bf1d9016176d75cbaabac376f",
    layouts=(idx_layout(IDX),),
    ways=(
        Site(
            address="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            files={
                "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            },
        ),
        Installed(package="dataset-fashion-mnist", folder=Path("/usr/share/datasets/fashion-mnist")),
    ),
    advice="put its four IDX files into a directory",
)
