/** Holds what a simulated kernel computes against what the compiler says of it. */
import { factsOf } from "../../src/ir/range-analysis/index.ts";
import { allows } from "../../src/ir/range-analysis/fact.ts";
import type { Fact } from "../../src/ir/range-analysis/fact.ts";
import type { Kernel } from "../../src/ir/node.ts";
import { evaluateSize, sizeText } from "../../src/ir/size.ts";
import type { DimensionValues, Size } from "../../src/ir/size.ts";
import type { SimulationOptions } from "../../src/sim/index.ts";

/** Throws where an integer, or an element of a tile of them, is not what its fact allows. */
export function holdAgainstFacts(
  kernel: Kernel,
  dimensions: DimensionValues,
): NonNullable<SimulationOptions["observe"]> {
  const facts = factsOf(kernel);
  const evaluate = (size: Size): number => evaluateSize(size, dimensions);
  return (value, held) => {
    const fact = facts.ofAny(value);
    if (fact === undefined || held === undefined) return;
    const numbers =
      typeof held === "number" || typeof held === "bigint" ? [held] : (held as Iterable<number>);
    for (const number of numbers)
      if (!allows(fact, BigInt(number), evaluate))
        throw new Error(`%${value.id} is ${number}, which is not ${factText(fact)}`);
  };
}

function factText({ least, greatest, modulus, residue, below }: Fact): string {
  const bounds = below.map(sizeText).join(", ");
  return `from ${least} to ${greatest}, ${residue} mod ${modulus}, below [${bounds}]`;
}
