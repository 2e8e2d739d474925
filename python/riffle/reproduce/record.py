"""What was measured, as a file: claims, and of each its cells (one contender in one case, once)."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from riffle._core import UsageError
from riffle.reproduce.cases import Case, Figures, fingerprint
from riffle.reproduce.claim import Claim, Judged, Run, verdict
from riffle.train.checkpoint import write_whole

VERSION = 1


@dataclass
class Measured:
    """Of one claim."""

    quick: bool = False
    repeats: int = 0
    cells: list[dict[str, Any]] = field(default_factory=list)

    def find(self, case: Case, contender: str, repeat: int) -> Figures | None:
        """None where it was not run in this setting, or failed."""
        setting = fingerprint(case)
        for cell in self.cells:
            key = (cell["case"], cell["contender"], cell["repeat"], cell["setting"])
            if key == (case.name, contender, repeat, setting) and "failed" not in cell["figures"]:
                return cell["figures"]
        return None

    def add(self, case: Case, contender: str, repeat: int, figures: Figures) -> None:
        """In place of an earlier one."""
        key = {"case": case.name, "contender": contender, "repeat": repeat}
        self.cells = [cell for cell in self.cells if any(cell[k] != key[k] for k in key)]
        self.cells.append({**key, "setting": fingerprint(case), "figures": figures})

    def runs(self) -> list[Run]:
        """One for each repeat; what does not vary counts in all of them."""
        constant = {}
        varying: dict[int, dict[tuple[str, str], Figures]] = {}
        for cell in self.cells:
            key = (cell["case"], cell["contender"])
            if cell["repeat"] is None:
                constant[key] = cell["figures"]
            else:
                varying.setdefault(cell["repeat"], {})[key] = cell["figures"]
        return [Run(constant | varying[r]) for r in sorted(varying)] or [Run(constant)]

    def judge(self, claim: Claim) -> list[Judged]:
        """Every bar; run small, those whose cases are left out are left out too."""
        judged = claim.judge(self.runs())
        known = [each for each in judged if each.values]
        return known if self.quick and known else judged

    def has_failed(self) -> bool:
        return any("failed" in cell["figures"] for cell in self.cells)

    def figures(self, case: str, contender: str) -> list[Figures]:
        """Of all repeats, those that failed too."""
        of = [c for c in self.cells if c["case"] == case and c["contender"] == contender]
        return [cell["figures"] for cell in sorted(of, key=lambda c: c["repeat"] or 0)]


class Record:
    """The file."""

    def __init__(self, path: str, known: dict[str, Claim]) -> None:
        self._path, self._known = Path(path), known
        self._claims: dict[str, Measured] = {}
        self.machine: dict[str, Any] = {"cores": os.cpu_count()}

    def load(self) -> None:
        """UsageError where it is something else. What was measured in a setting that a claim no
        longer has does not count."""
        try:
            document = json.loads(self._path.read_text())
            if (document["riffle"], document["version"]) != ("reproduce", VERSION):
                raise UsageError(f"{self._path}: is no record of riffle reproduce {VERSION}")
            self.machine = document["machine"]
            for each in document["claims"]:
                claim = self._known.get(each["claim"])
                if claim is not None:
                    settings = set(map(fingerprint, claim.quick if each["quick"] else claim.cases))
                    cells = [cell for cell in each["cells"] if cell["setting"] in settings]
                    self._claims[claim.name] = Measured(each["quick"], each["repeats"], cells)
        except OSError as error:
            raise UsageError(f"{self._path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"{self._path}: is no record of riffle reproduce") from None

    def exists(self) -> bool:
        return self._path.exists()

    def of(self, claim: Claim) -> Measured | None:
        return self._claims.get(claim.name)

    def begin(self, claim: Claim, quick: bool, repeats: int, resume: bool) -> Measured:
        """What there is of the same size, where it is to be gone on with; else anew."""
        known = self._claims.get(claim.name)
        if not resume or known is None or known.quick != quick:
            known = Measured(quick)
        known.repeats = repeats
        self._claims[claim.name] = known
        return known

    def save(self) -> None:
        """Whole or not at all, verdicts beside what they come from."""
        document = {
            "riffle": "reproduce",
            "version": VERSION,
            "machine": self.machine,
            "claims": [
                _summary(self._known[name], each) | vars(each)
                for name, each in self._claims.items()
            ],
        }
        write_whole(self._path, (json.dumps(document, indent=1) + "\n").encode())


def _summary(claim: Claim, measured: Measured) -> dict[str, Any]:
    judged = measured.judge(claim)
    return {
        "claim": claim.name,
        "title": claim.title,
        "paper": claim.paper,
        "setting_words": claim.setting,
        "baseline": claim.baseline,
        "verdict": verdict(judged),
        "bars": [
            {
                "what": each.bar.what,
                "value": each.value,
                "values": each.values,
                "bound": each.bar.bound,
                "at_most": each.bar.at_most,
                "unit": each.bar.unit,
                "goal": each.bar.goal,
                "verdict": each.verdict,
            }
            for each in judged
        ],
    }
