# SPDX-License-Identifier: BSD-3-Clause
"""Values that the papers give in their text: data/published/*.json. A value that is null is not given there, and the note says so."""
import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "data" / "published"
VALUE_FIELDS = {"id", "what", "value", "unit"}


class PublishedError(ValueError):
    pass


class Published:
    """The values of one figure."""

    def __init__(self, raw, papers):
        self.figure, self.conditions = raw["figure"], raw["conditions"]
        self.buffers_gib = raw.get("buffers_gib")  # the largest problem
        self.values = {v["id"]: v for v in raw["values"]}
        self.source = "; ".join(f"{s['paper']}, {s['place']}" for s in raw["source"])
        # Where several sources stand together, what is particular to each.
        self.particular = {s["paper"]: s["conditions"] for s in raw["source"] if "conditions" in s}
        self.papers = papers

    def value(self, name):
        """The number, or None where the text does not give it."""
        return self.values[name]["value"]

    def paper(self, name):
        """Which of the papers gives it."""
        return self.values[name]["paper"]


def check(path, raw, papers):
    for key in ("schema", "figure", "source", "conditions", "values"):
        if key not in raw:
            raise PublishedError(f"{path}: no {key}")
    if raw["schema"] != 1:
        raise PublishedError(f"{path}: schema {raw['schema']}")
    seen = set()
    for v in raw["values"]:
        if not VALUE_FIELDS <= set(v):
            raise PublishedError(f"{path}: value {v.get('id')} lacks {', '.join(sorted(VALUE_FIELDS - set(v)))}")
        if v["id"] in seen:
            raise PublishedError(f"{path}: two values are called {v['id']}")
        seen.add(v["id"])
        if v["value"] is None and not v.get("note"):
            raise PublishedError(f"{path}: {v['id']} has neither a value nor a note that says why")
        if v["value"] is not None and (v.get("paper") not in papers or not v.get("place")):
            raise PublishedError(f"{path}: {v['id']} does not say where it stands")


def read_all(folder=FOLDER):
    """{figure: Published}."""
    papers = json.loads((Path(folder) / "papers.json").read_text())["papers"]
    found = {}
    for path in sorted(Path(folder).glob("*.json")):
        if path.name == "papers.json":
            continue
        raw = json.loads(path.read_text())
        check(path, raw, papers)
        found[raw["figure"]] = Published(raw, papers)
    return found
