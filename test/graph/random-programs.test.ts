/**
 * Random programs, with gradients and batches in any nesting, on a device against the evaluator. A few run here;
 * `PROGRAMS=2000 SEED=1 npx vitest run test/graph/random-programs.test.ts` runs many, and `DEVICE=emulator` or `gpu`
 * elsewhere.
 *
 * The rule allows a result four times the error that the evaluator has in f32. Where all terms of a sum cancel, as those of x and -x
 * do, that error is now and then next to nothing by chance, and so is what the rule adds, a part of the largest element: one program
 * in a thousand or more, such as those of seeds 1795 and 10440. A program that fails by it is judged again by the largest error of any element
 * among evaluations from inputs that differ in their last bit: how far f32 goes astray in it, chance aside.
 */
import { f32, fromNumbers } from "tilewright";
import { disagreement, evaluate, tensorOfArray } from "../../src/graph/evaluate/index.ts";
import type { Device } from "../../src/device/device.ts";
import type { Tensor } from "../../src/graph/evaluate/index.ts";
import { numbersOf } from "../../src/graph/evaluate/scalars.ts";
import { compilePlan } from "../../src/graph/plan/compile.ts";
import { Program } from "../../src/graph/plan/program.ts";
import { parseGraph } from "../../src/graph/text/index.ts";
import { Random } from "../../src/support/random.ts";
import { randomProgram } from "./random-programs.ts";
import { testPrograms } from "./seeds.ts";

/** Evaluations from inputs next to the given ones, by which a program is judged again. */
const neighbours = 8;

/** Each number moved by one unit in the last place or left, at random. */
function nudged(numbers: Float32Array, random: Random): Float32Array {
  const moved = numbers.slice();
  const bits = new Int32Array(moved.buffer);
  for (let i = 0; i < bits.length; i++)
    bits[i] = (bits[i] as number) + Math.floor(random.uniform() * 3) - 1;
  return moved;
}

/** Numbers that are all as far from the reference as the furthest of several results, at any place. */
function furthest(results: readonly Tensor[], reference: Tensor): Tensor {
  const exact = numbersOf(reference);
  const errors = results.flatMap((result) =>
    Array.from(numbersOf(result), (number, i) => Math.abs(number - (exact[i] as number))),
  );
  const most = errors.reduce((sofar, error) => Math.max(sofar, error), 0);
  const moved = exact.map((value) => value + most);
  return tensorOfArray(fromNumbers(f32, reference.shape, moved));
}

/** How a device's results differ from the evaluator's. */
async function difference(device: Device, seed: number): Promise<string | undefined> {
  const { text, shape } = randomProgram(seed);
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("no program");
  const random = new Random(seed + 1);
  const count = shape.reduce((product, extent) => product * extent, 1);
  const numbers = Float32Array.from({ length: count }, () => 2 * random.uniform() - 1);
  const tensorOf = (values: Float32Array): Tensor => tensorOfArray(fromNumbers(f32, shape, values));
  const inputs = [tensorOf(numbers)];
  const program = await Program.load(device, compilePlan(module, "main"));
  try {
    const found = await program.run(inputs);
    const ours = evaluate(module, "main", inputs) as readonly Tensor[];
    const reference = evaluate(module, "main", inputs, { widened: true }) as readonly Tensor[];
    const differs = (theirs: readonly Tensor[]): string | undefined =>
      found
        .map((each, i) => disagreement(each, theirs[i] as Tensor, reference[i] as Tensor))
        .find((text) => text !== undefined);
    if (differs(ours) === undefined) return undefined;
    const others = Array.from(
      { length: neighbours },
      () => evaluate(module, "main", [tensorOf(nudged(numbers, random))]) as readonly Tensor[],
    );
    return differs(
      ours.map((each, i) =>
        furthest([each, ...others.map((other) => other[i] as Tensor)], reference[i] as Tensor),
      ),
    );
  } finally {
    program.dispose();
  }
}

testPrograms(12, async (device, seed) => {
  const what = await difference(device, seed);
  return what === undefined ? [] : [what];
});
