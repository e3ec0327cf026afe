/** Rearrangements that change threads: the right elements, no copies in every lane, nothing spilled. */
import { describe, expect, test } from "vitest";
import { describeAssembly, hasPtxas } from "../../test/ptxas.ts";
import { emulateKernel } from "../../test/support/emulated-kernel.ts";
import { bf16, bool, f32, f64, i32, i4, i8 } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import type { OpKind } from "../ir/ops.ts";
import { walkOps } from "../ir/traverse.ts";
import { tensor, concatenate, full, iota, kernel, loop, warps, when } from "../lang/index.ts";
import type { KernelDefinition, Tile } from "../lang/index.ts";
import { namedLayouts } from "../layout/algebra/named-layouts.ts";
import { registersPerLane } from "../layout/algebra/register-layout.ts";
import { placeKernel } from "../layout/plan/place.ts";
import { printPtx } from "../ptx/printer.ts";
import { Random } from "../support/random.ts";
import { targets } from "../targets/target.ts";
import { lower, place } from "./stages.ts";
import { simplify } from "./simplify.ts";

const target = targets.sm_90a;

/** A tile as the reference sees it: its elements in row-major order. */
interface Elements {
  readonly shape: readonly number[];
  readonly at: (position: readonly number[]) => number;
}

function listOf({ shape, at }: Elements): readonly number[] {
  const positions = shape.reduce<readonly (readonly number[])[]>(
    (prefixes, extent) =>
      prefixes.flatMap((prefix) =>
        Array.from({ length: extent }, (_, index) => [...prefix, index]),
      ),
    [[]],
  );
  return positions.map(at);
}

/** One rearrangement, of a tile and of its reference. */
interface Step {
  readonly text: string;
  readonly tile: <N extends DType["name"]>(tile: Tile<N>) => Tile<N>;
  readonly elements: (elements: Elements) => Elements;
}

function window(starts: readonly number[], sizes: readonly number[]): Step {
  return {
    text: `slice [${starts.join()}] of [${sizes.join()}]`,
    tile: (tile) => tile.slice(starts, sizes),
    elements: ({ at }) => ({
      shape: sizes,
      at: (position) => at(position.map((each, axis) => each + (starts[axis] ?? 0))),
    }),
  };
}

/** Two parts of the tile in the other order: by concatenation of slices. */
function roll(shape: readonly number[], axis: number, by: number): Step {
  const extent = shape[axis] ?? 1;
  const part = (start: number, size: number): Step =>
    window(
      shape.map((_, each) => (each === axis ? start : 0)),
      shape.map((each, index) => (index === axis ? size : each)),
    );
  return {
    text: `roll axis ${axis} by ${by}`,
    tile: (tile) =>
      concatenate([part(by, extent - by).tile(tile), part(0, by).tile(tile)], { axis }),
    elements: ({ at }) => ({
      shape,
      at: (position) =>
        at(position.map((each, index) => (index === axis ? (each + by) % extent : each))),
    }),
  };
}

function randomStep(random: Random, shape: readonly number[], grain: number): Step | undefined {
  const last = shape.length - 1;
  const multiple = (axis: number): number => (axis === last ? grain : 1);
  if (random.below(2) === 0) {
    const axis = random.below(shape.length);
    const places = (shape[axis] ?? 1) / multiple(axis);
    return places < 2
      ? undefined
      : roll(shape, axis, multiple(axis) * (1 + random.below(places - 1)));
  }
  const windows = shape.map((extent, axis) => {
    const units = extent / multiple(axis);
    const size = 1 + random.below(units);
    return { start: multiple(axis) * random.below(units - size + 1), size: multiple(axis) * size };
  });
  return window(
    windows.map(({ start }) => start),
    windows.map(({ size }) => size),
  );
}

const shapes = [[96], [257], [1024], [7, 33], [64, 64], [62, 10], [3, 5, 24]];
const formats = [f32, bf16, i8, i4, f64, bool, i32];

/** What a format can hold of a running number. */
function valueOf(dtype: DType, index: number): number {
  const range = dtype === bool ? 2 : dtype === i4 ? 8 : 100;
  return index % range;
}

function randomProgram(seed: number): {
  readonly text: string;
  readonly definition: KernelDefinition;
  readonly inputs: Parameters<typeof emulateKernel>[1];
  readonly expected: readonly number[];
} {
  const random = new Random(seed);
  const dtype = formats[random.below(formats.length)] ?? f32;
  const all = shapes[random.below(shapes.length)] ?? [96];
  // Elements of 4 bits come in pairs, also where windows on them begin and end.
  const grain = dtype === i4 ? 2 : 1;
  const shape = all.map((extent, axis) =>
    axis === all.length - 1 ? extent - (extent % grain) : extent,
  );
  const numbers = Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, index) =>
    valueOf(dtype, 7 * index + (index >> 5)),
  );
  const steps: Step[] = [];
  let elements: Elements = {
    shape,
    at: (position) =>
      numbers[position.reduce((sum, each, axis) => sum * (shape[axis] ?? 1) + each, 0)] ?? NaN,
  };
  for (let count = 1 + random.below(3); count > 0; count -= 1) {
    const step = randomStep(random, elements.shape, grain);
    if (step === undefined) continue;
    steps.push(step);
    elements = step.elements(elements);
  }
  const text = `seed ${seed}: ${dtype.name}[${shape.join()}] ${steps.map((step) => step.text).join(", ")}`;
  const definition = kernel(
    {
      name: "rearrange",
      inputs: { x: tensor(dtype, shape) },
      outputs: { out: tensor(dtype, elements.shape) },
    },
    ({ x, out }) => {
      out.store(steps.reduce((tile, step) => step.tile(tile), x.load()));
    },
  );
  return {
    text,
    definition,
    inputs: { x: fromNumbers(dtype, shape, numbers) },
    expected: listOf(elements),
  };
}

describe("random slices and rolls", () => {
  test.each(Array.from({ length: 24 }, (_, seed) => seed))(
    "of seed %i give the elements that indices say",
    (seed) => {
      const { text, definition, inputs, expected } = randomProgram(seed);
      const { findings, results } = emulateKernel(definition, inputs);
      expect(findings, text).toEqual([]);
      expect([...toNumbers(results["out"] ?? expect.fail())], text).toEqual(expected);
    },
  );
});

const square = { inputs: { x: tensor(f32, [64, 64]) } };
const interior = kernel(
  { name: "interior", ...square, outputs: { o: tensor(f32, [62, 62]) } },
  ({ x, o }) => {
    o.store(x.load().slice([1, 1], [62, 62]));
  },
);
const rolled = kernel(
  { name: "rolled", inputs: { x: tensor(f32, [1024]) }, outputs: { o: tensor(f32, [1024]) } },
  ({ x, o }) => {
    o.store(roll([1024], 0, 1).tile(x.load()));
  },
);
const pinnedRow = kernel(
  { name: "pinned", inputs: { x: tensor(f32, [128, 128]) }, outputs: { o: tensor(f32, [128]) } },
  ({ x, o }) => {
    o.store(x.load().max({ axis: 1 }).layoutCast(namedLayouts.wgmmaRow.text));
  },
);
/** The best of all rounds so far, joined with those of the round and sorted. */
const best = kernel(
  {
    name: "best",
    inputs: { x: tensor(f32, [4, 248]) },
    outputs: { values: tensor(f32, [8]), places: tensor(i32, [8]) },
  },
  ({ x, values, places }) => {
    const carry = { v: full(f32, [8], -Infinity), id: full(i32, [8], -1) };
    const found = loop({ to: 4, carry }, (round, { v, id }) => {
      const numbers = concatenate([id, iota(i32, [248], { axis: 0 }).add(round.mul(248))], {
        axis: 0,
      });
      const joined = concatenate([v, x.at(round).load()], { axis: 0 });
      const [sorted, order] = joined.sortWith([numbers], { axis: 0, descending: true });
      return { v: sorted.slice([0], [8]), id: order.slice([0], [8]) };
    });
    values.store(found.v);
    places.store(found.id);
  },
);

describe.each<[string, KernelDefinition, number]>([
  ["the interior of a square", interior, 16384],
  ["a roll by one", rolled, 4096],
  ["a reduction in a stated layout", pinnedRow, 1024],
  ["a sort in a loop with a short carry", best, 8192],
])("%s", (_, { kernel: traced }, mostShared) => {
  test("is shared out among the lanes", () => {
    const { placement } = place(traced, target);
    const crowded = [...placement.layouts].filter(([{ type }, layout]) => {
      if (type.kind !== "tile") return false;
      const elements = type.shape.reduce((a, b) => a * b, 1);
      return registersPerLane(layout, type.shape) > Math.max(32, 2 * Math.ceil(elements / 128));
    });
    expect(crowded.map(([{ id }, { text }]) => `%${id} ${text}`)).toEqual([]);
    expect(placement.memory.bytes).toBeLessThanOrEqual(mostShared);
  });

  test.runIf(hasPtxas)("spills nothing", () => {
    const said = describeAssembly(printPtx(lower(traced, target).module), "sm_90a");
    expect(said).toContain("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads");
  });
});

test("what rounds carry is joined and sorted right", () => {
  const numbers = Array.from({ length: 4 * 248 }, (_, index) => (index * 389) % 1009);
  const { findings, results } = emulateKernel(best, { x: fromNumbers(f32, [4, 248], numbers) });
  const expected = numbers
    .map((value, index) => ({ value, index }))
    .sort((a, b) => b.value - a.value)
    .slice(0, 8);
  expect(findings).toEqual([]);
  expect([...toNumbers(results["values"] ?? expect.fail())]).toEqual(
    expected.map(({ value }) => value),
  );
  expect([...toNumbers(results["places"] ?? expect.fail())]).toEqual(
    expected.map(({ index }) => index),
  );
});

describe("the choice", () => {
  const countOf = (kind: OpKind, { kernel: traced }: KernelDefinition): number => {
    let count = 0;
    walkOps(place(traced, target).placement.kernel.body, (op) => {
      if (op.kind === kind) count += 1;
    });
    return count;
  };
  const buffers = (definition: KernelDefinition): number => countOf("alloc", definition);

  test("is the cheaper of the two ways", () => {
    const direct = placeKernel(simplify(interior.kernel), target);
    expect(place(interior.kernel, target).placement.cost).toBeLessThan(direct.cost);
    expect(buffers(interior)).toBe(1);
  });

  test("leaves alone what lanes can take from their own registers", () => {
    const rows = kernel(
      { name: "rows", ...square, outputs: { o: tensor(f32, [32, 64]) } },
      ({ x, o }) => {
        o.store(x.load().slice([32, 0], [32, 64]));
      },
    );
    expect(buffers(rows)).toBe(0);
  });

  test("stores a tile once for all slices of it", () => {
    const differences = kernel(
      {
        name: "differences",
        inputs: { x: tensor(f32, [1025]) },
        outputs: { o: tensor(f32, [1023]) },
      },
      ({ x, o }) => {
        const tile = x.load();
        const [left, middle, right] = [0, 1, 2].map((start) => tile.slice([start], [1023]));
        if (left && middle && right) o.store(left.add(right).sub(middle.mul(2)));
      },
    );
    expect(buffers(differences)).toBe(1);
    // Into the buffer, and the result.
    expect(countOf("store", differences)).toBe(2);
    const x = fromNumbers(
      f32,
      [1025],
      Array.from({ length: 1025 }, (_, index) => index * index),
    );
    const { findings, results } = emulateKernel(differences, { x });
    expect(findings).toEqual([]);
    expect(new Set(toNumbers(results["o"] ?? expect.fail()))).toEqual(new Set([2]));
  });

  test("keeps to registers where several agents run the code", () => {
    const alone = kernel(
      { name: "alone", inputs: { x: tensor(f32, [4, 40]) }, outputs: { o: tensor(f32, [4, 38]) } },
      ({ x, o }) => {
        warps((warp) => {
          o.at(warp).store(x.at(warp).load().slice([1], [38]));
        });
      },
    );
    expect(buffers(alone)).toBe(0);
    const numbers = Array.from({ length: 160 }, (_, index) => index);
    const { findings, results } = emulateKernel(alone, { x: fromNumbers(f32, [4, 40], numbers) });
    expect(findings).toEqual([]);
    expect([...toNumbers(results["o"] ?? expect.fail())]).toEqual(
      numbers.filter((number) => number % 40 >= 1 && number % 40 < 39),
    );
  });

  test("is made inside loops, branches and the code of one thread, whose buffers are told apart", () => {
    const nested = kernel(
      {
        name: "nested",
        threads: ["first", "second"],
        inputs: { x: tensor(f32, [256]) },
        outputs: { a: tensor(f32, [256]), b: tensor(f32, [256]) },
      },
      ({ x, a, b, first, second }) => {
        const { tile: rollOnce } = roll([256], 0, 1);
        first(() => {
          a.store(loop({ to: 5, carry: x.load() }, (_, tile) => rollOnce(tile)));
        });
        second(() => {
          const tile = x.load();
          const one = x.at(1).loadScalar();
          b.store(
            when(
              one.gt(0),
              () => rollOnce(tile),
              () => tile,
            ),
          );
        });
      },
    );
    const numbers = Array.from({ length: 256 }, (_, index) => index);
    const { findings, results } = emulateKernel(nested, { x: fromNumbers(f32, [256], numbers) });
    expect(findings).toEqual([]);
    const rolledBy = (by: number) => numbers.map((number) => (number + by) % 256);
    expect([...toNumbers(results["a"] ?? expect.fail())]).toEqual(rolledBy(5));
    expect([...toNumbers(results["b"] ?? expect.fail())]).toEqual(rolledBy(1));
  });
});
