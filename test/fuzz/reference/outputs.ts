/** Arrays that random programs write. Where one does not lie row by row, what lies between its elements is to stay as it was. */
import type { DType } from "../../../src/formats/dtype.ts";
import { tensor } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";
import { drawLying, elementAt, reachOf } from "../strides.ts";
import type { Lying } from "../strides.ts";
import { anyItem } from "./draft.ts";
import { held, placesOf } from "./held.ts";
import type { Held } from "./held.ts";
import type { Item } from "./numbers.ts";

/** An array that a thread of all blocks writes, how it lies, and what it held before where it does not lie row by row. */
export interface Output {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly lying: Lying | undefined;
  readonly before: Held | undefined;
}

export function drawOutput(
  random: Random,
  name: string,
  dtype: DType,
  shape: readonly number[],
): Output {
  const lying = drawLying(random, name, shape, { overlaps: false });
  const reach = lying && [reachOf(shape, lying.strides)];
  const before = reach && held(dtype, reach, () => anyItem(dtype, random));
  return { name, dtype, shape, lying, before };
}

/** Whether it lies row by row, and so is all written; others are updated in place. */
export function isWhole({ lying }: Output): boolean {
  return lying === undefined;
}

export function declaredOutputs(outputs: readonly Output[]): object {
  return Object.fromEntries(
    outputs.map(({ name, dtype, shape, lying }) => [
      name,
      tensor(dtype, shape, lying && { strides: lying.declared }),
    ]),
  );
}

/** What an output holds in the end. */
export function leftIn({ dtype, shape, lying, before }: Output, items: readonly Item[]): Held {
  if (lying === undefined || before === undefined) return { dtype, shape, items };
  const left = [...before.items];
  [...placesOf(shape)].forEach((place, at) => {
    left[elementAt(lying.strides, place)] = items[at] ?? 0;
  });
  return { ...before, items: left };
}
