import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { runLanes } from "../../../test/support/emulated-lanes.ts";
import type { SlotType } from "../../../test/support/emulated-lanes.ts";

const seed = 4711;
const widths: { readonly [S in SlotType]: number } = { pred: 1, b16: 16, b32: 32, b64: 64 };

type Reference = (...operands: bigint[]) => bigint;
type Row = readonly [text: string, inputs: readonly SlotType[], output: SlotType, Reference];

function ones(count: bigint): bigint {
  return (1n << count) - 1n;
}

function bitList(value: bigint, width: number): readonly boolean[] {
  return Array.from({ length: width }, (_, bit) => ((value >> BigInt(bit)) & 1n) === 1n);
}

function fromBits(bits: readonly boolean[]): bigint {
  return bits.reduce((sum, bit, at) => (bit ? sum | (1n << BigInt(at)) : sum), 0n);
}

/** The manual's loop over the field's bits. */
/** Start and length of a field: a byte counts of those of 32 bits, all of the others. */
function extent(value: bigint, width: number): number {
  return Number(width === 32 ? value & 0xffn : value);
}

function extracted(
  value: bigint,
  start: bigint,
  length: bigint,
  width: number,
  signed: boolean,
): bigint {
  const bits = bitList(value, width);
  const from = extent(start, width);
  const count = extent(length, width);
  const top = width - 1;
  const sign = !signed || count === 0 ? false : (bits[Math.min(from + count - 1, top)] ?? false);
  return fromBits(
    bits.map((_, at) => (at < count && from + at <= top ? (bits[from + at] ?? false) : sign)),
  );
}

function inserted(
  field: bigint,
  base: bigint,
  start: bigint,
  length: bigint,
  width: number,
): bigint {
  const bits = [...bitList(base, width)];
  const from = extent(start, width);
  const count = extent(length, width);
  bitList(field, width).forEach((bit, at) => {
    if (at < count && from + at < width) bits[from + at] = bit;
  });
  return fromBits(bits);
}

function highest(value: bigint, width: number, signed: boolean): bigint {
  const flipped = signed && BigInt.asIntN(width, value) < 0n ? ones(BigInt(width)) ^ value : value;
  return flipped === 0n ? -1n : BigInt(flipped.toString(2).length - 1);
}

function permuted(a: bigint, b: bigint, selector: bigint): bigint {
  const all = (b << 32n) | a;
  return [0n, 1n, 2n, 3n].reduce((sum, at) => {
    const pick = (selector >> (4n * at)) & 0xfn;
    const byte = (all >> (8n * (pick & 7n))) & 0xffn;
    const value = (pick & 8n) === 0n ? byte : (byte & 0x80n) === 0n ? 0n : 0xffn;
    return sum | (value << (8n * at));
  }, 0n);
}

function looked(a: bigint, b: bigint, c: bigint, table: number): bigint {
  const [x, y, z] = [a, b, c].map((value) => bitList(value, 32));
  return fromBits(
    Array.from({ length: 32 }, (_, at) => {
      const entry = (x?.[at] ? 4 : 0) + (y?.[at] ? 2 : 0) + (z?.[at] ? 1 : 0);
      return ((table >> entry) & 1) === 1;
    }),
  );
}

function shiftRight(value: bigint, count: bigint, width: number, signed: boolean): bigint {
  return (signed ? BigInt.asIntN(width, value) : value) >> count;
}

const two32: readonly SlotType[] = ["b32", "b32"];
const three32: readonly SlotType[] = ["b32", "b32", "b32"];

function ofWidth(width: 16 | 32 | 64): readonly Row[] {
  const type = `b${width}` as SlotType;
  const rows: Row[] = [
    [`and.b${width}`, [type, type], type, (a = 0n, b = 0n) => a & b],
    [`or.b${width}`, [type, type], type, (a = 0n, b = 0n) => a | b],
    [`xor.b${width}`, [type, type], type, (a = 0n, b = 0n) => a ^ b],
    [`not.b${width}`, [type], type, (a = 0n) => ~a],
    [`cnot.b${width}`, [type], type, (a = 0n) => (a === 0n ? 1n : 0n)],
    [`shl.b${width}`, [type, "b32"], type, (a = 0n, b = 0n) => (b > 64n ? 0n : a << b)],
    [`shr.u${width}`, [type, "b32"], type, (a = 0n, b = 0n) => shiftRight(a, b, width, false)],
    [`shr.s${width}`, [type, "b32"], type, (a = 0n, b = 0n) => shiftRight(a, b, width, true)],
  ];
  if (width === 16) return rows;
  return [
    ...rows,
    [`popc.b${width}`, [type], "b32", (a = 0n) => BigInt(bitList(a, width).filter(Boolean).length)],
    [`clz.b${width}`, [type], "b32", (a = 0n) => BigInt(width) - 1n - highest(a, width, false)],
    [`brev.b${width}`, [type], type, (a = 0n) => fromBits([...bitList(a, width)].reverse())],
    [`bfind.u${width}`, [type], "b32", (a = 0n) => highest(a, width, false)],
    [`bfind.s${width}`, [type], "b32", (a = 0n) => highest(a, width, true)],
    [
      `bfind.shiftamt.s${width}`,
      [type],
      "b32",
      (a = 0n) => {
        const found = highest(a, width, true);
        return found < 0n ? -1n : BigInt(width) - 1n - found;
      },
    ],
    [
      `bfe.u${width}`,
      [type, "b32", "b32"],
      type,
      (a = 0n, b = 0n, c = 0n) => extracted(a, b, c, width, false),
    ],
    [
      `bfe.s${width}`,
      [type, "b32", "b32"],
      type,
      (a = 0n, b = 0n, c = 0n) => extracted(a, b, c, width, true),
    ],
    [
      `bfi.b${width}`,
      [type, type, "b32", "b32"],
      type,
      (a = 0n, b = 0n, c = 0n, d = 0n) => inserted(a, b, c, d, width),
    ],
  ];
}

const tables = [0x80, 0xfe, 0x96, 0xf8, 0xea, 0xca, 0xe8, 0x17, 0x00, 0xff, 0x6a, 0x1b];

const rows: readonly Row[] = [
  ...ofWidth(16),
  ...ofWidth(32),
  ...ofWidth(64),
  ["prmt.b32", three32, "b32", (a = 0n, b = 0n, c = 0n) => permuted(a, b, c)],
  [
    "szext.clamp.s32",
    two32,
    "b32",
    (a = 0n, b = 0n) => (b >= 32n ? a : BigInt.asIntN(Number(b), a)),
  ],
  ["szext.wrap.u32", two32, "b32", (a = 0n, b = 0n) => a & ones(b & 31n)],
  [
    "bmsk.clamp.b32",
    two32,
    "b32",
    (a = 0n, b = 0n) => (a > 31n ? 0n : ones(b > 32n ? 32n : b) << a),
  ],
  ["bmsk.wrap.b32", two32, "b32", (a = 0n, b = 0n) => ones(b & 31n) << (a & 31n)],
  [
    "shf.l.wrap.b32",
    three32,
    "b32",
    (a = 0n, b = 0n, c = 0n) => (((b << 32n) | a) << (c & 31n)) >> 32n,
  ],
  ["shf.r.wrap.b32", three32, "b32", (a = 0n, b = 0n, c = 0n) => ((b << 32n) | a) >> (c & 31n)],
  [
    "shf.l.clamp.b32",
    three32,
    "b32",
    (a = 0n, b = 0n, c = 0n) => (((b << 32n) | a) << (c > 32n ? 32n : c)) >> 32n,
  ],
  [
    "shf.r.clamp.b32",
    three32,
    "b32",
    (a = 0n, b = 0n, c = 0n) => ((b << 32n) | a) >> (c > 32n ? 32n : c),
  ],
];

/** Small numbers, all ones, single bits and noise. */
function anyBits(random: Random, width: number): bigint {
  const all = (BigInt(random.bits()) << 32n) | BigInt(random.bits());
  const choices = [BigInt(random.below(70)), all, 1n << BigInt(random.below(width)), -1n, 0n];
  return BigInt.asUintN(width, random.pick(choices));
}

function check(
  text: string,
  inputs: readonly SlotType[],
  output: SlotType,
  reference: Reference,
  suffix = "",
): void {
  const random = new Random(seed);
  const operands = inputs.map((_, at) => `%i${at}`).join(", ");
  const cases = Array.from({ length: 500 }, () =>
    inputs.map((type) => anyBits(random, widths[type])),
  );
  const body = `${text} %o0, ${operands}${suffix};`;
  const results = runLanes({ inputs, outputs: [output], body }, cases);
  cases.forEach((given, row) => {
    const expected = BigInt.asUintN(widths[output], reference(...given));
    expect(results[row]?.[0], `${body} of ${given.join(", ")} (seed ${seed})`).toBe(expected);
  });
}

describe("bits", () => {
  test.each(rows)("%s", (text, inputs, output, reference) =>
    check(text, inputs, output, reference),
  );

  test.each(tables)("lop3 with table %i", (table) =>
    check(
      "lop3.b32",
      three32,
      "b32",
      (a = 0n, b = 0n, c = 0n) => looked(a, b, c, table),
      `, ${table}`,
    ),
  );

  test.each([0x5410, 0x7632, 0x3210, 0x0123, 0x7531, 0x4444, 0xba98])(
    "prmt with selector %i",
    (selector) =>
      check(
        "prmt.b32",
        two32,
        "b32",
        (a = 0n, b = 0n) => permuted(a, b, BigInt(selector)),
        `, ${selector}`,
      ),
  );

  test.each([0, 1, 15, 31])("shifts by the constant %i", (count) => {
    const by = BigInt(count);
    check("shl.b32", ["b32"], "b32", (a = 0n) => a << by, `, ${count}`);
    check("shr.s32", ["b32"], "b32", (a = 0n) => shiftRight(a, by, 32, true), `, ${count}`);
    check("shr.u32", ["b32"], "b32", (a = 0n) => a >> by, `, ${count}`);
  });
});
