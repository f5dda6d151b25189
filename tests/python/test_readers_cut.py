# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F401, F811 - fixtures
"""Files that are cut short, or of which a part is missing: refused, or all of the cells, but never fewer planes."""
import numpy as np
import pytest
from package import cache, environment, mx, need  # fixtures

CELLS = np.random.default_rng(1).random((24, 40, 44)).astype("f4")


def page_by_page(contiguous):
    def write(tifffile, path):
        with tifffile.TiffWriter(path) as file:
            for plane in CELLS:
                file.write(plane, metadata=None, contiguous=contiguous)
    return write


def at_once(**how):
    return lambda tifffile, path: tifffile.imwrite(path, CELLS, **how)


TIFFS = {"imagej": at_once(imagej=True), "zlib": at_once(compression="zlib"), "shaped": at_once(), "tiles": at_once(tile=(16, 16)),
         "ome": at_once(ome=True, metadata={"axes": "ZYX"}), "plain": at_once(metadata=None), "big": at_once(metadata=None, bigtiff=True),
         "big zlib": at_once(bigtiff=True, compression="zlib"), "motorola": at_once(metadata=None, byteorder=">"),
         "contiguous": page_by_page(True), "pages": page_by_page(False)}


@pytest.mark.parametrize("how", TIFFS)
def test_a_tiff_that_is_cut_short(mx, tmp_path, how):
    """At any length: all cells, or a sentence that names the file."""
    path = tmp_path / "cut.tif"
    TIFFS[how](need("tifffile"), path)
    whole = path.read_bytes()
    assert np.array_equal(mx.open(path)[...], CELLS)
    for share in (0.02, 0.1, 0.3, 0.45, 0.6, 0.7, 0.9, 0.97, 0.995, 0.999):
        path.write_bytes(whole[:int(len(whole) * share)])
        try:
            found = mx.open(path)[...]
        except mx.MemextError as error:
            assert "cut.tif" in str(error), (share, str(error))
        else:
            assert found.shape == CELLS.shape and np.array_equal(found, CELLS), (share, found.shape)


@pytest.mark.parametrize("how, said", [("imagej", b"images=24"), ("ome", b'SizeZ="24"'), ("zlib", b'"shape": [24, 40, 44]')])
def test_a_tiff_that_says_more_images_than_it_has(mx, tmp_path, how, said):
    """The description is of a longer stack, as where pages were taken out of it."""
    path = tmp_path / "fewer.tif"
    TIFFS[how](need("tifffile"), path)
    whole = path.read_bytes()
    assert whole.count(said) >= 1
    path.write_bytes(whole.replace(said, said.replace(b"24", b"36")))
    with pytest.raises(mx.MemextError, match="fewer.tif"):
        mx.open(path)[...]


def test_a_slice_that_is_cut_short_in_its_chain(mx, tmp_path):
    tifffile = need("tifffile")
    for z in range(3):
        tifffile.imwrite(tmp_path / f"{z}.tif", CELLS[z:z + 2], metadata=None)
        whole = (tmp_path / f"{z}.tif").read_bytes()
        (tmp_path / f"{z}.tif").write_bytes(whole[:int(len(whole) * 0.7)])
    with pytest.raises(mx.MemextError, match="cut short"):
        mx.open(tmp_path / "*.tif")[...]
