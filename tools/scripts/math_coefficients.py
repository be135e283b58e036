#!/usr/bin/env python3
# Makes compiler/backends/emit/MathCoefficients.h: polynomial coefficients of the elementary functions (needs mpmath).
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every polynomial is a least-squares fit on Chebyshev nodes, in 60 digits: within a factor of two of the
minimax error. The error printed beside each polynomial is the largest one on the interval."""
from mpmath import mp, mpf, matrix, lu_solve, cos, pi, log, erf, sin, atan, asin, sqrt, expm1

mp.dps = 60


def fit(f, low, high, degree):
    n = 4 * (degree + 1)
    xs = [(low + high) / 2 + (high - low) / 2 * cos(pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    a = matrix(degree + 1, degree + 1)
    b = matrix(degree + 1, 1)
    rows = []
    for x in xs:
        rows.append(([x ** k for k in range(degree + 1)], f(x)))
    for i in range(degree + 1):
        for j in range(degree + 1):
            a[i, j] = sum(r[i] * r[j] for r, _ in rows)
        b[i] = sum(r[i] * y for r, y in rows)
    c = lu_solve(a, b)
    worst = mpf(0)
    for i in range(200):
        x = low + (high - low) * (mpf(i) + mpf(1) / 2) / 200
        worst = max(worst, abs(sum(c[k] * x ** k for k in range(degree + 1)) - f(x)))
    return list(c), worst


def exp_tail(r):
    return mpf(1) / 2 + r / 6 if abs(r) < mpf(10) ** -20 else (expm1(r) - r) / r ** 2


def log_tail(z):
    if z < mpf(10) ** -25:
        return mpf(2) / 3
    s = sqrt(z)
    return (log((1 + s) / (1 - s)) - 2 * s) / (s * z)


def erf_small(t):
    x = sqrt(t + 2)
    return erf(x) / x


def erf_around(centre):
    return lambda t: erf(t + centre)


def sin_tail(z):
    x = sqrt(z)
    return (sin(x) / x - 1) / z


def cos_tail(z):
    return (cos(sqrt(z)) - 1 + z / 2) / z ** 2


def atan_tail(z):
    x = sqrt(z)
    return (atan(x) / x - 1) / z


def asin_tail(z):
    x = sqrt(z)
    return (asin(x) / x - 1) / z


half_ln2 = log(2) / 2
quarter = (pi / 4) ** 2
tan_eighth = (sqrt(2) - 1) ** 2
small = mpf(10) ** -12
tables = [
    ("Exp", "(exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2", exp_tail, -half_ln2, half_ln2, 4, 10),
    ("Log", "(log((1+s)/(1-s)) - 2s) / s^3 in z = s^2, s = f / (2 + f), 1 + f in [sqrt(1/2), sqrt(2)]", log_tail, small,
     mpf("0.0295"), 3, 7),
    ("ErfSmall", "erf(x) / x in t = x^2 - 2, |x| <= 2", erf_small, small - 2, mpf(2), 9, 20),
    ("ErfLarge", "erf(x) in t = x - 3, x in [2, 3.93], for f32, in t = x - 4, x in [2, 5.93], for f64",
     (erf_around(3), erf_around(4)), (mpf(-1), mpf(-2)), (mpf("0.93"), mpf("1.93")), 9, 28),
    ("Sin", "(sin(r) / r - 1) / r^2 in z = r^2, |r| <= pi / 4", sin_tail, small, quarter, 2, 6),
    ("Cos", "(cos(r) - 1 + r^2 / 2) / r^4 in z = r^2, |r| <= pi / 4", cos_tail, small, quarter, 2, 6),
    ("Atan", "(atan(r) / r - 1) / r^2 in z = r^2, |r| <= tan(pi / 8)", atan_tail, small, tan_eighth, 4, 11),
    ("Asin", "(asin(r) / r - 1) / r^2 in z = r^2, |r| <= 1/2", asin_tail, small, mpf(1) / 4, 5, 12),
]

print("// Polynomial coefficients of the elementary functions, lowest power first. Generated: tools/scripts/math_coefficients.py.")
print("// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception")
print("#pragma once\n")
print("namespace ortc::emit::coefficients {\n")
for name, text, f, low, high, single, double in tables:
    print(f"/// {text}.")
    for suffix, degree, index in (("F32", single, 0), ("F64", double, 1)):
        function, bottom, top = (v[index] if isinstance(v, tuple) else v for v in (f, low, high))
        c, worst = fit(function, bottom, top, degree)
        digits = 17
        values = ", ".join(mp.nstr(v, digits, strip_zeros=False) for v in c)
        print(f"inline constexpr double k{name}{suffix}[] = {{{values}}}; // error {mp.nstr(worst, 2)}")
    print()
print("} // namespace ortc::emit::coefficients")
