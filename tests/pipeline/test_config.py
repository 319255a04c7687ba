"""Settings: which layer wins, what each form means, and that whatever is wrong is one sentence that says what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.config import (
    has_own_configuration,
    overrides_json,
    read_settings,
    read_settings_json,
)
from pipeline.settings import SECTIONS, Profile, Settings
from store.errors import SettingError

PACKAGED = Path(__file__).parent.parent.parent / "luigi.cfg"
CANARY = "canary-s3cret"
Write = Callable[[str], Path]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def write(place: Path) -> Write:
    def write_luigi_cfg(text: str) -> Path:
        (place / "luigi.cfg").write_text(text, encoding="utf-8")
        return place / "luigi.cfg"

    return write_luigi_cfg


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the file that LUIGI_CONFIG_PATH names, in a directory of its own."""

    def write_named(text: str) -> Path:
        path = tmp_path / "elsewhere" / "named.cfg"
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
        monkeypatch.setenv("LUIGI_CONFIG_PATH", str(path))
        return path

    return write_named


def quick(*overrides: str, store: str | None = None) -> Settings:
    return read_settings("quick", overrides=overrides, store=store)


def refused(*overrides: str, store: str | None = None) -> str:
    with pytest.raises(SettingError) as caught:
        quick(*overrides, store=store)
    message = str(caught.value)
    assert message.isprintable(), "a message is one line"
    return message


# Layers.


def test_as_shipped_it_is_the_embedded_default(place: Path) -> None:
    shipped = quick()
    assert shipped.store.url == (place / "build/store").as_uri()
    assert (shipped.main.scale, shipped.main.seed, shipped.main.machine, shipped.main.lease) == ("global", 0, "", None)
    assert (shipped.csv.label, shipped.csv.header, shipped.csv.test_fraction) == ("last", False, 0.2)
    assert (shipped.csv.classes, shipped.csv.minimum, shipped.csv.maximum) == (None, None, None)
    assert shipped.profile.networks == ("mlp:*-1024-*",)
    assert shipped.profile.batch_sizes == (None,)
    assert shipped.spark.conf == {}


def test_the_later_layer_wins(write: Write, named: Write) -> None:
    assert quick().main.seed == 0
    write("[yarnstick]\nseed = 1\nnoisy_repeats = 1\nmachine = here\n")
    assert quick().main.seed == 1
    named("[yarnstick]\nseed = 2\nmachine = named\n")
    assert quick().main.seed == 2
    settings = quick("seed=3")
    assert (settings.main.seed, settings.main.machine, settings.main.noisy_repeats) == (3, "named", 1)
    assert quick("seed=3", "seed=4").main.seed == 4


def test_a_profile_takes_the_rest_from_profile_default(write: Write) -> None:
    write("[profile.default]\ntrials = 9\nepochs = 9\n[profile.mine]\nepochs = 2\n")
    mine = read_settings("mine")
    assert (mine.profile.trials, mine.profile.epochs, mine.profile.solvers) == (9, 2, ("gd",))
    assert mine.profile_name == "mine"


def test_a_profile_can_be_made_by_set_alone() -> None:
    assert read_settings("new", overrides=["profile.new.epochs=2"]).profile.epochs == 2


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(SettingError, match=r"profile 'quikc' is not in luigi\.cfg; known are default, full, quick"):
        read_settings("quikc")


def test_a_relative_path_counts_from_the_file_that_names_it(place: Path, write: Write, named: Write) -> None:
    write("[yarnstick]\nlease = a\n[yarnstick.store]\nurl = s\n[profile.default]\ndatasets = csv:d.csv\n")
    assert quick().main.lease == place / "a"
    assert quick().profile.datasets == (f"csv:{place / 'd.csv'}",)
    folder = named(
        "[yarnstick]\nlease = b\n[yarnstick.store]\nurl = t\n[profile.quick]\ndatasets = mnist csv:e\n"
    ).parent
    assert quick().main.lease == folder / "b"
    assert quick().store.url == (folder / "t").as_uri()
    assert quick().profile.datasets == ("mnist", f"csv:{folder / 'e'}")
    assert quick("lease=c").main.lease == place / "c"
    assert quick("store.url=u").store.url == (place / "u").as_uri()
    assert quick(store="v").store.url == (place / "v").as_uri()
    assert quick("profile.quick.datasets=csv:/abs").profile.datasets == ("csv:/abs",)


def test_a_named_file_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUIGI_CONFIG_PATH", "no/such.cfg")
    assert refused() == "LUIGI_CONFIG_PATH=no/such.cfg: no such file; correct or unset it"


def test_it_tells_whether_there_is_a_configuration_of_ones_own(write: Write) -> None:
    assert not has_own_configuration()
    write("")
    assert has_own_configuration()


def test_a_named_file_is_a_configuration_of_ones_own(named: Write) -> None:
    named("")
    assert has_own_configuration()


# --set and --settings.


@pytest.mark.parametrize("name", ["csv.split_seed", "yarnstick.csv.split_seed"])
def test_yarnstick_may_be_left_out(name: str) -> None:
    assert quick(f"{name}=7").csv.split_seed == 7


def test_a_bare_key_is_in_the_main_section() -> None:
    assert quick("seed=7").main.seed == quick("yarnstick.seed=7").main.seed == 7


def test_all_after_the_first_equals_sign_is_the_value() -> None:
    assert quick("machine=a=b.c=d").main.machine == "a=b.c=d"
    assert quick(" machine = a ").main.machine == "a"


@pytest.mark.parametrize("text", ["seed", "", "=3", " =3"])
def test_a_set_without_a_name_or_value_says_how_to_write_it(text: str) -> None:
    assert refused(text) == "--set takes section.key=value, as in --set profile.quick.trials=5"


def test_settings_of_the_luigi_line_are_json() -> None:
    settings = read_settings_json(
        "quick",
        {
            "seed": 3,
            "csv.header": True,
            "csv.minimum": -0.5,
            "csv.maximum": None,
            "profile.quick.executors": [1, 2],
            "profile.quick.cores": 4,
            "profile.quick.batch_sizes": ["full", 64, None],
            "profile.quick.datasets": "mnist",
            "spark.conf": {"spark.ui.port": "4050"},
        },
    )
    assert (settings.main.seed, settings.csv.header, settings.csv.minimum, settings.csv.maximum) == (
        3,
        True,
        -0.5,
        None,
    )
    assert (settings.profile.executors, settings.profile.cores) == ((1, 2), (4,))
    assert settings.profile.batch_sizes == (None, 64, None)
    assert settings.spark.conf == {"spark.ui.port": "4050"}


def test_a_command_line_can_be_handed_on_to_the_luigi_line() -> None:
    overrides = ["seed=3", "profile.quick.datasets=mnist csv:a", "csv.label=first", "csv.label=last"]
    handed_on = json.loads(overrides_json(overrides, store="s"))
    assert read_settings_json("quick", handed_on) == quick(*overrides, store="s")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("seed", {"a": 1}, "yarnstick.seed is given a JSON object; write a whole number, at least 0"),
        ("machine", ["a"], "yarnstick.machine is given a JSON list; write a text"),
        ("seed", 1.5, "yarnstick.seed = 1.5: write a whole number, at least 0"),
        ("seed", True, "yarnstick.seed = true: write a whole number, at least 0"),
        ("csv.minimum", float("nan"), "yarnstick.csv.minimum = NaN: write a finite number, or leave it empty"),
        ("spark.conf", {"a": 1}, "yarnstick.spark.conf = .*: write a JSON object of texts"),
        ("profile.quick.cores", [[1]], r"profile.quick.cores = \[\[1\]\]: write a list .* a whole number, at least 1"),
        ("profile.quick.cores", {}, "profile.quick.cores is given a JSON object; write a list"),
        ("sede", 1, r"\[yarnstick\] has no key sede; the nearest is seed"),
    ],
)
def test_json_that_does_not_fit_says_what_does(name: str, value: object, message: str) -> None:
    with pytest.raises(SettingError, match=f"^--settings: {message}"):
        read_settings_json("quick", {name: value})


# Values.


@pytest.mark.parametrize("text", ["false", "False", "no", "NO", "0", "off"])
def test_false_is_false(text: str) -> None:
    assert quick(f"csv.header={text}").csv.header is False


@pytest.mark.parametrize("text", ["true", "yes", "1", "on"])
def test_true_is_true(text: str) -> None:
    assert quick(f"csv.header={text}").csv.header is True


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("csv:/a csv:/b", ("csv:/a", "csv:/b")),
        ("'csv:/a b' mnist", ("csv:/a b", "mnist")),
        ("csv:/a\\ b", ("csv:/a b",)),
        ('["csv:/a b", "mnist"]', ("csv:/a b", "mnist")),
        ("  mnist\n\tcsv:/a ", ("mnist", "csv:/a")),
    ],
)
def test_a_list_is_by_white_space_quoted_or_json(text: str, paths: tuple[str, ...]) -> None:
    assert quick(f"profile.quick.datasets={text}").profile.datasets == paths


def test_a_list_may_run_over_several_lines(write: Write) -> None:
    write("[profile.quick]\nexecutors = 1\n    2\n    4\n")
    assert quick().profile.executors == (1, 2, 4)


def test_full_is_the_full_batch() -> None:
    assert quick("profile.quick.batch_sizes=full 64").profile.batch_sizes == (None, 64)


def test_some_lists_may_be_empty() -> None:
    assert quick("profile.quick.workers=").profile.workers == ()
    assert refused("profile.quick.solvers=").startswith("--set: profile.quick.solvers is empty: write a list")


def test_target_accuracies_are_of_datasets_and_networks(place: Path) -> None:
    assert quick().target.parsed == ()
    mnist, own = quick("target.accuracies=mnist=0.9 csv:rows.csv@mlp:*-8-*=0.5").target.parsed
    assert (mnist.dataset, mnist.network, mnist.accuracy) == ("mnist", None, 0.9)
    assert (own.dataset, own.network) == (f"csv:{place / 'rows.csv'}", "mlp:*-8-*")
    assert quick("target.accuracies=mnist=0.9").target.refitted == (mnist,)
    assert quick("target.accuracies=mnist=0.9", "target.refits=false").target.refitted == ()
    allowed = "each DATASET=0.9, or DATASET@NETWORK=0.9 for one network, above 0 and at most 1 and given once"
    for text in ("mnist", "mnist=90", "mnist=0.9 mnist=0.8", "[7]"):
        assert allowed in refused(f"target.accuracies={text}")


def test_a_store_may_be_on_hdfs(place: Path) -> None:
    assert quick(store="HDFS://demo//a/").store.url == "hdfs://demo/a"
    assert quick("store.url=webhdfs://nn:9870/a").store.url == "webhdfs://nn:9870/a"
    given = quick("store.namenodes=nn1:9870 https://nn2:9871", "store.security=insecure", "store.user=ada").store
    assert (given.namenodes, given.security, given.user) == (("nn1:9870", "https://nn2:9871"), "insecure", "ada")
    assert quick().store.security == "kerberos", "who does not say so in words is not insecure"
    assert quick("store.retry_seconds=1", "store.cache_gb=1").fingerprint() == quick().fingerprint()


@pytest.mark.parametrize("security", ["", "none", "simple", "false"])
def test_only_the_word_makes_hdfs_insecure(place: Path, security: str) -> None:
    assert "yarnstick.store.security" in refused(f"store.security={security}")


def test_a_store_is_a_directory_or_a_file_address(place: Path) -> None:
    assert quick(store="file:///a%20b").store.url == "file:///a%20b"
    assert quick(store="file://localhost/a").store.url == "file:///a"
    assert quick(store="a b").store.url == f"{place.as_uri()}/a%20b"
    assert quick(store="~").store.url == Path.home().as_uri()


@pytest.mark.parametrize("url", ["", " ", "file://", "file://elsewhere/a", "gopher://a/b", "http://[", "a\0b"])
def test_what_is_no_store_is_refused(url: str) -> None:
    assert "yarnstick.store.url" in refused(store=url)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "Infinity", "NaN", "1e999"])
@pytest.mark.parametrize(
    "key", ["csv.minimum", "csv.maximum", "mnist.source_seconds", "noisy_share", "csv.test_fraction"]
)
def test_a_number_is_finite(key: str, number: str) -> None:
    assert f"{key} = {number}: write a finite number" in refused(f"{key}={number}")


@pytest.mark.parametrize("numbers", ["nan", "0.5 inf", "[1e999]", "[NaN]"])
def test_numbers_of_a_list_are_finite(numbers: str) -> None:
    assert f"= {numbers}: write a list" in refused(f"profile.quick.learning_rates={numbers}")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed=x", "--set: yarnstick.seed = x: write a whole number, at least 0"),
        ("seed=-1", "--set: yarnstick.seed = -1: write a whole number, at least 0"),
        ("noisy_repeats=99", "--set: yarnstick.noisy_repeats = 99: write a whole number, at least 0 and at most 10"),
        (
            "price.gpu_hour=1e308",
            "--set: yarnstick.price.gpu_hour = 1e308: write a finite number, at least 0 and at most 1e+09, or leave it "
            "empty",
        ),
        ("scale=both", "--set: yarnstick.scale = both: write global or pixel"),
        ("csv.header=ja", "--set: yarnstick.csv.header = ja: write true or false"),
        *(
            (
                f"spark.master={text}",
                f"--set: yarnstick.spark.master = {text}: write local-cluster, yarn or spark://HOST:PORT",
            )
            for text in ("local[2]", "Yarn", "spark://", "spark://host", "spark://host:7077/", "spark://a:1,b")
        ),
        ("csv.test_fraction=1", "--set: yarnstick.csv.test_fraction = 1: write a finite number, above 0 and below 1"),
        ("csv.classes=1", "--set: yarnstick.csv.classes = 1: write a whole number, at least 2, or leave it empty"),
        ("cache=", "--set: yarnstick.cache is empty: write a path"),
        ("cache=~no-such-user/x", "--set: yarnstick.cache = ~no-such-user/x: write a path"),
        (
            "spark.conf=[",
            '--set: yarnstick.spark.conf = [: write a JSON object of texts, as in {"spark.ui.port": "4050"}',
        ),
        ("machine=\ud800", r"--set: yarnstick.machine = '\ud800': write a text"),
        ("seed=a\nb", r"--set: yarnstick.seed = 'a\nb': write a whole number, at least 0"),
    ],
)
def test_a_malformed_value_is_shown_with_what_is_allowed(override: str, message: str) -> None:
    assert refused(override) == message


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("local-cluster", None),
        ("yarn", None),
        ("spark://host:7077", "spark://host:7077"),
        ("spark://a.b:1,c:2", "spark://a.b:1,c:2"),
    ],
)
def test_a_master_of_spark_is_known_by_its_address(text: str, url: str | None) -> None:
    assert quick(f"spark.master={text}").spark.url == url


@pytest.mark.parametrize("text", ["0", "1 0", "x", "[1", '"1', "[{}]", "-1", "1.5", "[" * 5000, "9" * 5000])
def test_a_malformed_list_says_what_a_list_is(text: str) -> None:
    message = refused(f"profile.quick.executors={text}")
    assert "write a list (by white space, quoted as in a shell, or JSON), each a whole number, at least 1" in message


def test_an_error_of_a_file_names_file_and_line(write: Write) -> None:
    path = write("# one\n\n[yarnstick]\nmachine = a\n# seed = 5\nseed : none\n[other]\nseed = 1\n")
    assert refused() == f"{path}:6: yarnstick.seed = none: write a whole number, at least 0"


def test_a_byte_order_mark_and_carriage_returns_do_no_harm(write: Write) -> None:
    path = write("\ufeff[yarnstick]\r\nmachine = a\r\nseed = none\r\n")
    assert refused().startswith(f"{path}:3: yarnstick.seed = none:")


# Unknown names and broken files: the value may be a secret and is never printed.


@pytest.mark.parametrize(
    ("section", "key", "message"),
    [
        ("yarnstick", "sede", "[yarnstick] has no key sede; the nearest is seed"),
        ("yarnstick.csv", "labels", "[yarnstick.csv] has no key labels; the nearest is label"),
        ("profile.quick", "core", "[profile.quick] has no key core; the nearest is cores"),
        ("yarnstick.cvs", "label", "section [yarnstick.cvs] is not known; the nearest is [yarnstick.csv]"),
        ("yarnstik", "seed", "section [yarnstik] is not known; the nearest is [yarnstick]"),
        ("profile", "cores", "section [profile] is not known; the nearest is [profile.NAME]"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(write: Write, section: str, key: str, message: str) -> None:
    path = write(f"[{section}]\n{key} = {CANARY}\n")
    assert refused() == f"{path}:2: {message}"


@pytest.mark.parametrize(
    "name", ["sede", "csv.labels", "profile.quick.core", "cvs.label", "core.log_level", "a.b.c", "csv."]
)
def test_an_unknown_name_of_the_command_line_is_refused(name: str) -> None:
    message = refused(f"{name}={CANARY}")
    assert message.startswith("--set: ")
    assert "the nearest is" in message
    assert CANARY not in message


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (f"[yarnstick]\nmachine {CANARY}\n", 2, "is not a line of a settings file; write key = value"),
        (f"password = {CANARY}\n", 1, "no section stands above this line; write [yarnstick] above it"),
        (f"[core]\npassword = {CANARY}\npassword = {CANARY}\n", 3, "this key is there twice in its section; keep one"),
        (f"[core]\na = {CANARY}\n[core]\n", 3, "this section is there twice; put its keys into one"),
    ],
)
def test_a_broken_file_names_the_line_and_not_what_it_says(write: Write, text: str, line: int, message: str) -> None:
    path = write(text)
    assert refused() == f"{path}:{line}: {message}"


def test_a_file_that_is_not_utf8_is_refused(place: Path) -> None:
    (place / "luigi.cfg").write_bytes(b"[yarnstick]\nmachine = \xff\n")
    assert refused() == f"{place / 'luigi.cfg'}: the file is not UTF-8; save it as UTF-8"


@pytest.mark.parametrize("section", ["core", "retcode", "spark", "hdfs", "hadoop", "DEFAULT", "resources"])
def test_luigis_own_sections_are_luigis(write: Write, section: str) -> None:
    write(f"[{section}]\nanything = %(x)s\n")
    assert quick().main.seed == 0


# Runs are found again by their settings.


def test_a_fingerprint_names_what_a_result_depends_on() -> None:
    fingerprint = quick().fingerprint()
    assert fingerprint["profile.quick.trials"] == 3
    assert fingerprint["yarnstick.scale"] == "global"
    assert fingerprint == quick("cache=/elsewhere", "lease=/l", store="/s").fingerprint()
    assert fingerprint != quick("seed=1").fingerprint()
    assert json.loads(json.dumps(fingerprint))["yarnstick.csv.header"] is False


# The shipped file documents every key, and knows no other.


def documented() -> dict[str, dict[str, str]]:
    """Of luigi.cfg, the comment that stands over each key: over the key itself or over those it follows."""
    sections: dict[str, dict[str, str]] = {}
    comment = ""
    lines: list[str] = []
    for line in PACKAGED.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            lines.append(line)
            continue
        comment, lines = (" ".join(lines), []) if lines else (comment, [])
        if header := re.fullmatch(r"\[(.+)\]", line):
            keys = sections.setdefault(header[1], {})
            comment = comment if header[1].startswith("profile.") else ""
        elif "=" in line:
            keys[line.partition("=")[0].strip()] = comment
        else:
            comment = ""
    return sections


def test_every_key_is_in_the_shipped_file_and_no_other() -> None:
    shipped = documented()
    ours = {name for name in shipped if name.partition(".")[0] in ("yarnstick", "profile")}
    assert {name for name in ours if not name.startswith("profile.")} == SECTIONS.keys()
    for name, kind in SECTIONS.items():
        assert shipped[name].keys() == get_type_hints(kind).keys(), name
    assert shipped["profile.default"].keys() == get_type_hints(Profile).keys()


def test_every_key_has_a_comment() -> None:
    bare = [
        f"{section}.{key}"
        for section, keys in documented().items()
        if section in SECTIONS or section == "profile.default"
        for key, comment in keys.items()
        if not comment
    ]
    assert bare == []


# Any text works, or is refused as a setting.

NAMES = st.sampled_from([f"{section}.{key}" for section, kind in SECTIONS.items() for key in get_type_hints(kind)])
PROFILE_NAMES = st.sampled_from([f"profile.quick.{key}" for key in get_type_hints(Profile)])
TEXT = st.text(st.characters(), max_size=40)
VALUES = TEXT | st.sampled_from(
    ["[", "[1", "{", "~x", "~", "nan", "[null]", "null", "'", "\\", "file://", "//", "[[[", "%(a)s"]
)
LINES = st.lists(
    st.sampled_from(
        ["[yarnstick]", "[yarnstick.csv]", "[profile.quick]", "[DEFAULT]", "[", "]", " [x]", "seed", "=", ":"]
    )
    | st.builds("{} = {}".format, st.sampled_from(["seed", "label", "cores", "machine"]), TEXT)
    | TEXT,
    max_size=12,
).map("\n".join)


def works_or_is_refused(read: Callable[[], Settings]) -> None:
    message = ""
    try:
        json.dumps(read().fingerprint())
    except SettingError as error:
        message = str(error)
    assert message.isprintable()


@given(NAMES | PROFILE_NAMES | TEXT, VALUES)
def test_any_set_works_or_is_refused(name: str, value: str) -> None:
    works_or_is_refused(lambda: quick(f"{name}={value}"))
    works_or_is_refused(
        lambda: read_settings_json("quick", json.loads(overrides_json([f"{name}={value}"], store=None)))
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(NAMES | PROFILE_NAMES | TEXT, JSON)
def test_any_json_works_or_is_refused(name: str, value: object) -> None:
    works_or_is_refused(lambda: read_settings_json("quick", {name: value}))


@given(LINES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_works_or_is_refused(place: Path, text: str) -> None:
    (place / "luigi.cfg").write_bytes(text.encode("utf-8", "surrogatepass"))
    works_or_is_refused(quick)
