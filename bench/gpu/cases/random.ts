/**
 * Random arrays, by both generators. What bounds them is what is written, or the instructions of the generator: a case of each kind tells which.
 */
import { tensor, f32, u32 } from "tilewright";
import type { Operation } from "tilewright";
import { dropout, random } from "tilewright/kernels";
import type { BenchCase } from "../case.ts";
import { randomArray, randomWords } from "../random.ts";
import { libraryCase, requireNear } from "./library-case.ts";

type Generator = "threefry" | "rbg";
type Kind = "bits" | "uniform" | "normal" | "dropout";

/** Means of what is drawn and of its squares, and how far those of a number of draws may be from them. */
const means: { readonly [K in Kind]: readonly [mean: number, square: number] } = {
  bits: [2 ** 31, 2 ** 64 / 3],
  uniform: [1 / 2, 1 / 3],
  normal: [0, 1],
  // Of elements that are normal themselves, a quarter dropped and the others as much larger.
  dropout: [0, 4 / 3],
};

function operationOf(kind: Kind, generator: Generator, count: number): Operation {
  const numbers = tensor(f32, [count]);
  const made = {
    bits: () => random.bits({ out: tensor(u32, [count]), generator }),
    uniform: () => random.uniform({ out: numbers, generator }),
    normal: () => random.normal({ out: numbers, generator }),
    dropout: () => dropout({ x: numbers, rate: 0.25, generator }),
  };
  return made[kind]() as unknown as Operation;
}

function drawnCase(kind: Kind, generator: Generator, count: number): BenchCase {
  const [mean, square] = means[kind];
  return libraryCase({
    name: `library random ${kind} ${generator} ${count}`,
    task: { op: "random", kind, generator, count },
    bytes: count * (kind === "dropout" ? 8 : 4),
    operation: operationOf(kind, generator, count),
    arrays: (device, seed) => ({
      key: randomWords(device, generator === "rbg" ? 4 : 2, seed),
      ...(kind === "dropout" && { x: randomArray(device, f32, [count], seed) }),
      out: device.allocate(kind === "bits" ? u32 : f32, [count]),
    }),
    check: async (numbers) => {
      const found = (await numbers("out")).slice(0, 1 << 16);
      const of = (power: number): number =>
        found.reduce((sum, value) => sum + value ** power, 0) / found.length;
      const bound = 12 / Math.sqrt(found.length);
      requireNear(`the mean of ${kind}`, of(1), mean, Math.sqrt(square) * bound);
      requireNear(`the mean square of ${kind}`, of(2), square, square * bound);
    },
  });
}

export function randomCases(count: number): readonly BenchCase[] {
  const kinds = ["normal", "uniform", "bits", "dropout"] as const;
  const generators = ["rbg", "threefry"] as const;
  return kinds.flatMap((kind) => generators.map((each) => drawnCase(kind, each, count)));
}
