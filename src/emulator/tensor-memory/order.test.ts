/** What orders accesses to tensor memory: each missing wait, commit and fence is found, whatever the seed, and nothing else. */
import { describe, expect, test } from "vitest";
import {
  descriptorBits,
  fences,
  moveDescriptor,
  tensorKernel,
} from "../../../test/support/tensor-memory-kernel.ts";
import { takesAll } from "../../../test/support/sample.ts";
import type { TensorKernel, TensorRun } from "../../../test/support/tensor-memory-kernel.ts";

const seeds = takesAll ? [0, 1, 2, 3, 4, 5] : [0, 1];
const columns = 64;

/** A product of zeros, 128 × 32 × 16 in f16, on columns from `column` on. */
const operands = `${moveDescriptor(10, descriptorBits({ start: 0, leading: 2048, stride: 128, swizzle: "none" }))} ${moveDescriptor(11, descriptorBits({ start: 4096, leading: 512, stride: 128, swizzle: "none" }))} mov.b32 %r10, ${(1 << 4) | ((32 >> 3) << 17) | ((128 >> 4) << 24)};`;
const mma = (column = 0, enable: string | number = 0, a = "%d10"): string =>
  `tcgen05.mma.cta_group::1.kind::f16 [%r2+${column}], ${a}, %d11, %r10, ${enable};`;
const cp = (column: number): string =>
  `add.s32 %r11, %r2, ${column}; tcgen05.cp.cta_group::1.128x128b [%r11], %d10;`;
const commit = (barrier = "done"): string =>
  `tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [${barrier}];`;
let labels = 0;
const wait = (barrier = "done", phase = 0): string => {
  labels += 1;
  return `$wait${labels}: mbarrier.try_wait.parity.shared::cta.b64 %p4, [${barrier}], ${phase}; @!%p4 bra $wait${labels};`;
};
const awaited = (barrier = "done", phase = 0): string => `${wait(barrier, phase)} ${fences.after}`;
const st = (column = 0): string =>
  `mov.b32 %r100, 0; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3+${column}], {%r100};`;
const ld = (column = 0): string =>
  `tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r101}, [%r3+${column}];`;
const [waitSt, waitLd] = ["tcgen05.wait::st.sync.aligned;", "tcgen05.wait::ld.sync.aligned;"];
const both = `${fences.before} bar.sync 0; ${fences.after}`;
const image = new Uint8Array(8192);

function run(kernel: Partial<TensorKernel>, seed: number): TensorRun {
  return tensorKernel({ columns, issue: "", images: [image], ...kernel, seed });
}

function codes(kernel: Partial<TensorKernel>): readonly string[] {
  const found = seeds.map((seed) =>
    [...new Set(run({ reads: false, ...kernel }, seed).codes)].sort().join(" "),
  );
  expect(new Set(found).size).toBe(1);
  return [...new Set((found[0] ?? "").split(" ").filter((code) => code !== ""))];
}

const race = ["TW8085"];

/** Instructions of all warps behind the commit of the one thread, all of which is in order. */
const tidy = `${waitSt} ${waitLd} ${both}`;

describe("loads and stores of a warp", () => {
  test("63: a store is over at wait::st", () => {
    expect(codes({ then: `${st()} ${ld()} ${tidy}` })).toEqual(race);
    expect(codes({ then: `${st()} ${waitSt} ${ld()} ${tidy}` })).toEqual([]);
    expect(codes({ then: `${st()} ${waitLd} ${ld()} ${tidy}` })).toEqual(race);
  });

  test("64: a load is over at wait::ld", () => {
    expect(codes({ then: `${ld()} ${st()} ${tidy}` })).toEqual(race);
    expect(codes({ then: `${ld()} ${waitLd} ${st()} ${tidy}` })).toEqual([]);
  });

  test("65: a commit waits for neither", () => {
    const then = (access: string): string => `${access} @%p3 ${commit()} ${awaited()}`;
    expect(codes({ then: `${then(st())} ${ld()} ${tidy}` })).toEqual(race);
    expect(codes({ then: `${then(ld())} ${st()} ${tidy}` })).toEqual(race);
  });

  test("68: loads of one place, and stores beside each other, need no order", () => {
    expect(codes({ then: `${ld()} ${ld()} ${st(1)} ${st(2)} ${tidy}` })).toEqual([]);
  });
});

describe("products", () => {
  const issued = (issue: string): string => `@!%p3 bra $over; ${operands} ${issue} $over:`;

  test("66: a store to what a product reads or writes is over before it", () => {
    const then = (end: string): string =>
      `${st()} ${end} ${both} ${issued(`${mma(0)} ${commit()}`)} ${awaited()}`;
    expect(codes({ then: `${then("")} ${waitSt}` })).toEqual(race);
    expect(codes({ then: then(waitSt) })).toEqual([]);
    const a = (end: string): string =>
      `${st(40)} ${end} ${both} ${issued(`${mma(0, 0, "[%r2+40]")} ${commit()}`)} ${awaited()}`;
    expect(codes({ then: `${a("")} ${waitSt}` })).toEqual(race);
    expect(codes({ then: a(waitSt) })).toEqual([]);
  });

  test("67: a load of what a product or copy writes is over before it", () => {
    for (const instruction of [mma(0), cp(0)]) {
      const then = (end: string): string =>
        `${ld()} ${end} ${both} ${issued(`${instruction} ${commit()}`)} ${awaited()}`;
      expect(codes({ then: `${then("")} ${waitLd}` })).toEqual(race);
      expect(codes({ then: then(waitLd) })).toEqual([]);
    }
  });

  test("69: products on one accumulator stay in order; on accumulators that overlap they do not", () => {
    expect(codes({ issue: `${operands} ${mma()} ${mma(0, 1)} ${mma(0, 1)}` })).toEqual([]);
    expect(codes({ issue: `${operands} ${mma()} ${mma(32)}` })).toEqual([]);
    expect(codes({ issue: `${operands} ${mma()} ${mma(16)}` })).toEqual(race);
  });

  test("70: a commit is for what comes before it", () => {
    const then = `${issued(`${mma()} ${commit()} ${mma(32)} ${commit("extra")}`)}`;
    expect(codes({ then: `${then} ${awaited()} ${ld()} ${waitLd} ${awaited("extra")}` })).toEqual(
      [],
    );
    expect(codes({ then: `${then} ${awaited()} ${ld(32)} ${waitLd} ${awaited("extra")}` })).toEqual(
      race,
    );
  });

  test("71: nobody stores to a live accumulator, or reads it", () => {
    expect(
      codes({ then: `${issued(`${mma()} ${commit()}`)} ${st()} ${waitSt} ${awaited()}` }),
    ).toEqual(race);
    expect(
      codes({ then: `${issued(`${mma()} ${commit()}`)} ${ld()} ${waitLd} ${awaited()}` }),
    ).toEqual(race);
  });

  test("72: products of two threads are in order behind a barrier with its fences", () => {
    const second = `setp.eq.u32 %p5, %r0, 32; @!%p5 bra $end; ${operands} ${mma(0, 1)} ${commit("extra")} $end:`;
    const first = issued(`${mma()} ${commit()}`);
    const end = `${awaited()} ${awaited("extra")}`;
    expect(codes({ then: `${first} ${both} ${second} ${end}` })).toEqual([]);
    expect(codes({ then: `${first} bar.sync 0; ${second} ${end}` })).toEqual(["TW8086"]);
    expect(codes({ then: `${first} ${second} ${end}` })).toEqual(race);
  });

  test("79: the commit of a thread that has issued nothing is about nothing", () => {
    const first = issued(`${mma()} ${commit("extra")}`);
    const vacuous = `setp.eq.u32 %p5, %r0, 32; @%p5 ${commit()}`;
    expect(
      codes({ then: `${first} ${vacuous} ${awaited()} ${ld()} ${waitLd} ${awaited("extra")}` }),
    ).toEqual(race);
  });
});

describe("copies", () => {
  const issued = (issue: string): string => `@!%p3 bra $over; ${operands} ${issue} $over:`;

  test("75: a copy stays before a product that reads what it brings, also of another thread", () => {
    expect(codes({ issue: `${operands} ${cp(40)} ${cp(44)} ${mma(0, 0, "[%r2+40]")}` })).toEqual(
      [],
    );
    const second = `setp.eq.u32 %p5, %r0, 32; @!%p5 bra $end; ${operands} ${mma(0, 0, "[%r2+40]")} ${commit("extra")} $end:`;
    const first = issued(`${cp(40)} ${cp(44)} ${commit()}`);
    expect(codes({ then: `${first} ${both} ${second} ${awaited()} ${awaited("extra")}` })).toEqual(
      [],
    );
  });

  test("a product is not kept before a copy to what it reads", () => {
    expect(codes({ issue: `${operands} ${mma(0, 0, "[%r2+40]")} ${cp(40)}` })).toEqual(race);
  });

  test("76: what is copied is read behind a commit", () => {
    expect(
      codes({ then: `${issued(`${cp(0)} ${commit()}`)} ${ld()} ${waitLd} ${awaited()}` }),
    ).toEqual(race);
    expect(
      codes({ then: `${issued(`${cp(0)} ${commit()}`)} ${awaited()} ${ld()} ${waitLd}` }),
    ).toEqual([]);
  });

  test("77, 78: copies to one place, and to a live accumulator, are in no order", () => {
    expect(codes({ issue: `${operands} ${cp(0)} ${cp(0)}` })).toEqual(race);
    expect(codes({ issue: `${operands} ${mma()} ${cp(0)}` })).toEqual(race);
  });
});

describe("shared memory", () => {
  const write = (proxy: string): string =>
    `shl.b32 %r12, %r0, 2; mov.u32 %r13, sm; add.s32 %r12, %r12, %r13; mov.b32 %r14, 0; st.shared.b32 [%r12], %r14; ${proxy} ${both}`;
  const issue = (instruction: string): string =>
    `@!%p3 bra $over; ${operands} ${instruction} ${commit()} $over:`;

  test("73: what threads write needs a proxy fence before products and copies read it", () => {
    for (const instruction of [mma(), cp(0)]) {
      const fenced = `${write("fence.proxy.async.shared::cta;")} ${issue(instruction)} ${awaited()}`;
      const unfenced = `${write("")} ${issue(instruction)} ${awaited()}`;
      expect(codes({ then: fenced })).toEqual([]);
      expect(codes({ then: unfenced })).toEqual(["TW8015"]);
      // Of other compilers' kernels it is a note.
      const foreign = run({ then: unfenced, isOwn: false }, 0);
      expect(foreign.codes).toEqual([]);
      expect(foreign.result.notes.map(({ code }) => code)).toEqual(["TW8015"]);
    }
  });

  test("74: operands and sources stay as they are until a commit", () => {
    for (const instruction of [mma(), cp(0)]) {
      expect(codes({ then: `${issue(instruction)} ${write("")} ${awaited()}` })).toEqual([
        "TW8014",
      ]);
      expect(codes({ then: `${issue(instruction)} ${awaited()} ${write("")}` })).toEqual([]);
    }
  });

  test("80: a copy by TMA and a commit arrive on one barrier", () => {
    const bytes = 16;
    const then = `@!%p3 bra $over; ${operands} mbarrier.inval.shared::cta.b64 [extra]; mbarrier.init.shared::cta.b64 [extra], 2; fence.proxy.async;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [extra], ${bytes};
      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm+6144], [%d0], ${bytes}, [extra]; ${mma()} ${commit("extra")} $over:
      bar.sync 0; ${awaited("extra")} ${ld()} ${waitLd} ld.shared.b32 %r15, [sm+6144];`;
    expect(codes({ then })).toEqual([]);
  });
});

describe("fences", () => {
  const kernel: Partial<TensorKernel> = { issue: `${operands} ${mma()}` };
  const without =
    (side: "before" | "after"): ((text: string) => string) =>
    (text) =>
      text.replaceAll(fences[side], "");

  test("a missing tcgen05.fence is a finding in our kernels, a note in those of others", () => {
    for (const side of ["before", "after"] as const) {
      expect(codes({ reads: true, ...kernel, edit: without(side) })).toEqual(["TW8086"]);
      const foreign = run({ ...kernel, edit: without(side), isOwn: false }, 1);
      expect(foreign.codes).toEqual([]);
      expect(new Set(foreign.result.notes.map(({ code }) => code))).toEqual(new Set(["TW8086"]));
    }
    expect(run({ ...kernel, isOwn: false }, 0).result.notes).toEqual([]);
  });

  test("relaxed waits and arrivals do: the fences carry the order", () => {
    const relaxed = (text: string): string =>
      text.replaceAll(
        "mbarrier.try_wait.parity.shared::cta",
        "mbarrier.try_wait.parity.relaxed.cluster.shared::cta",
      );
    expect(
      codes({ ...kernel, edit: (text) => text.replace(/\$wait: mbarrier[^;]*;/, relaxed) }),
    ).toEqual([]);
  });
});

describe("commits", () => {
  test("40, 41: each barrier gets its own arrival; without work at once", () => {
    const then = `@!%p3 bra $over; ${operands} ${commit("extra")} ${mma()} ${commit()} $over: ${awaited("extra")} ${awaited()}`;
    expect(codes({ then })).toEqual([]);
  });

  test("42: multicast, to both blocks of a pair", () => {
    const pair = { columns, pair: true, images: [image, image] };
    const { codes: found } = tensorKernel({ ...pair, issue: "" });
    expect(found).toEqual([]);
  });

  test("a commit that is never waited for leaves the product under way when its columns are given back", () => {
    expect(codes({ then: `@!%p3 bra $over; ${operands} ${mma(32)} $over:` })).toContain("TW8085");
  });
});

describe("values", () => {
  test("38: what an accumulator holds does not matter for a first product", () => {
    const fill = new Uint32Array(128 * columns).fill(0x7fc0_0000);
    const { cells, codes: found } = run({ issue: `${operands} ${mma()}`, fills: [fill] }, 0);
    expect(found).toEqual([]);
    expect([cells[0]?.[5], cells[0]?.[40]]).toEqual([0, 0x7fc0_0000]);
  });

  test("39: whether it adds comes from a predicate", () => {
    const loop = `${operands} mov.u32 %r12, 0; $loop: setp.ne.u32 %p5, %r12, 0; ${mma(0, "%p5")} add.s32 %r12, %r12, 1;
      setp.lt.u32 %p6, %r12, 3; @%p6 bra $loop;`;
    const fill = new Uint32Array(128 * columns).fill(0x7fc0_0000);
    expect(run({ issue: loop, fills: [fill] }, 0).cells[0]?.[0]).toBe(0);
    const negated = `${operands} setp.ne.u32 %p5, %r2, %r2; ${mma(0, "!%p5")}`;
    expect(run({ issue: negated, fills: [fill] }, 0).cells[0]?.[0]).toBe(0x7fff_ffff);
  });

  test("D is divided by a power of two, and lanes are left alone", () => {
    const fill = new Uint32Array(128 * columns).fill(0x4400_0000);
    const masks = "mov.b32 %r20, 0; mov.b32 %r21, -1; mov.b32 %r22, 6;";
    const scaled = `${masks} ${operands} tcgen05.mma.cta_group::1.kind::f16 [%r2], %d10, %d11, %r10, {%r20, %r21, %r22, %r20}, 1, 4;`;
    const { cells, codes: found } = run({ issue: scaled, fills: [fill] }, 0);
    expect(found).toEqual([]);
    const lane = (at: number): number => cells[0]?.[at * columns] ?? 0;
    expect([0, 32, 63, 64, 65, 66, 67, 100].map(lane)).toEqual([
      0x4200_0000, 0x4400_0000, 0x4400_0000, 0x4200_0000, 0x4400_0000, 0x4400_0000, 0x4200_0000,
      0x4200_0000,
    ]);
  });
});
