/** Reproducible normal data for the examples, rounded to the format it is stored in. */
import { fromNumbers } from "tilewright";
import type { DType, DTypeName, HostArray } from "tilewright";

/** Standard normal numbers from a linear congruential generator; the seed decides all of them. */
export function normal<N extends DTypeName>(
  dtype: DType<N>,
  shape: readonly number[],
  seed: number,
): HostArray<N> {
  let state = seed >>> 0;
  const uniform = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  const count = shape.reduce((product, extent) => product * extent, 1);
  const numbers = new Float64Array(count);
  for (let index = 0; index < count; index++) {
    const radius = Math.sqrt(-2 * Math.log(uniform()));
    numbers[index] = radius * Math.cos(2 * Math.PI * uniform());
  }
  return fromNumbers(dtype, shape, numbers);
}
