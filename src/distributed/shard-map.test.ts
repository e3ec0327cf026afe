import { afterAll, describe, expect, test } from "vitest";
import { add, array, astype, grad, jit, matmul, mul, sin, sum, vmap } from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import {
  allGather,
  allToAll,
  axisIndex,
  axisSize,
  devicePut,
  flightRecord,
  makeMesh,
  NamedSharding,
  P,
  pmax,
  pmean,
  pmin,
  ppermute,
  psum,
  psumScatter,
  shardMap,
  shutdown,
} from "./index.ts";

type Vector = NDArray<"f32">;
const mesh = makeMesh({ x: 2, y: 2 });
const eight = array([1, 2, 3, 4, 5, 6, 7, 8]);
const over = (f: (x: Vector) => NDArray, outSpecs = P(["x", "y"])) =>
  shardMap(f, { mesh, inSpecs: [P(["x", "y"])], outSpecs });

describe("collectives in shardMap", () => {
  test.each<[string, (x: Vector) => Vector, ReturnType<typeof P>, unknown]>([
    ["psum", (x) => psum(x, ["x", "y"]), P(), [16, 20]],
    ["psum along one axis", (x) => psum(x, "y"), P("x"), [4, 6, 12, 14]],
    ["pmean", (x) => pmean(x, "x"), P("y"), [3, 4, 5, 6]],
    ["pmax", (x) => pmax(x, "x"), P("y"), [5, 6, 7, 8]],
    ["pmin", (x) => pmin(x, "y"), P("x"), [1, 2, 5, 6]],
    ["allGather", (x) => allGather(x, "y", { tiled: true }), P("x"), [1, 2, 3, 4, 5, 6, 7, 8]],
    ["psumScatter", (x) => psumScatter(x, "y", { tiled: true }), P(["x", "y"]), [4, 6, 12, 14]],
    ["psumScatter of entries", (x) => allGather(psumScatter(x, "y"), "y"), P("x"), [4, 6, 12, 14]],
    ["ppermute", (x) => ppermute(x, "y", [[0, 1]]), P(["x", "y"]), [0, 0, 1, 2, 0, 0, 5, 6]],
    [
      "axisIndex",
      (x) => mul(x, astype(add(axisIndex("x"), 1), "f32")),
      P(["x", "y"]),
      [1, 2, 3, 4, 10, 12, 14, 16],
    ],
  ])("%s", async (_, f, outSpecs, expected) => {
    expect(await over(f, outSpecs)(eight).values()).toEqual(expected);
  });

  test("allGather and allToAll with axes for ranks", async () => {
    const gathered = over((x) => allGather(x, ["x", "y"]), P());
    expect(await gathered(eight).values()).toEqual([[1, 2], [3, 4], [5, 6], [7, 8]]); // prettier-ignore
    const rows = array([[1, 2], [3, 4], [5, 6], [7, 8]]); // prettier-ignore
    const turned = shardMap((x: Vector) => allToAll(x, "x", 1, 0, { tiled: true }), {
      mesh,
      inSpecs: [P("x")],
      outSpecs: P(null, "x"),
    });
    expect(await turned(rows).values()).toEqual([[1, 2], [3, 4], [5, 6], [7, 8]]); // prettier-ignore
    const untiled = shardMap((x: Vector) => allToAll(x, "x", 1, 0), {
      mesh,
      inSpecs: [P("x")],
      outSpecs: P("x"),
    });
    expect(untiled(rows).shape).toEqual([4, 2]);
    expect(await untiled(rows).values()).toEqual([[1, 3], [5, 7], [2, 4], [6, 8]]); // prettier-ignore
  });

  test("axes that are not mapped, and specs that do not fit, are refused", () => {
    const code = (f: () => unknown): string => {
      try {
        f();
      } catch (error) {
        return String(error);
      }
      return "nothing";
    };
    expect(code(() => psum(eight, "x"))).toContain("TW9709");
    expect(code(() => over((x) => psum(x, "z"))(eight))).toMatch(
      /TW9709: psum names the axis z[^]*x, y/,
    );
    const perm = [[0, 1], [1, 1]] as const; // prettier-ignore
    expect(code(() => over((x) => ppermute(x, "x", perm))(eight))).toContain(
      "TW9709: perm of ppermute",
    );
    expect(code(() => over((x) => psumScatter(x, "x", { scatterDimension: 1 }))(eight))).toContain(
      "TW9705",
    );
    expect(code(() => new NamedSharding(mesh, P("rows")))).toMatch(
      /TW9708: P\("rows"\) names an axis/,
    );
    expect(code(() => new NamedSharding(mesh, P("x", "x")))).toContain("TW9708");
    expect(code(() => makeMesh({ x: 0 }))).toContain("TW9708");
    expect(code(() => over((x) => x)(array([1, 2, 3])))).toMatch(
      /TW9708: axis 0 of an array of \[3\]/,
    );
    expect(
      code(() =>
        shardMap((x: Vector) => x, { mesh, inSpecs: [P(null, "x")], outSpecs: P() })(eight),
      ),
    ).toMatch(/TW9708: .* more entries/);
    expect(axisSize.length).toBe(1);
  });
});

describe("compiled programs over a mesh", () => {
  afterAll(shutdown);

  test("run on its ranks, and leave their results there", async () => {
    const spec = new NamedSharding(mesh, P("x"));
    const step = jit(
      shardMap((w: Vector, x: Vector) => mul(w, psum(sum(x), "x")), {
        mesh,
        inSpecs: [P(), P("x")],
        outSpecs: P(),
      }),
    );
    const x = devicePut(array([1, 2, 3, 4]), spec);
    const w = step(step(array([1, 2]), x), x);
    expect(await w.values()).toEqual([100, 200]);
    expect(await x.values()).toEqual([1, 2, 3, 4]);
    const record = await flightRecord();
    expect(record).toHaveLength(4);
    for (const lines of record)
      expect(lines.filter((line) => line.includes("all_reduce (add) of tensor<f32>"))).toHaveLength(
        2,
      );
    expect(await add(x, 1).values()).toEqual([2, 3, 4, 5]);
  });

  test("meshes of another size have ranks of their own", async () => {
    const line = makeMesh({ d: 3 }, { devices: [2, 0, 1] });
    const f = jit(shardMap((x: Vector) => ppermute(x, "d", [[0, 1], [1, 2]]), { mesh: line, inSpecs: [P("d")], outSpecs: P("d") })); // prettier-ignore
    expect(await f(array([1, 2, 3])).values()).toEqual([0, 1, 2]);
  });

  test("cut arrays outside of shardMap are refused", async () => {
    const f = jit((x: Vector) => add(over((own) => own)(x) as Vector, 1));
    await expect(f(eight).values()).rejects.toThrow(/TW9707: stablehlo\.add/);
  });
});

describe("derivatives and batches of shardMap", () => {
  const numbers = [0.3, -1.2, 0.7, 2, -0.4, 1.1, 0.9, -0.6];
  const functions: readonly (readonly [string, (x: Vector) => Vector])[] = [
    ["psum", (x) => sum(sin(psum(mul(x, x), ["x", "y"])))],
    ["pmean along one axis", (x) => psum(sum(sin(pmean(mul(x, x), "x"))), "y")],
    ["pmax", (x) => sum(mul(pmax(sin(x), ["x", "y"]), 3))],
    ["allGather", (x) => psum(sum(mul(sin(allGather(x, ["x", "y"], { tiled: true })), 0.25)), "x")],
    [
      "psumScatter",
      (x) => psum(sum(sin(psumScatter(mul(x, x), "y", { tiled: true }))), ["x", "y"]),
    ],
    ["ppermute", (x) => psum(sum(mul(x, ppermute(sin(x), "y", [[0, 1], [1, 0]]))), ["x", "y"])], // prettier-ignore
    [
      "allToAll",
      (x) => psum(sum(mul(x, sin(allToAll(x, "y", 0, 0, { tiled: true })))), ["x", "y"]),
    ],
  ];
  test.each(functions)("the gradient of %s is that of differences", async (_, body) => {
    const f = jit(over(body, P()) as (x: Vector) => Vector);
    const found = (await grad(f)(array(numbers)).values()) as readonly number[];
    const step = 1 / 64;
    for (const [i, value] of numbers.entries()) {
      const at = (x: number) => f(array(numbers.with(i, x))).values();
      const rise = Number(await at(value + step)) - Number(await at(value - step));
      expect(found[i]).toBeCloseTo(rise / (2 * step), 2);
    }
  });

  test("what all have whole gets the sum of the gradients of all", async () => {
    const w = array([[1, 2], [3, 4]]); // prettier-ignore
    const x = array([[1, 0], [0, 1], [1, 1], [2, -1]]); // prettier-ignore
    const plain = (w: Vector, x: Vector) => sum(sin(matmul(x, w)));
    const mapped = shardMap((w: Vector, x: Vector) => psum(plain(w, x), ["x", "y"]), {
      mesh,
      inSpecs: [P(), P(["x", "y"])],
      outSpecs: P(),
    });
    const [expected, found] = await Promise.all(
      [plain, mapped].map(async (f) => (await grad(f)(w, x).values()) as number[][]),
    );
    for (const [i, row] of (expected ?? []).entries())
      for (const [j, value] of row.entries()) expect(found?.[i]?.[j]).toBeCloseTo(value, 5);
  });

  test("a batch is mapped over each rank's part", async () => {
    const batch = array([numbers, numbers.map((x) => 2 * x)]);
    const f = over((x) => psumScatter(sin(x), "y", { tiled: true })) as (x: Vector) => Vector;
    const each = await Promise.all([
      f(array(numbers)).values(),
      f(array(numbers.map((x) => 2 * x))).values(),
    ]);
    expect(await vmap(f)(batch).values()).toEqual(each);
  });
});
