import { describe, expect, test } from "vitest";
import { encodeFloat } from "../../formats/floats.ts";
import { Random } from "../../support/random.ts";
import { fillShared, runPtx } from "../../../test/support/ptx-kernel.ts";
import { elementOf } from "../../../test/support/product-elements.ts";
import { metadataWords, sparseRow } from "../../../test/support/sparse.ts";

const seed = 6432;
const threads = 128;
const columns = 16;
const startOfB = 8192;

interface Case {
  readonly a: string;
  readonly b: string;
  readonly d: "f32" | "f16" | "s32";
  readonly selector: 0 | 1;
  readonly swizzle: 0 | 32 | 64 | 128;
  readonly majorB?: "mn";
  readonly registers?: boolean;
}

/** Boxes as tensor copies write them: rows along the major axis, W bytes wide (16 without a swizzle). */
interface Box {
  readonly at: number;
  readonly swizzle: Case["swizzle"];
  readonly width: number;
  /** Lines of a box. */
  readonly lines: number;
}

function boxOf(at: number, swizzle: Case["swizzle"], lines: number): Box {
  return { at, swizzle, width: swizzle === 0 ? 16 : swizzle, lines };
}

function placeIn({ at, swizzle, width, lines }: Box, line: number, byte: number): number {
  const plain = at + (Math.floor(byte / width) * lines + line) * width + (byte % width);
  return swizzle === 0 ? plain : plain ^ (((plain >> 7) % (swizzle / 16)) * 16);
}

function descriptorOf({ at, swizzle, width, lines }: Box, isTransposed: boolean): bigint {
  const code = { 0: 0n, 128: 1n, 64: 2n, 32: 3n }[swizzle];
  const boxBytes = BigInt(lines * width);
  const group = BigInt(8 * width);
  // Without a swizzle, MN-major exchanges what the two offsets step over.
  const [leading, stride] = isTransposed && swizzle === 0 ? [group, boxBytes] : [boxBytes, group];
  return (code << 62n) | ((stride >> 4n) << 32n) | ((leading >> 4n) << 16n) | BigInt(at >> 4);
}

function depthOf({ a }: Case): number {
  return 512 / elementOf(a).bits;
}

function opcodeOf(form: Case): string {
  return `wgmma.mma_async.sp.sync.aligned.m64n${columns}k${depthOf(form)}.${form.d}.${form.a}.${form.b}`;
}

function tail({ a, d, registers = false, majorB }: Case): string {
  if (d === "s32") return "";
  if (elementOf(a).bits !== 16) return ", 1, 1";
  return `, 1, 1${registers ? "" : ", 0"}, ${majorB === "mn" ? 1 : 0}`;
}

function bodyOf(form: Case, boxA: Box, boxB: Box): string {
  const count = form.d === "f16" ? columns / 4 : columns / 2;
  const sums = Array.from({ length: count }, (_, at) => `%r${at}`);
  const a = form.registers === true ? "{%r400, %r401, %r402, %r403}" : "%d2";
  const product = (scale: number): string =>
    `${opcodeOf(form)} {${sums.join(", ")}}, ${a}, %d3, %r410, ${form.selector}, ${scale}${tail(form)};`;
  return [
    fillShared("x", 0, 16384, threads),
    "fence.proxy.async.shared::cta; bar.sync 0;",
    "cvt.u64.u32 %d1, %smem; shr.u64 %d1, %d1, 4;",
    "mul.wide.u32 %d5, %thread, 16; add.u64 %d5, %d5, %y; ld.global.v4.b32 {%r400, %r401, %r402, %r403}, [%d5];",
    "mul.wide.u32 %d5, %thread, 4; add.u64 %d5, %d5, %e; ld.global.b32 %r410, [%d5];",
    `mov.u64 %d2, ${descriptorOf(boxA, false)}; add.u64 %d2, %d2, %d1;`,
    `mov.u64 %d3, ${descriptorOf(boxB, form.majorB === "mn")}; add.u64 %d3, %d3, %d1;`,
    "wgmma.fence.sync.aligned;",
    product(0),
    product(1),
    "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
    `mul.wide.u32 %d4, %thread, ${4 * count}; add.u64 %d4, %d4, %out;`,
    ...sums.map((sum, at) => `st.global.b32 [%d4+${4 * at}], ${sum};`),
  ].join("\n");
}

/** Writes bits of an element into bytes; elements are whole bytes. */
function put(bytes: Uint8Array, at: number, bits: number, width: number): void {
  for (let byte = 0; byte < width; byte++) bytes[at + byte] = bits >>> (8 * byte);
}

function makeProblem(form: Case) {
  const random = new Random(seed);
  const depth = depthOf(form);
  const elementA = elementOf(form.a);
  const elementB = elementOf(form.b);
  const width = elementA.bits / 8;
  const rows = Array.from({ length: 64 }, () => sparseRow(form.a, depth, false, random));
  const b = Array.from({ length: columns }, () =>
    Array.from({ length: depth }, () => elementB.draw(random)),
  );
  const boxA = boxOf(0, form.swizzle, 64);
  const boxB = boxOf(startOfB, form.swizzle, form.majorB === "mn" ? depth : columns);
  const shared = new Uint8Array(16384);
  const fragments = new Uint8Array(16 * threads);
  for (const [row, { packed }] of rows.entries())
    for (const [k, value] of packed.entries()) {
      const byte = k * width;
      put(shared, placeIn(boxA, row, byte), elementA.encode(value), width);
      // Lane 4g + t of warp w has bytes 4t … of rows 16w + g and + 8, then the same 16 bytes on.
      const lane = 32 * (row >> 4) + 4 * (row & 7) + ((byte >> 2) & 3);
      const register = 2 * (byte >> 4) + ((row >> 3) & 1);
      put(fragments, 16 * lane + 4 * register + (byte & 3), elementA.encode(value), width);
    }
  for (const [column, line] of b.entries())
    for (const [k, value] of line.entries()) {
      const at =
        form.majorB === "mn" ? placeIn(boxB, k, column * width) : placeIn(boxB, column, k * width);
      put(shared, at, elementB.encode(value), width);
    }
  const words = [0, 1, 2, 3].flatMap((warp) => {
    const codes = rows.slice(16 * warp, 16 * warp + 16).map((row) => row.codes);
    return [...metadataWords(form.a, form.selector, codes, random)];
  });
  const metadata = new Uint8Array(Uint32Array.from(words).buffer);
  return { rows, b, boxA, boxB, shared, fragments, metadata };
}

function expectProduct(form: Case): void {
  const { rows, b, boxA, boxB, shared, fragments, metadata } = makeProblem(form);
  const isHalf = form.d === "f16";
  const count = isHalf ? columns / 4 : columns / 2;
  const { arrays, codes } = runPtx({
    body: bodyOf(form, boxA, boxB),
    arrays: { x: shared, y: fragments, e: metadata, out: 4 * threads * count },
    threads,
  });
  expect(codes).toEqual([]);
  const out = new Uint32Array(arrays["out"]?.buffer ?? new ArrayBuffer(0));
  for (const [row, { whole }] of rows.entries())
    for (const [column, line] of b.entries()) {
      const sum = 2 * whole.reduce((all, left, k) => all + left * (line[k] ?? 0), 0);
      const lane = 32 * (row >> 4) + 4 * (row & 7) + ((column & 7) >> 1);
      const upper = (row >> 3) & 1;
      const register = isHalf
        ? 2 * (column >> 3) + upper
        : 4 * (column >> 3) + 2 * upper + (column & 1);
      const word = out[lane * count + register] ?? 0;
      const found = isHalf ? (word >>> (16 * (column & 1))) & 0xffff : word;
      const expected = form.d === "s32" ? sum >>> 0 : encodeFloat(form.d, sum === 0 ? 0 : sum);
      expect(found, `seed ${seed}: row ${row}, column ${column}`).toBe(expected);
    }
}

describe("wgmma.mma_async.sp multiplies what the metadata name", () => {
  const half = { a: "f16", b: "f16", d: "f32" } as const;
  test.for<Case>([
    ...([0, 32, 64, 128] as const).map((swizzle) => ({ ...half, selector: 0, swizzle }) as const),
    ...([0, 32, 128] as const).map(
      (swizzle) => ({ ...half, selector: 1, swizzle, majorB: "mn" }) as const,
    ),
    { ...half, d: "f16", selector: 1, swizzle: 64, registers: true },
    { a: "bf16", b: "bf16", d: "f32", selector: 1, swizzle: 128 },
    { a: "tf32", b: "tf32", d: "f32", selector: 0, swizzle: 32 },
    { a: "tf32", b: "tf32", d: "f32", selector: 1, swizzle: 128, registers: true },
    { a: "e4m3", b: "e5m2", d: "f32", selector: 0, swizzle: 128 },
    { a: "e5m2", b: "e4m3", d: "f16", selector: 0, swizzle: 0, registers: true },
    { a: "s8", b: "u8", d: "s32", selector: 0, swizzle: 32 },
    { a: "u8", b: "s8", d: "s32", selector: 0, swizzle: 64, registers: true },
  ])("$a by $b in $d, selector $selector, swizzle $swizzle", expectProduct);

  test("metadata that are overwritten before the wait (TW8070)", () => {
    const form: Case = { ...half, selector: 0, swizzle: 128 };
    const { boxA, boxB, shared, fragments, metadata } = makeProblem(form);
    const { codes } = runPtx({
      body: bodyOf(form, boxA, boxB).replace("wgmma.commit", "mov.b32 %r410, 0; wgmma.commit"),
      arrays: { x: shared, y: fragments, e: metadata, out: 4096 },
      threads,
    });
    expect([...new Set(codes)]).toEqual(["TW8070"]);
  });

  test("metadata that name an element twice (TW8075)", () => {
    const form: Case = { ...half, selector: 0, swizzle: 128 };
    const { boxA, boxB, shared, fragments, metadata } = makeProblem(form);
    // Lane 4 of the second warp: rows 1 and 9.
    metadata[4 * 36] = 0x55;
    const { codes, errors } = runPtx({
      body: bodyOf(form, boxA, boxB),
      arrays: { x: shared, y: fragments, e: metadata, out: 4096 },
      threads,
    });
    expect([...new Set(codes)]).toEqual(["TW8075"]);
    expect(errors[0]?.message).toContain("row 1");
  });

  test.for([
    "m64n16k32.f32.f16.f16 %r410, 2",
    "m64n16k64.s32.s8.s8 %r410, 1",
    "m64n16k16.f32.f16.f16 %r410, 0",
    "m64n20k32.f32.f16.f16 %r410, 0",
    "m64n40k64.s32.s8.s8 %r410, 0",
    "m64n16k128.s32.s4.s4 %r410, 0",
    "m64n16k32.f32.f16.f16 %r410, %r411",
  ])("PTX does not have %s (TW8001)", (text) => {
    const [form = "", ...operands] = text.split(" ");
    const sums = Array.from({ length: 10 }, (_, at) => `%r${at}`).slice(
      0,
      form.includes("n16") ? 8 : 10,
    );
    const ends = form.includes("s32") ? "" : ", 1, 1, 0, 0";
    const body = `wgmma.mma_async.sp.sync.aligned.${form} {${sums.join(", ")}}, %d2, %d3, ${operands.join(" ")}, 1${ends};`;
    expect(runPtx({ body, threads }).codes).toEqual(["TW8001"]);
  });
});
