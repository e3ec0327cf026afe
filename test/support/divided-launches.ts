/**
 * Launches of many blocks for threads to share: some that they can share, some whose blocks get in each
 * other's way or meet something to report, and some whose blocks communicate.
 */
import type * as Emulator from "../../src/emulator/index.ts";
import type { WorkerPool, EmulatedMemory, EmulationResult } from "../../src/emulator/index.ts";
import type { PtxModule } from "../../src/ptx/module.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import { targets } from "../../src/targets/target.ts";
import { kernelText } from "./emulated-blocks.ts";

export interface DividedLaunch {
  readonly name: string;
  /** Whether it is held to what kernels of ours promise. */
  readonly isOwn?: boolean;
  readonly body: string;
  /** Shared variables and the like. */
  readonly module?: string;
  readonly blocks: number;
  readonly threads?: number;
  readonly cluster?: number;
  /** Bytes of the arrays p0, p1 …; the last one is not initialised. */
  readonly bytes: readonly number[];
  /** What becomes of it: threads share it, they try in vain, or it never leaves the calling thread. */
  readonly end: "shared" | "taken back" | "kept";
  /** The same without checks, where that differs. */
  readonly unchecked?: DividedLaunch["end"];
}

/** Global addresses: %d8 and %d9 of this lane's word of p0 and p1, %r0 the lane of the grid, %r1 the block. */
const here = `mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r0, %r1, %r2, %r3; mul.wide.u32 %d7, %r0, 4; add.s64 %d8, %d0, %d7; add.s64 %d9, %d1, %d7;`;

/** %p0 holds in one lane of block `block`. */
const only = (block: number): string =>
  `setp.eq.u32 %p0, %r1, ${block}; setp.eq.and.u32 %p0, %r3, 5, %p0;`;

const words = { blocks: 24, bytes: [24 * 64 * 4, 24 * 64 * 4], threads: 64 };

export const dividedLaunches: readonly DividedLaunch[] = [
  {
    ...words,
    name: "words of one's own",
    body: `${here} ld.global.b32 %r4, [%d8]; mad.lo.u32 %r4, %r4, 3, %r1; st.global.b32 [%d9], %r4; ret;`,
    end: "shared",
  },
  {
    ...words,
    name: "three bytes a block, and halves: neighbours in a word",
    body: `${here} mul.lo.u32 %r5, %r1, 3; cvt.u64.u32 %d10, %r5; add.s64 %d10, %d1, %d10;
      cvt.u16.u32 %h0, %r1; ld.global.u8 %h1, [%d0+1]; add.u16 %h0, %h0, %h1;
      setp.eq.u32 %p1, %r3, 0; @!%p1 bra $more;
      st.global.b8 [%d10], %h0; st.global.b8 [%d10+1], %h0; st.global.b8 [%d10+2], %h0;
      $more: setp.ne.u32 %p1, %r3, 1; @%p1 ret;
      mul.wide.u32 %d11, %r1, 2; add.s64 %d11, %d1, %d11; st.global.b16 [%d11+1024], %h0; ret;`,
    end: "shared",
  },
  {
    ...words,
    name: "clusters that exchange through shared memory",
    cluster: 2,
    module: ".shared .align 4 .b8 box[256];",
    body: `${here} ld.global.b32 %r4, [%d8]; shl.b32 %r5, %r3, 2; mov.u32 %r6, box; add.s32 %r5, %r5, %r6;
      st.shared.b32 [%r5], %r4; barrier.cluster.arrive; barrier.cluster.wait;
      mov.u32 %r7, %cluster_ctarank; xor.b32 %r7, %r7, 1; mapa.shared::cluster.u32 %r8, %r5, %r7;
      ld.shared::cluster.b32 %r9, [%r8]; barrier.cluster.arrive; barrier.cluster.wait;
      st.global.b32 [%d9], %r9; ret;`,
    end: "shared",
  },
  {
    ...words,
    name: "copies there and back, of which nobody waits for the last",
    module: ".shared .align 16 .b8 box[256]; .shared .align 8 .b64 bar;",
    body: `${here} mov.u32 %r6, box; mov.u32 %r7, bar; setp.ne.u32 %p1, %r3, 0; @%p1 ret;
      mbarrier.init.shared.b64 [%r7], 1; fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 256;
      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r6], [%d8], 256, [%r7];
      $again: mbarrier.try_wait.parity.shared.b64 %p2, [%r7], 0; @!%p2 bra $again;
      cp.async.bulk.global.shared::cta.bulk_group [%d9], [%r6], 256; cp.async.bulk.commit_group;
      cp.async.bulk.wait_group.read 0; ret;`,
    end: "shared",
  },
  {
    ...words,
    name: "all blocks write one word",
    body: `${here} st.global.b32 [%d9], %r1; setp.ne.u32 %p1, %r3, 0; @%p1 ret; st.global.b32 [%d0], %r1; ret;`,
    end: "taken back",
  },
  {
    ...words,
    name: "a block reads what the next but two writes",
    body: `${here} ld.global.b32 %r4, [%d8+768]; st.global.b32 [%d8], %r4; st.global.b32 [%d9], %r4; ret;`,
    bytes: [27 * 64 * 4, 24 * 64 * 4],
    end: "taken back",
  },
  {
    ...words,
    name: "the last block reads what the first has written",
    body: `${here} st.global.b32 [%d9], %r1; setp.eq.u32 %p1, %r1, 0; @%p1 st.global.b32 [%d8], %r0;
      setp.eq.u32 %p1, %r1, 23; mov.u32 %r4, 0; @%p1 ld.global.b32 %r4, [%d0+16]; st.global.b32 [%d9], %r4; ret;`,
    end: "taken back",
    unchecked: "shared",
  },
  {
    ...words,
    name: "copies of neighbours overlap",
    module: ".shared .align 16 .b8 box[256];",
    body: `${here} shl.b32 %r5, %r3, 2; mov.u32 %r6, box; add.s32 %r5, %r5, %r6; st.shared.b32 [%r5], %r1;
      fence.proxy.async; bar.sync 0; setp.ne.u32 %p1, %r3, 0; @%p1 ret;
      mul.wide.u32 %d10, %r1, 240; add.s64 %d10, %d1, %d10;
      cp.async.bulk.global.shared::cta.bulk_group [%d10], [%r6], 256; cp.async.bulk.commit_group;
      cp.async.bulk.wait_group 0; ret;`,
    end: "taken back",
  },
  {
    ...words,
    name: "an address outside of memory, in one block",
    body: `${here} ${only(17)} st.global.b32 [%d9], %r1; @%p0 ld.global.b32 %r4, [%d8+65536]; ret;`,
    end: "taken back",
  },
  {
    ...words,
    name: "a read of what nothing has written, in one block",
    body: `${here} ${only(23)} mov.u32 %r4, 0; @%p0 ld.global.b32 %r4, [%d9]; st.global.b32 [%d8], %r4; ret;`,
    end: "taken back",
    unchecked: "shared",
  },
  {
    ...words,
    name: "a race within one block",
    module: ".shared .align 4 .b8 box[256];",
    body: `${here} setp.ne.u32 %p1, %r1, 20; @%p1 bra $end; mov.u32 %r6, box; st.shared.b32 [%r6], %r1;
      $end: st.global.b32 [%d9], %r0; ret;`,
    end: "taken back",
    unchecked: "shared",
  },
  {
    ...words,
    name: "the last block ends while a copy reads its memory, of which only the end of the copy tells",
    module: ".shared .align 16 .b8 box[256];",
    body: `${here} shl.b32 %r5, %r3, 2; mov.u32 %r6, box; add.s32 %r5, %r5, %r6; st.shared.b32 [%r5], %r1;
      fence.proxy.async; bar.sync 0; setp.ne.u32 %p1, %r3, 0; @%p1 ret;
      mul.wide.u32 %d10, %r1, 256; add.s64 %d10, %d1, %d10;
      cp.async.bulk.global.shared::cta.bulk_group [%d10], [%r6], 256; cp.async.bulk.commit_group;
      setp.eq.u32 %p1, %r1, 23; @%p1 ret; cp.async.bulk.wait_group 0; ret;`,
    end: "taken back",
  },
  {
    ...words,
    name: "an arrival left over in one block, of a kernel of ours",
    module: ".shared .align 8 .b8 box[8];",
    body: `${here} setp.ne.u32 %p1, %r3, 0; @%p1 bra $end; mov.u32 %r6, box; mbarrier.init.shared.b64 [%r6], 2;
      setp.ne.u32 %p1, %r1, 23; @%p1 bra $end; mbarrier.arrive.shared.b64 %d10, [%r6];
      $end: st.global.b32 [%d9], %r0; ret;`,
    isOwn: true,
    end: "taken back",
    unchecked: "shared",
  },
  {
    ...words,
    name: "a barrier that one block waits at for ever",
    body: `${here} setp.ne.u32 %p1, %r1, 13; @%p1 bra $end; bar.sync 0, 96; $end: st.global.b32 [%d9], %r1; ret;`,
    end: "taken back",
  },
  {
    ...words,
    name: "a block waits for a later one through plain accesses",
    body: `${here} st.global.b32 [%d9], %r1; setp.ne.u32 %p1, %r1, 2; @%p1 bra $tell;
      $again: ld.global.b32 %r4, [%d0+4]; setp.ne.u32 %p2, %r4, 77; @%p2 bra $again; ret;
      $tell: setp.eq.u32 %p1, %r1, 6; setp.eq.and.u32 %p1, %r3, 0, %p1; mov.u32 %r5, 77;
      @%p1 st.global.b32 [%d0+4], %r5; ret;`,
    end: "taken back",
  },
  {
    ...words,
    name: "a counter of all blocks",
    body: `${here} st.global.b32 [%d9], %r1; atom.global.add.u32 %r4, [%d0], 1; ret;`,
    end: "kept",
  },
  {
    ...words,
    name: "a barrier of the grid",
    body: `${here} st.global.b32 [%d9], %r1; setp.ne.u32 %p1, %r3, 0; @%p1 ret;
      atom.acq_rel.gpu.global.add.u32 %r4, [%d0], 1; ld.global.b32 %r6, [%d0+8];
      $again: ld.acquire.gpu.global.b32 %r5, [%d0]; setp.lt.u32 %p2, %r5, %r6; @%p2 bra $again; ret;`,
    end: "kept",
  },
];

/** Everything that a launch leaves behind and tells. */
export interface LaunchRecord {
  readonly bytes: readonly (readonly number[])[];
  readonly states: readonly (readonly number[])[];
  readonly findings: readonly string[];
  readonly thrown: string | undefined;
  readonly counters: EmulationResult["counters"] | undefined;
}

/** The emulator's parts, from the sources or from a build of them. */
export interface EmulatorParts {
  readonly EmulatedMemory: new () => EmulatedMemory;
  readonly parsePtx: (text: string) => PtxModule;
  readonly run: (
    ...given: Parameters<typeof Emulator.emulate>
  ) => EmulationResult | Promise<EmulationResult>;
}

/** A word of an input; the one at byte 8 of p0 says how many blocks there are. */
function input(index: number, blocks: number): number {
  if (index === 0 || index === 1) return 0;
  return index === 2 ? blocks : (index * 2654435761) >>> 0;
}

const globalBase = 0x7f00 * 2 ** 32;

export async function recordLaunch(
  { EmulatedMemory: Memory, parsePtx, run }: EmulatorParts,
  launch: DividedLaunch,
  options: { readonly seed: number; readonly checks: boolean },
): Promise<LaunchRecord> {
  const { blocks, threads = 64, cluster = 1, bytes } = launch;
  const memory = new Memory();
  const arrays = bytes.map((size) => new Uint32Array(size / 4));
  const module = parsePtx(kernelText({ ...launch, arrays }));
  const addresses = bytes.map((size, at) => {
    const address = memory.allocate(size, `p${at}`);
    const values = Uint32Array.from({ length: size / 4 }, (_, index) => input(index, blocks));
    if (at < bytes.length - 1) memory.write(address, new Uint8Array(values.buffer));
    return address;
  });
  const parameters = addresses.map((at) => new Uint8Array(BigUint64Array.of(BigInt(at)).buffer));
  let result: EmulationResult | undefined;
  let thrown: string | undefined;
  try {
    result = await run(
      module,
      {
        entry: "kernel",
        blocks: [blocks, 1, 1],
        threads: [threads, 1, 1],
        cluster,
        sharedBytes: 0,
        parameters,
        isOwn: launch.isOwn,
      },
      memory,
      { target: targets.sm_90a, ...options },
    );
  } catch (error) {
    if (!(error instanceof Error) || error.name !== TilewrightError.name) throw error;
    thrown = error.message;
  }
  const part = (of: Uint8Array, at: number): readonly number[] => [
    ...of.subarray((addresses[at] ?? 0) - globalBase).subarray(0, bytes[at]),
  ];
  return {
    bytes: bytes.map((_, at) => part(memory.views.bytes, at)),
    states: bytes.map((_, at) => part(memory.views.states, at)),
    findings: result?.findings.map(({ message }) => message) ?? [],
    thrown,
    counters: result?.counters,
  };
}

/** Launches with a pool. */
export function poolOf(
  { emulateWith }: Pick<typeof Emulator, "emulateWith">,
  pool: WorkerPool,
): EmulatorParts["run"] {
  return (...given) => emulateWith(pool, ...given);
}
