/** Keys of random functions: their length and their generators. */
import { dtypes } from "../../formats/dtype.ts";
import { tensor, randomKey } from "../../lang/index.ts";
import type { TensorSpec, RandomKey, Ref } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { refused } from "../support/arguments.ts";

export type KeySpec = { readonly key: TensorSpec<"u32"> };

/** Threefry-2x32, by keys of two words, or JAX's `rbg`, by keys of four: Philox-4x32, several times as fast. */
export type KeyGenerator = "threefry" | "rbg";

export interface GeneratorSpec {
  /** What the key is one of; `threefry` by default. */
  readonly generator?: KeyGenerator;
}

const keyLengths: { readonly [G in KeyGenerator]: number } = { threefry: 2, rbg: 4 };

export function givenGenerator(
  of: string,
  { generator = "threefry" }: GeneratorSpec,
  location: Location,
): KeyGenerator {
  if (Object.hasOwn(keyLengths, generator)) return generator;
  throw refused(
    "TW9904",
    `${of} knows no such generator`,
    '"threefry" or "rbg"',
    optionText(generator),
    location,
  );
}

/** An array that holds a key. */
export function keyOf(generator: KeyGenerator): TensorSpec<"u32"> {
  return tensor(dtypes.u32, [keyLengths[generator]]);
}

/** The key that an array holds. */
export function keyIn(words: Ref<"u32">, generator: KeyGenerator): RandomKey {
  const word = (index: number) => words.at(index).loadScalar();
  if (generator === "threefry") return randomKey([word(0), word(1)]);
  return randomKey([word(0), word(1), word(2), word(3)], { generator });
}
