"""The products of `products.rs` with NumPy on one thread, in single precision.

    OPENBLAS_NUM_THREADS=1 python crates/math/benches/products.py
"""

import time

import numpy as np

# Name, and n, k and m of the product of an n × k and a k × m matrix; the factor that is stored column by column.
PRODUCTS = [
    ("sums over the larger group", 256, 1_000, 100, "right"),
    ("sums over the smaller group", 256, 100, 1_000, None),
    ("sums over words", 100, 256, 1_000, "left"),
    ("logits", 400, 300, 1_024, "right"),
    ("derivatives of hidden vectors", 400, 1_024, 300, None),
    ("derivatives of output weights", 1_024, 400, 300, "left"),
]


def main() -> None:
    rng = np.random.default_rng(1)
    for name, n, k, m, transposed in PRODUCTS:
        a, b = rng.random((n, k), np.float32), rng.random((k, m), np.float32)
        a = np.asfortranarray(a) if transposed == "left" else a
        b = np.asfortranarray(b) if transposed == "right" else b
        out = np.empty((n, m), np.float32)
        times = []
        for _ in range(200):
            start = time.perf_counter()
            np.dot(a, b, out)
            times.append(time.perf_counter() - start)
        seconds = sorted(times)[len(times) // 2]
        print(f"{name:32} {2 * n * k * m / seconds / 1e9:6.1f} GFLOP/s")


main()
