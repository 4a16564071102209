#!/usr/bin/env python3
"""Writes the files of ../numpy.rs: A, B and A B of each type, whose sums are exact. A and C are in Fortran order, as the program writes C."""
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def write(name, array, version=(1, 0)):
    with open(HERE / f"{name}.npy", "wb") as file:
        np.lib.format.write_array(file, array, version)


for dtype, version in [("f4", (1, 0)), ("f8", (2, 0)), ("c8", (3, 0)), ("c16", (1, 0))]:
    a, b = (np.arange(rows * cols).reshape(rows, cols) - cols for rows, cols in [(5, 3), (3, 2)])
    if dtype.startswith("c"):
        a, b = a + 1j * (a % 4), b - 2j * b
    a, b = a.astype("<" + dtype), b.astype("<" + dtype)
    write(f"a-{dtype}", np.asfortranarray(a), version)
    write(f"b-{dtype}", b, version)
    write(f"c-{dtype}", np.asfortranarray(a @ b))
write("a-big", np.arange(15.0).reshape(5, 3).astype(">f8"))
