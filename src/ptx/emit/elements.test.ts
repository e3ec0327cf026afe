import { describe, expect, test } from "vitest";
import { runProbe } from "../../../test/emulated-probe.ts";
import type { Probe } from "../../../test/ptx-probe.ts";
import { probeLanes } from "../../../test/ptx-probe.ts";
import { bool, f16, i4, i8, u16, u4, u8 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { axesLayout, splat } from "../../layout/algebra/register-layout.ts";
import { registerBit } from "../../layout/algebra/index-bits.ts";
import { Random } from "../../support/random.ts";
import { Code, SourceFiles } from "../function-builder.ts";
import { packWord, splatWord, tileElements, tileFromElements, unpackWord } from "./elements.ts";
import { slotsOf } from "./values.ts";

const narrow: readonly DType[] = [i4, u4, i8, u8, u16, f16];

/** The words that come out of random words. */
function words(
  dtype: DType,
  emit: (...given: Parameters<Probe["emit"]>) => ReturnType<Probe["emit"]>,
): { readonly given: Uint32Array; readonly made: Uint32Array } {
  const random = new Random(3);
  const given = Uint32Array.from({ length: probeLanes }, () => random.bits());
  const probe: Probe = { name: "pack", level: "words", operands: [dtype], result: dtype, emit };
  const made = runProbe(probe, [new Uint8Array(given.buffer)], 4 * given.length, 1);
  return { given, made: new Uint32Array(made.buffer) };
}

describe.each(narrow)("words of $name", (dtype) => {
  const slots = slotsOf(dtype);
  const ones = 2 ** dtype.bits - 1;

  test("elements pack into the word that they came from", () => {
    const { given, made } = words(dtype, ({ code }, [operand]) =>
      (operand ?? []).map((word) => packWord(code, dtype, unpackWord(code, dtype, word))),
    );
    expect(made).toEqual(given);
  });

  test("padding anywhere leaves the others where they are", () => {
    const { given, made } = words(dtype, ({ code }, [operand]) =>
      (operand ?? []).map((word) => {
        const elements = unpackWord(code, dtype, word);
        return packWord(code, dtype, [undefined, ...elements.slice(1)]);
      }),
    );
    expect(made.map((word) => word & ~ones)).toEqual(given.map((word) => word & ~ones));
  });

  test("a splat has its element in every slot", () => {
    const { given, made } = words(dtype, ({ code }, [operand]) =>
      (operand ?? []).map((word) => {
        const [first] = unpackWord(code, dtype, word, 1);
        return first === undefined ? word : splatWord(code, dtype, first);
      }),
    );
    const repeated = Array.from({ length: slots }, (_, slot) => 2 ** (dtype.bits * slot));
    const copies = repeated.reduce((sum, each) => sum + each);
    expect(made).toEqual(given.map((word) => (word & ones) * copies));
  });
});

describe("tiles", () => {
  const code = new Code(new SourceFiles());
  const layout = axesLayout([[registerBit(1), registerBit(0)]]);

  test("five elements of eight bits are two words, the second mostly padding", () => {
    const elements = code.registers("b32", 5);
    const tile = tileFromElements({ code }, { dtype: u8, shape: [5], layout }, elements);
    expect(tile.words).toHaveLength(2);
  });

  test("padding at the end of the last word is not taken apart", () => {
    const tile = { kind: "tile", dtype: u8, shape: [3], layout: axesLayout([]) } as const;
    const elements = tileElements({ code }, { ...tile, words: code.registers("b32", 1) });
    expect(elements).toHaveLength(3);
  });

  test("a splat of bool is one predicate", () => {
    const [element] = code.registers("pred", 1);
    const tile = tileFromElements({ code }, { dtype: bool, shape: [64], layout: splat }, [element]);
    expect(tile.words).toEqual([element]);
  });
});
