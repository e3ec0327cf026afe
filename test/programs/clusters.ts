/** Blocks that share their shared memory: addresses, accesses, barriers, copies to several of them. */
import { tensorMapTypeBytes } from "../../src/emulator/tensor-map.ts";
import { Random } from "../../src/support/random.ts";
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Program, Slot } from "./program.ts";
import { kindBits, operandStream } from "./values.ts";

const group = "clusters";
const lanes = 64;

function randomBytes(seed: number, bytes: number): Uint8Array {
  const random = new Random(seed);
  return Uint8Array.from({ length: bytes }, () => random.below(256));
}

export interface Cluster {
  readonly kernel: Kernel;
  readonly name: string;
  /** Of the tile: its start, the lane's 16 bytes, and the same in the next block of the cluster. */
  readonly tile: string;
  readonly own: string;
  readonly remote: string;
  /** The rank of the block and of the next. */
  readonly rank: string;
  readonly next: string;
  readonly leader: string;
}

export const meeting = ["barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"];

/** Two clusters of two or four blocks with a tile of 1 KB each. */
export function clustered(name: string, cluster = 2): Cluster {
  const kernel = new Kernel({ name, group, blocks: 4, threads: lanes, cluster });
  kernel.declare(`.shared .align 128 .b8 ${name}_tile[2048];`);
  const [tile, own, remote, rank, next] = kernel.registers(32, 5) as [
    string,
    string,
    string,
    string,
    string,
  ];
  const [leader] = kernel.registers(1, 1) as [string];
  kernel.line(
    `mov.u32 ${tile}, ${name}_tile;`,
    `mad.lo.u32 ${own}, %t, 16, ${tile};`,
    `mov.u32 ${rank}, %cluster_ctarank;`,
    `add.u32 ${next}, ${rank}, 1;`,
    `and.b32 ${next}, ${next}, ${cluster - 1};`,
    `mapa.shared::cluster.u32 ${remote}, ${own}, ${next};`,
    `setp.eq.u32 ${leader}, %t, 0;`,
  );
  return { kernel, name, tile, own, remote, rank, next, leader };
}

/** Every form of the barrier, around accesses to the next block. */
function barriers(): Program {
  const { kernel, own, remote } = clustered("cluster_barriers");
  const value = kernel.load(kernel.stream("b32@0", 4, () => randomBytes(1, 4 * kernel.count)));
  for (const arrive of expand("barrier.cluster.arrive{,.release,.relaxed}{,.aligned}"))
    for (const wait of expand("barrier.cluster.wait{,.acquire}{,.aligned}")) {
      const [found] = kernel.registers(32, 1) as [string];
      kernel.covers(arrive);
      kernel.covers(wait);
      kernel.line(
        `add.u32 ${value}, ${value}, 5;`,
        `st.shared.u32 [${own}], ${value};`,
        // A relaxed arrival publishes nothing by itself.
        ...(arrive.includes("relaxed") ? ["fence.acq_rel.cluster;"] : []),
        `${arrive};`,
        `${wait};`,
        `ld.shared::cluster.u32 ${found}, [${remote}];`,
        ...meeting,
      );
      kernel.store(`${arrive} ${wait}`, found, 32);
    }
  return kernel.program();
}

/** Addresses of other blocks, and whose they are. */
function addresses(): Program {
  const { kernel, own, next } = clustered("cluster_addresses");
  const [wide, generic] = kernel.registers(64, 2) as [string, string];
  const value = kernel.load(kernel.stream("b32@0", 4, () => randomBytes(2, 4 * kernel.count)));
  kernel.line(
    `cvt.u64.u32 ${wide}, ${own};`,
    `cvta.shared.u64 ${generic}, ${wide};`,
    `st.shared.u32 [${own}], ${value};`,
    ...meeting,
  );
  const forms = [
    ["mapa.shared::cluster.u32", own, 32, "ld.shared::cluster.u32"],
    ["mapa.shared::cluster.u64", wide, 64, "ld.shared::cluster.u32"],
    ["mapa.u64", generic, 64, "ld.u32"],
  ] as const;
  for (const [opcode, source, bits, load] of forms) {
    const [mapped] = kernel.registers(bits, 1) as [string];
    const [found, mine, theirs] = kernel.registers(32, 3) as [string, string, string];
    const rankOf = opcode.replace("mapa", "getctarank");
    kernel.covers(opcode);
    kernel.covers(rankOf);
    kernel.line(
      `${opcode} ${mapped}, ${source}, ${next};`,
      `${load} ${found}, [${mapped}];`,
      `${rankOf} ${mine}, ${source};`,
      `${rankOf} ${theirs}, ${mapped};`,
    );
    kernel.store(`${opcode}: what lies there`, found, 32);
    kernel.store(`${rankOf} of its own`, mine, 32);
    kernel.store(`${rankOf} of another`, theirs, 32);
    for (const space of ["shared::cta", "shared::cluster", "shared", "global"]) {
      if (opcode !== "mapa.u64") continue;
      const [held] = kernel.registers(1, 1) as [string];
      kernel.line(`isspacep.${space} ${held}, ${mapped};`);
      kernel.storePredicate(`isspacep.${space} of another block's`, held);
    }
  }
  kernel.line(...meeting);
  return kernel.program();
}

const types = "b8 u8 s8 b16 u16 s16 b32 u32 s32 f32 b64 u64 s64 f64".split(" ");

/** Stores to the next block and loads from it, every type and vector. */
function accesses(): readonly Program[] {
  return types.map((type) => {
    const bits = Number(type.slice(1));
    const { kernel, own, remote } = clustered(`cluster_access_${type}`, 4);
    const width = Math.max(16, bits) as 16 | 32 | 64;
    const values = [0, 1, 2, 3].map((at) =>
      kernel.load(
        kernel.stream(`b${width}@${at}`, width / 8, () =>
          operandStream(`b${width}`, at % 2, kernel.count),
        ),
      ),
    );
    for (const count of [1, 2, 4].filter((each) => each * bits <= 128)) {
      const end = count === 1 ? type : `v${count}.${type}`;
      const list = (registers: readonly string[]): string =>
        count === 1 ? (registers[0] ?? "") : `{${registers.join(", ")}}`;
      const [near, far] = [kernel.registers(width, count), kernel.registers(width, count)];
      kernel.covers(`st.shared::cluster.${end}`);
      kernel.covers(`ld.shared::cluster.${end}`);
      kernel.line(
        `st.shared::cluster.${end} [${remote}], ${list(values.slice(0, count))};`,
        ...meeting,
        `ld.shared.${end} ${list(near)}, [${own}];`,
        `ld.shared::cluster.${end} ${list(far)}, [${remote}];`,
        ...meeting,
      );
      near.forEach((register, at) =>
        kernel.store(`st.shared::cluster.${end} ${at}`, register, width),
      );
      far.forEach((register, at) =>
        kernel.store(`ld.shared::cluster.${end} ${at}`, register, width),
      );
    }
    return kernel.program();
  });
}

/** Atomics on the next block's memory, an address a lane. */
function atomics(): readonly Program[] {
  const forms = expand(
    "{and,or,xor,exch}.{b32,b64} cas.{b16,b32,b64} add.{u32,s32,u64,f32,f64} inc.u32 dec.u32 {min,max}.{u32,s32,u64,s64}",
  )
    .flatMap((text) => text.split(" "))
    .filter((text, at, all) => all.indexOf(text) === at);
  const byType = new Map<string, string[]>();
  for (const form of forms) {
    const type = form.split(".")[1] ?? "";
    byType.set(type, [...(byType.get(type) ?? []), form]);
  }
  return [...byType].map(([type, all]) => {
    const { kernel, own, remote } = clustered(`cluster_atomics_${type}`);
    const bits = kindBits(type);
    const stream = (position: number): string =>
      kernel.load(
        kernel.stream(`${type}@${position}`, bits / 8, () =>
          operandStream(type, position, kernel.count),
        ),
      );
    const [operand, start, other] = [stream(0), stream(1), stream(2)];
    for (const form of all) {
      const isSwap = /^(?:exch|cas)/.test(form);
      for (const root of isSwap ? ["atom"] : ["atom", "red"]) {
        const opcode = `${root}.shared::cluster.${form}`;
        const [old, found] = kernel.registers(bits, 2) as [string, string];
        const operands = form.startsWith("cas") ? `${start}, ${other}` : operand;
        kernel.covers(opcode);
        kernel.line(
          `st.shared.b${bits} [${own}], ${start};`,
          ...meeting,
          `${opcode} ${root === "atom" ? `${old}, ` : ""}[${remote}], ${operands};`,
          ...meeting,
          `ld.shared.b${bits} ${found}, [${own}];`,
        );
        if (root === "atom") kernel.store(`${opcode} old`, old, bits);
        kernel.store(`${opcode} memory`, found, bits);
      }
    }
    kernel.line(...meeting);
    return kernel.program();
  });
}

/** A barrier of each block for so many arrivals; gives its address and that of the next block's. */
function withBarrier({ kernel, name, next, leader }: Cluster, count: number) {
  kernel.declare(`.shared .align 8 .b64 ${name}_barrier;`);
  const [barrier, remote] = kernel.registers(32, 2) as [string, string];
  kernel.line(
    `mov.u32 ${barrier}, ${name}_barrier;`,
    `mapa.shared::cluster.u32 ${remote}, ${barrier}, ${next};`,
    `@${leader} mbarrier.init.shared::cta.b64 [${barrier}], ${count};`,
    `@${leader} fence.mbarrier_init.release.cluster;`,
    ...meeting,
  );
  return { barrier, remote };
}

function waitFor(kernel: Kernel, barrier: string, parity: number): void {
  const [passed] = kernel.registers(1, 1);
  const again = kernel.label();
  kernel.line(
    `${again}:`,
    `mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 ${passed}, [${barrier}], ${parity};`,
    `@!${passed} bra ${again};`,
  );
}

/** All lanes arrive at the next block's barrier. */
function arrivals(): Program {
  const cluster = clustered("cluster_arrivals");
  const { kernel, own, remote } = cluster;
  const barrier = withBarrier(cluster, lanes);
  const value = kernel.load(kernel.stream("b32@0", 4, () => randomBytes(4, 4 * kernel.count)));
  const forms = [
    ...expand(
      "mbarrier.arrive{,.release.cluster,.release.cta,.relaxed.cluster}.shared::cluster.b64",
    ),
    ...expand("mbarrier.arrive.expect_tx{,.release.cluster,.relaxed.cluster}.shared::cluster.b64"),
  ];
  forms.forEach((opcode, round) => {
    const [found] = kernel.registers(32, 1) as [string];
    const expects = opcode.includes("expect_tx");
    kernel.covers(opcode);
    kernel.line(
      `add.u32 ${value}, ${value}, 5;`,
      `st.shared::cluster.u32 [${remote}], ${value};`,
      `fence.acq_rel.cluster;`,
      `${opcode} _, [${barrier.remote}]${expects ? ", 16" : ""};`,
      ...(expects
        ? [`mbarrier.complete_tx.shared::cluster.relaxed.cluster.b64 [${barrier.remote}], 16;`]
        : []),
    );
    waitFor(kernel, barrier.barrier, round & 1);
    kernel.line(...meeting, `ld.shared.u32 ${found}, [${own}];`, ...meeting);
    kernel.store(opcode, found, 32);
  });
  return kernel.program();
}

function keep(
  kernel: Kernel,
  label: string,
  own: string,
  elementBytes: Slot["elementBytes"] = 4,
): void {
  const words = kernel.registers(32, 4);
  const offset = kernel.slot(label, elementBytes, { bytes: 16 * kernel.count });
  kernel.line(
    `ld.shared.v4.b32 {${words.join(", ")}}, [${own}];`,
    `st.global.v4.b32 [%out16+${offset}], {${words.join(", ")}};`,
  );
}

/** The lane's 16 bytes from the input. */
function fill(kernel: Kernel, own: string, bytes: Uint8Array): void {
  const offset = kernel.place(bytes, 16);
  const words = kernel.registers(32, 4);
  kernel.line(
    `ld.global.v4.b32 {${words.join(", ")}}, [%in16+${offset}];`,
    `st.shared.v4.b32 [${own}], {${words.join(", ")}};`,
    "fence.proxy.async;",
  );
}

/** Copies and reductions from a block's shared memory into the next block's. */
function copies(): readonly Program[] {
  const reductions: readonly (readonly [string, string])[] = [
    ["and", "{b32}"],
    ["or", "{b32}"],
    ["xor", "{b32}"],
    ["add", "{u32,s32,u64}"],
    ["inc", "{u32}"],
    ["dec", "{u32}"],
    ["min", "{u32,s32}"],
    ["max", "{u32,s32}"],
  ];
  const start = "async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes";
  const forms = [
    [`cp.${start}`, "b32"] as const,
    ...reductions.flatMap(([operation, all]) =>
      expand(all).map((type) => [`cp.reduce.${start}.${operation}.${type}`, type] as const),
    ),
  ];
  return forms.map(([opcode, type], number) => {
    const cluster = clustered(`cluster_copy_${number}`);
    const { kernel, own, tile, remote, next, leader } = cluster;
    const barrier = withBarrier(cluster, 1);
    const [target] = kernel.registers(32, 1);
    const bytes = kindBits(type) / 8;
    kernel.covers(opcode);
    fill(kernel, own, operandStream(type, 0, (16 * kernel.count) / bytes));
    const [second] = kernel.registers(32, 1) as [string];
    kernel.line(`add.u32 ${second}, ${own}, 1024;`);
    fill(kernel, second, operandStream(type, 1, (16 * kernel.count) / bytes));
    kernel.line(
      `add.u32 ${target}, ${tile}, 1024;`,
      `mapa.shared::cluster.u32 ${target}, ${target}, ${next};`,
      `@${leader} mbarrier.arrive.expect_tx.shared::cta.b64 _, [${barrier.barrier}], 1024;`,
      ...meeting,
      `@${leader} ${opcode} [${target}], [${tile}], 1024, [${barrier.remote}];`,
    );
    waitFor(kernel, barrier.barrier, 0);
    keep(kernel, opcode, second, bytes as Slot["elementBytes"]);
    kernel.line(...meeting, `mov.u32 ${remote}, 0;`);
    return kernel.program();
  });
}

/** Loads that one block gives to several, through tensor maps and without. */
function multicasts(): readonly Program[] {
  const shapes = [
    { extents: [300], box: [256] },
    { extents: [40, 30], box: [16, 16] },
    { extents: [20, 12, 9], box: [16, 4, 4] },
    { extents: [18, 9, 7, 5], box: [16, 4, 2, 2] },
    { extents: [16, 7, 5, 4, 3], box: [16, 2, 2, 2, 2] },
  ];
  const ends = expand(".mbarrier::complete_tx::bytes.multicast::cluster{,.L2::cache_hint}");
  const bulk = ends.map((end, number) =>
    multicast(`cluster_bulk_${number}`, `cp.async.bulk.shared::cluster.global${end}`),
  );
  const tensor = shapes.flatMap((shape) =>
    ends.map((end, number) => {
      const rank = shape.extents.length;
      const opcode = `cp.async.bulk.tensor.${rank}d.shared::cluster.global${number === 0 ? "" : ".tile"}${end}`;
      return multicast(`cluster_tensor_${rank}d_${number}`, opcode, shape);
    }),
  );
  return [...bulk, ...tensor];
}

interface BoxShape {
  readonly extents: readonly number[];
  readonly box: readonly number[];
}

/** Boxes of 256 elements of 4 bytes: all of the tile. Block 0 loads for both, then for block 1 alone. */
function multicast(name: string, opcode: string, shape?: BoxShape): Program {
  const cluster = clustered(name);
  const { kernel, own, tile, rank, leader } = cluster;
  const barrier = withBarrier(cluster, 1);
  const [issuer] = kernel.registers(1, 1) as [string];
  const [mask] = kernel.registers(16, 1);
  const [policy] = kernel.registers(64, 1);
  const bytes = 1024;
  kernel.covers(opcode);
  let source = `[%in+${kernel.place(randomBytes(6, bytes), 16)}], ${bytes}`;
  if (shape !== undefined) {
    const elementBytes = tensorMapTypeBytes.u32;
    const strides: number[] = [];
    let size = (shape.extents[0] ?? 1) * elementBytes;
    for (const extent of shape.extents.slice(1)) {
      size = 16 * Math.ceil(size / 16);
      strides.push(size);
      size *= extent;
    }
    const offset = kernel.place(randomBytes(7, 16 * Math.ceil(size / 16)), 128);
    const { extents, box } = shape;
    const map = kernel.map({
      buffer: "input",
      offset,
      map: { type: "u32", extents, strides, box, swizzle: 0, fill: "zero" },
    });
    const [address] = kernel.registers(64, 1);
    kernel.line(`mov.b64 ${address}, ${map};`, `cvta.param.u64 ${address}, ${address};`);
    source = `[${address}, {${extents.map((_, axis) => axis).join(", ")}}]`;
  }
  kernel.line(
    `createpolicy.fractional.L2::evict_first.b64 ${policy}, 1.0;`,
    `setp.eq.and.u32 ${issuer}, ${rank}, 0, ${leader};`,
  );
  const hint = opcode.includes("cache_hint") ? `, ${policy}` : "";
  [3, 2, 1].forEach((blocks, round) => {
    const [zero] = kernel.registers(32, 1);
    kernel.line(
      `mov.u32 ${zero}, 0;`,
      `st.shared.v4.b32 [${own}], {${Array(4).fill(zero).join(", ")}};`,
      "fence.proxy.async;",
      ...meeting,
      `mov.b16 ${mask}, ${blocks};`,
    );
    // Blocks that get nothing only arrive.
    const [gets] = kernel.registers(1, 1) as [string];
    const [bit, expected] = kernel.registers(32, 2);
    kernel.line(
      `shr.u32 ${bit}, ${blocks}, ${rank};`,
      `and.b32 ${bit}, ${bit}, 1;`,
      `setp.ne.u32 ${gets}, ${bit}, 0;`,
      `selp.u32 ${expected}, ${bytes}, 0, ${gets};`,
      `@${leader} mbarrier.arrive.expect_tx.shared::cta.b64 _, [${barrier.barrier}], ${expected};`,
      `@${issuer} ${opcode} [${tile}], ${source}, [${barrier.barrier}], ${mask}${hint};`,
    );
    waitFor(kernel, barrier.barrier, round & 1);
    keep(kernel, `${opcode} to ${blocks}`, own);
    kernel.line(...meeting);
  });
  return kernel.program();
}

export function clusterPrograms(): readonly Program[] {
  return [
    barriers(),
    addresses(),
    ...accesses(),
    ...atomics(),
    arrivals(),
    ...copies(),
    ...multicasts(),
  ];
}
