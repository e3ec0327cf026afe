import { describe, expect, test } from "vitest";
import { bodyText, testMistakes, trace } from "../../test/language.ts";
import type { Mistake } from "../../test/language.ts";
import {
  acceptsBinary,
  acceptsUnary,
  binaryFunctions,
  comparePredicates,
  unaryFunctions,
} from "../formats/arithmetic/functions.ts";
import { methodName } from "../ir/op-names.ts";
import { bf16, f16, f32, f8e4m3fn, i32, u8 } from "../formats/dtype.ts";
import { tensor, assert, cdiv, constant, dim, kernel, scalar, zeros } from "./index.ts";

const shapes: readonly Mistake[] = [
  {
    name: "operands of different extents",
    code: "TW1010",
    make: () => trace(({ matrix }) => matrix.mul(zeros(f32, [8]))), // <- here
    message: "operands of mul have shapes that do not fit together",
    expected: "[8, 64]",
    found: "[8]",
  },
  {
    name: "operands of a method that the IR calls otherwise",
    code: "TW1010",
    make: () => trace(({ matrix }) => matrix.maximum(zeros(f32, [3]))), // <- here
    message: "operands of maximum have shapes that do not fit together",
  },
  {
    name: "broadcast to fewer axes",
    code: "TW1010",
    make: () => trace(({ matrix }) => matrix.broadcastTo([64])), // <- here
    message: "a tile of shape [8, 64] does not broadcast to [64]",
  },
];

testMistakes("shapes", shapes);

describe("elementwise operations", () => {
  test("a plain number takes dtype and shape of the tile beside it", () => {
    const definition = kernel({ name: "k", inputs: { x: tensor(f32, [4]) } }, ({ x }) =>
      x.load().mul(2),
    );
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%1 = load %0 : tile<f32, [4]>
      %2 = constant {value = 2, dtype = f32, shape = [4]} : tile<f32, [4]>
      %3 = binary %1, %2 {fn = mul} : tile<f32, [4]>
      yield"
    `);
  });

  test("smaller operands are broadcast", () => {
    const definition = kernel(
      { name: "k", inputs: { x: tensor(f32, [8, 4]), y: tensor(f32, [4]), s: scalar(f32) } },
      ({ x, y, s }) => {
        const tile = x.load();
        tile.add(y.load());
        tile.sub(tile.sum({ axis: 1, keepDims: true }));
        s.div(tile);
        tile.fma(s, 1);
      },
    );
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%3 = load %0 : tile<f32, [8, 4]>
      %4 = load %1 : tile<f32, [4]>
      %5 = broadcast %4 {shape = [8, 4], axes = [1]} : tile<f32, [8, 4]>
      %6 = binary %3, %5 {fn = add} : tile<f32, [8, 4]>
      %7 = reduce %3 {fn = sum, axes = [1]} : tile<f32, [8]>
      %8 = reshape %7 {shape = [8, 1]} : tile<f32, [8, 1]>
      %9 = broadcast %8 {shape = [8, 4], axes = [0, 1]} : tile<f32, [8, 4]>
      %10 = binary %3, %9 {fn = sub} : tile<f32, [8, 4]>
      %11 = broadcast %2 {shape = [8, 4], axes = []} : tile<f32, [8, 4]>
      %12 = binary %11, %3 {fn = div} : tile<f32, [8, 4]>
      %13 = broadcast %2 {shape = [8, 4], axes = []} : tile<f32, [8, 4]>
      %14 = constant {value = 1, dtype = f32, shape = [8, 4]} : tile<f32, [8, 4]>
      %15 = fma %3, %13, %14 : tile<f32, [8, 4]>
      yield"
    `);
  });

  test("operands of one shape are used as they are", () => {
    const definition = kernel({ name: "k", inputs: { s: scalar(i32) } }, ({ s }) => {
      s.add(s).rem(3).minimum(s).shl(1);
    });
    expect(bodyText(definition)).not.toContain("broadcast");
  });

  test("sizes known at launch stand beside i32", () => {
    const n = dim("n");
    const definition = kernel({ name: "k", inputs: { x: tensor(f32, [n, n]) } }, () => {
      constant(i32, 1).mul(cdiv(n, 16));
    });
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%1 = constant {value = 1, dtype = i32, shape = []} : i32
      %2 = size {of = ceildiv(n, 16)} : i32
      %3 = binary %1, %2 {fn = mul} : i32
      yield"
    `);
  });

  test("comparison, choice, conversion", () => {
    const definition = kernel({ name: "k", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
      const tile = x.load();
      const narrow = tile.lt(0).select(0, tile).cast(f8e4m3fn, { overflow: "nan" });
      narrow.bitcast(u8);
      tile.isNan().not().all().select(constant(i32, 1), 2);
      tile.cast(bf16);
      tile.cast(f16, { rounding: "zero", overflow: "saturate" });
    });
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%1 = load %0 : tile<f32, [4]>
      %2 = constant {value = 0, dtype = f32, shape = [4]} : tile<f32, [4]>
      %3 = compare %1, %2 {predicate = lt} : tile<bool, [4]>
      %4 = constant {value = 0, dtype = f32, shape = [4]} : tile<f32, [4]>
      %5 = select %3, %4, %1 : tile<f32, [4]>
      %6 = cast %5 {dtype = f8e4m3fn, overflow = nan} : tile<f8e4m3fn, [4]>
      %7 = bitcast %6 {dtype = u8} : tile<u8, [4]>
      %8 = classify %1 {fn = is_nan} : tile<bool, [4]>
      %9 = unary %8 {fn = not} : tile<bool, [4]>
      %10 = reduce %9 {fn = and, axes = [0]} : bool
      %11 = constant {value = 1, dtype = i32, shape = []} : i32
      %12 = constant {value = 2, dtype = i32, shape = []} : i32
      %13 = select %10, %11, %12 : i32
      %14 = cast %1 {dtype = bf16} : tile<bf16, [4]>
      %15 = cast %1 {dtype = f16, overflow = saturate, rounding = zero} : tile<f16, [4]>
      yield"
    `);
  });

  test("approximations are asked for", () => {
    const definition = kernel({ name: "k", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
      const tile = x.load();
      tile.exp({ approximate: true }).div(tile, { approximate: true });
      tile.exp({ approximate: false });
    });
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%1 = load %0 : tile<f32, [4]>
      %2 = unary %1 {fn = exp, approximate = true} : tile<f32, [4]>
      %3 = binary %2, %1 {fn = div, approximate = true} : tile<f32, [4]>
      %4 = unary %1 {fn = exp} : tile<f32, [4]>
      yield"
    `);
  });

  test("a product may say that its factor is often one", () => {
    const definition = kernel({ name: "k", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
      const tile = x.load();
      tile.mul(tile, { oftenOne: true }).mul(tile, { oftenOne: false });
    });
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%1 = load %0 : tile<f32, [4]>
      %2 = binary %1, %1 {fn = mul, oftenOne = true} : tile<f32, [4]>
      %3 = binary %2, %1 {fn = mul} : tile<f32, [4]>
      yield"
    `);
  });

  test("every function has its method", () => {
    const functions = [
      ...unaryFunctions.map((fn) => ({ fn, ofFloats: acceptsUnary(fn, f32), others: 0 })),
      ...binaryFunctions.map((fn) => ({ fn, ofFloats: acceptsBinary(fn, f32), others: 1 })),
    ];
    for (const { fn, ofFloats, others } of functions) {
      const text = bodyText(
        kernel({ name: "k" }, () => {
          const tile = ofFloats ? zeros(f32, [4]) : zeros(i32, [4]);
          const call = Reflect.get(tile, methodName(fn)) as (
            ...others: readonly unknown[]
          ) => unknown;
          call.apply(tile, new Array<unknown>(others).fill(tile));
        }),
      );
      expect(text).toContain(`{fn = ${fn}}`);
    }
    for (const predicate of comparePredicates) {
      const text = bodyText(
        kernel({ name: "k" }, () => {
          assert(constant(f32, 1)[predicate](2), "compared");
        }),
      );
      expect(text).toContain(`{predicate = ${predicate}}`);
    }
  });
});
