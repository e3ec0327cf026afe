/** The fastest configurations by the model, held against asking it for all of them. */
import { expect, test } from "vitest";
import { bf16, f32, f64, f8e4m3fn, i4, i8 } from "../../../formats/dtype.ts";
import { tensor, dim } from "../../../lang/index.ts";
import { captureLocation } from "../../../support/location.ts";
import { Random } from "../../../support/random.ts";
import { targets } from "../../../targets/target.ts";
import { persistentCandidates } from "./persistent-candidates.ts";
import { plainConfiguration } from "./select-configuration.ts";
import type { ProductSizes, TiledConfiguration } from "../configuration.ts";
import { fastestOf } from "./prune-candidates.ts";
import { problemOf } from "../matmul.ts";
import { tiledEstimates, tiledModel } from "../cost/model.ts";
import type { MatmulProblem } from "../problem.ts";
import { quantized } from "../weights/quantized.ts";
import { sparse24 } from "../weights/sparse-weights.ts";

const seed = 1;
const count = 16;
const [m, n, k] = [dim("m"), dim("n"), dim("k")];
const byColumns = { strides: [1, k] };

const specs: readonly Parameters<typeof problemOf>[1][] = [
  { a: bf16, b: bf16 },
  { a: bf16, b: tensor(bf16, [k, n], byColumns) },
  { a: tensor(bf16, [m, k], { strides: [1, m] }), b: bf16, out: f32 },
  { a: tensor(bf16, [dim("batch"), m, k]), b: bf16 },
  { a: bf16, b: bf16, epilogue: ({ sums }: { sums: unknown }) => sums },
  { a: f32, b: f32, precision: "tf32" },
  { a: f32, b: f32, precision: "tf32x3" },
  { a: f32, b: f32, precision: "bf16x6" },
  { a: f64, b: f64 },
  { a: f8e4m3fn, b: f8e4m3fn, accumulation: "promoted" },
  { a: i8, b: tensor(i8, [k, n], byColumns) },
  { a: bf16, b: quantized(i4, [k, n], { groupSize: 128, scale: bf16 }) },
  { a: bf16, b: quantized(i8, [k, n], { groupSize: 128, scale: bf16 }) },
  { a: bf16, b: sparse24(bf16, [k, n]) },
];
const problems = specs.map((spec) => problemOf("matmul", spec, captureLocation()));

/** Sizes from 1 to 16384, few rows among them, of which some are multiples of what is copied at once. */
function drawSizes(random: Random, problem: MatmulProblem): ProductSizes {
  const aligned = random.pick([1, 8, 64]);
  const size = (most: number): number =>
    Math.min(most, aligned * Math.ceil(most ** random.uniform() / aligned));
  return {
    m: size(random.pick([64, 16384])),
    n: size(16384),
    k: size(16384),
    batch: problem.sizes.batch === undefined ? 1 : 1 + random.below(20),
  };
}

/** Candidates of random products, some on a GPU of few processors. */
function* randomCandidates(products: number) {
  const random = new Random(seed);
  for (let drawn = 0; drawn < products; drawn += 1) {
    const problem = random.pick(problems);
    const sizes = drawSizes(random, problem);
    const processors = random.pick([132, 132, 114, 8, 1]);
    const target = { ...targets.sm_90a, processors };
    const estimate = tiledEstimates(problem, sizes, target);
    const model = tiledModel(problem, sizes, target);
    if (estimate === undefined || model === undefined) throw new Error("the model has no rates");
    const candidates: readonly TiledConfiguration[] = [
      ...persistentCandidates(problem, sizes, target, "timed"),
      plainConfiguration(problem, sizes, target),
    ];
    const text = `${problem.a.dtype.name} by ${problem.b.dtype.name}, ${JSON.stringify(sizes)}, ${processors} processors, seed ${seed}`;
    yield { candidates, estimate, model, text };
  }
}

test("the fastest are those that come first of all in the order of what they take", () => {
  for (const { candidates, estimate, model, text } of randomCandidates(300)) {
    const all = candidates
      .map((configuration) => ({ configuration, seconds: model(configuration) }))
      .toSorted((left, right) => left.seconds - right.seconds);
    const found = fastestOf(candidates, estimate, count).map(({ configuration, seconds }) => ({
      configuration,
      seconds,
    }));
    expect(found, text).toEqual(all.slice(0, count));
  }
});

test("nothing takes less than it takes at least, and most are known to be slow by that", () => {
  let [all, asked] = [0, 0];
  for (const { candidates, estimate, text } of randomCandidates(300)) {
    for (const each of candidates) {
      const { least, seconds } = estimate(each);
      expect(least * (1 - 1e-9), text).toBeLessThanOrEqual(seconds());
    }
    const counting: typeof estimate = (configuration) => {
      const { least, seconds } = estimate(configuration);
      const counted = (): number => {
        asked += 1;
        return seconds();
      };
      return { least, seconds: counted };
    };
    fastestOf(candidates, counting, count);
    all += candidates.length;
  }
  expect(asked / all).toBeLessThan(0.5);
});

test("of those that take as long the first ones come first", () => {
  const [plain] = [...randomCandidates(1)].flatMap(({ candidates }) => candidates.slice(-1));
  if (plain?.kernel !== "plain") throw new Error("the last candidate is the plain kernel");
  const splits = [1, 2, 3, 4, 5, 6].map((splitK) => ({ ...plain, splitK }));
  const seconds = [3, 1, 2, 1, 1, 2];
  const estimate = (each: TiledConfiguration) => {
    const own = seconds[each.kernel === "plain" ? each.splitK - 1 : 0] ?? NaN;
    return { least: own / 2, seconds: () => own };
  };
  const found = fastestOf(splits, estimate, 4).map(({ place }) => place + 1);
  expect(found).toEqual([2, 4, 5, 3]);
});
