/**
 * Models as somebody would write them: convolutions with batch norm, recurrent cells, a selective scan, an autoencoder that samples,
 * experts, a search by beams. The slope of each loss along a random direction is held against central differences in f64,
 * and what runs on the simulator against the evaluator.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../src/device/device.ts";
import { disagreement, evaluate, tensorOfArray } from "../../src/graph/evaluate/index.ts";
import type { Tensor } from "../../src/graph/evaluate/index.ts";
import { f32, fromNumbers } from "tilewright";
import { isTensor, sizeOf } from "../../src/graph/ops/index.ts";
import { compilePlan } from "../../src/graph/plan/compile.ts";
import { Program } from "../../src/graph/plan/program.ts";
import { parseGraph } from "../../src/graph/text/index.ts";
import { open } from "../../src/runtime/open.ts";
import { Random } from "../../src/support/random.ts";
import {
  add,
  addAt,
  all,
  argsort,
  array,
  associativeScan,
  astype,
  bitwiseOr,
  clip,
  cumsum,
  div,
  dynamicUpdateSlice,
  einsum,
  equal,
  exp,
  expandDims,
  full,
  grad,
  iota,
  jvp,
  less,
  log1p,
  log,
  logicalNot,
  lower,
  mapTree,
  matmul,
  mean,
  mul,
  neg,
  nn,
  oneHot,
  random,
  rem,
  reshape,
  scan,
  sigmoid,
  slice,
  softmax,
  sub,
  sum,
  take,
  takeAlongAxis,
  tanh,
  topK,
  vmap,
  whileLoop,
  where,
  zeros,
  any,
  bitwiseAnd,
} from "../../src/arrays/index.ts";
import type { NDArray } from "../../src/arrays/index.ts";

type F64 = NDArray<"f64">;
type F32 = NDArray<"f32">;
type Tree = { readonly [name: string]: F64 };

const seed = 17;
const draws = new Random(seed);
const normal = (shape: readonly number[], scale = 0.4): F64 => {
  const count = shape.reduce((product, extent) => product * extent, 1);
  return reshape(
    array(
      Array.from({ length: count }, () => scale * (2 * draws.uniform() - 1)),
      "f64",
    ),
    shape,
  );
};

const images = normal([2, 8, 8, 3], 1);
const labels = array([1, 2], "i32");

function residual(p: Tree): F64 {
  const { stem = images, deep = images, wide = images, skip = images, out = images } = p;
  const { scale = images, offset = images } = p;
  const [first] = nn.batchNorm(
    nn.conv(images, stem, { strides: 2, padding: "same" }),
    scale,
    offset,
  );
  const [second] = nn.batchNorm(
    nn.conv(nn.silu(first), deep, { padding: "same", dilation: 2, groups: 2 }),
    scale,
    offset,
  );
  const joined = add(nn.conv(nn.silu(second), wide), nn.conv(images, skip, { strides: 2 }));
  const pooled = nn.avgPool(joined, [2, 2], { padding: "same" });
  return nn.crossEntropy(matmul(mean(pooled, { axis: [1, 2] }), out), labels);
}

const sequence = normal([6, 3, 4], 1);

function recurrent({ wx = sequence, wh = sequence, b = sequence }: Tree): F64 {
  const start = { h: zeros([3, 5], "f64"), c: zeros([3, 5], "f64") };
  const step = (state: typeof start, x: F64) => {
    const gates = add(add(matmul(x, wx), matmul(state.h, wh)), b);
    const part = (i: number): F64 => slice(gates, [null, [5 * i, 5 * i + 5]]);
    const c = add(mul(sigmoid(add(part(1), 1)), state.c), mul(sigmoid(part(0)), tanh(part(2))));
    const h = mul(sigmoid(part(3)), tanh(c));
    return [{ h, c }, h] as const;
  };
  const [last, outputs] = scan(step, start, sequence);
  return add(sum(mul(outputs, outputs)), mean(last.c));
}

const tokens = normal([2, 7, 4], 1);

/** A state space whose decay and input depend on the token, by an associative scan along time. */
function selective({ wd = tokens, wb = tokens, wc = tokens, a = tokens, k = tokens }: Tree): F64 {
  const steps = nn.softplus(matmul(tokens, wd));
  const decay = exp(neg(mul(expandDims(steps, { axis: -1 }), exp(a))));
  const input = mul(
    mul(expandDims(steps, { axis: -1 }), expandDims(matmul(tokens, wb), { axis: 2 })),
    expandDims(tokens, { axis: -1 }),
  );
  const states = associativeScan(
    (left: readonly [F64, F64], right: readonly [F64, F64]) =>
      [mul(left[0], right[0]), add(mul(left[1], right[0]), right[1])] as const,
    [decay, input] as readonly [F64, F64],
    { axis: 1 },
  )[1];
  const mixed = sum(mul(states, expandDims(matmul(tokens, wc), { axis: 2 })), { axis: -1 });
  const smoothed = nn.conv(mixed, k, { padding: [[2, 0]], groups: 4 });
  return sum(mul(nn.silu(smoothed), tokens));
}

const pixels = sigmoid(normal([3, 8], 3));
const noise = astype(random.normal(random.key(7), [3, 2]), "f64");

function autoencoder({ e = pixels, m = pixels, v = pixels, d = pixels }: Tree): F64 {
  const hidden = tanh(matmul(pixels, e));
  const [centre, spread] = [matmul(hidden, m), matmul(hidden, v)];
  const kept = random.bernoulli(random.key(8), 0.8, [3, 2]);
  const sample = add(centre, mul(exp(mul(spread, 0.5)), noise));
  const output = clip(sigmoid(matmul(where(kept, div(sample, 0.8), 0), d)), 1e-6, 1 - 1e-6);
  const match = add(mul(pixels, log(output)), mul(sub(1, pixels), log1p(neg(output))));
  const distance = sub(add(spread, 1), add(mul(centre, centre), exp(spread)));
  return neg(mean(add(sum(match, { axis: 1 }), mul(sum(distance, { axis: 1 }), 0.5))));
}

const rows = normal([6, 4], 1);

/** Two experts a row, with room for three rows each: what does not fit is left out. */
function experts({ route = rows, w1 = rows, w2 = rows }: Tree): F64 {
  const gates = softmax(matmul(rows, route));
  const [weights, chosen] = topK(gates, 2);
  const hot = oneHot(reshape(chosen, [12]), 3, "f64");
  const place = sub(cumsum(hot, { axis: 0 }), 1);
  const fits = mul(hot, astype(less(place, 3), "f64"));
  const slot = mul(
    oneHot(astype(sum(mul(place, hot), { axis: 1 }), "i32"), 3, "f64"),
    sum(fits, { axis: 1, keepDims: true }),
  );
  const dispatch = mul(expandDims(fits, { axis: 2 }), expandDims(slot, { axis: 1 }));
  const repeated = take(rows, array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5], "i32"));
  const inputs = einsum("tec,td->ecd", dispatch, repeated);
  const hidden = nn.gelu(einsum("ecd,edf->ecf", inputs, w1));
  const outputs = einsum("ecf,efd->ecd", hidden, w2);
  const back = mul(einsum("tec,ecd->td", dispatch, outputs), reshape(weights, [12, 1]));
  const together = addAt(
    zeros([6, 4], "f64"),
    array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5], "i32"),
    back,
  );
  return add(
    sum(mul(together, together)),
    sum(mul(mean(gates, { axis: 0 }), mean(hot, { axis: 0 }))),
  );
}

const models: { readonly [name: string]: readonly [(p: Tree) => F64, Tree] } = {
  "a residual block": [
    residual,
    {
      stem: normal([3, 3, 3, 4]),
      deep: normal([3, 3, 2, 4]),
      wide: normal([1, 1, 4, 6]),
      skip: normal([1, 1, 3, 6]),
      out: normal([6, 5]),
      scale: add(normal([4]), 1),
      offset: normal([4]),
    },
  ],
  "a recurrent cell": [recurrent, { wx: normal([4, 20]), wh: normal([5, 20]), b: normal([20]) }],
  "a selective scan": [
    selective,
    {
      wd: normal([4, 4]),
      wb: normal([4, 3]),
      wc: normal([4, 3]),
      a: normal([4, 3]),
      k: normal([3, 1, 4]),
    },
  ],
  "an autoencoder that samples": [
    autoencoder,
    { e: normal([8, 5]), m: normal([5, 2]), v: normal([5, 2]), d: normal([2, 8]) },
  ],
  experts: [experts, { route: normal([4, 3], 1), w1: normal([3, 4, 5]), w2: normal([3, 5, 4]) }],
};

async function numberOf(x: F64): Promise<number> {
  return (await x.values()) as unknown as number;
}

let device: Device;
beforeAll(async () => {
  device = await open("simulator", { onNotes: () => undefined });
});
afterAll(() => {
  device.dispose();
});

describe(`slopes of losses, seed ${seed}`, () => {
  test.each(Object.entries(models))("%s", async (_, [loss, parameters]) => {
    const direction = mapTree(parameters, (leaf) => normal(leaf.shape, 1));
    const moved = (step: number): Tree =>
      mapTree(parameters, (leaf, i) =>
        add(leaf as F64, mul(Object.values(direction)[i] as F64, step)),
      );
    const h = 1e-5;
    const difference =
      ((await numberOf(loss(moved(h)))) - (await numberOf(loss(moved(-h))))) / (2 * h);
    const slopes = grad(loss)(parameters) as unknown as Tree;
    const backward = Object.entries(slopes).map(([name, slope]) =>
      sum(mul(slope, direction[name] as F64)),
    );
    const back = await numberOf(backward.reduce((total, each) => add(total, each)));
    const [, forward] = jvp(loss, [parameters], [direction]);
    expect(back).toBeCloseTo(difference, 5);
    expect(await numberOf(forward as F64)).toBeCloseTo(back, 9);
  });
});

/** A function's results on the simulator against the evaluator's, by the rule for results of other compilers. */
async function expectAgreement(f: (x: F32) => unknown, shape: readonly number[]): Promise<void> {
  const [module] = parseGraph(lower(f, zeros(shape)));
  if (module === undefined) throw new Error("the function is a program");
  // What the function uses besides its argument is a parameter too.
  const inputs = (module.functions.get("main")?.body.parameters ?? []).map(({ type }) => {
    if (!isTensor(type)) throw new Error("functions are of arrays");
    const numbers = Float32Array.from(
      { length: sizeOf(type.shape) },
      () => 2 * draws.uniform() - 1,
    );
    return tensorOfArray(fromNumbers(f32, type.shape, numbers));
  });
  const program = await Program.load(device, compilePlan(module, "main"));
  try {
    const found = await program.run(inputs);
    const ours = evaluate(module, "main", inputs);
    const exact = evaluate(module, "main", inputs, { widened: true });
    for (const [i, each] of ours.entries())
      expect(disagreement(found[i] as Tensor, each as Tensor, exact[i] as Tensor)).toBeUndefined();
  } finally {
    program.dispose();
  }
}

const beams = 3;
const words = 7;
const steps = 4;

/** Keeps the likeliest beginnings of a text while one of them is not at its end, word 0. */
function search(table: F32): unknown {
  const start = {
    step: zeros([], "i32"),
    texts: full([beams, steps + 1], 1, "i32"),
    scores: array([0, -1e9, -1e9]),
    ends: less(zeros([beams]), 0),
  };
  const found = whileLoop(
    (state: typeof start) => bitwiseAnd(less(state.step, steps), logicalNot(all(state.ends))),
    (state: typeof start) => {
      const place = add(zeros([beams, 1], "i32"), state.step);
      const last = reshape(takeAlongAxis(state.texts, place, { axis: 1 }), [beams]);
      const likely = nn.logSoftmax(take(table, last));
      const onlyEnd = where(
        equal(iota([beams, words], "i32", { axis: 1 }), 0),
        zeros([beams, words]),
        -1e9,
      );
      const next = where(expandDims(state.ends, { axis: 1 }), onlyEnd, likely);
      const [scores, chosen] = topK(
        reshape(add(expandDims(state.scores, { axis: 1 }), next), [beams * words]),
        beams,
      );
      const from = div(chosen, words);
      const word = rem(chosen, words);
      const texts = dynamicUpdateSlice(take(state.texts, from), expandDims(word, { axis: 1 }), [
        0,
        add(state.step, 1),
      ]);
      const ends = bitwiseOr(equal(word, 0), take(state.ends, from));
      return { step: add(state.step, 1), texts, scores, ends };
    },
    start,
  );
  const order = argsort(found.scores, { descending: true });
  return [take(found.texts, order), take(found.scores, order), found.step, any(found.ends)];
}

/** Filters, extremes and sums over signals, without a Fourier transform. */
function signals(x: F32): unknown {
  const taps = reshape(array([0.25, 0.5, 0.25]), [3, 1, 1]);
  const filtered = nn.conv(expandDims(x, { axis: 2 }), taps, { padding: "same" });
  const envelope = nn.maxPool(mul(filtered, filtered), [4], { strides: 2 });
  const follow = scan(
    (state: F32, now: F32) => {
      const next = add(mul(state, 0.9), mul(now, 0.1));
      return [next, next] as const;
    },
    zeros([2]),
    reshape(slice(filtered, [null, null, [0, 1]]), [16, 2]),
  )[1];
  return [filtered, envelope, follow, cumsum(x, { axis: 1, reverse: true }), argsort(x)];
}

describe(`on the simulator, seed ${seed}`, () => {
  test("a search by beams", async () => {
    await expectAgreement(search, [words, words]);
  });
  test("signals", async () => {
    await expectAgreement(signals, [2, 16]);
  });
  test("a convolution's gradient, batched", async () => {
    const kernel = astype(normal([3, 3, 2, 4]), "f32");
    const f = (x: F32): F32 =>
      sum(tanh(nn.conv(reshape(x, [1, 5, 5, 2]), kernel, { strides: 2, padding: "same" })));
    await expectAgreement((x) => vmap(grad(f))(reshape(x, [2, 5, 5, 2])), [2, 50]);
  });
});
