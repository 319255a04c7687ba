"""The distribution `yarnstick`: what it needs, what its wheel holds, and its one command."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PACKAGES = ["store", "yarn", "mapreduce", "models", "models.platforms", "models.ranks", "report", "pipeline"]
PACKAGES += ["pipeline.checks", "pipeline.commands", "pipeline.datasets"]


class BuildWithSettings(build_py):
    """Puts luigi.cfg into the wheel as pipeline/luigi.cfg: a checkout keeps it at the top, where people look for it."""

    def run(self):
        super().run()
        if not self.editable_mode:
            self.copy_file("luigi.cfg", self._settings())

    def get_outputs(self, include_bytecode=True):
        outputs = super().get_outputs(include_bytecode)
        return outputs if self.editable_mode else [*outputs, self._settings()]

    def _settings(self):
        return str(Path(self.build_lib, "pipeline", "luigi.cfg"))


setup(
    name="yarnstick",
    version="0.1.0",
    description="A yardstick for YARN: trains one network on a Hadoop cluster, on CPUs and on GPUs, and compares.",
    license="Apache-2.0",
    license_files=["LICENSE"],
    packages=PACKAGES,
    package_data={"report": ["*.html.j2", "*.css"]},
    cmdclass={"build_py": BuildWithSettings},
    entry_points={"console_scripts": ["yarnstick = pipeline.cli:main"]},
    python_requires=">=3.11,<3.13",  # mrjob imports `pipes`, which 3.13 no longer has
    install_requires=[
        "altair",
        "hdfs",
        "jinja2",
        "luigi",
        "mrjob",
        "msgspec",
        "numpy",
        "packaging",
        "pandas<3",  # PySpark 4.3 warns on pandas 3
        "pillow",
        "polars",
        "psutil",
        "pyarrow",
        "pyspark",
        "rich",
        "scipy>=1.16",
        "setuptools",  # mrjob imports `distutils`, which left the standard library in 3.12
        "threadpoolctl",
        "torch",
        "typer",
        "vl-convert-python",
    ],
    extras_require={
        "keras": ["keras"],
        "tensorflow": ["tensorflow-cpu; platform_system == 'Linux'", "tensorflow; platform_system != 'Linux'"],
        "dask": ["dask", "distributed", "scikit-learn"],
        "sklearn": ["scikit-learn"],
        "kerberos": ["hdfs[kerberos]"],
        "dev": [
            "axe-playwright-python",
            "hypothesis",
            "mypy",
            "orjson",
            "playwright",
            "pre-commit",
            "pytest",
            "pytest-timeout",
            "pytest-xdist",
            "ruff",
        ],
    },
)
