/**
 * How long `matmul` takes to choose a configuration without a tuning file: 400 products of bf16 of random sizes, one after the other in a fresh process,
 * with b by rows and by columns in turn. Needs no GPU.
 *
 *   node dist/cli/main.js run bench/choices.ts
 */
import { bf16 } from "../src/formats/dtype.ts";
import { chooseConfiguration } from "../src/kernels/matmul/heuristics/all-configurations.ts";
import { problemOf } from "../src/kernels/matmul/matmul.ts";
import { tensor, dim } from "../src/lang/index.ts";
import { captureLocation } from "../src/support/location.ts";
import { Random } from "../src/support/random.ts";
import { targets } from "../src/targets/target.ts";

const [k, n] = [dim("k"), dim("n")];
const byColumns = tensor(bf16, [k, n], { strides: [1, k] });
const problems = [bf16, byColumns].map((b) =>
  problemOf("matmul", { a: bf16, b }, captureLocation()),
);
const random = new Random(1);

/** Sizes of all magnitudes alike, in whole units. */
function size(least: number, greatest: number, unit: number): number {
  const drawn = least * (greatest / least) ** random.uniform();
  return Math.max(unit, Math.round(drawn / unit) * unit);
}

const milliseconds = Array.from({ length: 400 }, (_, index) => {
  const sizes = { m: size(1, 8192, 1), n: size(64, 16384, 8), k: size(64, 16384, 8), batch: 1 };
  const problem = problems[index % problems.length];
  if (problem === undefined) throw new Error("there are two problems");
  const start = performance.now();
  chooseConfiguration(problem, sizes, targets.sm_90a);
  return performance.now() - start;
});

function printTimes(what: string, times: readonly number[]): void {
  const sorted = times.toSorted((left, right) => left - right);
  const at = (part: number): string =>
    (sorted[Math.floor(part * (sorted.length - 1))] ?? NaN).toFixed(2);
  process.stdout.write(`${what}: median ${at(0.5)} ms, nine in ten within ${at(0.9)} ms\n`);
}

printTimes("the first", milliseconds.slice(0, 1));
printTimes("the first 20", milliseconds.slice(0, 20));
printTimes("after 100", milliseconds.slice(100));
