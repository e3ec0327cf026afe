"""Writes what NumPy answers to the expressions of the cases: python3 test/arrays/numpy/record.py, with NumPy 2.

Expressions are the second part of each case; functions that NumPy has not with a size are made here."""
import json, math, os, re
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
text = "".join(open(os.path.join(here, name)).read() for name in ("element-cases.ts", "shape-cases.ts"))


def formula(count, f):
    return np.array([f(index) for index in range(count)])


m = formula(12, lambda i: 0.1 + (i * 5 % 12) * 0.24 + 0.01 * i).reshape(3, 4)
s = formula(12, lambda i: ((i * 7 + 3) % 12) * 0.31 - 1.55 + 0.013 * i).reshape(3, 4)
v = np.array([0.5, -1.25, 2.0, 0.75, -0.3])
w = np.array([0.2, 0.9, 1.3, 1.7, 2.6])
q = np.array([[2.0, -0.5, 0.3], [0.7, 1.5, -1.1], [0.4, 0.9, 3.0]])
t = formula(24, lambda i: ((i * 11 + 5) % 24) * 0.17 - 1.7 + 0.007 * i).reshape(2, 3, 4)
n = m.copy()
n[0, 1] = n[2, 3] = n[2, 0] = math.nan
i = np.array([[3, -4, 5, 7], [-1, 2, -8, 9], [6, -5, 1, -2]], dtype=np.int32)
k = np.array([3, 1, 0, 3, 5, 1, 2, 3], dtype=np.int32)


def sized(x, size, fill):
    return np.concatenate([x[:size], np.full(max(size - len(x), 0), fill, x.dtype)])


def put_along_axis(x, indices, values, axis):
    x = x.copy()
    np.put_along_axis(x, indices, values, axis)
    return x


def plain(x):
    if isinstance(x, (tuple, list)):
        return [plain(each) for each in x]
    x = np.asarray(x)
    flat = [str(e) if isinstance(e, float) and not math.isfinite(e) else e for e in x.ravel().tolist()]
    return {"shape": list(x.shape), "data": [int(e) if isinstance(e, bool) else e for e in flat]}


results = {}
with np.errstate(all="ignore"):
    for found in re.finditer(r'"((?:np\.|\[|put_|sized|m \*|q \*)[^"]*)"', text):
        expression = found.group(1)
        results[expression] = plain(eval(expression))
inputs = {name: plain(value) for name, value in dict(m=m, s=s, v=v, w=w, q=q, t=t, n=n, i=i, k=k).items()}
path = os.path.join(here, "../../fixtures/numpy-results.json")
with open(path, "w") as file:
    json.dump({"numpy": np.__version__, "inputs": inputs, "results": results}, file, separators=(",", ":"))
    file.write("\n")
print(len(results), "results")
