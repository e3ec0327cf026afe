/**
 * XLA's `rng_bit_generator` with Philox, for elements of 32 bits: from a state of 64-bit words, a key and a counter of one or two words, it computes the
 * bits and the next state. Keys of `rbg` draw the same bits.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation } from "../../device/operation.ts";
import {
  tensor,
  cdiv,
  constant,
  dim,
  elementRun,
  full,
  kernel,
  philoxBits,
  slice,
  when,
} from "../../lang/index.ts";
import type { KernelDefinition, Scalar } from "../../lang/index.ts";
import { alignedDimension, alignment } from "../support/sizes.ts";
import { elementsPerBlock } from "./elements-per-block.ts";

const { u64 } = dtypes;

/** Elements that a thread draws at most. */
const perThread = 16;

/** Inputs { state }, outputs { after, bits }: of n elements, whose number is given with the launch. */
export function rngBitGenerator(stateWords: 2 | 3, dtype: DType): Operation {
  const kernels = new Map<string, KernelDefinition>();
  return operation({
    name: "random_state_bits",
    inputs: { state: tensor(u64, [stateWords]) },
    outputs: { after: tensor(u64, [stateWords]), bits: tensor(dtype, [dim("n")]) },
    plan: ({ n: count = 0 }, target) => {
      const span = elementsPerBlock(count, target.processors, perThread);
      const configuration = { span };
      const source = "heuristic" as const;
      return {
        configuration,
        source,
        launches: () => {
          const text = JSON.stringify([span, alignment(count)]);
          const known = kernels.get(text) ?? stateKernel(stateWords, dtype, count, span);
          kernels.set(text, known);
          const named = (argument: string) => ({ argument });
          const given = { state: named("state"), after: named("after"), bits: named("bits") };
          return [{ kernel: known, arguments: given }];
        },
      };
    },
  });
}

function stateKernel(
  stateWords: 2 | 3,
  dtype: DType,
  size: number,
  span: number,
): KernelDefinition {
  const count = alignedDimension("count", size);
  return kernel(
    {
      name: "random_state_bits",
      grid: { i: cdiv(count, span) },
      inputs: { state: tensor(u64, [stateWords]) },
      outputs: { after: tensor(u64, [stateWords]), bits: tensor(dtype, [count]) },
    },
    ({ i, state, after, bits }) => {
      const word = (at: number): Scalar<"u64"> => state.at(at).loadScalar();
      const everywhere = (scalar: Scalar<"u64">) => full(u64, [1], 0n).add(scalar);
      const [key, low] = [word(0), word(1)];
      const high = stateWords === 3 ? word(2) : key;
      const own = { key: everywhere(key), low: everywhere(low), high: everywhere(high) };
      const drawn = philoxBits(own, elementRun(i, [span]));
      bits.at(slice(i.mul(span), span)).store(drawn.bitcast(dtype));
      when(i.eq(0), () => {
        const moved = low.add(constant(u64, cdiv(count, 4)));
        after.at(0).store(key);
        after.at(1).store(moved);
        if (stateWords === 2) return;
        after.at(2).store(moved.lt(low).select(high.add(1n), high));
      });
    },
  );
}
