/** What tensor memory and tcgen05 forbid, each with its code. */
import { describe, expect, test } from "vitest";
import {
  descriptorBits,
  moveDescriptor,
  tensorKernel,
  vectorOf,
} from "../../../test/support/tensor-memory-kernel.ts";
import type { TensorKernel } from "../../../test/support/tensor-memory-kernel.ts";
import { TilewrightError } from "../../support/diagnostics.ts";

const columns = 64;
const image = new Uint8Array(16384);

/** Codes that a kernel is found to have, and that of the error that stops it. */
function codes(kernel: Partial<TensorKernel>): readonly string[] {
  try {
    const base = { columns, issue: "", images: [image], reads: false };
    const { codes: found } = tensorKernel({ ...base, ...kernel });
    return [...new Set(found)];
  } catch (error) {
    if (error instanceof TilewrightError) return [error.code];
    throw error;
  }
}

function message(kernel: Partial<TensorKernel>): string {
  try {
    return tensorKernel({ columns, issue: "", images: [image], ...kernel }).result.findings.join(
      "\n",
    );
  } catch (error) {
    return String(error);
  }
}

const plain = { start: 0, leading: 2048, stride: 128, swizzle: "none" } as const;
const descriptorOf = ({ m = 128, n = 32, more = 1 << 4 } = {}): number =>
  (more | ((n >> 3) << 17) | ((m >> 4) << 24)) >>> 0;
const operands = ({
  a = descriptorBits(plain),
  b = descriptorBits({ ...plain, start: 4096, leading: 512 }),
  word = descriptorOf(),
} = {}): string => `${moveDescriptor(10, a)} ${moveDescriptor(11, b)} mov.b32 %r10, ${word};`;
const mma = "tcgen05.mma.cta_group::1.kind::f16 [%r2], %d10, %d11, %r10, 0;";
const warpwide = "mov.b32 %r100, 0;";

describe("TW8081: tensor memory that is not allocated", () => {
  test("beyond the allocation, by loads, products and copies", () => {
    const then = `tcgen05.ld.sync.aligned.32x32b.x8.b32 ${vectorOf(100, 8)}, [%r3+60]; tcgen05.wait::ld.sync.aligned;`;
    expect(codes({ then })).toEqual(["TW8081"]);
    expect(message({ then })).toMatch(/columns \d+ to \d+/);
    expect(codes({ issue: `${operands()} ${mma.replace("[%r2]", "[%r2+40]")}` })).toEqual([
      "TW8081",
    ]);
    expect(
      codes({
        issue: `${operands()} add.s32 %r11, %r2, 62; tcgen05.cp.cta_group::1.32x128b.warpx4 [%r11], %d10;`,
      }),
    ).toEqual(["TW8081"]);
  });

  test("after it was given back", () => {
    const edit = (text: string): string =>
      text.replace(
        /(@%p0 tcgen05\.dealloc[^;]*;)/,
        "$1 @%p0 tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r2];",
      );
    expect(codes({ edit })).toEqual(["TW8081"]);
  });
});

describe("TW8082: illegal allocation", () => {
  const allocates =
    (more: string) =>
    (text: string): string =>
      text.replace(/(@%p0 tcgen05\.dealloc)/, `${more} $1`);

  test("sizes in a register, growing sizes, and after relinquishing", () => {
    const alloc = (size: string): string =>
      `@%p0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], ${size};`;
    const given = (size: number): string => `mov.b32 %r20, ${size}; ${alloc("%r20")}`;
    expect(codes({ edit: allocates(given(48)) })).toEqual(["TW8082"]);
    expect(codes({ edit: allocates(given(16)) })).toEqual(["TW8082"]);
    expect(codes({ edit: allocates(given(128)) })).toEqual(["TW8082"]);
    expect(
      codes({
        edit: allocates(
          `@%p0 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; ${given(32)}`,
        ),
      }),
    ).toEqual(["TW8082"]);
  });

  test("giving back what was not given", () => {
    expect(codes({ edit: (text) => text.replace("b32 %r2, 64", "b32 %r2, 32") })).toEqual([
      "TW8082",
    ]);
    const other = (text: string): string =>
      text.replace(/(@%p0 tcgen05\.dealloc)/, "add.s32 %r2, %r2, 32; $1");
    expect(codes({ edit: other })).toEqual(["TW8082"]);
  });

  test("an allocation that waits for columns that nobody gives back is a deadlock", () => {
    const more =
      "mov.b32 %r20, 512; @%p0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 512;";
    const edit = (text: string): string =>
      text.replace(", 64;\n@!%p1 bra $ready", `, 512;\n${more}\n@!%p1 bra $ready`);
    expect(codes({ edit })).toEqual(["TW8020"]);
  });

  test("allocations begin anywhere, the first one not at column 0 where there is room", () => {
    const starts = [0, 1, 2, 3, 4, 5].map((seed) => {
      const then =
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r2}; tcgen05.wait::st.sync.aligned;";
      return tensorKernel({ columns, issue: "", then, seed }).cells[0]?.[0] ?? 0;
    });
    for (const start of starts) expect(start % 64 === 0 && start > 0 && start < 512).toBe(true);
    expect(new Set(starts).size).toBeGreaterThan(1);
  });
});

test("TW8083: a block that ends with columns", () => {
  const edit = (text: string): string => text.replace(/@%p0 tcgen05\.dealloc[^;]*;/, "");
  expect(codes({ edit })).toEqual(["TW8083"]);
});

describe("TW8084: lanes", () => {
  test("a warp reaches the lanes of its own quarter", () => {
    const then = `add.s32 %r11, %r3, ${32 << 16}; ${warpwide} tcgen05.st.sync.aligned.32x32b.x1.b32 [%r11], {%r100};`;
    expect(codes({ then })).toEqual(["TW8084"]);
    expect(codes({ then: then.replace(String(32 << 16), String(16 << 16)) })).toEqual(["TW8084"]);
  });

  test("products, copies and shifts begin at the first lane of what they touch", () => {
    const at = (lane: number): string => `add.s32 %r11, %r2, ${lane << 16};`;
    const moved = mma.replace("%r2", "%r11");
    expect(codes({ issue: `${operands()} ${at(16)} ${moved}` })).toEqual(["TW8084"]);
    const half = operands({ word: descriptorOf({ m: 64 }) });
    expect(codes({ issue: `${half} ${at(16)} ${moved}` })).toEqual([]);
    expect(codes({ issue: `${half} ${at(32)} ${moved}` })).toEqual(["TW8084"]);
    expect(codes({ issue: `${half} ${at(16)} ${moved.replace("%d10", "[%r2+40]")}` })).toEqual([
      "TW8084",
    ]);
    expect(
      codes({ issue: `${operands()} ${at(32)} tcgen05.cp.cta_group::1.128x128b [%r11], %d10;` }),
    ).toEqual(["TW8084"]);
    expect(codes({ issue: `${at(16)} tcgen05.shift.cta_group::1.down [%r11];` })).toEqual([
      "TW8084",
    ]);
  });

  test("TW8074: all lanes give one address", () => {
    const then =
      "and.b32 %r11, %r0, 1; add.s32 %r11, %r11, %r3; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r100}, [%r11];";
    expect(codes({ then })).toEqual(["TW8074"]);
  });
});

test("TW8087: a product that reads what nothing has written", () => {
  const edit = (text: string): string => text.replaceAll(/tcgen05\.st\.sync[^;]*;/g, "");
  const issue = `${operands()} ${mma.replace(", 0;", ", 1;")}`;
  expect(codes({ issue, edit })).toEqual(["TW8087"]);
  expect(codes({ issue: `${operands()} ${mma}`, edit })).toEqual([]);
});

describe("TW8088: instruction descriptors", () => {
  test.each([
    ["M 96", descriptorOf({ m: 96 })],
    ["N of 0", descriptorOf({ n: 0 })],
    ["N 264", descriptorOf({ n: 264 })],
    ["a reserved bit", descriptorOf({ more: (1 << 4) | (1 << 6) })],
    ["saturation of floats", descriptorOf({ more: (1 << 4) | (1 << 3) })],
    ["format 2 of A", descriptorOf({ more: (1 << 4) | (2 << 7) })],
    ["D of s32", descriptorOf({ more: 2 << 4 })],
    ["bf16 into f16", descriptorOf({ more: (1 << 7) | (1 << 10) })],
    ["sparse, of a dense product", descriptorOf({ more: (1 << 4) | 4 })],
  ])("%s", (_, word) => {
    expect(codes({ issue: `${operands({ word })} ${mma}` })).toEqual(["TW8088"]);
  });

  test("of integers, of 8-bit B with its columns side by side, and of scales", () => {
    const other = (kind: string, word: number, more = ""): readonly string[] =>
      codes({
        issue: `${operands({ word })} tcgen05.mma.cta_group::1.kind::${kind} [%r2], %d10, %d11, %r10, ${more}0;`,
      });
    expect(other("i8", descriptorOf({ n: 40, more: 2 << 4 }))).toEqual(["TW8088"]);
    expect(other("i8", descriptorOf({ more: (2 << 4) | (1 << 13) }))).toEqual(["TW8088"]);
    expect(other("f8f6f4", descriptorOf({ n: 8, more: (1 << 4) | (1 << 16) }))).toEqual(["TW8088"]);
    expect(other("f8f6f4", descriptorOf({ more: (1 << 4) | (5 << 7) | (1 << 15) }))).toEqual([
      "TW8088",
    ]);
    const scaled = (id: number): number =>
      ((1 << 7) | (1 << 10) | (4 << 17) | (1 << 23) | (1 << 27) | (id << 4)) >>> 0;
    expect(other("mxf4.block_scale.scale_vec::2X", scaled(1), "[%r2+40], [%r2+48], ")).toEqual([
      "TW8088",
    ]);
    expect(other("mxf4.block_scale.scale_vec::2X", scaled(0), "[%r2+40], [%r2+48], ")).toEqual([]);
    // Powers of two for blocks of 16 there are; numbers of ue4m3 for blocks of 32 there are not.
    const four = "mxf4nvf4.block_scale.scale_vec::4X";
    expect(other(four, scaled(0), "[%r2+40], [%r2+48], ")).toEqual([]);
    const plain = (scaled(0) & ~(1 << 23)) >>> 0;
    expect(other("mxf4.block_scale.scale_vec::2X", plain, "[%r2+40], [%r2+48], ")).toEqual([
      "TW8088",
    ]);
  });

  test("TW8073: descriptors of matrices", () => {
    const bits = descriptorBits(plain);
    const broken = (a: bigint): readonly string[] => codes({ issue: `${operands({ a })} ${mma}` });
    expect(broken(bits | (3n << 61n))).toEqual(["TW8073"]);
    expect(broken(bits | (2n << 46n))).toEqual(["TW8073"]);
    expect(broken(bits | (1n << 52n))).toEqual(["TW8073"]);
    expect(broken(bits | (1n << 61n))).toEqual(["TW8073"]);
    expect(broken(bits | (1n << 49n))).toEqual(["TW8073"]);
    expect(broken(descriptorBits({ ...plain, start: 200_000 }))).toEqual(["TW8073"]);
    // Without the constant bit it works, and is worth a note.
    const { result } = tensorKernel({
      columns,
      images: [image],
      issue: `${operands({ a: bits & ~(1n << 46n) })} ${mma}`,
    });
    expect([result.findings.length, ...result.notes.map(({ code }) => code)]).toEqual([
      0,
      "TW8073",
    ]);
  });
});

describe("TW8090: scales and metadata", () => {
  const word = ((1 << 7) | (1 << 10) | (4 << 17) | (1 << 23) | (1 << 27)) >>> 0;
  const issue = `${operands({ word })} tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X [%r2], %d10, %d11, %r10, [%r2+40], [%r2+48], 0;`;
  test("scales that differ from quarter to quarter", () => {
    const fill = new Uint32Array(128 * columns);
    fill[70 * columns + 48] = 5;
    expect(codes({ issue, fills: [fill] })).toEqual(["TW8090"]);
    expect(message({ issue, fills: [fill] })).toContain("lane 70");
  });

  test("metadata at an odd column, and of no two elements", () => {
    const sparse = (column: number): string =>
      `${operands({ word: descriptorOf({ more: (1 << 4) | 4 }) })} tcgen05.mma.sp.cta_group::1.kind::f16 [%r2], %d10, %d11, [%r2+${column}], %r10, 0;`;
    expect(codes({ issue: sparse(41) })).toEqual(["TW8090"]);
    expect(codes({ issue: sparse(40) })).toEqual(["TW8090"]);
    const fill = new Uint32Array(128 * columns).fill(0x4444_4444);
    expect(codes({ issue: sparse(40), fills: [fill] })).toEqual([]);
  });
});

test("TW8091: a collector buffer that holds nothing, or another matrix", () => {
  const using = (use: string): string => mma.replace("f16", `f16.collector::a::${use}`);
  expect(codes({ issue: `${operands()} ${using("use")}` })).toEqual(["TW8091"]);
  expect(
    codes({ issue: `${operands()} ${using("fill")} ${using("use")} ${using("lastuse")}` }),
  ).toEqual([]);
  expect(
    codes({ issue: `${operands()} ${using("fill")} ${using("lastuse")} ${using("use")}` }),
  ).toEqual(["TW8091"]);
  expect(codes({ issue: `${operands()} ${using("fill")} ${mma} ${using("use")}` })).toEqual([
    "TW8091",
  ]);
  expect(
    codes({ issue: `${operands()} ${using("fill")} add.s64 %d10, %d10, 2; ${using("use")}` }),
  ).toEqual(["TW8091"]);
});

test("TW8092: a product that all lanes of a warp issue", () => {
  const then = `@!%p0 bra $over; ${operands()} ${mma} @%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done]; $over:
    $wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [done], 0; @!%p2 bra $wait; tcgen05.fence::after_thread_sync;`;
  expect(codes({ then })).toContain("TW8092");
});

describe("deadlocks", () => {
  test("a pair's allocation for which the other block never comes", () => {
    const edit = (text: string): string =>
      text.replace(
        "@%p0 tcgen05.alloc",
        "setp.eq.u32 %p5, %r8, 0; and.pred %p5, %p0, %p5; @%p5 tcgen05.alloc",
      );
    expect(codes({ pair: true, images: [image, image], edit })).toEqual(["TW8020"]);
  });

  test("a commit to an mbarrier whose count never completes", () => {
    const edit = (text: string): string =>
      text.replace(
        "mbarrier.init.shared::cta.b64 [done], 1",
        "mbarrier.init.shared::cta.b64 [done], 2",
      );
    expect(codes({ issue: `${operands()} ${mma}`, edit })).toEqual(["TW8020"]);
  });

  test("40: a commit to each of two barriers, both of which are awaited", () => {
    const commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [extra];";
    const edit = (text: string): string =>
      text.replace(
        "$wait:",
        "$other: mbarrier.try_wait.parity.shared::cta.b64 %p4, [extra], 0; @!%p4 bra $other; $wait:",
      );
    expect(codes({ issue: `${operands()} ${mma} ${commit}`, edit })).toEqual([]);
  });
});

describe("TW8093: pairs", () => {
  test("without another block", () => {
    const edit = (text: string): string => text.replaceAll("cta_group::1", "cta_group::2");
    expect(codes({ edit })).toEqual(["TW8093"]);
  });

  test("whose blocks ask for different sizes", () => {
    const edit = (text: string): string =>
      text
        .replace("[place], 64;", "[place], %r30;")
        .replace(
          "@%p0 tcgen05.alloc",
          "shl.b32 %r30, %r8, 5; add.s32 %r30, %r30, 32; @%p0 tcgen05.alloc",
        );
    expect(codes({ pair: true, images: [image, image], edit })).toEqual(["TW8082"]);
  });

  test("one of whose blocks gives back nothing", () => {
    const edit = (text: string): string =>
      text.replace(
        "@%p0 tcgen05.dealloc",
        "setp.eq.u32 %p5, %r8, 0; and.pred %p0, %p0, %p5; @%p0 tcgen05.dealloc",
      );
    expect(codes({ pair: true, images: [image, image], edit })).toEqual(["TW8083"]);
  });
});
