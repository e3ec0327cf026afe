import { describe, expect, test } from "vitest";
import { decodeFloat, encodeFloat } from "../../formats/floats.ts";
import { Random } from "../../support/random.ts";
import { runPtx } from "../../../test/support/ptx-kernel.ts";

const seed = 832;

function list(prefix: string, first: number, count: number): string {
  return `{${Array.from({ length: count }, (_, at) => `%${prefix}${first + at}`).join(", ")}}`;
}

/** Loads A, B and C with these strides, multiplies, and stores D by rows. */
function bodyOf(options: {
  readonly shape: string;
  readonly types: readonly [d: string, a: string, c: string];
  readonly counts: readonly [d: number, a: number, b: number, c: number];
  readonly layouts: readonly [a: string, b: string];
  readonly strides: readonly [a: string, b: string];
  readonly multiply: string;
  readonly space?: string;
}): string {
  const { shape, types, counts, layouts, strides, multiply, space = ".global" } = options;
  const [d, a, c] = types;
  const prefix = a === "f64" ? "f" : "r";
  const [rd, ra, rb, rc] = [40, 0, 10, 20].map((first, at) => list(prefix, first, counts[at] ?? 0));
  return [
    `wmma.load.a.sync.aligned.${layouts[0]}.${shape}${space}.${a} ${ra}, [%a]${strides[0]};`,
    `wmma.load.b.sync.aligned.${layouts[1]}.${shape}${space}.${a} ${rb}, [%b]${strides[1]};`,
    `wmma.load.c.sync.aligned.row.${shape}${space}.${c} ${rc}, [%c];`,
    `${multiply} ${rd}, ${ra}, ${rb}, ${rc};`,
    `wmma.store.d.sync.aligned.row.${shape}${space}.${d} [%out], ${rd};`,
  ].join("\n");
}

const half = (value: number): number => encodeFloat("f16", value);
const halves = (values: readonly number[]): Uint8Array =>
  new Uint8Array(Uint16Array.from(values, half).buffer);

describe("sums of one type into another", () => {
  const random = new Random(seed);
  const draw = (): readonly number[] => Array.from({ length: 256 }, () => random.below(15) - 7);
  const [a, b] = [draw(), draw()];
  /** Element of A·B with A by rows and B by columns, 16 × 16 each. */
  const dot = (index: number): number => {
    const [row, column] = [index >> 4, index & 15];
    return Array.from(
      { length: 16 },
      (_, k) => (a[16 * row + k] ?? 0) * (b[16 * column + k] ?? 0),
    ).reduce((sum, product) => sum + product, 0);
  };

  test("f16 into f32", () => {
    const c = Array.from({ length: 256 }, () => random.below(4001) - 2000);
    const body = bodyOf({
      shape: "m16n16k16",
      types: ["f32", "f16", "f16"],
      counts: [8, 8, 8, 4],
      layouts: ["row", "col"],
      strides: ["", ", 16"],
      multiply: "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16",
    });
    const { arrays, codes } = runPtx({
      body,
      arrays: { a: halves(a), b: halves(b), c: halves(c), out: 1024 },
    });
    expect(codes).toEqual([]);
    const out = new Float32Array(arrays["out"]?.buffer ?? new ArrayBuffer(0));
    // C is rounded to f16 first: 2000 and below are f16 numbers.
    expect([...out]).toEqual(c.map((old, index) => old + dot(index)));
  });

  test("f32 into f16: the sum in f32 is rounded to nearest even", () => {
    const c = Array.from({ length: 256 }, (_, index) => 2049 + 2 * (index & 1) - dot(index));
    const body = bodyOf({
      shape: "m16n16k16",
      types: ["f16", "f16", "f32"],
      counts: [4, 8, 8, 8],
      layouts: ["row", "col"],
      strides: [", 16", ""],
      multiply: "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32",
      space: "",
    });
    const { arrays, codes } = runPtx({
      body,
      arrays: {
        a: halves(a),
        b: halves(b),
        c: new Uint8Array(Float32Array.from(c).buffer),
        out: 512,
      },
    });
    expect(codes).toEqual([]);
    const out = new Uint16Array(arrays["out"]?.buffer ?? new ArrayBuffer(0));
    expect([...out].map((code) => decodeFloat("f16", code))).toEqual(
      c.map((_, index) => (index & 1 ? 2052 : 2048)),
    );
  });
});

describe("f64", () => {
  const run = (rounding: string, a: Float64Array, b: Float64Array, c: Float64Array) => {
    const body = bodyOf({
      shape: "m8n8k4",
      types: ["f64", "f64", "f64"],
      counts: [2, 1, 1, 2],
      layouts: ["row", "row"],
      strides: [", 4", ""],
      multiply: `wmma.mma.sync.aligned.row.row.m8n8k4${rounding}.f64.f64.f64.f64`,
    });
    const bytes = (values: Float64Array): Uint8Array => new Uint8Array(values.buffer);
    const { arrays, codes } = runPtx({
      body,
      arrays: { a: bytes(a), b: bytes(b), c: bytes(c), out: 512 },
    });
    expect(codes).toEqual([]);
    return new Float64Array(arrays["out"]?.buffer ?? new ArrayBuffer(0));
  };

  test("whole numbers", () => {
    const random = new Random(seed);
    const draw = (count: number): Float64Array =>
      Float64Array.from({ length: count }, () => random.below(2001) - 1000);
    const [a, b, c] = [draw(32), draw(32), draw(64)];
    const expected = Array.from(c, (old, index) => {
      let sum = old;
      for (let k = 0; k < 4; k++)
        sum += (a[4 * (index >> 3) + k] ?? 0) * (b[8 * k + (index & 7)] ?? 0);
      return sum;
    });
    expect([...run("", a, b, c)]).toEqual(expected);
  });

  const up = 1 + 2 ** -52;
  test.for([
    ["", 1, -1],
    [".rn", 1, -1],
    [".rz", 1, -1],
    [".rm", 1, -up],
    [".rp", up, -1],
  ] as const)("1 + 2^-80 and -1 - 2^-80%s", ([rounding, positive, negative]) => {
    const a = new Float64Array(32).fill(0);
    for (let row = 0; row < 8; row++) a[4 * row] = row % 2 === 0 ? 2 ** -80 : -(2 ** -80);
    const b = new Float64Array(32).fill(1);
    const c = Float64Array.from({ length: 64 }, (_, index) => ((index >> 3) % 2 === 0 ? 1 : -1));
    const out = run(rounding, a, b, c);
    expect([...out]).toEqual(Array.from(c, (old) => (old > 0 ? positive : negative)));
  });
});

describe("elements of less than a byte", () => {
  const random = new Random(seed);

  test.for(["s4", "u4"])("%s, with gaps between lines", (type) => {
    const value = (code: number): number => (type === "s4" && code > 7 ? code - 16 : code);
    const stride = 64;
    const codes = [0, 1].map(() => Array.from({ length: 8 * stride }, () => random.below(16)));
    const pack = (nibbles: readonly number[]): Uint8Array =>
      Uint8Array.from(
        { length: nibbles.length / 2 },
        (_, at) => (nibbles[2 * at] ?? 0) | ((nibbles[2 * at + 1] ?? 0) << 4),
      );
    const [left = [], right = []] = codes;
    const c = Int32Array.from({ length: 64 }, () => random.below(1000) - 500);
    const body = bodyOf({
      shape: "m8n8k32",
      types: ["s32", type, "s32"],
      counts: [2, 1, 1, 2],
      layouts: ["row", "col"],
      strides: [`, ${stride}`, `, ${stride}`],
      multiply: `wmma.mma.sync.aligned.row.col.m8n8k32.s32.${type}.${type}.s32`,
    });
    const { arrays, codes: findings } = runPtx({
      body,
      arrays: { a: pack(left), b: pack(right), c: new Uint8Array(c.slice().buffer), out: 256 },
    });
    expect(findings).toEqual([]);
    const expected = Array.from(c, (old, index) => {
      let sum = old;
      for (let k = 0; k < 32; k++)
        sum +=
          value(left[stride * (index >> 3) + k] ?? 0) * value(right[stride * (index & 7) + k] ?? 0);
      return sum;
    });
    expect([...new Int32Array(arrays["out"]?.buffer ?? new ArrayBuffer(0))]).toEqual(expected);
  });

  test.for(["and", "xor"])("bits by %s", (operation) => {
    const draw = (): Uint8Array => Uint8Array.from({ length: 128 }, () => random.below(256));
    const [a, b] = [draw(), draw()];
    const body = bodyOf({
      shape: "m8n8k128",
      types: ["s32", "b1", "s32"],
      counts: [2, 1, 1, 2],
      layouts: ["row", "col"],
      strides: ["", ", 128"],
      multiply: `wmma.mma.${operation}.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32`,
    });
    const { arrays, codes } = runPtx({
      body,
      arrays: { a, b, c: new Uint8Array(256).fill(1), out: 256 },
    });
    expect(codes).toEqual([]);
    const expected = Array.from({ length: 64 }, (_, index) => {
      let sum = 0x01010101;
      for (let byte = 0; byte < 16; byte++) {
        const [left, right] = [a[16 * (index >> 3) + byte] ?? 0, b[16 * (index & 7) + byte] ?? 0];
        const bits = operation === "and" ? left & right : left ^ right;
        sum += [...bits.toString(2)].filter((bit) => bit === "1").length;
      }
      return sum;
    });
    expect([...new Int32Array(arrays["out"]?.buffer ?? new ArrayBuffer(0))]).toEqual(expected);
  });
});

describe("matrices that wmma does not have (TW8001)", () => {
  test.for([
    "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, {%r8,%r9}, {%r10,%r11}, {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7};",
    "wmma.mma.sync.aligned.col.col.m8n8k32.s32.s4.s4.s32 {%r0,%r1}, {%r2}, {%r3}, {%r0,%r1};",
    "wmma.load.a.sync.aligned.col.m8n8k32.global.s4 {%r0}, [%d0];",
    "wmma.load.a.sync.aligned.row.m16n16k8.global.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [%d0];",
    "wmma.load.c.sync.aligned.row.m8n8k4.global.f32 {%r0,%r1}, [%d0];",
  ])("%s", (body) => {
    expect(runPtx({ body }).codes).toEqual(["TW8001"]);
  });
});
