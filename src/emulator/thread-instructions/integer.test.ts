import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { runLanes } from "../../../test/support/emulated-lanes.ts";
import type { SlotType } from "../../../test/support/emulated-lanes.ts";

const seed = 20261;

/** Values where carries, signs and edges are. */
function interesting(bits: number): readonly bigint[] {
  const top = 1n << BigInt(bits - 1);
  return [0n, 1n, 2n, 3n, 5n, 7n, 31n, 32n, 33n, 63n, 64n, top - 1n, top, top + 1n, 2n * top - 1n];
}

function randomBits(random: Random, bits: number): bigint {
  const edges = interesting(bits);
  if (random.below(3) === 0) return BigInt.asUintN(bits, random.pick(edges));
  const word = (BigInt(random.bits()) << 32n) | BigInt(random.bits());
  return BigInt.asUintN(bits, word >> BigInt(random.below(bits)));
}

interface Case {
  readonly opcode: string;
  readonly inputs: readonly SlotType[];
  readonly output: SlotType;
  readonly reference: (...operands: bigint[]) => bigint;
}

const widths: { readonly [S in SlotType]: number } = { pred: 1, b16: 16, b32: 32, b64: 64 };

function slot(bits: number): SlotType {
  return bits === 16 ? "b16" : bits === 32 ? "b32" : "b64";
}

function signedOf(bits: number): (value: bigint) => bigint {
  return (value) => BigInt.asIntN(bits, value);
}

function abs(value: bigint): bigint {
  return value < 0n ? -value : value;
}

/** The cases of one integer type. */
function casesOf(bits: number, signed: boolean): Case[] {
  const type = `${signed ? "s" : "u"}${bits}`;
  const read = signed ? signedOf(bits) : (value: bigint): bigint => value;
  const two = [slot(bits), slot(bits)];
  const three = [...two, slot(bits)];
  const make = (
    opcode: string,
    inputs: readonly SlotType[],
    reference: (...operands: bigint[]) => bigint,
    output = slot(bits),
  ): Case => ({
    opcode: `${opcode}.${type}`,
    inputs,
    output,
    reference: (...operands) => reference(...operands.map(read)),
  });
  const high = (value: bigint): bigint => value >> BigInt(bits);
  const cases = [
    make("add", two, (a, b) => a + b),
    make("sub", two, (a, b) => a - b),
    make("mul.lo", two, (a, b) => a * b),
    make("mul.hi", two, (a, b) => high(a * b)),
    make("mad.lo", three, (a, b, c) => a * b + c),
    make("mad.hi", three, (a, b, c) => high(a * b) + c),
    make("div", two, (a, b) => (b === 0n ? -1n : a / b)),
    make("rem", two, (a, b) => (b === 0n ? a : a % b)),
    make("min", two, (a, b) => (a < b ? a : b)),
    make("max", two, (a, b) => (a > b ? a : b)),
    make("sad", three, (a, b, c) => abs(a - b) + c),
  ];
  if (signed)
    cases.push(
      make("abs", [slot(bits)], abs),
      make("neg", [slot(bits)], (a) => -a),
    );
  if (bits < 64)
    cases.push(
      make("mul.wide", two, (a, b) => a * b, slot(2 * bits)),
      {
        opcode: `mad.wide.${type}`,
        inputs: [...two, slot(2 * bits)],
        output: slot(2 * bits),
        reference: (a = 0n, b = 0n, c = 0n) => read(a) * read(b) + c,
      },
    );
  return cases;
}

const arithmetic = [16, 32, 64].flatMap((bits) => [
  ...casesOf(bits, false),
  ...casesOf(bits, true),
]);

const clamped = (value: bigint): bigint =>
  value > 2147483647n ? 2147483647n : value < -2147483648n ? -2147483648n : value;
const signed32 = signedOf(32);

function halves(value: bigint, read: (half: bigint) => bigint): readonly [bigint, bigint] {
  return [read(value & 0xffffn), read(value >> 16n)];
}

function joinHalves([low, high]: readonly [bigint, bigint]): bigint {
  return (low & 0xffffn) | ((high & 0xffffn) << 16n);
}

function bytes(value: bigint, signed: boolean): readonly bigint[] {
  return [0n, 8n, 16n, 24n].map((from) => {
    const byte = (value >> from) & 0xffn;
    return signed ? BigInt.asIntN(8, byte) : byte;
  });
}

const special: readonly Case[] = [
  {
    opcode: "add.sat.s32",
    inputs: ["b32", "b32"],
    output: "b32",
    reference: (a, b) => clamped(signed32(a ?? 0n) + signed32(b ?? 0n)),
  },
  {
    opcode: "sub.sat.s32",
    inputs: ["b32", "b32"],
    output: "b32",
    reference: (a, b) => clamped(signed32(a ?? 0n) - signed32(b ?? 0n)),
  },
  {
    opcode: "mad.hi.sat.s32",
    inputs: ["b32", "b32", "b32"],
    output: "b32",
    reference: (a, b, c) =>
      clamped(((signed32(a ?? 0n) * signed32(b ?? 0n)) >> 32n) + signed32(c ?? 0n)),
  },
  {
    opcode: "mul24.lo.u32",
    inputs: ["b32", "b32"],
    output: "b32",
    reference: (a, b) => ((a ?? 0n) & 0xffffffn) * ((b ?? 0n) & 0xffffffn),
  },
  {
    opcode: "mul24.hi.s32",
    inputs: ["b32", "b32"],
    output: "b32",
    reference: (a, b) => (BigInt.asIntN(24, a ?? 0n) * BigInt.asIntN(24, b ?? 0n)) >> 16n,
  },
  {
    opcode: "dp4a.s32.u32",
    inputs: ["b32", "b32", "b32"],
    output: "b32",
    reference: (a = 0n, b = 0n, c = 0n) =>
      bytes(a, true).reduce((sum, byte, at) => sum + byte * (bytes(b, false)[at] ?? 0n), c),
  },
  {
    opcode: "dp2a.hi.u32.s32",
    inputs: ["b32", "b32", "b32"],
    output: "b32",
    reference: (a = 0n, b = 0n, c = 0n) =>
      halves(a, (half) => half).reduce(
        (sum, half, at) => sum + half * (bytes(b, true)[at + 2] ?? 0n),
        c,
      ),
  },
  {
    opcode: "add.u16x2",
    inputs: ["b32", "b32"],
    output: "b32",
    reference: (a = 0n, b = 0n) => {
      const [lowA, highA] = halves(a, (half) => half);
      const [lowB, highB] = halves(b, (half) => half);
      return joinHalves([lowA + lowB, highA + highB]);
    },
  },
  {
    opcode: "max.s16x2",
    inputs: ["b32", "b32"],
    output: "b32",
    reference: (a = 0n, b = 0n) => {
      const [lowA, highA] = halves(a, signedOf(16));
      const [lowB, highB] = halves(b, signedOf(16));
      return joinHalves([lowA > lowB ? lowA : lowB, highA > highB ? highA : highB]);
    },
  },
  {
    opcode: "min.u16x2",
    inputs: ["b32", "b32"],
    output: "b32",
    reference: (a = 0n, b = 0n) => {
      const [lowA, highA] = halves(a, (half) => half);
      const [lowB, highB] = halves(b, (half) => half);
      return joinHalves([lowA < lowB ? lowA : lowB, highA < highB ? highA : highB]);
    },
  },
];

function check({ opcode, inputs, output, reference }: Case): void {
  const random = new Random(seed);
  const operands = inputs.map((_, at) => `%i${at}`).join(", ");
  const cases = Array.from({ length: 400 }, () =>
    inputs.map((type) => randomBits(random, widths[type])),
  );
  const results = runLanes(
    { inputs, outputs: [output], body: `${opcode} %o0, ${operands};` },
    cases,
  );
  cases.forEach((given, row) => {
    const expected = BigInt.asUintN(widths[output], reference(...given));
    expect(results[row]?.[0], `${opcode} of ${given.join(", ")} (seed ${seed})`).toBe(expected);
  });
}

describe("integer arithmetic agrees with BigInt", () => {
  test.each([...arithmetic, ...special])("$opcode", check);
});

describe("carry", () => {
  const random = new Random(seed);
  const values = Array.from({ length: 300 }, () => [
    randomBits(random, 64),
    randomBits(random, 64),
    randomBits(random, 64),
    randomBits(random, 64),
  ]);

  test("chains of add.cc and addc are one wide sum", () => {
    const body = `add.cc.u64 %o0, %i0, %i2; addc.u64 %o1, %i1, %i3;`;
    const inputs = ["b64", "b64", "b64", "b64"] as const;
    const results = runLanes({ inputs, outputs: ["b64", "b64"], body }, values);
    values.forEach(([a = 0n, b = 0n, c = 0n, d = 0n], row) => {
      const sum = BigInt.asUintN(128, a + (b << 64n) + c + (d << 64n));
      expect(results[row]).toEqual([BigInt.asUintN(64, sum), sum >> 64n]);
    });
  });

  test("chains of sub.cc and subc are one wide difference", () => {
    const body = `.reg .b32 %t<8>;
      mov.b64 {%t0, %t1}, %i0; mov.b64 {%t2, %t3}, %i2;
      sub.cc.u32 %t4, %t0, %t2; subc.cc.u32 %t5, %t1, %t3; subc.u32 %t6, 0, 0;
      mov.b64 %o0, {%t4, %t5}; cvt.u64.u32 %o1, %t6;`;
    const inputs = ["b64", "b64", "b64", "b64"] as const;
    const results = runLanes({ inputs, outputs: ["b64", "b64"], body }, values);
    values.forEach(([a = 0n, , c = 0n], row) => {
      expect(results[row]).toEqual([BigInt.asUintN(64, a - c), a < c ? 0xffffffffn : 0n]);
    });
  });

  test("mad.lo.cc and madc.hi make a wide multiply-add", () => {
    const body = `.reg .b32 %t<8>;
      mov.b64 {%t0, %t1}, %i0; mov.b64 {%t2, %t3}, %i1;
      mad.lo.cc.u32 %t4, %t0, %t1, %t2; madc.hi.u32 %t5, %t0, %t1, %t3;
      mov.b64 %o0, {%t4, %t5};`;
    const results = runLanes(
      { inputs: ["b64", "b64"], outputs: ["b64"], body },
      values.map((row) => row.slice(0, 2)),
    );
    values.forEach(([a = 0n, b = 0n], row) => {
      const product = (a & 0xffffffffn) * (a >> 32n);
      expect(results[row]?.[0]).toBe(BigInt.asUintN(64, product + b));
    });
  });
});
