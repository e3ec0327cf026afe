/**
 * Video instructions against the manual's description, in integers of any length; one number at a time, with
 * the differences from it that an H200 showed.
 */
import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { isTaken } from "../../../test/support/sample.ts";
import { runLanes } from "../../../test/support/emulated-lanes.ts";

const seed = 913;
const edges = [
  0n,
  1n,
  0x7fn,
  0x80n,
  0xffn,
  0x7fffn,
  0x8000n,
  0x7fff_ffffn,
  0x8000_0000n,
  0xffff_ffffn,
];

function operands(count: number): readonly (readonly bigint[])[] {
  const random = new Random(seed);
  const draw = (): bigint =>
    random.below(3) === 0 ? random.pick(edges) : BigInt(random.bits() >>> random.below(20));
  return Array.from({ length: 64 }, () => Array.from({ length: count }, draw));
}

const three = operands(3);

/** What an instruction makes of three words; the text stands between result and its end. */
function results(text: string): readonly bigint[] {
  const body = `${text};`;
  return runLanes({ inputs: ["b32", "b32", "b32"], outputs: ["b32"], body }, three).map(
    ([value = -1n]) => value,
  );
}

type Type = "u32" | "s32";

/** Bits of a word from `start`, with a sign where the type has one. */
function field(word: bigint, start: number, bits: number, type: Type): bigint {
  const value = (word >> BigInt(start)) & ((1n << BigInt(bits)) - 1n);
  return type === "s32" ? BigInt.asIntN(bits, value) : value;
}

/** `.b2`, `.h1` or nothing. */
function part(word: bigint, selector: string, type: Type): bigint {
  if (selector === "") return field(word, 0, 32, type);
  const bits = selector[1] === "b" ? 8 : 16;
  return field(word, bits * Number(selector[2]), bits, type);
}

function clamp(value: bigint, bits: number, type: Type): bigint {
  const half = 1n << BigInt(bits - 1);
  const [low, high] = type === "s32" ? [-half, half - 1n] : [0n, 2n * half - 1n];
  return value < low ? low : value > high ? high : value;
}

/** Unsigned words are only held up at zero. */
function clampedWord(value: bigint, type: Type): bigint {
  if (type === "s32") return clamp(value, 32, type);
  return value < 0n ? 0n : value;
}

/** The highest number for everything that is larger or negative. */
function notAbove(value: bigint, highest: bigint): bigint {
  return value < 0n || value > highest ? highest : value;
}

/** Without a sign, a negative number of 64 bits is large. */
function ordered(value: bigint, type: Type): bigint {
  return type === "u32" ? BigInt.asUintN(64, value) : value;
}

const magnitude = (value: bigint): bigint => (value < 0n ? -value : value);
const operations: { readonly [name: string]: (a: bigint, b: bigint) => bigint } = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  absdiff: (a, b) => magnitude(a - b),
  min: (a, b) => (a < b ? a : b),
  max: (a, b) => (a > b ? a : b),
  avrg: (a, b) => (a + b >= 0n ? (a + b + 1n) >> 1n : (a + b) >> 1n),
};

/** The word with some of its bits replaced. */
function merged(word: bigint, value: bigint, start: number, bits: number): bigint {
  const mask = ((1n << BigInt(bits)) - 1n) << BigInt(start);
  return BigInt.asUintN(32, (word & ~mask) | ((value << BigInt(start)) & mask));
}

function checkAll(text: string, reference: (a: bigint, b: bigint, c: bigint) => bigint): void {
  const expected = three.map(([a = 0n, b = 0n, c = 0n]) => BigInt.asUintN(32, reference(a, b, c)));
  expect(results(text), `seed ${seed}: ${text}`).toEqual(expected);
}

const types: readonly Type[] = ["u32", "s32"];
const selectors = ["", ".b3", ".h1"];
const scalars = ["add", "sub", "absdiff", "min", "max"];

describe("one number", () => {
  test.each(
    scalars
      .flatMap((name) => types.flatMap((d) => types.map((a) => [name, d, a] as const)))
      .map((one, place) => [...one, place] as const),
  )("v%s.%s.%s", (name, d, a, place) => {
    for (const [at, b] of types.entries())
      for (const [number, select] of selectors.entries()) {
        if (!isTaken(6 * place + 3 * at + number, 2)) continue;
        const other = selectors[(number + at + 1) % selectors.length] ?? "";
        const value = (x: bigint, y: bigint): bigint =>
          operations[name]?.(part(x, select, a), part(y, other, b)) ?? 0n;
        const start = `v${name}.${d}.${a}.${b}`;
        checkAll(`${start} %o0, %i0${select}, %i1${other}`, value);
        checkAll(`${start}.sat %o0, %i0${select}, %i1${other}`, (x, y) =>
          clampedWord(value(x, y), d),
        );
        checkAll(`${start}.sat %o0.h0, %i0${select}, %i1${other}, %i2`, (x, y, z) =>
          merged(z, notAbove(value(x, y), d === "s32" ? 0x7fffn : 0xffffn), 0, 16),
        );
        // The upper half of the number, not its lower one.
        checkAll(`${start} %o0.h1, %i0${select}, %i1${other}, %i2`, (x, y, z) =>
          merged(z, value(x, y) >> 16n, 16, 16),
        );
        checkAll(`${start} %o0.b2, %i0${select}, %i1${other}, %i2`, (x, y, z) =>
          merged(z, value(x, y), 16, 8),
        );
      }
  });

  test("a second sum", () => {
    checkAll(
      "vsub.u32.s32.u32.sat.add %o0, %i0.h1, %i1.b1, %i2",
      (a, b, c) => clampedWord(part(a, ".h1", "s32") - part(b, ".b1", "u32"), "u32") + c,
    );
  });

  test.each(["min", "max"])("a second operation: %s", (second) => {
    for (const d of types) {
      const pick = (first: bigint, c: bigint): bigint => {
        const [left, right] = [ordered(first, d), field(c, 0, 32, d)];
        return operations[second]?.(left, right) === left ? first : c;
      };
      // Differences are words with a sign by then, distances keep all their bits.
      checkAll(`vsub.${d}.s32.u32.sat.${second} %o0, %i0, %i1.b1, %i2`, (a, b, c) =>
        pick(BigInt.asIntN(32, clampedWord(part(a, "", "s32") - part(b, ".b1", "u32"), d)), c),
      );
      checkAll(`vabsdiff.${d}.u32.s32.${second} %o0, %i0, %i1, %i2`, (a, b, c) =>
        pick(magnitude(part(a, "", "u32") - part(b, "", "s32")), c),
      );
    }
  });

  test.each(["clamp", "wrap"] as const)("shifts, .%s", (mode) => {
    for (const a of types) {
      const count = (b: bigint): bigint => (mode === "wrap" ? b & 31n : b > 32n ? 32n : b);
      checkAll(
        `vshl.u32.${a}.u32.${mode} %o0, %i0.h0, %i1.b0`,
        (x, y) => part(x, ".h0", a) << count(part(y, ".b0", "u32")),
      );
      checkAll(`vshr.s32.${a}.u32.sat.${mode} %o0, %i0, %i1`, (x, y) =>
        clamp(part(x, "", a) >> count(y), 32, "s32"),
      );
    }
  });

  test.each([
    ["eq", (a: bigint, b: bigint) => a === b],
    ["ne", (a: bigint, b: bigint) => a !== b],
    ["lt", (a: bigint, b: bigint) => a < b],
    ["le", (a: bigint, b: bigint) => a <= b],
    ["gt", (a: bigint, b: bigint) => a > b],
    ["ge", (a: bigint, b: bigint) => a >= b],
  ] as const)("vset.%s", (name, holds) => {
    for (const a of types)
      checkAll(
        `vset.${a}.s32.${name}.add %o0, %i0.b1, %i1.b1, %i2`,
        (x, y, z) => z + (holds(part(x, ".b1", a), part(y, ".b1", "s32")) ? 1n : 0n),
      );
  });
});

describe("vmad", () => {
  /** Shifted, what is negative is large. */
  const unsignedProduct = (value: bigint, by: bigint): bigint =>
    by > 0n && value < 0n ? 0xffff_ffffn : clamp(value, 32, "u32");

  test.each(["", ".shr7", ".shr15"])("scaled by %s", (scale) => {
    const by = BigInt(scale === "" ? 0 : scale.slice(4));
    checkAll(`vmad.u32.u32.u32.sat${scale} %o0, %i0.h1, %i1, %i2`, (a, b, c) =>
      unsignedProduct(
        (part(a, ".h1", "u32") * BigInt.asIntN(32, b) + BigInt.asIntN(32, c)) >> by,
        by,
      ),
    );
    checkAll(`vmad.s32.s32.u32.sat${scale} %o0, %i0, %i1.b2, %i2`, (a, b, c) =>
      clamp((part(a, "", "s32") * part(b, ".b2", "u32") + BigInt.asIntN(32, c)) >> by, 32, "s32"),
    );
    checkAll(
      `vmad.s32.s32.s32.po${scale} %o0, %i0, %i1, %i2`,
      (a, b, c) => (BigInt.asIntN(32, a) * BigInt.asIntN(32, b) + BigInt.asIntN(32, c) + 1n) >> by,
    );
  });

  test("negated operands", () => {
    const s = (word: bigint): bigint => BigInt.asIntN(32, word);
    checkAll("vmad.s32.s32.s32.sat %o0, -%i0, %i1, %i2", (a, b, c) =>
      clamp(s(c) - s(a) * s(b), 32, "s32"),
    );
    checkAll("vmad.s32.s32.s32.sat %o0, %i0, %i1, -%i2", (a, b, c) =>
      clamp(s(a) * s(b) - s(c), 32, "s32"),
    );
    checkAll("vmad.s32.u32.u32.sat %o0, -%i0.b0, -%i1.b1, %i2", (a, b, c) =>
      clamp(part(a, ".b0", "u32") * part(b, ".b1", "u32") + s(c), 32, "u32"),
    );
  });
});

describe.each([2, 4])("%i numbers at once", (width) => {
  const bits = 32 / width;
  const letter = width === 2 ? "h" : "b";
  /** Elements of both words, from the lowest of the first. */
  const element = (a: bigint, b: bigint, index: number, type: Type): bigint =>
    field(index < width ? a : b, bits * (index % width), bits, type);
  const reversed = [...Array(width).keys()];

  test.each(["add", "sub", "avrg", "absdiff", "min", "max"])("v%s", (name) => {
    const operation = operations[name] ?? operations.add;
    for (const d of types)
      for (const [a, b] of [
        ["u32", "u32"],
        ["s32", "s32"],
        ["s32", "u32"],
      ] as const) {
        const value = (x: bigint, y: bigint, at: number, from = at, to = width + at): bigint =>
          operation?.(element(x, y, from, a), element(x, y, to, b)) ?? 0n;
        const each = (z: bigint, make: (at: number) => bigint): bigint =>
          reversed.reduce((word, at) => merged(word, make(at), bits * at, bits), z);
        const start = `v${name}${width}.${d}.${a}.${b}`;
        checkAll(`${start} %o0, %i0, %i1, %i2`, (x, y, z) => each(z, (at) => value(x, y, at)));
        checkAll(`${start}.sat %o0, %i0, %i1, %i2`, (x, y, z) =>
          each(z, (at) => clamp(value(x, y, at), bits, d)),
        );
        checkAll(`${start}.add %o0, %i0, %i1, %i2`, (x, y, z) =>
          reversed.reduce((sum, at) => sum + value(x, y, at), z),
        );
        // The first source in reverse, the second twice its upper element; only element 1 is replaced.
        const backward = reversed.join("");
        const upper = `${width + 1}`.repeat(width);
        checkAll(
          `${start} %o0.${letter}1, %i0.${letter}${backward}, %i1.${letter}${upper}, %i2`,
          (x, y, z) => merged(z, value(x, y, 1, width - 2, width + 1), bits, bits),
        );
      }
  });

  test("vset", () => {
    checkAll(`vset${width}.s32.s32.gt.add %o0, %i0, %i1, %i2`, (a, b, c) =>
      reversed.reduce(
        (sum, at) => sum + (element(a, b, at, "s32") > element(a, b, width + at, "s32") ? 1n : 0n),
        c,
      ),
    );
  });
});

test("selectors that words do not have are refused", () => {
  for (const text of [
    "vadd.u32.u32.u32 %o0, %i0.h2, %i1",
    "vadd4.u32.u32.u32 %o0, %i0.b8000, %i1, %i2",
  ])
    expect(() => results(text)).toThrow(/TW8001/);
});
