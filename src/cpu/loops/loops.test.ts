/** Loops run as they read; the verifier names what is wrong; constants of loops are hoisted; vectors are counted. */
import { expect, test } from "vitest";
import { expectGolden } from "../../../test/golden.ts";
import { Random } from "../../support/random.ts";
import {
  call,
  constant,
  i32,
  lane,
  load,
  ModuleBuilder,
  op,
  read,
  select,
  shuffleLanes,
  splat,
  vector,
} from "./builder.ts";
import { emitModule } from "./emit.ts";
import type { LoopModule } from "./ir.ts";
import { loopsText } from "./print.ts";
import { findLoopErrors } from "./verify.ts";
import { loopPressures } from "./vectors.ts";

const memory = { minimum: 1, maximum: 1, shared: true };

function instantiate(module: LoopModule): {
  readonly run: (name: string, ...values: (number | bigint)[]) => unknown;
  readonly bytes: SharedArrayBuffer;
} {
  const shared = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  const instance = new WebAssembly.Instance(new WebAssembly.Module(emitModule(module)), {
    env: { memory: shared },
    host: { twice: (x: number) => 2 * x },
  });
  const { buffer } = shared;
  if (!(buffer instanceof SharedArrayBuffer)) throw new Error("memory is not shared");
  return {
    run: (name, ...values) => {
      const entry = instance.exports[name];
      if (typeof entry !== "function") throw new Error(`no ${name}`);
      const result: unknown = Reflect.apply(entry, undefined, values);
      return result;
    },
    bytes: buffer,
  };
}

/** y = 2x + y over f32, four at a time and the rest one by one. */
function axpy(): LoopModule {
  const module = new ModuleBuilder({ memory });
  module.define(
    "axpy",
    ["i32", "i32", "i32"],
    [],
    (b, x, y, count) => {
      const delta = b.keep(op("i32.sub", y, x), "delta");
      const whole = b.keep(
        i32.add(x, op("i32.shl", op("i32.and", count, i32.of(-4)), i32.of(2))),
        "whole",
      );
      b.countedLoop(x, whole, 16, (at) => {
        const other = b.keep(i32.add(at, delta), "other");
        const product = op("f32x4.mul", load("v128.load", at), splat("f32x4", 2));
        b.store("v128.store", other, op("f32x4.add", product, load("v128.load", other)));
      });
      const end = i32.add(x, op("i32.shl", count, i32.of(2)));
      b.countedLoop(whole, end, 4, (at) => {
        const other = b.keep(i32.add(at, delta), "other");
        const product = op("f32.mul", load("f32.load", at), constant("f32", 2));
        b.store("f32.store", other, op("f32.add", product, load("f32.load", other)));
      });
    },
    { exported: true, names: ["x", "y", "count"] },
  );
  return module.finish();
}

test("a vector loop with a tail, for every small count", () => {
  const seed = 49;
  const random = new Random(seed);
  const { run, bytes } = instantiate(axpy());
  for (let count = 0; count < 20; count++) {
    const numbers = new Float32Array(bytes, 0, 64);
    for (let index = 0; index < 64; index++) numbers[index] = Math.fround(random.uniform());
    const before = Array.from(numbers);
    run("axpy", 0, 128, count);
    const expected = before.map((value, index) =>
      index >= 32 && index < 32 + count
        ? Math.fround(2 * (before[index - 32] ?? 0) + value)
        : value,
    );
    expect(Array.from(numbers), `seed ${seed}, count ${count}`).toEqual(expected);
  }
});

test("text of loops", () => {
  expectGolden("src/cpu/loops/goldens/axpy.txt", loopsText(axpy()));
});

test("calls in both directions, several results, switches, early ends and choices", () => {
  const module = new ModuleBuilder();
  const twice = module.import("host", "twice", ["i32"], ["i32"]);
  const odd = module.declare("odd", ["i32"], ["i32"]);
  const even = module.define("even", ["i32"], ["i32"], (b, x) =>
    b.if(
      op("i32.eqz", x),
      () => b.return(i32.of(1)),
      () => b.return(call(odd, op("i32.sub", x, i32.of(1)))),
    ),
  );
  module.body(odd, (b, x) => {
    b.if(op("i32.eqz", x), () => b.return(i32.of(0)));
    b.return(call(even, op("i32.sub", x, i32.of(1))));
  });
  const divided = module.define("divided", ["i32", "i32"], ["i32", "i32"], (b, x, y) =>
    b.return(op("i32.div_u", x, y), op("i32.rem_u", x, y)),
  );
  module.define(
    "run",
    ["i32"],
    ["i32"],
    (b, x) => {
      const result = b.local("i32", "result");
      b.switch(x, [
        () => b.set(result, call(twice, i32.of(21))),
        () => b.set(result, i32.add(call(even, i32.of(10)), i32.of(10))),
        () => {
          const [quotient = x, rest = x] = b.call(divided, i32.of(17), i32.of(5));
          b.set(result, op("i32.or", op("i32.shl", quotient, i32.of(4)), rest));
        },
        () => {
          const index = b.local("i32", "index");
          b.whileLoop(
            () => op("i32.lt_s", read(index), i32.of(1000)),
            () => {
              b.set(index, i32.add(read(index), i32.of(7)));
              b.if(op("i32.gt_s", read(index), i32.of(50)), () => b.return(read(index)));
            },
          );
        },
        () => b.set(result, select(op("i32.gt_s", x, i32.of(100)), i32.of(-1), i32.of(-2))),
      ]);
      b.return(read(result));
    },
    { exported: true },
  );
  const { run } = instantiate({ ...module.finish(), memory });
  expect([0, 1, 2, 3, 4, 101, -1].map((x) => run("run", x))).toEqual([
    42, 11, 0x32, 56, -2, -1, -2,
  ]);
});

test("constants, lanes and shuffles", () => {
  const module = new ModuleBuilder({ memory });
  module.define(
    "run",
    [],
    ["i64"],
    (b) => {
      const numbers = vector("i32x4", [1, 2, 3, 4]);
      const turned = b.keep(shuffleLanes(numbers, splat("i32x4", -5), [3, 4, 1, 0]));
      b.store("v128.store", i32.of(16), turned);
      b.store("v128.store", i32.of(32), vector("f64x2", [-0, Number.NaN]));
      b.return(op("i64.extend_i32_s", lane("i32x4.extract_lane", 1, turned)));
    },
    { exported: true },
  );
  const { run, bytes } = instantiate(module.finish());
  expect(run("run")).toBe(-5n);
  expect([...new Int32Array(bytes, 16, 4)]).toEqual([4, -5, 2, 1]);
  expect([...new Float64Array(bytes, 32, 2)]).toEqual([-0, Number.NaN]);
});

test("what is not sound is named", () => {
  const errors = (write: Parameters<ModuleBuilder["define"]>[3]) => {
    const module = new ModuleBuilder();
    module.define("f", ["i32"], ["i32"], write);
    return findLoopErrors(module.finish());
  };
  expect(errors((b, x) => b.return(x))).toEqual([]);
  expect(errors(() => {})).toEqual(["@f: ends without a result"]);
  expect(
    errors((b, x) => {
      const sum = op("i32.add", x, x);
      b.return(op("i32.mul", sum, sum));
    }),
  ).toEqual(["@f: stands in two places, and wants keep: i32.add(%p, %p)"]);
  expect(errors((b) => b.return(read(b.local("i32", "never"))))).toEqual([
    "@f: %never is never set: return %never",
  ]);
  expect(errors((b) => b.return(load("i32.load", i32.of(0))))).toEqual([
    "@f: i32.load in a module without memory",
  ]);
  expect(errors((b) => b.return(constant("f32", 1)))).toEqual([
    "@f: return takes (i32), not (f32)",
  ]);
  expect(
    errors((b, x) => {
      b.block((leave) => b.loop(() => b.branch(leave)));
      b.branch({ name: "elsewhere" });
      b.return(x);
    }),
  ).toEqual(["@f: $elsewhere is not around its branch"]);
  expect(errors((b, x) => b.return(lane("i32x4.extract_lane", 4, op("i32x4.splat", x))))).toEqual([
    "@f: lanes 4 of i32x4.extract_lane",
  ]);
  expect(() => op("f32.add", i32.of(1), i32.of(2))).toThrow(
    "f32.add takes (f32, f32), not (i32, i32)",
  );
});

test("vectors of a product of 4 by 8: eight sums, two columns and four rows", () => {
  const module = new ModuleBuilder({ memory });
  module.define("product", ["i32", "i32", "i32"], [], (b, a, c, end) => {
    const sums = Array.from({ length: 8 }, () => b.variable(splat("f32x4", 0), "sum"));
    const at = b.variable(a, "a");
    b.countedLoop(c, end, 32, (column) => {
      const columns = [0, 16].map((offset) => b.keep(load("v128.load", column, offset)));
      for (let row = 0; row < 4; row++) {
        const left = b.keep(load("v128.load32_splat", read(at), 4 * row));
        columns.forEach((right, index) => {
          const sum = sums[2 * row + index];
          if (sum !== undefined)
            b.set(sum, op("f32x4.add", read(sum), op("f32x4.mul", left, right)));
        });
      }
      b.set(at, i32.add(read(at), i32.of(16)));
    });
    sums.forEach((sum, index) => b.store("v128.store", a, read(sum), 16 * index));
  });
  const [product] = module.finish().functions;
  expect(product && loopPressures(product)).toMatchObject([{ live: 11, carriedAndLoads: 14 }]);
});
