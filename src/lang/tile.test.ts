import { describe, expect, test } from "vitest";
import { bodyText } from "../../test/language.ts";
import { bool, f16, f32, f64, i32, i64, i8, u8 } from "../formats/dtype.ts";
import { tensor, assert, concatenate, dot, full, iota, kernel, zeros } from "./index.ts";
import type { Tile } from "./index.ts";

/** The ops that `make` adds after a tile of f32, [8, 4]. */
function ops(make: (tile: Tile<"f32">) => unknown): string {
  const definition = kernel({ name: "k", inputs: { x: tensor(f32, [8, 4]) } }, ({ x }) =>
    make(x.load()),
  );
  return bodyText(definition).split("\n").slice(1, -1).join("\n");
}

describe("tiles", () => {
  test("rearranging", () => {
    expect(
      ops((tile) => {
        tile.reshape([32]);
        tile.transpose();
        tile.transpose([0, 1]);
        tile.slice([2, 0], [4, 4]);
        tile.broadcastTo([2, 8, 4]);
        tile.expand({ axis: 1 });
        concatenate([tile, tile], { axis: 1 });
      }),
    ).toMatchInlineSnapshot(`
      "%2 = reshape %1 {shape = [32]} : tile<f32, [32]>
      %3 = transpose %1 {permutation = [1, 0]} : tile<f32, [4, 8]>
      %4 = transpose %1 {permutation = [0, 1]} : tile<f32, [8, 4]>
      %5 = slice %1 {starts = [2, 0], sizes = [4, 4]} : tile<f32, [4, 4]>
      %6 = broadcast %1 {shape = [2, 8, 4], axes = [1, 2]} : tile<f32, [2, 8, 4]>
      %7 = reshape %1 {shape = [8, 1, 4]} : tile<f32, [8, 1, 4]>
      %8 = concatenate %1, %1 {axis = 1} : tile<f32, [8, 8]>"
    `);
  });

  test("shapes of the results", () => {
    const shapes: (readonly number[])[] = [];
    ops((tile) => {
      const mask = tile.lt(0);
      const results = [
        tile.transpose(),
        tile.expand({ axis: 2 }),
        tile.sum({ axis: 0 }),
        tile.max({ axis: 1, keepDims: true }),
        tile.argmax({ axis: 1 }),
        tile.cumsum({ axis: 0 }),
        tile.broadcastTo([3, 8, 4]),
        mask.any({ axis: 0, keepDims: true }),
      ];
      shapes.push(...results.map(({ shape }) => shape));
      mask.select(results.at(-1)?.cast(f32) ?? 0, tile);
    });
    expect(shapes).toEqual([[4, 8], [8, 4, 1], [4], [8, 1], [8], [8, 4], [3, 8, 4], [1, 4]]);
  });

  test("reductions", () => {
    expect(
      ops((tile) => {
        tile.sum();
        tile.prod({ axis: 0 });
        tile.min({ axis: 1, keepDims: true });
        tile.reshape([32]).max({ axis: 0, keepDims: true });
        tile.cast(i32).reduce("xor");
        tile.cummax({ axis: 0, reverse: true });
        tile.cumprod({ axis: 1 });
        tile.cummin({ axis: 1 });
        tile.reshape([32]).argmin();
        tile.argmax({ axis: 1 });
        assert(tile.lt(0).all({ axis: 1 }), "all");
      }),
    ).toMatchInlineSnapshot(`
      "%2 = reduce %1 {fn = sum, axes = [0, 1]} : f32
      %3 = reduce %1 {fn = prod, axes = [0]} : tile<f32, [4]>
      %4 = reduce %1 {fn = min, axes = [1]} : tile<f32, [8]>
      %5 = reshape %4 {shape = [8, 1]} : tile<f32, [8, 1]>
      %6 = reshape %1 {shape = [32]} : tile<f32, [32]>
      %7 = reduce %6 {fn = max, axes = [0]} : f32
      %8 = reshape %7 {shape = [1]} : tile<f32, [1]>
      %9 = cast %1 {dtype = i32} : tile<i32, [8, 4]>
      %10 = reduce %9 {fn = xor, axes = [0, 1]} : i32
      %11 = scan %1 {fn = max, axis = 0, reverse = true} : tile<f32, [8, 4]>
      %12 = scan %1 {fn = prod, axis = 1, reverse = false} : tile<f32, [8, 4]>
      %13 = scan %1 {fn = min, axis = 1, reverse = false} : tile<f32, [8, 4]>
      %14 = reshape %1 {shape = [32]} : tile<f32, [32]>
      %15 = arg_reduce %14 {fn = argmin, axis = 0} : i32
      %16 = arg_reduce %1 {fn = argmax, axis = 1} : tile<i32, [8]>
      %17 = constant {value = 0, dtype = f32, shape = [8, 4]} : tile<f32, [8, 4]>
      %18 = compare %1, %17 {predicate = lt} : tile<bool, [8, 4]>
      %19 = reduce %18 {fn = and, axes = [1]} : tile<bool, [8]>
      assert %19 {message = "all"}"
    `);
  });

  test("sorting", () => {
    expect(
      ops((tile) => {
        tile.sort({ axis: 1 });
        const [keys, order] = tile.sortWith([iota(i32, [8, 4], { axis: 0 })], {
          axis: 0,
          descending: true,
        });
        keys.add(1);
        order.add(1);
      }),
    ).toMatchInlineSnapshot(`
      "%2 = sort %1 {axis = 1, descending = false} : tile<f32, [8, 4]>
      %3 = iota {dtype = i32, shape = [8, 4], axis = 0} : tile<i32, [8, 4]>
      %4, %5 = sort %1 payloads(%3) {axis = 0, descending = true} : tile<f32, [8, 4]>, tile<i32, [8, 4]>
      %6 = constant {value = 1, dtype = f32, shape = [8, 4]} : tile<f32, [8, 4]>
      %7 = binary %4, %6 {fn = add} : tile<f32, [8, 4]>
      %8 = constant {value = 1, dtype = i32, shape = [8, 4]} : tile<i32, [8, 4]>
      %9 = binary %5, %8 {fn = add} : tile<i32, [8, 4]>"
    `);
  });

  test("making tiles", () => {
    expect(
      ops(() => {
        iota(u8, [4, 2], { axis: 1 });
        full(i64, [2], 3n);
        zeros(bool, [2]);
      }),
    ).toMatchInlineSnapshot(`
      "%2 = iota {dtype = u8, shape = [4, 2], axis = 1} : tile<u8, [4, 2]>
      %3 = constant {value = 3n, dtype = i64, shape = [2]} : tile<i64, [2]>
      %4 = constant {value = false, dtype = bool, shape = [2]} : tile<bool, [2]>"
    `);
  });

  test("matrix products take the format of their sums from their operands", () => {
    expect(
      ops((tile) => {
        const right = tile.transpose();
        const sum = dot(tile, right, { precision: "ieee" });
        dot(tile, right, { precision: "tf32", accumulator: sum });
        dot(tile.cast(f16), right.cast(f16), { dtype: f16 });
        dot(tile.cast(f64), right.cast(f64));
        dot(tile.cast(i8), right.cast(u8));
      })
        .split("\n")
        .filter((line) => line.includes("dot")),
    ).toMatchInlineSnapshot(`
      [
        "%3 = dot %1, %2 {dtype = f32, precision = ieee} : tile<f32, [8, 8]>",
        "%4 = dot %1, %2 accumulator(%3) {dtype = f32, precision = tf32} : tile<f32, [8, 8]>",
        "%7 = dot %5, %6 {dtype = f16, precision = native} : tile<f16, [8, 8]>",
        "%10 = dot %8, %9 {dtype = f64, precision = native} : tile<f64, [8, 8]>",
        "%13 = dot %11, %12 {dtype = i32, precision = native} : tile<i32, [8, 8]>",
      ]
    `);
  });

  test("what the user gave is copied", () => {
    const shape = [4, 2];
    const definition = kernel({ name: "k" }, () => {
      zeros(f32, shape);
      shape[0] = 100;
    });
    expect(bodyText(definition)).toContain("tile<f32, [4, 2]>");
  });
});
