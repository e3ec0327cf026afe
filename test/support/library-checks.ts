/** What tests of the library share: numbers that every format holds exactly, and the code of a mistake. */
import type { DType, DTypeName } from "../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { Random } from "../../src/support/random.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";

export { wholeNumbers } from "./whole-numbers.ts";

export function codeOf(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "nothing was thrown";
}

/** Random numbers around `middle`, rounded to the format. */
export function randomNumbers<N extends DTypeName>(
  dtype: DType<N>,
  shape: readonly number[],
  seed: number,
  spread: number,
  middle = 0,
) {
  const random = new Random(seed);
  const count = shape.reduce((product, extent) => product * extent, 1);
  const drawn = new Float64Array(count);
  for (let index = 0; index < count; index += 1)
    drawn[index] = middle + spread * (2 * random.uniform() - 1);
  const given = fromNumbers(dtype, shape, drawn);
  const values: number[] = [];
  for (const value of toNumbers(given)) values.push(value);
  return { array: given, values };
}

/** Units in the last place of the format, at the size of the number, that results may be off. */
export function expectClose(
  found: HostArray,
  expected: readonly number[],
  { relative, absolute = 0 }: { readonly relative: number; readonly absolute?: number },
): void {
  const bits = { f64: 52, f32: 23, f16: 10, bf16: 7 }[found.dtype.name as "f32"];
  const unit = 2 ** -bits;
  // The least number that f16 rounds as others.
  const floor = found.dtype.name === "f16" ? 2 ** -14 : 0;
  const numbers = toNumbers(found);
  if (numbers.length !== expected.length)
    throw new Error(`${numbers.length} elements instead of ${expected.length}`);
  for (let index = 0; index < numbers.length; index += 1) {
    const [value, wanted] = [numbers[index] ?? NaN, expected[index] ?? NaN];
    const allowed = relative * unit * Math.max(Math.abs(wanted), floor) + absolute;
    if (!(Math.abs(value - wanted) <= allowed))
      throw new Error(`element ${index}: ${value} instead of ${wanted}, more than ${allowed} off`);
  }
}
