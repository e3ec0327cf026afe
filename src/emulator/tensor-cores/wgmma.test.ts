import { describe, expect, test } from "vitest";
import { encodeFloat } from "../../formats/floats.ts";
import { Random } from "../../support/random.ts";
import { fillShared, runPtx } from "../../../test/support/ptx-kernel.ts";

const seed = 640;
const threads = 128;

interface Element {
  readonly bytes: 1 | 2 | 4;
  /** The bits of a small integer. */
  readonly encode: (value: number) => number;
}

const elements: { readonly [type: string]: Element } = {
  f16: { bytes: 2, encode: (value) => encodeFloat("f16", value) },
  bf16: { bytes: 2, encode: (value) => encodeFloat("bf16", value) },
  tf32: { bytes: 4, encode: (value) => encodeFloat("tf32", value) },
  e4m3: { bytes: 1, encode: (value) => encodeFloat("f8e4m3fn", value) },
  e5m2: { bytes: 1, encode: (value) => encodeFloat("f8e5m2", value) },
  s8: { bytes: 1, encode: (value) => value & 0xff },
  u8: { bytes: 1, encode: (value) => Math.abs(value) },
};

function valueOf(type: string, value: number): number {
  return type === "u8" ? Math.abs(value) : value;
}

type Swizzle = 0 | 32 | 64 | 128;
type Major = "k" | "mn";

/** How an operand lies in shared memory: rows of 32 bytes of k, or k of rows of 16-bit elements. */
interface Layout {
  readonly at: number;
  readonly rows: number;
  readonly major: Major;
  readonly swizzle: Swizzle;
}

/**
 * Where element (row, k) lies, thought of as boxes that tensor copies write: rows of W bytes along the
 * major axis (16 without a swizzle), boxes one behind the other, chunks exchanged by address bits.
 */
function placeOf(
  { at, rows, major, swizzle }: Layout,
  row: number,
  k: number,
  bytes: number,
): number {
  const width = swizzle === 0 ? 16 : swizzle;
  const [inner, outer, outerCount] = major === "k" ? [k, row, rows] : [row, k, 32 / bytes];
  const perRow = width / bytes;
  const box = Math.floor(inner / perRow);
  const plain = at + (box * outerCount + outer) * width + (inner % perRow) * bytes;
  return swizzle === 0 ? plain : plain ^ (((plain >> 7) % (swizzle / 16)) * 16);
}

function descriptorOf({ at, rows, major, swizzle }: Layout, bytes: number): bigint {
  const code = { 0: 0n, 128: 1n, 64: 2n, 32: 3n }[swizzle];
  const width = swizzle === 0 ? 16 : swizzle;
  const boxBytes = (major === "k" ? rows : 32 / bytes) * width;
  const [leading, stride] =
    major === "k"
      ? [swizzle === 0 ? boxBytes : 16, 8 * width]
      : swizzle === 0
        ? [128, boxBytes]
        : [boxBytes, 8 * width];
  return (
    (code << 62n) | (BigInt(stride >> 4) << 32n) | (BigInt(leading >> 4) << 16n) | BigInt(at >> 4)
  );
}

interface Case {
  readonly n: number;
  readonly a: string;
  readonly b: string;
  readonly d: "f32" | "f16" | "s32";
  readonly layoutA: Layout | undefined;
  readonly layoutB: Layout;
  readonly negateA?: boolean;
  readonly seed?: number;
}

function put(shared: Uint8Array, at: number, bits: number, bytes: number): void {
  for (let byte = 0; byte < bytes; byte++) shared[at + byte] = bits >>> (8 * byte);
}

function opcodeOf({ n, a, b, d }: Case): string {
  const k = 32 / (elements[a]?.bytes ?? 1);
  return `wgmma.mma_async.sync.aligned.m64n${n}k${k}.${d}.${a}.${b}`;
}

function tail({ a, layoutA, layoutB, negateA = false }: Case): string {
  if (a === "s8" || a === "u8") return "";
  const scales = `, ${negateA ? -1 : 1}, 1`;
  if (elements[a]?.bytes !== 2) return scales;
  const transposes = [...(layoutA === undefined ? [] : [layoutA]), layoutB];
  return `${scales}${transposes.map(({ major }) => (major === "mn" ? ", 1" : ", 0")).join("")}`;
}

/** The kernel: D = A·B + C, twice, so that the second product adds to the first. */
function bodyOf(shape: Case): string {
  const { n, d } = shape;
  const count = d === "f16" ? n / 4 : n / 2;
  const registers = Array.from({ length: count }, (_, index) => `%r${index}`);
  const bytesB = elements[shape.b]?.bytes ?? 1;
  const a = shape.layoutA === undefined ? "{%r400, %r401, %r402, %r403}" : "%d2";
  const product = (scale: string): string =>
    `${opcodeOf(shape)} {${registers.join(", ")}}, ${a}, %d3, ${scale}${tail(shape)};`;
  return [
    fillShared("x", 0, 32768, threads),
    "fence.proxy.async.shared::cta; bar.sync 0;",
    "cvt.u64.u32 %d1, %smem; shr.u64 %d1, %d1, 4;",
    shape.layoutA === undefined
      ? "mul.wide.u32 %d5, %thread, 16; add.u64 %d5, %d5, %y; ld.global.v4.b32 {%r400, %r401, %r402, %r403}, [%d5];"
      : `mov.u64 %d2, ${descriptorOf(shape.layoutA, elements[shape.a]?.bytes ?? 1)}; add.u64 %d2, %d2, %d1;`,
    `mov.u64 %d3, ${descriptorOf(shape.layoutB, bytesB)}; add.u64 %d3, %d3, %d1;`,
    "wgmma.fence.sync.aligned;",
    product("0"),
    product("1"),
    "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
    `mul.wide.u32 %d4, %thread, ${4 * count}; add.u64 %d4, %d4, %out;`,
    ...registers.map((register, index) => `st.global.b32 [%d4+${4 * index}], ${register};`),
  ].join("\n");
}

interface Problem {
  readonly shared: Uint8Array;
  readonly fragments: Uint8Array;
  readonly product: (row: number, column: number) => number;
}

function makeProblem(shape: Case, start: number): Problem {
  const random = new Random(start);
  const elementA = elements[shape.a];
  const elementB = elements[shape.b];
  if (elementA === undefined || elementB === undefined) throw new Error(`${shape.a}, ${shape.b}`);
  const depth = 32 / elementA.bytes;
  const draw = (rows: number, type: string): number[][] =>
    Array.from({ length: rows }, () =>
      Array.from({ length: depth }, () => valueOf(type, random.below(9) - 4)),
    );
  const a = draw(64, shape.a);
  const b = draw(shape.n, shape.b);
  const shared = new Uint8Array(32768);
  const fragments = new Uint8Array(threads * 16);
  for (const [row, values] of a.entries())
    for (const [k, value] of values.entries()) {
      const bits = elementA.encode(value);
      const { bytes } = elementA;
      if (shape.layoutA !== undefined)
        put(shared, placeOf(shape.layoutA, row, k, bytes), bits, bytes);
      // Register r of a lane holds row 16w + g + 8(r mod 2), bytes 4t … behind 16⌊r/2⌋.
      const byte = k * bytes;
      const lane = 32 * (row >> 4) + 4 * (row & 7) + ((byte & 15) >> 2);
      const register = ((row >> 3) & 1) + 2 * (byte >> 4);
      put(fragments, 16 * lane + 4 * register + (byte & 3), bits, bytes);
    }
  for (const [column, values] of b.entries())
    for (const [k, value] of values.entries())
      put(
        shared,
        placeOf(shape.layoutB, column, k, elementB.bytes),
        elementB.encode(value),
        elementB.bytes,
      );
  return {
    shared,
    fragments,
    product: (row, column) =>
      (a[row] ?? []).reduce((sum, value, k) => sum + value * (b[column]?.[k] ?? 0), 0),
  };
}

function run(shape: Case, body = bodyOf(shape)) {
  const { shared, fragments, product } = makeProblem(shape, shape.seed ?? seed);
  const count = shape.d === "f16" ? shape.n / 4 : shape.n / 2;
  const out = 4 * threads * count;
  const { arrays, codes, errors } = runPtx({
    body,
    arrays: { x: shared, y: fragments, out },
    threads,
    seed: shape.seed ?? 1,
  });
  const words = new Int32Array(arrays["out"]?.buffer ?? new ArrayBuffer(0));
  return { words, count, product, codes, errors };
}

/** The row and column of the element that a thread has in a register (and half). */
function elementOf(thread: number, index: number): readonly [number, number] {
  const lane = thread & 31;
  const row = 16 * (thread >> 5) + (lane >> 2) + 8 * ((index >> 1) & 1);
  return [row, 8 * (index >> 2) + 2 * (lane & 3) + (index & 1)];
}

function expectProduct(shape: Case): void {
  const { words, count, product, codes } = run(shape);
  expect(codes).toEqual([]);
  const sign = shape.negateA === true ? -2 : 2;
  const elementsPerRegister = shape.d === "f16" ? 2 : 1;
  const wrong: string[] = [];
  for (let thread = 0; thread < threads; thread++)
    for (let index = 0; index < count * elementsPerRegister; index++) {
      const [row, column] =
        shape.d === "f16"
          ? elementOf(thread, ((index >> 1) & 1) * 2 + (index & 1) + 4 * (index >> 2))
          : elementOf(thread, index);
      const word = words[thread * count + Math.floor(index / elementsPerRegister)] ?? 0;
      const exact = product(row, column);
      const expected = exact === 0 ? 0 : sign * exact;
      const bits = shape.d === "s32" ? expected | 0 : encodeFloat(shape.d, expected) | 0;
      const found = shape.d === "f16" ? (word >>> (16 * (index & 1))) & 0xffff : word;
      if (found !== bits) wrong.push(`row ${row}, column ${column}: ${found} for ${bits}`);
    }
  expect(wrong, JSON.stringify(shape)).toEqual([]);
}

const plain = (at: number, rows: number): Layout => ({ at, rows, major: "k", swizzle: 0 });

describe("wgmma multiplies", () => {
  test.for([
    ["f16", "f16", "f32"],
    ["f16", "f16", "f16"],
    ["bf16", "bf16", "f32"],
    ["tf32", "tf32", "f32"],
    ["e4m3", "e5m2", "f32"],
    ["e5m2", "e4m3", "f16"],
    ["s8", "s8", "s32"],
    ["u8", "s8", "s32"],
  ] as const)("%s by %s in %s", ([a, b, d]) => {
    expectProduct({ n: 16, a, b, d, layoutA: plain(0, 64), layoutB: plain(8192, 16) });
  });

  test.for([8, 24, 128, 256])("with %d columns", (n) => {
    expectProduct({
      n,
      a: "bf16",
      b: "bf16",
      d: "f32",
      layoutA: plain(0, 64),
      layoutB: plain(8192, n),
    });
  });

  const layouts = (["k", "mn"] as const).flatMap((major) =>
    ([0, 32, 64, 128] as const).map((swizzle) => ({ major, swizzle })),
  );

  test.for(layouts)("with A and B $major-major, swizzle $swizzle", ({ major, swizzle }) => {
    const layoutA = { at: 0, rows: 64, major, swizzle };
    const layoutB = { at: 16384, rows: 64, major, swizzle };
    expectProduct({ n: 64, a: "bf16", b: "bf16", d: "f32", layoutA, layoutB });
  });

  test("8-bit operands under every swizzle", () => {
    for (const swizzle of [32, 64, 128] as const)
      expectProduct({
        n: 32,
        a: "s8",
        b: "s8",
        d: "s32",
        layoutA: { at: 0, rows: 64, major: "k", swizzle },
        layoutB: { at: 16384, rows: 32, major: "k", swizzle },
      });
  });

  test.for(["f16", "tf32", "e4m3", "s8"] as const)("with A of %s in registers", (type) => {
    const d = type === "s8" ? "s32" : "f32";
    expectProduct({ n: 24, a: type, b: type, d, layoutA: undefined, layoutB: plain(8192, 24) });
  });

  test("with A negated", () => {
    expectProduct({
      n: 8,
      a: "f16",
      b: "f16",
      d: "f32",
      layoutA: plain(0, 64),
      layoutB: plain(8192, 8),
      negateA: true,
    });
  });
});

describe("wgmma used wrongly", () => {
  const shape: Case = {
    n: 8,
    a: "bf16",
    b: "bf16",
    d: "f32",
    layoutA: plain(0, 64),
    layoutB: plain(8192, 8),
  };
  const codes = (change: (body: string) => string, form: Case = shape): readonly string[] =>
    run(form, change(bodyOf(form))).codes;

  test("accumulators read before the wait (TW8070)", () => {
    const early = (body: string): string =>
      body.replace(
        "wgmma.wait_group.sync.aligned 0;",
        "st.global.b32 [%out], %r0; wgmma.wait_group.sync.aligned 0;",
      );
    expect(codes(early)).toContain("TW8070");
    expect(codes((body) => body.replace("wgmma.wait_group.sync.aligned 0;", ""))).toContain(
      "TW8070",
    );
    expect(
      codes((body) => body.replace("wait_group.sync.aligned 0", "wait_group.sync.aligned 1")),
    ).toContain("TW8070");
  });

  test("accumulators written before the wait (TW8070)", () => {
    const early = (body: string): string =>
      body.replace("wgmma.wait_group", "mov.b32 %r1, 0; wgmma.wait_group");
    expect(codes(early)).toContain("TW8070");
  });

  test("A registers written before the wait (TW8070)", () => {
    const early = (body: string): string =>
      body.replace("wgmma.wait_group", "mov.b32 %r401, 0; wgmma.wait_group");
    expect(codes(early, { ...shape, layoutA: undefined })).toContain("TW8070");
  });

  test("an accumulator that is A of another one in flight (TW8070)", () => {
    const mixed = (body: string): string =>
      body
        .replace(", %d3, 1", ", %d3, 1")
        .replace(
          /(mma_async\S+) \{%r0, %r1, %r2, %r3\}, \{%r400/g,
          (text, opcode, offset: number) =>
            offset > body.lastIndexOf("wgmma.mma_async") - 1
              ? `${opcode} {%r400, %r1, %r2, %r3}, {%r400`
              : text,
        );
    expect(codes(mixed, { ...shape, layoutA: undefined })).toContain("TW8070");
  });

  test("no wgmma.fence at all, or none behind the last writes (TW8071)", () => {
    expect(codes((body) => body.replace("wgmma.fence.sync.aligned;", ""))).toContain("TW8071");
    const late = (body: string): string =>
      body.replace("wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned; mov.b32 %r402, 7;");
    expect(codes(late, { ...shape, layoutA: undefined })).toContain("TW8071");
  });

  test("only some warps of the warpgroup (TW8020)", () => {
    const some = (body: string): string =>
      body.replace("wgmma.fence", "setp.ge.u32 %p5, %thread, 96; @%p5 bra $out; wgmma.fence") +
      "\n$out:";
    expect(codes(some)).toContain("TW8020");
  });

  test("warps that disagree on a descriptor (TW8072)", () => {
    const other = (body: string): string =>
      body.replace(
        "wgmma.fence",
        "cvt.u64.u32 %d9, %warp; shl.b64 %d9, %d9, 3; add.u64 %d3, %d3, %d9; wgmma.fence",
      );
    expect(codes(other)).toContain("TW8072");
  });

  test("a warpgroup of fewer than four warps (TW8072)", () => {
    const { codes: found } = runPtx({
      body: `mov.u64 %d2, 0; wgmma.fence.sync.aligned; ${opcodeOf(shape)} {%r0, %r1, %r2, %r3}, %d2, %d2, 0, 1, 1, 0, 0;`,
      threads: 64,
    });
    expect(found).toContain("TW8072");
  });

  test("reserved bits, or bytes beyond shared memory, in a descriptor (TW8073)", () => {
    expect(
      codes((body) =>
        body.replace("add.u64 %d3, %d3, %d1;", "add.u64 %d3, %d3, %d1; or.b64 %d3, %d3, 0x8000;"),
      ),
    ).toContain("TW8073");
    expect(
      codes((body) => body.replace("add.u64 %d3, %d3, %d1;", "add.u64 %d3, %d3, 0x3ff8;")),
    ).toContain("TW8073");
  });

  test("lanes that disagree on a descriptor (TW8074)", () => {
    const other = (body: string): string =>
      body.replace(
        "wgmma.fence",
        "cvt.u64.u32 %d9, %thread; and.b64 %d9, %d9, 8; add.u64 %d3, %d3, %d9; wgmma.fence",
      );
    expect(codes(other)).toContain("TW8074");
  });

  test("a wrong swizzle in the descriptor gives wrong numbers", () => {
    const layout = { at: 0, rows: 64, major: "k", swizzle: 128 } as const;
    const form = { ...shape, layoutA: layout };
    const right = run(form);
    const wrong = run(
      form,
      bodyOf(form).replace(
        `${descriptorOf(layout, 2)}`,
        `${descriptorOf({ ...layout, swizzle: 64 }, 2)}`,
      ),
    );
    expect([...wrong.words]).not.toEqual([...right.words]);
  });

  test("operands stored without a proxy fence", () => {
    expect(codes((body) => body.replace("fence.proxy.async.shared::cta;", ""))).toContain("TW8015");
  });

  test("operands overwritten before the wait", () => {
    const early = (body: string): string =>
      body.replace("wgmma.wait_group", "st.shared.b32 [%smem], 0; wgmma.wait_group");
    expect(codes(early)).toContain("TW8014");
  });

  test("operands that nothing has written", () => {
    expect(codes((body) => body.replace("32768; @%p29", "4096; @%p29"))).toContain("TW8013");
  });
});
