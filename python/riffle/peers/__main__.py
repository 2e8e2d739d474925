"""Other libraries as contenders: lists them, and installs one in an environment of its own.

    python -m riffle.peers --list
    python -m riffle.peers --prepare decent-dp:topology=ring --workers 8

Both print JSON. Nothing is installed into this environment, and its torch is the peers' torch.
"""

import argparse
import json
import sys

from riffle._core import UsageError
from riffle.peers import PEERS, environments, peer_of


def _listed() -> str:
    peers = [
        {
            "name": peer.name,
            "what": peer.what,
            "options": [
                {"name": o.name, "values": list(o.values), "default": o.default}
                for o in peer.options
            ],
            "packages": peer.all_packages(),
        }
        for peer in PEERS.values()
    ]
    return json.dumps({"riffle": "peers", "version": 1, "peers": peers}, indent=1)


def _say(text: str) -> None:
    print(f"riffle: {text}", file=sys.stderr)


def main(arguments: list[str]) -> int:
    """The exit code; arguments without the program's name."""
    parser = argparse.ArgumentParser(
        prog="python -m riffle.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--list", action="store_true", help="names, options and pinned packages")
    what.add_argument("--prepare", metavar="SPEC", help="NAME or NAME:key=value,...")
    parser.add_argument(
        "--workers", type=int, default=8, help="how many will run (default 8); for the period"
    )
    given = parser.parse_args(arguments)
    try:
        if given.list:
            print(_listed())
            return 0
        peer, options = peer_of(given.prepare)
        python, versions = environments.prepare(peer, options, _say)
        print(environments.as_json(peer, options, given.workers, python, versions))
        return 0
    except UsageError as error:
        _say(str(error))
        return 2
    except environments.NotAvailable as error:
        _say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
