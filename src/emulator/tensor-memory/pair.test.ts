/**
 * A product of a pair of blocks written by hand, as libraries write it: each block's TMA brings its half of both operands and tells the
 * leader's barrier, the leader multiplies, and a multicast commit tells both. Its numbers are those of the published model.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { f32 } from "../../formats/dtype.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { readNpz } from "../../files/index.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { takesAll } from "../../../test/support/sample.ts";
import { vectorOf } from "../../../test/support/tensor-memory-kernel.ts";
import { Emulator } from "../api/index.ts";

const descriptorHigh = 0x4000_4040n;
const instructionDescriptor = 0x1020_0010;

const fenced = (sync: string): string =>
  `tcgen05.fence::before_thread_sync; ${sync} tcgen05.fence::after_thread_sync;`;
const meet = fenced("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;");
const await_ = (label: string, barrier: string): string =>
  `${label}: mbarrier.try_wait.parity.shared::cta.b64 %p2, [${barrier}], 0; @!%p2 bra ${label}; tcgen05.fence::after_thread_sync;`;
const load = (target: string, map: string, row: string): string =>
  `cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [${target}], [${map}, {%r11, ${row}}], [%r10];`;

const text = `.version 8.8
.target sm_100a
.address_size 64
.visible .entry pair(.param .align 64 .b8 left[128], .param .align 64 .b8 right[128], .param .u64 out)
.reqnctapercluster 2, 1, 1
{
.shared .align 1024 .b8 a[16384];
.shared .align 1024 .b8 b[8192];
.shared .align 8 .b64 full;
.shared .align 8 .b64 done;
.shared .align 4 .b32 place;
.reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<96>; .reg .b64 %d<32>;
mov.b64 %d0, left; cvta.param.u64 %d0, %d0; mov.b64 %d1, right; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [out];
mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; mov.u32 %r2, %cluster_ctarank; mov.u32 %r9, %ctaid.x;
setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r0, 0;
@%p0 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [place], 128;
@!%p1 bra $ready;
mbarrier.init.shared::cta.b64 [full], 1; mbarrier.init.shared::cta.b64 [done], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;
$ready:
${meet}
ld.shared.b32 %r3, [place];
setp.eq.u32 %p3, %r2, 0; and.pred %p3, %p3, %p1;
@!%p1 bra $loaded;
mov.u32 %r10, full; and.b32 %r10, %r10, 0xFEFFFFFF; mov.u32 %r11, 0; shl.b32 %r12, %r2, 7; shl.b32 %r13, %r2, 6;
@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 49152;
${load("a", "%d0", "%r12")} ${load("b", "%d1", "%r13")}
$loaded:
@!%p3 bra $issued;
${await_("$full", "full")}
mov.u32 %r14, a; mov.u32 %r15, b; and.b32 %r14, %r14, 0x3ffff; and.b32 %r15, %r15, 0x3ffff; shr.u32 %r14, %r14, 4; shr.u32 %r15, %r15, 4;
cvt.u64.u32 %d3, %r14; or.b64 %d3, %d3, 0x${((descriptorHigh << 32n) | (1n << 16n)).toString(16)};
cvt.u64.u32 %d4, %r15; or.b64 %d4, %d4, 0x${((descriptorHigh << 32n) | (1n << 16n)).toString(16)};
mov.b32 %r16, ${instructionDescriptor};
${[0, 1, 2, 3]
  .map(
    (step) =>
      `tcgen05.mma.cta_group::2.kind::f16 [%r3], %d3, %d4, %r16, ${step === 0 ? 0 : 1}; add.s64 %d3, %d3, 2; add.s64 %d4, %d4, 2;`,
  )
  .join("\n")}
mov.b16 %h0, 3;
tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %h0;
$issued:
${await_("$done", "done")}
shl.b32 %r4, %r1, 21; add.s32 %r4, %r4, %r3;
mad.lo.u32 %r5, %r9, 128, %r0; mad.wide.u32 %d5, %r5, 512, %d2;
${[0, 32, 64, 96]
  .map(
    (column) =>
      `tcgen05.ld.sync.aligned.32x32b.x32.b32 ${vectorOf(40, 32)}, [%r4+${column}]; tcgen05.wait::ld.sync.aligned;
      ${[0, 4, 8, 12, 16, 20, 24, 28].map((at) => `st.global.v4.b32 [%d5+${4 * (column + at)}], ${vectorOf(40 + at, 4)};`).join(" ")}`,
  )
  .join("\n")}
${meet}
@%p0 tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
@%p0 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 128;
ret;
}`;

async function run(seed: number, edit: (source: string) => string = (source) => source) {
  const bytes = readFileSync("test/fixtures/ptx/triton/tensor-memory/f16-2cta.npz");
  const inputs = (await readNpz(bytes)) as Readonly<Record<string, HostArray>>;
  const emulator = new Emulator({ threads: 1 });
  const [a, b] = ["a", "b"].map((name) => emulator.upload(inputs[name] as HostArray, name));
  const out = emulator.allocate(f32, [256, 128], "out");
  if (a === undefined || b === undefined) throw new Error("no inputs");
  const map = (array: typeof a, rows: number) =>
    emulator.tensorMap(array, { box: [64, rows], swizzle: 128, type: "f16" });
  const result = emulator.launch(emulator.load(edit(text), "pair.ptx"), {
    ...{ blocks: 2, threads: 128, cluster: 2, seed },
    parameters: [map(a, 128), map(b, 64), out],
  });
  const { data } = emulator.download(out);
  const hash = createHash("sha256").update(
    new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
  );
  const expected = Buffer.from(inputs["model_sha256"]?.data as Uint8Array).toString("hex");
  return {
    codes: [...result.findings, ...result.notes].map(({ code }) => code),
    hash: hash.digest("hex"),
    expected,
  };
}

async function codes(edit: (source: string) => string): Promise<readonly string[]> {
  try {
    return [...new Set((await run(1, edit)).codes)];
  } catch (error) {
    if (error instanceof TilewrightError) return [error.code];
    throw error;
  }
}

describe("a product of a pair", () => {
  test.each(takesAll ? [0, 1, 2, 3, 4, 5, 6, 7] : [0, 1])(
    "gives the model's bits, seed %i",
    async (seed) => {
      const { codes: found, hash, expected } = await run(seed);
      expect(found).toEqual([]);
      expect(hash).toBe(expected);
    },
  );

  test("TW8094: a copy of one block does not tell the leader's barrier", async () => {
    const edit = (source: string): string =>
      source.replaceAll("bytes.cta_group::2", "bytes.cta_group::1");
    expect(await codes(edit)).toEqual(["TW8094"]);
  });

  test("half of the expected bytes: the leader begins before the other half is there", async () => {
    const found = await codes((source) => source.replace("49152", "24576"));
    expect(found.length).toBeGreaterThan(0);
  });

  test("a commit that tells one block leaves the other one waiting", async () => {
    expect(await codes((source) => source.replace("mov.b16 %h0, 3", "mov.b16 %h0, 1"))).toEqual([
      "TW8020",
    ]);
  });

  test("a block that ends while the pair's product may read its operands", async () => {
    const ends = (source: string): string =>
      source
        .replace("$issued:", "$issued: setp.eq.u32 %p4, %r2, 1; @%p4 bra $early;")
        .replace("ret;", "$early: ret;");
    expect((await codes(ends)).length).toBeGreaterThan(0);
  });
});
