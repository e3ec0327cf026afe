import { describe, expect, test } from "vitest";
import { encodeFloat } from "../../formats/floats.ts";
import { Random } from "../../support/random.ts";
import { runPtx } from "../../../test/support/ptx-kernel.ts";
import { elementOf } from "../../../test/support/product-elements.ts";
import type { Element } from "../../../test/support/product-elements.ts";
import { metadataWords, sparseRow } from "../../../test/support/sparse.ts";

const seed = 2401;

interface Form {
  readonly k: number;
  readonly a: string;
  readonly b: string;
  readonly d: "f32" | "f16" | "s32";
  readonly selector: number;
  readonly flag?: string;
  readonly ordered?: boolean;
}

/** Registers of 32 bits, all of lane 0 first: rows by bytes of k, 16 bytes of a row to four lanes. */
function packRows(values: readonly (readonly number[])[], { bits, encode }: Element): Uint32Array {
  const depth = values[0]?.length ?? 0;
  const halves = values.length / 8;
  const registers = (halves * depth * bits) / 128;
  const words = new Uint32Array(32 * registers);
  for (const [row, line] of values.entries())
    for (const [k, value] of line.entries()) {
      const bit = k * bits;
      const lane = 4 * (row & 7) + ((bit >> 5) & 3);
      const at = lane * registers + halves * (bit >> 7) + (row >> 3);
      words[at] = (words[at] ?? 0) | (encode(value) << (bit & 31));
    }
  return words;
}

function loads(array: string, first: number, count: number): string {
  return [
    `mul.wide.u32 %d1, %thread, ${4 * count}; add.u64 %d1, %d1, %${array};`,
    ...Array.from({ length: count }, (_, at) => `ld.global.b32 %r${first + at}, [%d1+${4 * at}];`),
  ].join("\n");
}

function list(first: number, count: number): string {
  return `{${Array.from({ length: count }, (_, at) => `%r${first + at}`).join(", ")}}`;
}

const bytesOf = (words: Uint32Array): Uint8Array => new Uint8Array(words.buffer);

function opcodeOf({ k, a, b, d, flag = "", ordered = false }: Form): string {
  return `mma.${ordered ? "sp::ordered_metadata" : "sp"}.sync.aligned.m16n8k${k}.row.col${flag}.${d}.${a}.${b}.${d}`;
}

function expectProduct(form: Form): void {
  const { k, d, selector, flag } = form;
  const random = new Random(seed);
  const rows = Array.from({ length: 16 }, () =>
    sparseRow(form.a, k, form.ordered ?? false, random),
  );
  const b = Array.from({ length: 8 }, () =>
    Array.from({ length: k }, () => elementOf(form.b).draw(random)),
  );
  const large = d === "s32" ? 2 ** 31 - 900 : 9;
  const c = Array.from({ length: 128 }, () => (random.below(2) === 0 ? -large : large));
  const aWords = packRows(
    rows.map(({ packed }) => packed),
    elementOf(form.a),
  );
  const bWords = packRows(b, elementOf(form.b));
  const codes = rows.map((row) => row.codes);
  const cCount = d === "f16" ? 2 : 4;
  const encode = (value: number): number => (d === "s32" ? value >>> 0 : encodeFloat(d, value));
  const placeOf = (row: number, column: number) => {
    const lane = 4 * (row & 7) + (column >> 1);
    const slot = 2 * (row >> 3) + (column & 1);
    return d === "f16"
      ? { word: lane * cCount + (slot >> 1), shift: 16 * (slot & 1) }
      : { word: lane * cCount + slot, shift: 0 };
  };
  const cWords = new Uint32Array(32 * cCount);
  for (const [index, value] of c.entries()) {
    const { word, shift } = placeOf(index >> 3, index & 7);
    cWords[word] = (cWords[word] ?? 0) | (encode(value) << shift);
  }
  const [aCount, bCount] = [aWords.length / 32, bWords.length / 32];
  const body = [
    loads("a", 10, aCount),
    loads("b", 20, bCount),
    loads("c", 30, cCount),
    loads("e", 40, 1),
    `${opcodeOf(form)} ${list(50, cCount)}, ${list(10, aCount)}, ${list(20, bCount)}, ${list(30, cCount)}, %r40, ${selector};`,
    `mul.wide.u32 %d1, %thread, ${4 * cCount}; add.u64 %d1, %d1, %out;`,
    ...Array.from({ length: cCount }, (_, at) => `st.global.b32 [%d1+${4 * at}], %r${50 + at};`),
  ].join("\n");
  const e = metadataWords(form.a, selector, codes, random);
  const { arrays, codes: findings } = runPtx({
    body,
    arrays: {
      a: bytesOf(aWords),
      b: bytesOf(bWords),
      c: bytesOf(cWords),
      e: bytesOf(e),
      out: 4 * cWords.length,
    },
  });
  expect(findings).toEqual([]);
  const out = new Uint32Array(arrays["out"]?.buffer ?? new ArrayBuffer(0));
  for (const [index, start] of c.entries()) {
    const [row, column] = [index >> 3, index & 7];
    const whole = rows[row]?.whole ?? [];
    const sum = whole.reduce((all, left, at) => all + left * (b[column]?.[at] ?? 0), start);
    const kept = flag === ".satfinite" ? Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, sum)) : sum;
    const { word, shift } = placeOf(row, column);
    const found = ((out[word] ?? 0) >>> shift) & (d === "f16" ? 0xffff : -1);
    const message = `seed ${seed}: row ${row}, column ${column}`;
    expect(found >>> 0, message).toBe(encode(kept === 0 ? 0 : kept));
  }
}

describe("mma.sp multiplies what the metadata name", () => {
  test.for<Form>([
    ...[0, 1, 2, 3].map((selector) => ({ k: 16, a: "f16", b: "f16", d: "f32", selector }) as const),
    ...[0, 1].map((selector) => ({ k: 32, a: "f16", b: "f16", d: "f16", selector }) as const),
    { k: 16, a: "bf16", b: "bf16", d: "f32", selector: 3 },
    { k: 32, a: "bf16", b: "bf16", d: "f32", selector: 1, ordered: true },
    ...[0, 1, 2, 3].map(
      (selector) => ({ k: 8, a: "tf32", b: "tf32", d: "f32", selector }) as const,
    ),
    ...[0, 1].map((selector) => ({ k: 16, a: "tf32", b: "tf32", d: "f32", selector }) as const),
    { k: 64, a: "e4m3", b: "e5m2", d: "f32", selector: 0 },
    { k: 64, a: "e5m2", b: "e4m3", d: "f32", selector: 0, ordered: true },
    { k: 32, a: "s8", b: "u8", d: "s32", selector: 0 },
    { k: 32, a: "u8", b: "s8", d: "s32", selector: 1 },
    { k: 64, a: "s8", b: "s8", d: "s32", selector: 0, flag: ".satfinite" },
    { k: 64, a: "u8", b: "u8", d: "s32", selector: 0, ordered: true },
    { k: 64, a: "s4", b: "u4", d: "s32", selector: 0 },
    { k: 64, a: "u4", b: "s4", d: "s32", selector: 1 },
    { k: 128, a: "s4", b: "s4", d: "s32", selector: 0 },
  ])("k$k $a by $b in $d, selector $selector", expectProduct);
});

describe("metadata that mean nothing (TW8075)", () => {
  const product = (metadata: number, spelling: string, types: string, k: number) =>
    runPtx({
      body: [
        ...Array.from({ length: 8 }, (_, at) => `mov.b32 %r${at}, 0;`),
        `mov.b32 %r8, ${metadata};`,
        `mma.${spelling}.sync.aligned.m16n8k${k}.row.col.${types} ${list(0, 4)}, ${list(4, 2)}, ${list(6, 2)}, ${list(0, 4)}, %r8, 1;`,
      ].join("\n"),
    }).codes;
  const halves = "f32.f16.f16.f32";
  const words = "f32.tf32.tf32.f32";

  test("both indices the same", () => {
    expect(product(0x4444_4454, "sp", halves, 16)).toEqual(["TW8075"]);
    expect(product(0x4444_44e4, "sp", halves, 16)).toEqual([]);
  });

  test("indices that descend, where they must ascend", () => {
    expect(product(0x4444_4414, "sp", halves, 16)).toEqual([]);
    expect(product(0x4444_4414, "sp::ordered_metadata", halves, 16)).toEqual(["TW8075"]);
  });

  test("halves of two tf32", () => {
    expect(product(0x4e4e_e44e, "sp", words, 8)).toEqual([]);
    expect(product(0x4e4e_e48e, "sp", words, 8)).toEqual(["TW8075"]);
  });
});

describe("sparse products that PTX does not have (TW8001)", () => {
  test.for([
    ["a selector beyond the lanes", "m16n8k32.row.col.f32.f16.f16.f32", 4, 4, "%r8, 2"],
    ["a selector where all lanes count", "m16n8k64.row.col.s32.s8.s8.s32", 4, 4, "%r8, 1"],
    ["a selector in a register", "m16n8k16.row.col.f32.f16.f16.f32", 2, 2, "%r8, %r9"],
    ["another shape", "m16n8k8.row.col.f32.f16.f16.f32", 1, 1, "%r8, 0"],
    ["f16 sums of FP8", "m16n8k64.row.col.f16.e4m3.e4m3.f16", 4, 4, "%r8, 0"],
    ["bits", "m16n8k256.row.col.s32.b1.b1.s32.and.popc", 2, 2, "%r8, 0"],
    ["too few registers", "m16n8k16.row.col.f32.f16.f16.f32", 4, 2, "%r8, 0"],
  ] as const)("%s", ([, form, aCount, bCount, operands]) => {
    const sums = list(0, form.includes(".f16.e4m3") ? 2 : 4);
    const body = `mma.sp.sync.aligned.${form} ${sums}, ${list(10, aCount)}, ${list(20, bCount)}, ${sums}, ${operands};`;
    expect(runPtx({ body }).codes).toEqual(["TW8001"]);
  });
});
