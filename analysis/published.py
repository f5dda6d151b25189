# SPDX-License-Identifier: BSD-3-Clause
"""Values that the papers give in their text: data/published/*.json. A value is null if the text does not give it, and its note says so."""
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
        # If there are several sources: the conditions of each.
        self.particular = {s["paper"]: s["conditions"] for s in raw["source"] if "conditions" in s}
        self.papers = papers

    def value(self, name):
        """The number, or None if the text does not give it."""
        return self.values[name]["value"]

    def paper(self, name):
        """Which paper gives the value."""
        return self.values[name]["paper"]


def check(path, raw, papers):
    for key in ("schema", "figure", "source", "conditions", "values"):
        if key not in raw:
            raise PublishedError(f"{path}: the file has no key '{key}'")
    if raw["schema"] != 1:
        raise PublishedError(f"{path}: the schema is {raw['schema']!r}, and this analysis reads schema 1 only")
    seen = set()
    for v in raw["values"]:
        if not VALUE_FIELDS <= set(v):
            raise PublishedError(f"{path}: the value {v.get('id')} has no key {', '.join(sorted(VALUE_FIELDS - set(v)))}")
        if v["id"] in seen:
            raise PublishedError(f"{path}: two values have the id {v['id']}; give each its own")
        seen.add(v["id"])
        if v["value"] is None and not v.get("note"):
            raise PublishedError(f"{path}: {v['id']} has no value; add a note that says why")
        if v["value"] is not None and (v.get("paper") not in papers or not v.get("place")):
            raise PublishedError(f"{path}: {v['id']} does not say where the value is published; add 'paper', one of papers.json, and 'place'")


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
