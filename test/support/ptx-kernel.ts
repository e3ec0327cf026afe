/**
 * Runs the body of a PTX kernel on the emulator. The body finds ready:
 *
 *   %thread, %warp, %rank        the thread in its block, its warp, the block in its cluster
 *   %smem                     the address of the dynamic shared memory (aligned to 1024)
 *   %x for each array x       its address;  %m_x for each tensor map x: its generic address
 *   %p0 … %p31, %h0 … %r0 … %d0 … %f0 …    registers of 1, 16, 32, 64 bits, and f64
 */
import { emulate, EmulatedMemory } from "../../src/emulator/index.ts";
import { parsedModule } from "./parsed-modules.ts";
import { encodeTensorMap } from "../../src/emulator/tensor-map.ts";
import type { TensorMap } from "../../src/emulator/tensor-map.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import { targets } from "../../src/targets/target.ts";

export interface PtxKernel {
  readonly body: string;
  /** Contents of the arrays; a number stands for so many bytes that nothing has written. */
  readonly arrays?: { readonly [name: string]: Uint8Array | number };
  /** Tensor maps, each on an array. */
  readonly maps?: {
    readonly [name: string]: Omit<TensorMap, "address"> & { readonly array: string };
  };
  readonly threads?: number;
  readonly blocks?: number;
  readonly cluster?: number;
  readonly sharedBytes?: number;
  readonly seed?: number;
  readonly checks?: boolean;
  /** Of the module and the GPU. */
  readonly target?: keyof typeof targets;
}

export interface PtxRun {
  readonly arrays: { readonly [name: string]: Uint8Array };
  /** Codes of all findings, what stopped the launch last. */
  readonly codes: readonly string[];
  readonly errors: readonly TilewrightError[];
}

function moduleText({ body, arrays = {}, maps = {}, target = "sm_90a" }: PtxKernel): string {
  const parameters = [
    ...Object.keys(arrays).map((name) => `.param .u64 p_${name}`),
    ...Object.keys(maps).map((name) => `.param .align 64 .b8 q_${name}[128]`),
  ];
  return [
    `.version ${target === "sm_90a" ? "8.6" : "9.0"}\n.target ${target}\n.address_size 64`,
    ".extern .shared .align 1024 .b8 memory[];",
    `.visible .entry kernel(${parameters.join(", ")})`,
    "{",
    ".reg .pred %p<32>; .reg .b16 %h<32>; .reg .b32 %r<512>; .reg .b64 %d<64>; .reg .f64 %f<64>;",
    ".reg .b32 %thread, %warp, %rank, %smem;",
    ...Object.keys(arrays).map((name) => `.reg .b64 %${name};`),
    ...Object.keys(maps).map((name) => `.reg .b64 %m_${name};`),
    "mov.u32 %thread, %tid.x; shr.u32 %warp, %thread, 5; mov.u32 %rank, %cluster_ctarank; mov.u32 %smem, memory;",
    ...Object.keys(arrays).map((name) => `ld.param.u64 %${name}, [p_${name}];`),
    ...Object.keys(maps).map(
      (name) => `mov.b64 %m_${name}, q_${name}; cvta.param.u64 %m_${name}, %m_${name};`,
    ),
    body,
    "ret;",
    "}",
  ].join("\n");
}

/** Runs the kernel; what stops it is among the findings. */
export function runPtx(kernel: PtxKernel): PtxRun {
  const { arrays = {}, maps = {}, threads = 32, blocks = 1, cluster = 1 } = kernel;
  const memory = new EmulatedMemory();
  const places = new Map<string, { readonly address: number; readonly bytes: number }>();
  for (const [name, content] of Object.entries(arrays)) {
    const bytes = typeof content === "number" ? content : content.length;
    const address = memory.allocate(bytes, name);
    if (typeof content !== "number") memory.write(address, content);
    places.set(name, { address, bytes });
  }
  const parameters = [
    ...[...places.values()].map(
      ({ address }) => new Uint8Array(BigUint64Array.of(BigInt(address)).buffer),
    ),
    ...Object.values(maps).map(({ array, ...map }) =>
      encodeTensorMap({ ...map, address: places.get(array)?.address ?? 0 }),
    ),
  ];
  const { sharedBytes = 65536, seed = 1, checks = true } = kernel;
  const errors: TilewrightError[] = [];
  const earlier: string[] = [];
  try {
    const { findings } = emulate(
      parsedModule(moduleText(kernel)),
      {
        entry: "kernel",
        blocks: [blocks, 1, 1],
        threads: [threads, 1, 1],
        cluster,
        sharedBytes,
        parameters,
      },
      memory,
      { target: targets[kernel.target ?? "sm_90a"], seed, checks },
    );
    errors.push(...findings);
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    errors.push(error);
    for (const { message } of error.notes) {
      const before = /^before that, (TW\d+)/.exec(message)?.[1];
      if (before !== undefined) earlier.push(before);
    }
  }
  const results = [...places].map(([name, { address, bytes }]) => [
    name,
    memory.read(address, bytes),
  ]);
  return {
    arrays: Object.fromEntries(results) as { [name: string]: Uint8Array },
    codes: [...earlier, ...errors.map(({ code }) => code)],
    errors,
  };
}

/** Initialises mbarriers in thread 0, and makes them known to all. */
export function initBarriers(
  barriers: readonly { readonly at: number; readonly count: number }[],
): string {
  return [
    "setp.ne.u32 %p31, %thread, 0; @%p31 bra $ready;",
    ...barriers.map(({ at, count }) => `mbarrier.init.shared::cta.b64 [%smem+${at}], ${count};`),
    "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;",
    "$ready: bar.sync 0;",
  ].join("\n");
}

let labels = 0;

/** Waits for a phase of an mbarrier. */
export function awaitBarrier(at: number, parity: number): string {
  const label = `$wait${labels++}`;
  return `${label}: mbarrier.try_wait.parity.shared::cta.b64 %p30, [%smem+${at}], ${parity}; @!%p30 bra ${label};`;
}

/** All threads together copy shared memory from `from` on to an array, 4 bytes at a time. */
export function dumpShared(array: string, from: number, bytes: number, threads: number): string {
  const label = `$dump${labels++}`;
  return [
    `shl.b32 %r500, %thread, 2;`,
    `${label}: setp.ge.u32 %p29, %r500, ${bytes}; @%p29 bra ${label}end;`,
    `add.u32 %r501, %smem, %r500; ld.shared.b32 %r502, [%r501+${from}];`,
    `cvt.u64.u32 %d60, %r500; add.u64 %d60, %d60, %${array}; st.global.b32 [%d60], %r502;`,
    `add.u32 %r500, %r500, ${4 * threads}; bra ${label}; ${label}end:`,
  ].join("\n");
}

/** All threads together fill shared memory from `to` on with an array. */
export function fillShared(array: string, to: number, bytes: number, threads: number): string {
  const label = `$fill${labels++}`;
  return [
    `shl.b32 %r500, %thread, 2;`,
    `${label}: setp.ge.u32 %p29, %r500, ${bytes}; @%p29 bra ${label}end;`,
    `cvt.u64.u32 %d60, %r500; add.u64 %d60, %d60, %${array}; ld.global.b32 %r502, [%d60];`,
    `add.u32 %r501, %smem, %r500; st.shared.b32 [%r501+${to}], %r502;`,
    `add.u32 %r500, %r500, ${4 * threads}; bra ${label}; ${label}end:`,
  ].join("\n");
}
