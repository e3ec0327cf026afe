import { describe, expect, test } from "vitest";
import { encodeFloat } from "../../formats/floats.ts";
import { Random } from "../../support/random.ts";
import { elementOf } from "../../../test/support/product-elements.ts";
import type { Element } from "../../../test/support/product-elements.ts";
import { runPtx } from "../../../test/support/ptx-kernel.ts";

const seed = 168;

interface Form {
  readonly m: 8 | 16;
  readonly k: number;
  readonly a: string;
  readonly b: string;
  readonly d: "f32" | "f16" | "s32";
  readonly suffix?: string;
}

/** Lane and bit of element k of a row of A (or a column of B) among registers of 32 bits. */
function fragmentPlace(row: number, k: number, bits: number, rows: 8 | 16) {
  const bit = k * bits;
  const lane = 4 * (row & 7) + ((bit >> 5) & 3);
  const chunk = bit >> 7;
  const register = rows === 16 ? 2 * chunk + (row >> 3) : chunk;
  return { lane, register, shift: bit & 31 };
}

function packed(values: number[][], element: Element, rows: 8 | 16): Uint32Array {
  const depth = values[0]?.length ?? 0;
  const registers = ((rows / 8) * depth * element.bits) / 128;
  const words = new Uint32Array(32 * registers);
  for (const [row, line] of values.entries())
    for (const [k, value] of line.entries()) {
      const { lane, register, shift } = fragmentPlace(row, k, element.bits, rows);
      const index = lane * registers + register;
      words[index] = (words[index] ?? 0) | (element.encode(value) << shift);
    }
  return words;
}

function list(prefix: string, count: number): string {
  return `{${Array.from({ length: count }, (_, index) => `%r${prefix}${index}`).join(", ")}}`;
}

function loads(array: string, prefix: string, count: number): string {
  return [
    `mul.wide.u32 %d1, %thread, ${4 * count}; add.u64 %d1, %d1, %${array};`,
    ...Array.from(
      { length: count },
      (_, index) => `ld.global.b32 %r${prefix}${index}, [%d1+${4 * index}];`,
    ),
  ].join("\n");
}

function bytesOf(words: Uint32Array): Uint8Array {
  return new Uint8Array(words.buffer);
}

function encodeSum(d: Form["d"], value: number): number {
  return d === "s32" ? value >>> 0 : encodeFloat(d, value);
}

function bodyOf(
  { m, k, a: typeA, b: typeB, d, suffix = "" }: Form,
  aCount: number,
  bCount: number,
) {
  const cCount = d === "f16" ? m / 8 : m / 4;
  const c = d === "s32" ? "s32" : d;
  const opcode = `mma.sync.aligned.m${m}n8k${k}.row.col.${suffix.startsWith("satfinite") ? "satfinite." : ""}${d}.${typeA}.${typeB}.${c}${suffix.replace("satfinite", "")}`;
  return [
    loads("a", "10", aCount),
    loads("b", "20", bCount),
    loads("c", "30", cCount),
    `${opcode} ${list("4", cCount)}, ${list("10", aCount)}, ${list("20", bCount)}, ${list("30", cCount)};`,
    `mul.wide.u32 %d1, %thread, ${4 * cCount}; add.u64 %d1, %d1, %out;`,
    ...Array.from(
      { length: cCount },
      (_, index) => `st.global.b32 [%d1+${4 * index}], %r4${index};`,
    ),
  ].join("\n");
}

function expectProduct(form: Form): void {
  const { m, k, d, suffix = "" } = form;
  const elementA = elementOf(form.a);
  const elementB = elementOf(form.b);
  const random = new Random(seed);
  const draw = (rows: number, element: Element): number[][] =>
    Array.from({ length: rows }, () => Array.from({ length: k }, () => element.draw(random)));
  const a = draw(m, elementA);
  const b = draw(8, elementB);
  const large = d === "s32" ? 2 ** 31 - 5 : 9;
  const c = Array.from({ length: m * 8 }, () => (random.below(2) === 0 ? -large : large));
  const perRegister = d === "f16" ? 2 : 1;
  const cCount = d === "f16" ? m / 8 : m / 4;
  const places = Array.from({ length: m * 8 }, (_, index) => {
    const [row, column] = [index >> 3, index & 7];
    const lane = 4 * (row & 7) + (column >> 1);
    const slot = 2 * (row >> 3) + (column & 1);
    return d === "f16"
      ? { word: lane * cCount + (slot >> 1), shift: 16 * (slot & 1) }
      : { word: lane * cCount + slot, shift: 0 };
  });
  const cWords = new Uint32Array((32 * m * 8) / 32 / perRegister);
  for (const [index, { word, shift }] of places.entries())
    cWords[word] = (cWords[word] ?? 0) | (encodeSum(d, c[index] ?? 0) << shift);
  const aWords = packed(a, elementA, m);
  const bWords = packed(b, elementB, 8);
  const { arrays, codes } = runPtx({
    body: bodyOf(form, aWords.length / 32, bWords.length / 32),
    arrays: { a: bytesOf(aWords), b: bytesOf(bWords), c: bytesOf(cWords), out: 4 * cWords.length },
  });
  expect(codes).toEqual([]);
  const out = new Uint32Array(arrays["out"]?.buffer ?? new ArrayBuffer(0));
  for (const [index, { word, shift }] of places.entries()) {
    const [row, column] = [index >> 3, index & 7];
    const sum = sumOf(suffix, a[row] ?? [], b[column] ?? [], c[index] ?? 0);
    const found = ((out[word] ?? 0) >>> shift) & (d === "f16" ? 0xffff : -1);
    expect(found >>> 0, `seed ${seed}: row ${row}, column ${column}`).toBe(encodeSum(d, sum));
  }
}

/** One element of the product; never −0. */
function sumOf(suffix: string, row: readonly number[], column: readonly number[], start: number) {
  const sum = row.reduce((all, left, k) => {
    const right = column[k] ?? 0;
    return all + (suffix.includes("xor") ? left ^ right : left * right);
  }, start);
  if (suffix.startsWith("satfinite")) return Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, sum));
  return sum === 0 ? 0 : sum;
}

describe("mma.sync multiplies matrices in registers", () => {
  test.for<Form>([
    { m: 16, k: 16, a: "f16", b: "f16", d: "f32" },
    { m: 16, k: 8, a: "f16", b: "f16", d: "f32" },
    { m: 16, k: 16, a: "f16", b: "f16", d: "f16" },
    { m: 16, k: 8, a: "f16", b: "f16", d: "f16" },
    { m: 16, k: 16, a: "bf16", b: "bf16", d: "f32" },
    { m: 16, k: 8, a: "bf16", b: "bf16", d: "f32" },
    { m: 16, k: 8, a: "tf32", b: "tf32", d: "f32" },
    { m: 16, k: 4, a: "tf32", b: "tf32", d: "f32" },
    { m: 16, k: 32, a: "e4m3", b: "e5m2", d: "f32" },
    { m: 16, k: 32, a: "e5m2", b: "e4m3", d: "f16" },
    { m: 16, k: 32, a: "s8", b: "u8", d: "s32" },
    { m: 16, k: 16, a: "u8", b: "s8", d: "s32" },
    { m: 8, k: 16, a: "s8", b: "s8", d: "s32" },
    { m: 16, k: 64, a: "s4", b: "u4", d: "s32" },
    { m: 16, k: 32, a: "u4", b: "s4", d: "s32" },
    { m: 8, k: 32, a: "s4", b: "s4", d: "s32" },
    { m: 16, k: 256, a: "b1", b: "b1", d: "s32", suffix: ".and.popc" },
    { m: 16, k: 128, a: "b1", b: "b1", d: "s32", suffix: ".xor.popc" },
    { m: 8, k: 128, a: "b1", b: "b1", d: "s32", suffix: ".xor.popc" },
    { m: 16, k: 32, a: "s8", b: "s8", d: "s32", suffix: "satfinite" },
  ])("m$m k$k $a by $b in $d $suffix", expectProduct);

  test.for([
    { m: 8, k: 4 },
    { m: 16, k: 4 },
    { m: 16, k: 8 },
    { m: 16, k: 16 },
  ])("f64, m$m k$k, fused k by k", ({ m, k }) => {
    const random = new Random(seed);
    const draw = (count: number): Float64Array =>
      Float64Array.from({ length: count }, () => random.below(2001) - 1000);
    const a = draw(m * k);
    const b = draw(8 * k);
    const c = draw(8 * m);
    const aCount = (m * k) / 32;
    const bCount = k / 4;
    const cCount = m / 4;
    const groups = m / 8;
    const spread = (count: number, pick: (lane: number, index: number) => number): Uint8Array =>
      new Uint8Array(
        Float64Array.from({ length: 32 * count }, (_, at) =>
          pick(Math.floor(at / count), at % count),
        ).buffer,
      );
    const aLanes = spread(
      aCount,
      (lane, index) =>
        a[((lane >> 2) + 8 * (index % groups)) * k + (lane & 3) + 4 * Math.floor(index / groups)] ??
        0,
    );
    const bLanes = spread(
      bCount,
      (lane, index) => b[(lane >> 2) * k + (lane & 3) + 4 * index] ?? 0,
    );
    const cAt = (lane: number, index: number): number =>
      ((lane >> 2) + 8 * (index >> 1)) * 8 + 2 * (lane & 3) + (index & 1);
    const cLanes = spread(cCount, (lane, index) => c[cAt(lane, index)] ?? 0);
    const loadWide = (array: string, first: number, count: number): string =>
      [
        `mul.wide.u32 %d1, %thread, ${8 * count}; add.u64 %d1, %d1, %${array};`,
        ...Array.from(
          { length: count },
          (_, index) => `ld.global.f64 %f${first + index}, [%d1+${8 * index}];`,
        ),
      ].join("\n");
    const names = (first: number, count: number): string =>
      `{${Array.from({ length: count }, (_, index) => `%f${first + index}`).join(", ")}}`;
    const body = [
      loadWide("a", 0, aCount),
      loadWide("b", 10, bCount),
      loadWide("c", 20, cCount),
      `mma.sync.aligned.m${m}n8k${k}.row.col.f64.f64.f64.f64 ${names(30, cCount)}, ${names(0, aCount)}, ${names(10, bCount)}, ${names(20, cCount)};`,
      `mul.wide.u32 %d1, %thread, ${8 * cCount}; add.u64 %d1, %d1, %out;`,
      ...Array.from(
        { length: cCount },
        (_, index) => `st.global.f64 [%d1+${8 * index}], %f${30 + index};`,
      ),
    ].join("\n");
    const { arrays, codes } = runPtx({
      body,
      arrays: { a: aLanes, b: bLanes, c: cLanes, out: 256 * cCount },
    });
    expect(codes).toEqual([]);
    const out = new Float64Array(arrays["out"]?.buffer ?? new ArrayBuffer(0));
    for (let lane = 0; lane < 32; lane++)
      for (let index = 0; index < cCount; index++) {
        const at = cAt(lane, index);
        let sum = c[at] ?? 0;
        for (let step = 0; step < k; step++)
          sum += (a[(at >> 3) * k + step] ?? 0) * (b[(at & 7) * k + step] ?? 0);
        expect(out[lane * cCount + index]).toBe(sum);
      }
  });
});

describe("products that PTX does not have (TW8001)", () => {
  test.for([
    "mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32 {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%r8,%r9}, {%r0,%r1,%r2,%r3};",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%r8,%r9}, {%r0,%r1,%r2,%r3};",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%r8,%r9}, {%r0,%r1};",
    "mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7,%r10,%r11,%r12,%r13}, {%r8,%r9,%r14,%r15}, {%r0,%r1,%r2,%r3};",
    "mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32 {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%r8,%r9}, {%r0,%r1,%r2,%r3};",
    "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32 {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%r8}, {%r0,%r1,%r2,%r3};",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%r8,%r9}, {%r0,%r1,%r2,%r3};",
  ])("%s", (body) => {
    expect(runPtx({ body }).codes).toEqual(["TW8001"]);
  });
});

describe("matrices between shared memory and registers", () => {
  const halves = Uint16Array.from({ length: 256 }, (_, index) => 1000 + index);
  const x = new Uint8Array(halves.buffer);
  const stage =
    "mul.wide.u32 %d1, %thread, 16; add.u64 %d1, %d1, %x; shl.b32 %r1, %thread, 4; add.u32 %r1, %r1, %smem;";
  const fill = `${stage} ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%d1]; st.shared.v4.b32 [%r1], {%r2, %r3, %r4, %r5}; bar.sync 0;`;
  const give =
    "mul.wide.u32 %d1, %thread, 16; add.u64 %d1, %d1, %out; st.global.v4.b32 [%d1], {%r10, %r11, %r12, %r13};";

  function loaded(suffix: string): Uint16Array {
    const body = `${fill} ldmatrix.sync.aligned.m8n8.x4${suffix}.shared.b16 {%r10, %r11, %r12, %r13}, [%r1]; ${give}`;
    const { arrays, codes } = runPtx({ body, arrays: { x, out: 512 } });
    expect(codes).toEqual([]);
    return new Uint16Array(arrays["out"]?.buffer ?? new ArrayBuffer(0));
  }

  test("ldmatrix gives lane l row l/4, columns 2(l mod 4) and the next, of every matrix", () => {
    const out = loaded("");
    for (let lane = 0; lane < 32; lane++)
      for (let matrix = 0; matrix < 4; matrix++)
        for (let half = 0; half < 2; half++)
          expect(out[8 * lane + 2 * matrix + half]).toBe(
            1000 + 64 * matrix + 8 * (lane >> 2) + 2 * (lane & 3) + half,
          );
  });

  test("transposed it gives the same of the columns", () => {
    const out = loaded(".trans");
    for (let lane = 0; lane < 32; lane++)
      for (let matrix = 0; matrix < 4; matrix++)
        for (let half = 0; half < 2; half++)
          expect(out[8 * lane + 2 * matrix + half]).toBe(
            1000 + 64 * matrix + 8 * (2 * (lane & 3) + half) + (lane >> 2),
          );
  });

  test.for(["", ".trans"])("stmatrix%s puts back what ldmatrix%s took", (suffix) => {
    const body = [
      fill,
      `ldmatrix.sync.aligned.m8n8.x4${suffix}.shared.b16 {%r10, %r11, %r12, %r13}, [%r1];`,
      `stmatrix.sync.aligned.m8n8.x4${suffix}.shared.b16 [%r1+512], {%r10, %r11, %r12, %r13};`,
      "bar.sync 0; ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r1+512];",
      give,
    ].join("\n");
    const { arrays, codes } = runPtx({ body, arrays: { x, out: 512 } });
    expect(codes).toEqual([]);
    expect(arrays["out"]).toEqual(x);
  });

  test("movmatrix transposes in registers", () => {
    const body = [
      fill,
      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r1];",
      "movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r20; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0;",
      give,
    ].join("\n");
    const { arrays } = runPtx({ body, arrays: { x, out: 512 } });
    const out = new Uint16Array(arrays["out"]?.buffer ?? new ArrayBuffer(0));
    for (let lane = 0; lane < 32; lane++)
      for (let half = 0; half < 2; half++)
        expect(out[8 * lane + half]).toBe(1000 + 8 * (2 * (lane & 3) + half) + (lane >> 2));
  });

  test("a row that is not aligned to 16 bytes", () => {
    const body = `${fill} add.u32 %r1, %r1, 4; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r1];`;
    expect(runPtx({ body, arrays: { x } }).codes).toContain("TW8011");
  });

  test("rows that nothing has written", () => {
    const body = `${stage} ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r1];`;
    expect(runPtx({ body, arrays: { x } }).codes).toContain("TW8013");
  });
});
