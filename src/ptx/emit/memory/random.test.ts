/** Random windows, cut, turned and reshaped, of random arrays, loaded in random layouts. */
import { describe, test } from "vitest";
import { expectSame } from "../../../../test/support/memory-kernels.ts";
import { sampleOf } from "../../../../test/support/sample.ts";
import { randomLayout } from "../../../../test/support/tile-cases.ts";
import { bf16, f32, f64, i4, u8 } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Value } from "../../../ir/node.ts";
import { tensor, dim, kernel, slice, smem, when } from "../../../lang/index.ts";
import type { Ref, Scalar } from "../../../lang/index.ts";
import type { RegisterLayout } from "../../../layout/algebra/register-layout.ts";
import { product } from "../../../layout/algebra/index-bits.ts";
import { Random } from "../../../support/random.ts";

type Shape = readonly number[];
type View = (ref: Ref, i: Scalar<"i32">) => Ref;

interface Step {
  readonly shape: Shape;
  readonly view: View;
}

function pick<T>(random: Random, items: readonly T[]): T {
  const item = items[random.below(items.length)];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}

/** A window with run-time offsets; in global memory it may overhang on both sides. */
function cut(random: Random, shape: Shape, mayOverhang: boolean): Step {
  const slices = shape.map((extent) => {
    const size = Math.min(extent, 1 + random.below(2 * extent));
    const room = extent - size;
    const step = mayOverhang ? random.below(5) - 1 : room > 0 ? 1 : 0;
    const start = mayOverhang ? random.below(extent + 2) - (step < 0 ? 0 : 1) : 0;
    return {
      size,
      step,
      start: mayOverhang ? Math.max(start, -step) : random.below(room + 1 - step),
    };
  });
  return {
    shape: slices.map(({ size }) => size),
    view: (ref, i) =>
      ref.at(
        ...slices.map(({ size, step, start }) => {
          if (step === 0) return slice(Math.max(0, start), size);
          const moved = start < 0 ? i.mul(step).sub(-start) : i.mul(step).add(start);
          return slice(moved, size);
        }),
      ),
  };
}

function turned(random: Random, shape: Shape): Step {
  const order = shape.map((_, axis) => axis);
  for (let axis = order.length - 1; axis > 0; axis -= 1) {
    const other = random.below(axis + 1);
    [order[axis], order[other]] = [order[other] ?? 0, order[axis] ?? 0];
  }
  return {
    shape: order.map((axis) => shape[axis] ?? 1),
    view: (ref) => ref.transpose(order),
  };
}

function reshaped(random: Random, shape: Shape): Step {
  const factors: number[] = [];
  let rest = product(shape);
  for (let factor = 2; rest > 1;)
    if (rest % factor === 0) {
      factors.push(factor);
      rest /= factor;
    } else factor += 1;
  const axes = Array.from({ length: 1 + random.below(3) }, () => 1);
  for (const factor of factors) {
    const axis = random.below(axes.length);
    axes[axis] = (axes[axis] ?? 1) * factor;
  }
  return { shape: axes, view: (ref) => ref.reshape(axes) };
}

function steps(random: Random, from: Shape, mayOverhang: boolean): Step {
  let all: Step = { shape: from, view: (ref) => ref };
  for (let count = 1 + random.below(3); count > 0; count -= 1) {
    const { shape, view } = all;
    const next = pick(random, [
      () => cut(random, shape, mayOverhang),
      () => turned(random, shape),
      () => reshaped(random, shape),
    ])();
    all = { shape: next.shape, view: (ref, i) => next.view(view(ref, i), i) };
  }
  return all;
}

const formats: readonly DType[] = [i4, u8, bf16, f32, f64];
const rows = dim("rows");

function randomShape(random: Random): Shape {
  const rank = 1 + random.below(3);
  const most = [200, 20, 10][rank - 1] ?? 10;
  return Array.from({ length: rank }, () => 1 + random.below(most));
}

/** A layout for every shape of tile. */
function layouts(random: Random): (value: Value) => RegisterLayout | undefined {
  const known = new Map<string, RegisterLayout>();
  return ({ type }) => {
    if (type.kind !== "tile") return undefined;
    const key = type.shape.join();
    const layout = known.get(key) ?? randomLayout(random, type.shape);
    known.set(key, layout);
    return layout;
  };
}

const seeds = sampleOf(
  Array.from({ length: 18 }, (_, seed) => seed),
  4,
);

describe("random windows", () => {
  test.each(seeds)("on global memory, seed %i", async (seed) => {
    const random = new Random(seed);
    const dtype = pick(random, formats);
    const shape = randomShape(random);
    const atLaunch = random.below(2) === 0;
    const { shape: tile, view } = steps(random, shape, true);
    const [first = 1, ...others] = shape;
    const { kernel: body } = kernel(
      {
        name: "window",
        grid: { i: 3 },
        inputs: { x: tensor(dtype, shape), y: tensor(dtype, [3, ...tile]) },
        outputs: { out: tensor(dtype, [3, ...tile]) },
        inouts: { z: tensor(dtype, atLaunch ? [rows, ...others] : shape) },
      },
      ({ i, x, y, z, out }) => {
        out.at(i).store(view(x, i).load());
        // What blocks write may overlap; only one of them does.
        const given = atLaunch ? z.at(...shape.map((extent) => slice(0, extent))) : z;
        when(i.eq(1), () => {
          view(given, i).store(y.at(0).load());
        });
      },
    );
    const moved = { kernel: body, dimensions: { rows: first }, layout: layouts(random) };
    await expectSame(moved, seed, `windows [${tile.join()}] of [${shape.join()}]`);
  });

  test.each(seeds)("on shared memory, seed %i", async (seed) => {
    const random = new Random(1000 + seed);
    const dtype = pick(random, formats);
    const shape = pick(random, [[16, 64], [2, 8, 32], [48, 24], [5, 7, 9], [120]]);
    const layout = pick(
      random,
      shape.length === 2 && shape[1] === 64
        ? ["shared(swizzle 128)", "shared(tile 8 32, swizzle 64)", "shared(order 1 0)"]
        : ["shared()", "shared(swizzle 32)"],
    );
    const { shape: tile, view } = steps(random, shape, false);
    const { kernel: body } = kernel(
      {
        name: "window",
        grid: { i: 2 },
        inputs: { x: tensor(dtype, shape), y: tensor(dtype, tile) },
        outputs: { out: tensor(dtype, [2, ...tile]), all: tensor(dtype, [2, ...shape]) },
        scratch: { buffer: smem(dtype, shape, { layout }) },
      },
      ({ i, x, y, out, all, buffer }) => {
        buffer.store(x.load());
        out.at(i).store(view(buffer, i).load());
        view(buffer, i).store(y.load());
        all.at(i).store(buffer.load());
      },
    );
    const moved = { kernel: body, layout: layouts(random) };
    await expectSame(moved, seed, `windows [${tile.join()}] of [${shape.join()}] in ${layout}`);
  });
});
