/**
 * Fits what corrects the model of products to the times of test/support/products/h200-random.jsonl, and writes it into
 * src/kernels/matmul/cost/learned/h200-trees.ts. A tenth of the shapes is left out, and told of.
 *
 *   npm run fit:products                    fits, tells of the shapes left out, and writes
 *   npm run fit:products -- --folds 5       tells of all shapes instead, each of them left out of one of five fits
 *   npm run fit:products -- --trees 200     other settings: --trees, --leaves, --rate
 */
import { writeFileSync } from "node:fs";
import {
  isHeldOut,
  readTimedProducts,
  timedConfiguration,
} from "../../test/support/products/timed-products.ts";
import type { TimedProduct } from "../../test/support/products/timed-products.ts";
import { bf16 } from "../../src/formats/dtype.ts";
import { gemvSeconds } from "../../src/kernels/matmul/skinny/gemv-candidates.ts";
import { numbersOf } from "../../src/kernels/matmul/cost/learned/features.ts";
import { readTrees, sumOf } from "../../src/kernels/matmul/cost/learned/trees.ts";
import type { Trees } from "../../src/kernels/matmul/cost/learned/trees.ts";
import { problemOf } from "../../src/kernels/matmul/matmul.ts";
import { tiledModel } from "../../src/kernels/matmul/cost/model.ts";
import { recipeOf } from "../../src/kernels/matmul/f32-emulation.ts";
import { tensor, dim } from "../../src/lang/index.ts";
import { captureLocation } from "../../src/support/location.ts";
import { targets } from "../../src/targets/target.ts";
import { numberOption, scriptOptions } from "../arguments.ts";
import { boosted } from "./boosting.ts";
import type { Example } from "./boosting.ts";

const settings = scriptOptions(import.meta.url, {
  folds: { type: "string" },
  trees: { type: "string", default: "120" },
  leaves: { type: "string", default: "160" },
  rate: { type: "string", default: "0.15" },
});
const boosting = {
  trees: numberOption("trees", settings.trees),
  leaves: numberOption("leaves", settings.leaves),
  rate: numberOption("rate", settings.rate, { from: 0, whole: false }),
  ...{ examples: 20, calm: 1, seed: 1, drawn: { groups: 0.8, numbers: 0.5 } },
};

const target = targets.sm_90a;
const [k, n] = [dim("k"), dim("n")];
const problems = {
  kn: problemOf("matmul", { a: bf16, b: bf16 }, captureLocation()),
  nk: problemOf(
    "matmul",
    { a: bf16, b: tensor(bf16, [k, n], { strides: [1, k] }) },
    captureLocation(),
  ),
};

interface TimedExample extends Example {
  readonly us: number;
  /** Logarithm of what the model gives. */
  readonly model: number;
}

/** How much slower than a shape's fastest a configuration is, in logarithms, that matters a third as much. */
const muchSlower = 0.3;

/** The configurations of a shape that were timed. */
function examplesOf(
  { sizes: [m, across, along], b, us }: TimedProduct,
  group: number,
): readonly TimedExample[] {
  const problem = problems[b];
  const sizes = { m, n: across, k: along, batch: 1 };
  const recipe = recipeOf(problem);
  const model = tiledModel(problem, sizes, target);
  if (recipe === undefined || model === undefined) throw new Error("the model has rates for bf16");
  const numbers = numbersOf(problem, recipe, sizes, target);
  const best = Math.min(...Object.values(us));
  return Object.entries(us).flatMap(([text, time]) => {
    const configuration = timedConfiguration(text);
    if (configuration.kernel === "skinny") return [];
    const seconds =
      configuration.kernel === "gemv"
        ? gemvSeconds(problem, sizes, configuration)
        : model(configuration);
    return {
      group,
      numbers: numbers(configuration, seconds),
      value: Math.log(time / (1e6 * seconds)),
      weight: Math.exp(-Math.log(time / best) / muchSlower),
      us: time,
      model: Math.log(1e6 * seconds),
    };
  });
}

/** The fastest time of each shape, as a part of that of what is thought fastest. */
function reached(
  shapes: readonly (readonly TimedExample[])[],
  trees: Trees | undefined,
): readonly number[] {
  const read = trees && readTrees(trees);
  return shapes.flatMap((examples) => {
    const thought = examples.map((each) => each.model + (read ? sumOf(read, each.numbers) : 0));
    const chosen = examples[thought.indexOf(Math.min(...thought))];
    return chosen === undefined ? [] : [Math.min(...examples.map(({ us }) => us)) / chosen.us];
  });
}

function tell(what: string, ratios: readonly number[]): void {
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
  const near = ratios.filter((ratio) => ratio >= 0.95).length;
  process.stdout.write(
    `${what}: ${near} of ${ratios.length} at 0.95 or more (${((100 * near) / ratios.length).toFixed(1)} %), worst ${Math.min(...ratios).toFixed(3)}, mean ${mean.toFixed(4)}\n`,
  );
}

/** Texts as lines of an array. */
function linesOf(texts: readonly string[]): string {
  return texts.map((text) => `  "${text}",\n`).join("");
}

/** The file that has the trees. */
function fileOf({ thresholds, text }: Trees): string {
  return `/**
 * What was learned of times on an H200, written by \`npm run fit:products\`: the thresholds of each of the numbers in \`numbers.ts\`, and trees over
 * them as text (\`trees.ts\`).
 */

export const thresholds: readonly string[] = [
${linesOf(thresholds.map((each) => each.join(" ")))}];

export const text = [
${linesOf(text.match(/.{1,240}/gu) ?? [])}].join("");
`;
}

const products = readTimedProducts();
const shapes = products.map(examplesOf);
process.stdout.write(`${shapes.length} shapes, ${shapes.flat().length} times\n`);
if (settings.folds === undefined) {
  const own = shapes.filter((_, index) => !isHeldOut(products[index] as TimedProduct));
  const others = shapes.filter((_, index) => isHeldOut(products[index] as TimedProduct));
  const trees = boosted(own.flat(), boosting);
  tell("model, others", reached(others, undefined));
  tell("corrected, own", reached(own, trees));
  tell("corrected, others", reached(others, trees));
  writeFileSync(
    new URL("../../src/kernels/matmul/cost/learned/h200-trees.ts", import.meta.url),
    fileOf(trees),
  );
} else {
  const folds = numberOption("folds", settings.folds, { from: 2 });
  const ratios = Array.from({ length: folds }, (_, fold) => {
    const trees = boosted(shapes.filter((_own, index) => index % folds !== fold).flat(), boosting);
    return reached(
      shapes.filter((_other, index) => index % folds === fold),
      trees,
    );
  });
  tell("model", reached(shapes, undefined));
  tell("corrected", ratios.flat());
}
