/**
 * A product of matrices as kernels for Hopper are written: one warp fills a ring of stages with tensor
 * copies, a warpgroup multiplies from it with wgmma, and a tensor copy takes the result away. It is right
 * under every seed; with any one of the mistakes planted in it, something is found under every seed.
 */
import { describe, expect, test } from "vitest";
import { decodeFloat, encodeFloat } from "../formats/floats.ts";
import { Random } from "../support/random.ts";
import { runPtx } from "../../test/support/ptx-kernel.ts";

const rows = 64;
const columns = 64;
const stepDepth = 64;
const steps = 6;
const depth = steps * stepDepth;
const stageBytes = 16384;
/** Two stages, the result, and the barriers: full 0, full 1, empty 0, empty 1. */
const resultAt = 2 * stageBytes;
const barriersAt = resultAt + 8192;
const threads = 160;

const accumulators = Array.from({ length: 32 }, (_, index) => `%r${100 + index}`);
/** Rows of 128 bytes, swizzled over 128: strides of 1024 between groups of 8 rows. */
const descriptorBits = (1n << 62n) | (64n << 32n) | (1n << 16n);

const setUp = [
  "setp.ne.u32 %p0, %thread, 0; @%p0 bra $ready;",
  `mbarrier.init.shared::cta.b64 [%smem+${barriersAt}], 1;`,
  `mbarrier.init.shared::cta.b64 [%smem+${barriersAt + 8}], 1;`,
  `mbarrier.init.shared::cta.b64 [%smem+${barriersAt + 16}], 4;`,
  `mbarrier.init.shared::cta.b64 [%smem+${barriersAt + 24}], 4;`,
  "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;",
  "$ready: bar.sync 0;",
  "mov.u32 %r1, 0; mov.u32 %r2, 0;",
  "setp.eq.u32 %p1, %warp, 4; @%p1 bra $producer;",
].join("\n");

/** %r1 the step, %r2 the stage, %r3 the parity of the stage's phase, %r4 the address of the stage. */
const place = [
  "and.b32 %r2, %r1, 1; shr.u32 %r3, %r1, 1; and.b32 %r3, %r3, 1;",
  `mad.lo.u32 %r4, %r2, ${stageBytes}, %smem; mad.lo.u32 %r5, %r2, 8, %smem;`,
].join("\n");

const product = (step: number): string =>
  [
    `add.u64 %d5, %d3, ${2 * step}; add.u64 %d6, %d4, ${2 * step};`,
    `wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {${accumulators.join(", ")}}, %d5, %d6, 1, 1, 1, 0, 0;`,
  ].join("\n");

const consumer = [
  ...accumulators.map((register) => `mov.b32 ${register}, 0;`),
  `$consume: ${place}`,
  `$full: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5+${barriersAt}], %r3; @!%p2 bra $full;`,
  `cvt.u64.u32 %d1, %r4; shr.u64 %d1, %d1, 4; mov.u64 %d2, ${descriptorBits};`,
  "add.u64 %d3, %d1, %d2; add.u64 %d4, %d3, 512;",
  "wgmma.fence.sync.aligned;",
  ...[0, 1, 2, 3].map(product),
  "wgmma.commit_group.sync.aligned;",
  "wgmma.wait_group.sync.aligned 0;",
  "and.b32 %r6, %thread, 31; setp.ne.u32 %p3, %r6, 0;",
  `@%p3 bra $released; mbarrier.arrive.shared::cta.b64 _, [%r5+${barriersAt + 16}];`,
  `$released: add.u32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, ${steps}; @%p4 bra $consume;`,
].join("\n");

const store = [
  // Row 16w + g, columns 2t and 2t + 1 of each group of 8.
  "and.b32 %r6, %thread, 31; shr.u32 %r7, %r6, 2; mad.lo.u32 %r7, %warp, 16, %r7;",
  "and.b32 %r8, %r6, 3; shl.b32 %r8, %r8, 2; mad.lo.u32 %r7, %r7, 128, %r8; add.u32 %r7, %r7, %smem;",
  ...Array.from({ length: 16 }, (_, pair) => {
    const [low, high] = [accumulators[2 * pair] ?? "", accumulators[2 * pair + 1] ?? ""];
    const at = resultAt + 1024 * (pair & 1) + 16 * (pair >> 1);
    return `cvt.rn.bf16x2.f32 %r9, ${high}, ${low}; st.shared.b32 [%r7+${at}], %r9;`;
  }),
  "fence.proxy.async.shared::cta;",
  "bar.sync 1, 128;",
  "setp.ne.u32 %p0, %thread, 0; @%p0 bra $end;",
  `mov.u32 %r10, 0; add.u32 %r11, %smem, ${resultAt};`,
  "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m_c, {%r10, %r10}], [%r11];",
  "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;",
  "bra $end;",
].join("\n");

const producer = [
  "$producer: setp.ne.u32 %p0, %thread, 128; @%p0 bra $end;",
  `$produce: ${place}`,
  "xor.b32 %r6, %r3, 1;",
  `$empty: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5+${barriersAt + 16}], %r6; @!%p2 bra $empty;`,
  `add.u32 %r9, %r5, ${barriersAt};`,
  `mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], ${stageBytes};`,
  `mul.lo.u32 %r10, %r1, ${stepDepth}; mov.u32 %r11, 0; add.u32 %r12, %r4, 8192;`,
  "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%m_a, {%r10, %r11}], [%r9];",
  "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r12], [%m_b, {%r10, %r11}], [%r9];",
  `add.u32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, ${steps}; @%p4 bra $produce;`,
  "$end:",
].join("\n");

const kernel = [setUp, consumer, store, producer].join("\n");

const random = new Random(31);
const draw = (count: number): Uint16Array =>
  Uint16Array.from({ length: count }, () => encodeFloat("bf16", random.normal()));
const a = draw(rows * depth);
const b = draw(columns * depth);

function run(body: string, seed: number) {
  const map = {
    type: "bf16",
    strides: [2 * depth],
    box: [stepDepth, rows],
    swizzle: 128,
    fill: "zero",
  } as const;
  return runPtx({
    body,
    arrays: {
      a: new Uint8Array(a.buffer),
      b: new Uint8Array(b.buffer),
      c: 2 * rows * columns,
    },
    maps: {
      a: { ...map, array: "a", extents: [depth, rows] },
      b: { ...map, array: "b", extents: [depth, columns] },
      c: {
        ...map,
        array: "c",
        extents: [columns, rows],
        strides: [2 * columns],
        box: [columns, rows],
        swizzle: 0,
      },
    },
    threads,
    sharedBytes: barriersAt + 32,
    seed,
  });
}

/** The product in float64, by rows. */
function product64(): Float64Array {
  const [left, right] = [a, b].map((codes) =>
    Float64Array.from(codes, (code) => decodeFloat("bf16", code)),
  ) as [Float64Array, Float64Array];
  return Float64Array.from({ length: rows * columns }, (_, index) => {
    const [row, column] = [Math.floor(index / columns), index % columns];
    let sum = 0;
    for (let k = 0; k < depth; k++)
      sum += (left[row * depth + k] ?? NaN) * (right[column * depth + k] ?? NaN);
    return sum;
  });
}

describe("a pipelined product of matrices", () => {
  const product = product64();

  test.for([0, 1, 2, 3])("is right and clean under seed %d", (seed) => {
    const { arrays, codes } = run(kernel, seed);
    expect(codes).toEqual([]);
    const c = new Uint16Array(arrays["c"]?.buffer ?? new ArrayBuffer(0));
    const wrong = Array.from(product).flatMap((exact, index) => {
      const found = decodeFloat("bf16", c[index] ?? 0);
      const isClose = Math.abs(found - exact) < 2 ** -8 * Math.abs(exact) + 1e-3;
      const place = `${Math.floor(index / columns)}, ${index % columns}`;
      return isClose ? [] : `${place}: ${found} for ${exact}`;
    });
    expect(wrong).toEqual([]);
  });
});

type Mistake = readonly [name: string, from: string | RegExp, to: string, codes: readonly string[]];

const mistakes: readonly Mistake[] = [
  ["no barrier behind the initialisation", "$ready: bar.sync 0;", "$ready:", ["TW8014", "TW8060"]],
  [
    "a full barrier of two arrivals",
    `[%smem+${barriersAt}], 1;`,
    `[%smem+${barriersAt}], 2;`,
    ["TW8020"],
  ],
  [
    "an empty barrier of five arrivals",
    `[%smem+${barriersAt + 16}], 4;`,
    `[%smem+${barriersAt + 16}], 5;`,
    ["TW8020"],
  ],
  [
    "an empty barrier of one arrival",
    `[%smem+${barriersAt + 16}], 4;`,
    `[%smem+${barriersAt + 16}], 1;`,
    ["TW8014", "TW8064", "TW8020"],
  ],
  ["the full barrier is not waited for", /\$full:.*/, "", ["TW8014"]],
  ["the empty barrier is not waited for", /\$empty:.*/, "", ["TW8014", "TW8061"]],
  ["the wait is tried once", "@!%p2 bra $full;", "", ["TW8014"]],
  [
    "the producer starts with the consumer's parity",
    "xor.b32 %r6, %r3, 1;",
    "mov.u32 %r6, %r3;",
    ["TW8020"],
  ],
  [
    "the consumer never flips its parity",
    "and.b32 %r3, %r3, 1;",
    "mov.u32 %r3, 0;",
    ["TW8014", "TW8020"],
  ],
  ["16 bytes too many expected", `[%r9], ${stageBytes};`, `[%r9], ${stageBytes + 16};`, ["TW8020"]],
  [
    "16 bytes too few expected",
    `[%r9], ${stageBytes};`,
    `[%r9], ${stageBytes - 16};`,
    ["TW8020", "TW8014"],
  ],
  ["no wgmma.fence", "wgmma.fence.sync.aligned;", "", ["TW8071"]],
  ["no commit", "wgmma.commit_group.sync.aligned;", "", ["TW8070", "TW8014"]],
  ["no wait", "wgmma.wait_group.sync.aligned 0;", "", ["TW8070", "TW8014"]],
  [
    "a wait for all but one group",
    "wgmma.wait_group.sync.aligned 0;",
    "wgmma.wait_group.sync.aligned 1;",
    ["TW8070", "TW8014"],
  ],
  ["every lane arrives", "@%p3 bra $released;", "", ["TW8061", "TW8014", "TW8064"]],
  ["no arrival on the empty barrier", /mbarrier.arrive.shared::cta.*/, "", ["TW8020"]],
  [
    "no proxy fence before the store",
    "fence.proxy.async.shared::cta;\nbar.sync 1",
    "bar.sync 1",
    ["TW8015"],
  ],
  ["no barrier before the store", "bar.sync 1, 128;", "", ["TW8014", "TW8013"]],
  [
    "the end comes before the store has read",
    /cp.async.bulk.wait_group.read 0;/,
    "",
    ["TW8056", "TW8014"],
  ],
  [
    "the store waits for the newest group but one",
    "wait_group.read 0",
    "wait_group.read 1",
    ["TW8056", "TW8014"],
  ],
  [
    "a descriptor that was not shifted",
    "shr.u64 %d1, %d1, 4; mov",
    "mov",
    ["TW8073", "TW8013", "TW8014"],
  ],
  [
    "a stage beyond shared memory",
    "and.b32 %r2, %r1, 1; shr",
    "and.b32 %r2, %r1, 3; shr",
    ["TW8010", "TW8060", "TW8014", "TW8020"],
  ],
  ["a misaligned stage", "add.u32 %r12, %r4, 8192;", "add.u32 %r12, %r4, 8208;", ["TW8011"]],
  [
    "one step too many is consumed",
    `setp.lt.u32 %p4, %r1, ${steps}; @%p4 bra $consume`,
    `setp.le.u32 %p4, %r1, ${steps}; @%p4 bra $consume`,
    ["TW8020"],
  ],
  [
    "only three warps multiply",
    "$full: mbarrier",
    "setp.eq.u32 %p9, %warp, 3; @%p9 bra $end; $full: mbarrier",
    ["TW8020"],
  ],
  [
    "the map of C where that of A should be",
    "[%r4], [%m_a,",
    "[%r4], [%m_c,",
    ["TW8013", "TW8014", "TW8020"],
  ],
  ["the address of the array for its map", "[%r4], [%m_a,", "[%r4], [%a,", ["TW8051"]],
];

describe("mistakes in it are found under every seed", () => {
  test.for(mistakes)("%s", ([, from, to, expected]) => {
    const body = kernel.replace(from, to);
    expect(body).not.toBe(kernel);
    for (let seed = 0; seed < 3; seed++) {
      const { codes } = run(body, seed);
      expect(
        codes.some((code) => expected.includes(code)),
        `seed ${seed}: ${codes.join(" ")}`,
      ).toBe(true);
    }
  });

  test("a wrong swizzle in a descriptor gives wrong numbers", () => {
    const right = run(kernel, 0).arrays["c"];
    const wrong = kernel.replace(`${descriptorBits}`, `${descriptorBits ^ (3n << 62n)}`);
    expect(run(wrong, 0).arrays["c"]).not.toEqual(right);
  });
});
