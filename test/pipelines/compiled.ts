/**
 * Products written as plain loops over global memory, which the compiler pipelines: every way in which such a loop may
 * be written, and what it must give. Elements are small integers, so that sums are exact in any order.
 */
import {
  tensor,
  bf16,
  block,
  cdiv,
  dim,
  dot,
  f32,
  fromNumbers,
  i32,
  kernel,
  loop,
} from "tilewright";
import { processors, zeros } from "tilewright";
import type { KernelDefinition } from "tilewright";
import type { Expected } from "./plain.ts";

const [m, n] = [dim("m"), dim("n", { multipleOf: 8 })];
const k = dim("k", { multipleOf: 8 });
const [rows, columns, deep] = [64, 32, 16];

const operands = {
  inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
  outputs: { c: tensor(f32, [m, n]) },
};
const tiled = { grid: { i: cdiv(m, rows), j: cdiv(n, columns) }, ...operands };

export interface CompiledCase {
  readonly definition: KernelDefinition;
  readonly expected: Expected;
  readonly dimensions?: { readonly [name: string]: number };
  /** How many sums stay in flight where there is wgmma. */
  readonly products: number;
  /** For how many steps there is room on sm_90a. */
  readonly depth?: number;
}

const numbers = (count: number, seed: number): number[] =>
  Array.from({ length: count }, (_, place) => ((place * 7 + seed) % 9) - 4);

interface Sizes {
  readonly height?: number;
  readonly width?: number;
  readonly depth?: number;
  /** Steps of 16 that are summed: from, to, by. */
  readonly steps?: readonly [number, number, number];
  /** b is given as [n, k]. */
  readonly transposed?: boolean;
  readonly results?: (sum: number) => { readonly [name: string]: number };
}

function expectation({
  height = 40,
  width = 24,
  depth = 88,
  steps = [0, Infinity, 1],
  transposed = false,
  results = (c) => ({ c }),
}: Sizes = {}): Expected {
  const [a, b] = [numbers(height * depth, 1), numbers(width * depth, 2)];
  const sums = Array.from({ length: height * width }, (_, place) => {
    const [row, column] = [Math.floor(place / width), place % width];
    let sum = 0;
    for (let at = 0; at < depth; at += 1) {
      const step = Math.floor(at / deep);
      if (step < steps[0] || step >= steps[1] || (step - steps[0]) % steps[2] !== 0) continue;
      const right = transposed ? b[column * depth + at] : b[at * width + column];
      sum += (a[row * depth + at] ?? 0) * (right ?? 0);
    }
    return sum;
  });
  const names = Object.keys(results(0));
  return {
    inputs: {
      a: fromNumbers(bf16, [height, depth], a),
      b: fromNumbers(bf16, transposed ? [width, depth] : [depth, width], b),
    },
    results: Object.fromEntries(
      names.map((name) => [name, sums.map((sum) => results(sum)[name] ?? NaN)]),
    ),
  };
}

/** The loop that a newcomer writes. */
const plain = (
  options: { readonly depth?: number; readonly from?: number } = {},
): KernelDefinition =>
  kernel({ name: "plain", ...tiled }, ({ i, j, a, b, c }) => {
    const steps = {
      to: cdiv(k, deep),
      carry: zeros(f32, [rows, columns]),
      ...options,
    };
    const sum = loop(steps, (step, accumulator) => {
      const left = a.at(block(i, rows), block(step, deep)).load();
      const right = b.at(block(step, deep), block(j, columns)).load();
      return dot(left, right, { accumulator });
    });
    c.at(block(i, rows), block(j, columns)).store(sum);
  });

const transposed = kernel(
  {
    name: "transposed",
    ...tiled,
    inputs: { ...operands.inputs, b: tensor(bf16, [n, k]) },
  },
  ({ i, j, a, b, c }) => {
    const carry = zeros(f32, [rows, columns]);
    const sum = loop({ to: cdiv(k, deep), carry }, (step, accumulator) => {
      const left = a.at(block(i, rows), block(step, deep)).load();
      const right = b.at(block(j, columns), block(step, deep)).transpose().load();
      return dot(left, right, { accumulator });
    });
    c.at(block(i, rows), block(j, columns)).store(sum);
  },
);

/** Starts behind 0 and skips steps. */
const strided = kernel({ name: "strided", ...tiled }, ({ i, j, a, b, c }) => {
  const bounds = {
    from: 1,
    to: 5,
    step: 2,
    carry: zeros(f32, [rows, columns]),
  };
  const sum = loop(bounds, (step, accumulator) => {
    const left = a.at(block(i, rows), block(step, deep)).load();
    const right = b.at(block(step, deep), block(j, columns)).load();
    return dot(left, right, { accumulator });
  });
  c.at(block(i, rows), block(j, columns)).store(sum);
});

/** The left factor passes through registers; beside the sum a count is carried. */
const computed = kernel({ name: "computed", ...tiled }, ({ i, j, a, b, c }) => {
  const carry = { sum: zeros(f32, [rows, columns]), steps: i.mul(0) };
  const end = loop({ to: cdiv(k, deep), carry }, (step, { sum, steps }) => {
    const left = a.at(block(i, rows), block(step, deep)).load().mul(2);
    const right = b.at(block(step, deep), block(j, columns)).load();
    return { sum: dot(left, right, { accumulator: sum }), steps: steps.add(1) };
  });
  c.at(block(i, rows), block(j, columns)).store(end.sum.add(end.steps.cast(f32)));
});

/** Two sums of the same blocks. */
const twofold = kernel(
  {
    name: "twofold",
    ...tiled,
    outputs: { ...operands.outputs, d: tensor(f32, [m, n]) },
  },
  ({ i, j, a, b, c, d }) => {
    const zero = zeros(f32, [rows, columns]);
    const end = loop({ to: cdiv(k, deep), carry: { x: zero, y: zero } }, (step, { x, y }) => {
      const at = [block(i, rows), block(step, deep)] as const;
      const right = b.at(block(step, deep), block(j, columns));
      return {
        x: dot(a.at(...at).load(), right.load(), { accumulator: x }),
        y: dot(
          a
            .at(...at)
            .load()
            .mul(2),
          right.load(),
          { accumulator: y },
        ),
      };
    });
    c.at(block(i, rows), block(j, columns)).store(end.x);
    d.at(block(i, rows), block(j, columns)).store(end.y);
  },
);

/** The sum is touched in every step, so that its products cannot stay in flight. */
const touched = kernel({ name: "touched", ...tiled }, ({ i, j, a, b, c }) => {
  const carry = zeros(f32, [rows, columns]);
  const sum = loop({ to: cdiv(k, deep), carry }, (step, accumulator) => {
    const left = a.at(block(i, rows), block(step, deep)).load();
    const right = b.at(block(step, deep), block(j, columns)).load();
    return dot(left, right).add(accumulator).maximum(-1e6);
  });
  c.at(block(i, rows), block(j, columns)).store(sum);
});

/** Another carry reads the sum. */
const watched = kernel(
  {
    name: "watched",
    ...tiled,
    outputs: { ...operands.outputs, d: tensor(f32, [m, n]) },
  },
  ({ i, j, a, b, c, d }) => {
    const zero = zeros(f32, [rows, columns]);
    const end = loop({ to: cdiv(k, deep), carry: { sum: zero, seen: zero } }, (step, { sum }) => {
      const left = a.at(block(i, rows), block(step, deep)).load();
      const right = b.at(block(step, deep), block(j, columns)).load();
      return {
        sum: dot(left, right, { accumulator: sum }),
        seen: sum.mul(0).add(step.cast(f32)),
      };
    });
    c.at(block(i, rows), block(j, columns)).store(end.sum);
    d.at(block(i, rows), block(j, columns)).store(end.seen);
  },
);

/** A loop of products within a loop over tiles. */
const persistent = kernel(
  { name: "persistent", grid: { worker: processors }, ...operands },
  ({ worker, a, b, c }) => {
    loop({ from: worker, to: cdiv(m, rows), step: processors }, (i) => {
      loop(cdiv(n, columns), (j) => {
        const carry = zeros(f32, [rows, columns]);
        const sum = loop({ to: cdiv(k, deep), carry }, (step, accumulator) => {
          const left = a.at(block(i, rows), block(step, deep)).load();
          const right = b.at(block(step, deep), block(j, columns)).load();
          return dot(left, right, { accumulator });
        });
        c.at(block(i, rows), block(j, columns)).store(sum);
      });
    });
  },
);

const [height, width, depth] = [40, 24, 88];
const dimensions = { m: height, n: width, k: depth };
const usual = { expected: expectation(), dimensions, products: 1 };

export const compiledCases: { readonly [name: string]: CompiledCase } = {
  "as many steps as fit": { definition: plain(), ...usual, depth: 4 },
  "room for 2 steps": { definition: plain({ depth: 2 }), ...usual, depth: 2 },
  "room for 3 steps": { definition: plain({ depth: 3 }), ...usual, depth: 3 },
  "more room than steps": {
    definition: plain({ depth: 8 }),
    ...usual,
    depth: 8,
  },
  "no step": {
    ...usual,
    definition: plain({ from: 9 }),
    expected: expectation({ steps: [9, 9, 1] }),
  },
  "one step": {
    definition: plain(),
    expected: expectation({ depth: 8 }),
    dimensions: { ...dimensions, k: 8 },
    products: 1,
  },
  "a transposed factor": {
    ...usual,
    definition: transposed,
    expected: expectation({ transposed: true }),
  },
  "steps from 1 by 2": {
    ...usual,
    definition: strided,
    expected: expectation({ steps: [1, 5, 2] }),
  },
  "a factor in registers": {
    ...usual,
    definition: computed,
    expected: expectation({ results: (sum) => ({ c: 2 * sum + 6 }) }),
  },
  "two sums": {
    ...usual,
    definition: twofold,
    expected: expectation({ results: (sum) => ({ c: sum, d: 2 * sum }) }),
    products: 2,
  },
  "a sum that steps read": {
    ...usual,
    definition: watched,
    expected: expectation({ results: (sum) => ({ c: sum, d: 5 }) }),
    products: 0,
  },
  "a sum that steps touch": { ...usual, definition: touched, products: 0 },
  "a loop over tiles": {
    ...usual,
    definition: persistent,
    dimensions: { ...dimensions, processors: 1 },
  },
};

/** Loops that stay as they are, and why. */
export const plainCases: { readonly [why: string]: KernelDefinition } = {
  "it says so": plain({ depth: 1 }),
  "rows are not known to be aligned": kernel(
    {
      name: "odd",
      ...tiled,
      inputs: { a: tensor(bf16, [m, dim("k")]), b: tensor(bf16, [dim("k"), 36]) },
    },
    ({ a, b, c }) => {
      const carry = zeros(f32, [rows, columns]);
      const sum = loop({ to: cdiv(dim("k"), deep), carry }, (step, accumulator) => {
        const right = b.at(block(step, deep), block(0, columns)).load().mul(2);
        const left = a.at(block(0, rows), block(step, deep)).load();
        return dot(left, right.add(right), { accumulator });
      });
      c.at(block(0, rows), block(0, columns)).store(sum);
    },
  ),
  "it stores in every step": kernel({ name: "storing", ...tiled }, ({ i, j, a, b, c }) => {
    const carry = zeros(f32, [rows, columns]);
    loop({ to: cdiv(k, deep), carry }, (step, accumulator) => {
      const left = a.at(block(i, rows), block(step, deep)).load();
      const sum = dot(left, b.at(block(step, deep), block(j, columns)).load(), { accumulator });
      c.at(block(i, rows), block(j, columns)).store(sum);
      return sum;
    });
  }),
  "what it reads may be written": kernel(
    {
      name: "written",
      grid: { i: 1 },
      inouts: { a: tensor(bf16, [64, 64]) },
      outputs: { c: tensor(f32, [64, 64]) },
    },
    ({ a, c }) => {
      const carry = zeros(f32, [64, 64]);
      const sum = loop({ to: 4, carry }, (step, accumulator) =>
        dot(a.at(block(0, 64), block(step, 16)).load(), a.at(block(step, 16)).load(), {
          accumulator,
        }),
      );
      c.store(sum);
    },
  ),
  "a step decides what the next one reads": kernel(
    {
      name: "chased",
      ...tiled,
      inputs: { ...operands.inputs, next: tensor(i32, [16]) },
    },
    ({ a, b, c, next }) => {
      const carry = {
        sum: zeros(f32, [rows, columns]),
        at: next.at(0).loadScalar(),
      };
      const { sum } = loop({ to: cdiv(k, deep), carry }, (step, { sum: accumulator, at }) => {
        const here = block(at.add(step), deep);
        const left = a.at(block(0, rows), here).load();
        const right = b.at(here, block(0, columns)).load();
        return {
          sum: dot(left, right, { accumulator }),
          at: next.at(at).loadScalar(),
        };
      });
      c.at(block(0, rows), block(0, columns)).store(sum);
    },
  ),
  "one step of it is all there is": kernel({ name: "single", ...tiled }, ({ a, b, c }) => {
    const carry = zeros(f32, [rows, columns]);
    const sum = loop({ to: 1, carry }, (step, accumulator) => {
      const left = a.at(block(0, rows), block(step, deep)).load();
      return dot(left, b.at(block(step, deep), block(0, columns)).load(), {
        accumulator,
      });
    });
    c.at(block(0, rows), block(0, columns)).store(sum);
  }),
};
