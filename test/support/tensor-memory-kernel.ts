/**
 * Runs instructions of `tcgen05` in a kernel that does the rest: it allocates columns, brings operands to shared memory and words to
 * tensor memory, lets one thread issue the instructions, waits for their commit, and reads all columns back.
 *
 *   tensorKernel({ columns: 64, image, issue: "tcgen05.mma… [%r2], …;" })      %r2: the address of the columns
 */
import { EmulatedMemory, emulate } from "../../src/emulator/index.ts";
import type { EmulationResult } from "../../src/emulator/index.ts";
import { targets } from "../../src/targets/target.ts";
import { parsedModule } from "./parsed-modules.ts";

export interface TensorKernel {
  /** A power of two from 32 to 512. */
  readonly columns: number;
  /** What the one thread does; registers from %r10, %d10 and %p4 on are free. */
  readonly issue: string;
  /** Shared memory from its start on, of each block. */
  readonly images?: readonly Uint8Array[];
  /** Words of all columns, lane by lane, of each block; zeros unless given. */
  readonly fills?: readonly Uint32Array[];
  /** A pair of blocks instead of one, with `cta_group::2`. */
  readonly pair?: boolean;
  /** What all threads of a block do instead of waiting for a commit of the one thread. */
  readonly then?: string;
  /** Whether only the lower halves of columns are read back, by loads that pack them. */
  readonly packed?: boolean;
  /** Whether all columns are read back; true unless given. */
  readonly reads?: boolean;
  /** Changes the text: faults that are to be found. */
  readonly edit?: (text: string) => string;
  readonly seed?: number;
  readonly isOwn?: boolean;
  readonly target?: string;
}

export interface TensorRun {
  /** Words of each block, lane by lane. */
  readonly cells: readonly Uint32Array[];
  readonly result: EmulationResult;
  readonly codes: readonly string[];
}

/** Registers from a number on, as a vector. */
export function vectorOf(first: number, count: number): string {
  return `{${Array.from({ length: count }, (_, at) => `%r${first + at}`).join(", ")}}`;
}

/** Where chunks of so many columns begin. */
function chunks(columns: number, width: number): readonly number[] {
  return Array.from({ length: columns / width }, (_, chunk) => width * chunk);
}

/** Text for every four of some registers. */
function quads(count: number, text: (at: number) => string): string {
  return Array.from({ length: count / 4 }, (_, quad) => text(4 * quad)).join(" ");
}

export const fences = {
  before: "tcgen05.fence::before_thread_sync;",
  after: "tcgen05.fence::after_thread_sync;",
};
const meet = {
  block: "bar.sync 0;",
  pair: "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
};

export function tensorKernelText(kernel: TensorKernel): string {
  const { columns, issue, images = [], pair = false, packed = false, then } = kernel;
  const { fills, reads = true } = kernel;
  const group = pair ? 2 : 1;
  const bytes = Math.max(16, images[0]?.length ?? 0);
  const both = `${fences.before} ${pair ? meet.pair : meet.block} ${fences.after}`;
  const commit = pair
    ? "mov.b16 %h0, 3; tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %h0;"
    : "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];";
  const awaited = `$wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [done], 0; @!%p2 bra $wait; ${fences.after}`;
  const step = packed ? 2 : 1;
  const width = Math.min(32, columns / step);
  const dump = chunks(columns / step, width).map(
    (column) =>
      `tcgen05.ld.sync.aligned.32x32b.x${width}${packed ? ".pack::16b" : ""}.b32 ${vectorOf(20, width)}, [%r3+${step * column}]; tcgen05.wait::ld.sync.aligned;
      ${quads(width, (at) => `st.global.v4.b32 [%d4+${4 * (column + at)}], ${vectorOf(20 + at, 4)};`)}`,
  );
  const zeros = `{${Array.from({ length: 32 }, () => "%r20").join(", ")}}`;
  const fill = chunks(columns, 32).map((column) =>
    fills === undefined
      ? `mov.b32 %r20, 0; tcgen05.st.sync.aligned.32x32b.x32.b32 [%r3+${column}], ${zeros};`
      : `${quads(32, (at) => `ld.global.v4.b32 ${vectorOf(20 + at, 4)}, [%d3+${4 * (column + at)}];`)}
         tcgen05.st.sync.aligned.32x32b.x32.b32 [%r3+${column}], ${vectorOf(20, 32)};`,
  );
  return `.version 8.8
.target ${kernel.target ?? "sm_100a"}
.address_size 64
.visible .entry kernel(.param .u64 image, .param .u64 fill, .param .u64 out)
{
.shared .align 1024 .b8 sm[${bytes}];
.shared .align 8 .b64 full;
.shared .align 8 .b64 done;
.shared .align 8 .b64 extra;
.shared .align 4 .b32 place;
.reg .pred %p<16>; .reg .b16 %h<8>; .reg .b32 %r<300>; .reg .b64 %d<32>;
ld.param.u64 %d0, [image]; ld.param.u64 %d1, [fill]; ld.param.u64 %d2, [out];
mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; mov.u32 %r9, %ctaid.x; mov.u32 %r8, %cluster_ctarank;
setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r0, 0;
mad.wide.u32 %d0, %r9, ${bytes}, %d0;
@%p0 tcgen05.alloc.cta_group::${group}.sync.aligned.shared::cta.b32 [place], ${columns};
@!%p1 bra $ready;
mbarrier.init.shared::cta.b64 [full], 1; mbarrier.init.shared::cta.b64 [done], 1; mbarrier.init.shared::cta.b64 [extra], 1;
fence.mbarrier_init.release.cluster; fence.proxy.async;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], ${bytes};
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%d0], ${bytes}, [full];
$ready:
${both}
ld.shared.b32 %r2, [place]; shl.b32 %r3, %r1, 21; add.s32 %r3, %r3, %r2;
mad.lo.u32 %r4, %r9, 128, %r0;
mad.wide.u32 %d3, %r4, ${4 * columns}, %d1; mad.wide.u32 %d4, %r4, ${4 * columns}, %d2;
${fill.join("\n")}
tcgen05.wait::st.sync.aligned;
$full: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0; @!%p2 bra $full;
${both}
setp.eq.u32 %p3, %r4, 0;
@!%p3 bra $issued;
${issue}
${then === undefined ? commit : ""}
$issued:
${then ?? awaited}
${reads ? dump.join("\n") : ""}
${both}
@%p0 tcgen05.dealloc.cta_group::${group}.sync.aligned.b32 %r2, ${columns};
@%p0 tcgen05.relinquish_alloc_permit.cta_group::${group}.sync.aligned;
ret;
}`;
}

export function tensorKernel(kernel: TensorKernel): TensorRun {
  const { columns, images = [], fills = [], pair = false, packed = false } = kernel;
  const { seed = 0, isOwn = true } = kernel;
  const blocks = pair ? 2 : 1;
  const memory = new EmulatedMemory();
  const size = Math.max(16, images[0]?.length ?? 0);
  const words = 128 * columns;
  const upload = (name: string, parts: readonly Uint8Array[], bytes: number): number => {
    const address = memory.allocate(blocks * bytes, name);
    memory.write(address, new Uint8Array(blocks * bytes));
    for (const [block, part] of parts.entries()) {
      const all = memory.read(address, blocks * bytes);
      all.set(part, block * bytes);
      memory.write(address, all);
    }
    return address;
  };
  const bytesOf = (part: Uint32Array): Uint8Array =>
    new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
  const image = upload("image", images, size);
  const fill = upload("fill", fills.map(bytesOf), 4 * words);
  const out = memory.allocate(4 * blocks * words, "out");
  const result = emulate(
    parsedModule(kernel.edit?.(tensorKernelText(kernel)) ?? tensorKernelText(kernel)),
    {
      entry: "kernel",
      ...{ blocks: [blocks, 1, 1], threads: [128, 1, 1], cluster: blocks, sharedBytes: 0, isOwn },
      parameters: [image, fill, out].map(
        (at) => new Uint8Array(BigUint64Array.of(BigInt(at)).buffer),
      ),
    },
    memory,
    { target: targets.sm_100a, seed },
  );
  const cells = Array.from({ length: blocks }, (_, block) => {
    const found = new Uint32Array(memory.read(out + 4 * block * words, 4 * words).buffer);
    if (!packed) return found;
    return found.map((_, at) => {
      const [lane, column] = [Math.floor(at / columns), at % columns];
      const pair = found[lane * columns + (column >> 1)] ?? 0;
      return (pair >>> (16 * (column & 1))) & 0xffff;
    });
  });
  return { cells, result, codes: result.findings.map(({ code }) => code) };
}

/* ---- matrices in shared memory ---- */

export type Swizzle = "none" | "32" | "64" | "128" | "128 by 32";

export interface PlacedMatrix {
  /** As rows of k. */
  readonly bytes: Uint8Array;
  readonly rows: number;
  readonly elementBytes: number;
  readonly major: "k" | "mn";
  readonly swizzle: Swizzle;
  readonly start: number;
  /** Bytes between the parts that descriptors know of. */
  readonly leading: number;
  readonly stride: number;
}

const lineBytes: { readonly [S in Swizzle]: number } = {
  none: 16,
  "32": 32,
  "64": 64,
  "128": 128,
  "128 by 32": 128,
};
const swizzleCodes: { readonly [S in Swizzle]: bigint } = {
  none: 0n,
  "128 by 32": 1n,
  "128": 2n,
  "64": 4n,
  "32": 6n,
};

/**
 * Puts a matrix where a descriptor says, walking over memory: lines of the swizzle's width, 8 of them (4 of tf32 with its rows side by side) a
 * tile, whose 16-byte chunks are exchanged by the bits of the address above them.
 */
export function placeMatrix(image: Uint8Array, matrix: PlacedMatrix): void {
  const { bytes, rows, elementBytes, major, swizzle, start, leading, stride } = matrix;
  const depth = bytes.length / rows;
  const width = lineBytes[swizzle];
  const lines = swizzle === "128 by 32" ? 4 : 8;
  // Along the lines lie k, or rows; from line to line the other one.
  const along = (major === "k" ? depth : rows * elementBytes) / width;
  const across = major === "k" ? rows / lines : depth / elementBytes / lines;
  for (let tile = 0; tile < across; tile++)
    for (let part = 0; part < along; part++)
      for (let line = 0; line < lines; line++)
        for (let byte = 0; byte < width; byte++) {
          // Without a swizzle the two distances mean the other thing where rows lie side by side.
          const swapped = swizzle === "none" && major === "mn";
          const origin =
            start + tile * (swapped ? leading : stride) + part * (swapped ? stride : leading);
          const logical = origin + line * width + byte;
          const physical = exchanged(logical, swizzle);
          const other = tile * lines + line;
          const own = part * width + byte;
          const from =
            major === "k"
              ? other * depth + own
              : Math.floor(own / elementBytes) * depth +
                other * elementBytes +
                (own % elementBytes);
          image[physical] = bytes[from] ?? 0;
        }
}

function exchanged(address: number, swizzle: Swizzle): number {
  const bit = (position: number): number => (address >> position) & 1;
  const flips: { readonly [S in Swizzle]: readonly (readonly [to: number, by: number])[] } = {
    none: [],
    "32": [[4, 7]],
    "64": [
      [4, 7],
      [5, 8],
    ],
    "128": [
      [4, 7],
      [5, 8],
      [6, 9],
    ],
    "128 by 32": [
      [5, 7],
      [6, 8],
    ],
  };
  return flips[swizzle].reduce((moved, [to, by]) => moved ^ (bit(by) << to), address);
}

export function descriptorBits({
  start,
  leading,
  stride,
  swizzle,
}: Pick<PlacedMatrix, "start" | "leading" | "stride" | "swizzle">): bigint {
  return (
    BigInt(start >> 4) |
    (BigInt(leading >> 4) << 16n) |
    (BigInt(stride >> 4) << 32n) |
    (1n << 46n) |
    (swizzleCodes[swizzle] << 61n)
  );
}

/** `mov.b64 %dN, …;` of a descriptor. */
export function moveDescriptor(register: number, bits: bigint): string {
  return `mov.b64 %d${register}, 0x${bits.toString(16)};`;
}
