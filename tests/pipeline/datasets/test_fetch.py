"""The ways to a dataset's files: each gives up in time, opens only what is meant, and says why it could not be gone."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import socket
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.datasets import fetch
from pipeline.datasets.fetch import Errand, Installed, Package, Site, UnreachableError, download, mismatch, unpack
from store.errors import DataError


@pytest.fixture
def errand(told) -> Errand:
    return Errand(title="Made", seconds=30, progress=told)


@pytest.fixture
def no_proxy(monkeypatch) -> None:
    monkeypatch.setattr("urllib.request.getproxies", dict)


@pytest.mark.usefixtures("no_proxy")
def test_a_site_that_accepts_and_says_nothing_is_left(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        with pytest.raises(UnreachableError):
            download(address, tmp_path / "x", seconds=0.5, advance=lambda _: None)


@pytest.mark.usefixtures("no_proxy")
def test_a_name_look_up_that_hangs_is_left(tmp_path, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: ended.wait(20) and [])
    with pytest.raises(UnreachableError, match=r"no answer within 0.5 seconds"):
        download("http://example.invalid/x", tmp_path / "x", seconds=0.5, advance=lambda _: None)
    assert not ended.is_set()
    ended.set()


@pytest.mark.usefixtures("no_proxy")
def test_a_site_whose_file_is_another_one_is_passed_over(tmp_path, errand):
    def answer(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nother")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        site = Site(address=f"http://127.0.0.1:{server.getsockname()[1]}/", files={"a.gz": "00ff"})
        digest = hashlib.sha256(b"other").hexdigest()
        with pytest.raises(UnreachableError, match=f"a.gz has SHA-256 {digest}, not 00ff"):
            site.fetch(tmp_path, errand)


@pytest.mark.parametrize(("client", "program"), [("npm", "npm"), ("pip", "python")])
def test_a_client_that_fails_or_leaves_another_package_is_passed_over(errand, monkeypatch, tmp_path, client, program):
    package = Package(client=client, name="made@1", checksum="00ff", members={})
    programs, folder = tmp_path / "programs", tmp_path / "folder"
    programs.mkdir()
    folder.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(sys, "executable", str(programs / program))
    with pytest.raises(UnreachableError, match=f"{program} is not installed"):
        package.fetch(folder, errand)
    for script, reason in (
        ("echo a reason >&2; exit 3", "exit code 3, a reason"),
        ("exit 4", "exit code 4, nothing was said"),
        ("exit 0", r"left no \*"),
        ("echo x >a.tgz; echo x >a.whl", "a.(tgz|whl) has SHA-256 .*, not 00ff"),
    ):
        (programs / program).write_text(f"#!/bin/sh\n{script}\n")
        (programs / program).chmod(0o700)
        with pytest.raises(UnreachableError, match=reason):
            package.fetch(folder, errand)


def test_a_client_that_never_ends_is_left(errand, monkeypatch, tmp_path):
    monkeypatch.setattr(fetch, "FETCH_SECONDS", 0.2)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    (tmp_path / "python").write_text("#!/bin/sh\nexec sleep 20\n")
    (tmp_path / "python").chmod(0o700)
    package = Package(client="pip", name="made==1", checksum="00ff", members={})
    with pytest.raises(UnreachableError, match=r"no end after 0.2 seconds"):
        package.fetch(tmp_path, errand)


def test_a_debian_package_is_only_looked_for(errand, tmp_path):
    way = Installed(package="made", folder=tmp_path / "made")
    with pytest.raises(UnreachableError, match="not installed; on Debian: apt-get install made"):
        way.fetch(tmp_path / "unused", errand)
    (tmp_path / "made").mkdir()
    assert way.fetch(tmp_path / "unused", errand) == tmp_path / "made"


def tarred(path: Path, **members: bytes) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def zipped(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("made", [tarred, zipped])
def test_only_what_is_asked_for_is_unpacked_and_under_our_name(made, tmp_path):
    archive = made(tmp_path / "a", **{"../../up": b"up", "a/b": b"content", "more": b"more"})
    (tmp_path / "out").mkdir()
    unpack(archive, {"a/b": "ours", "../../up": "theirs"}, tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {
        "ours": b"content",
        "theirs": b"up",
    }


@pytest.mark.parametrize("made", [tarred, zipped])
def test_links_what_is_missing_and_what_is_too_large_are_refused(made, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "LARGEST_MEMBER", 10)
    archive = made(tmp_path / "a", large=bytes(11))
    with pytest.raises(DataError, match="large has more than 10 bytes"):
        unpack(archive, {"large": "x"}, tmp_path)
    for name in ("link", "none"):
        with pytest.raises(DataError, match=f"does not hold {name} as a file"):
            unpack(archive, {name: name}, tmp_path)
    assert not (tmp_path / "link").exists()


@pytest.mark.parametrize("made", [tarred, zipped])
def test_an_archive_that_is_cut_off_is_refused(made, tmp_path):
    archive = made(tmp_path / "a", member=os.urandom(100_000))
    archive.write_bytes(archive.read_bytes()[:50_000])
    with pytest.raises(DataError, match=r"cannot be unpacked|does not hold"):
        unpack(archive, {"member": "x"}, tmp_path)


@given(
    st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(gzip.compress), st.binary().map(b"PK\3\4".__add__))
)
def test_any_bytes_are_refused_in_a_sentence(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("any")
    (folder / "a").write_bytes(data)
    with pytest.raises(DataError):
        unpack(folder / "a", {"member": "x"}, folder)


def test_an_archive_is_compared_before_it_is_opened(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"PK")
    assert mismatch(tmp_path / "a", hashlib.sha256(b"PK").hexdigest()) is None
    assert "a has SHA-256" in str(mismatch(tmp_path / "a", "00ff"))
    assert "No such file" in str(mismatch(tmp_path / "b", "00ff"))
    monkeypatch.setattr(fetch, "LARGEST_ARCHIVE", 1)
    assert mismatch(tmp_path / "a", "00ff") == "a has 2 bytes, more than 1"
