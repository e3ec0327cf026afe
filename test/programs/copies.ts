/** Asynchronous copies between global and shared memory that need no tensor map. */
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Program, Slot } from "./program.ts";
import { Random } from "../../src/support/random.ts";
import { kindBits, operandStream } from "./values.ts";

const group = "copies";

function randomBytes(seed: number, bytes: number): Uint8Array {
  const random = new Random(seed);
  return Uint8Array.from({ length: bytes }, () => random.below(256));
}

/** A kernel of one block of 64 lanes with a tile of 4 KB that begins as bytes of ones. */
function tiled(name: string) {
  const kernel = new Kernel({ name, group, blocks: 1, threads: 64 });
  kernel.declare(`.shared .align 128 .b8 ${name}_tile[4096];`);
  const [tile, own] = kernel.registers(32, 2) as [string, string];
  const [leader] = kernel.registers(1, 1) as [string];
  kernel.line(
    `mov.u32 ${tile}, ${name}_tile;`,
    `setp.eq.u32 ${leader}, %t, 0;`,
    `mad.lo.u32 ${own}, %t, 16, ${tile};`,
  );
  return { kernel, tile, own, leader };
}

/** Every lane sets its 16 bytes at each 1 KB of the tile. */
function clear(kernel: Kernel, own: string, kilobytes = 1): void {
  const [ones] = kernel.registers(32, 1);
  kernel.line(`mov.u32 ${ones}, -1;`);
  for (let at = 0; at < kilobytes; at++)
    kernel.line(`st.shared.v4.b32 [${own}+${1024 * at}], {${Array(4).fill(ones).join(", ")}};`);
}

/** Stores the lane's 16 bytes of the tile. */
function keep(kernel: Kernel, label: string, own: string, at = 0): void {
  const words = kernel.registers(32, 4);
  const offset = kernel.slot(label, 16);
  kernel.line(
    `ld.shared.v4.b32 {${words.join(", ")}}, [${own}+${at}];`,
    `st.global.v4.b32 [%out16+${offset}], {${words.join(", ")}};`,
  );
}

const caches = ["ca", "cg"] as const;

/** cp.async of every size; how many bytes come from the source; hints. */
function laneCopies(): readonly Program[] {
  return caches.flatMap((cache) =>
    (cache === "ca" ? [4, 8, 16] : [16]).map((size) => {
      const { kernel, own } = tiled(`cp_async_${cache}_${size}`);
      const stream = kernel.stream("random 16", 16, () => randomBytes(5, 16 * kernel.count));
      const from = kernel.element(stream);
      const [bytes] = kernel.registers(32, 1);
      const [ignored] = kernel.registers(1, 1);
      const [policy] = kernel.registers(64, 1);
      kernel.line(
        `and.b32 ${bytes}, %t, ${size === 4 ? 3 : size === 8 ? 7 : 15};`,
        `setp.gt.u32 ${ignored}, %t, 40;`,
        `createpolicy.fractional.L2::evict_last.b64 ${policy}, 1.0;`,
      );
      const forms = expand(
        `cp.async.${cache}.{shared,shared::cta}.global{,.L2::cache_hint}{,.L2::64B,.L2::128B,.L2::256B}`,
      );
      for (const opcode of forms)
        for (const rest of ["", `, ${bytes}`, `, ${ignored}`, ", 0"]) {
          const hint = opcode.includes("cache_hint") ? `, ${policy}` : "";
          kernel.covers(opcode);
          kernel.covers("cp.async.wait_all");
          clear(kernel, own);
          kernel.line(`${opcode} [${own}], ${from}, ${size}${rest}${hint};`, "cp.async.wait_all;");
          keep(kernel, `${opcode} ${size}${rest}`, own);
        }
      return kernel.program();
    }),
  );
}

/** Groups of cp.async, waited for with some under way. */
function groups(): Program {
  const { kernel, own } = tiled("cp_async_groups");
  for (const opcode of ["commit_group", "wait_group"]) kernel.covers(`cp.async.${opcode}`);
  const streams = [0, 1, 2].map((at) =>
    kernel.stream(`random ${at}`, 16, () => randomBytes(at, 16 * kernel.count)),
  );
  clear(kernel, own, 3);
  streams.forEach((stream, at) =>
    kernel.line(
      `cp.async.cg.shared.global [${own}+${1024 * at}], ${kernel.element(stream)}, 16;`,
      "cp.async.commit_group;",
    ),
  );
  kernel.line("cp.async.wait_group 2;");
  keep(kernel, "the first of three", own);
  kernel.line("cp.async.wait_group 1;");
  keep(kernel, "the second of three", own, 1024);
  kernel.line("cp.async.wait_group 0;");
  keep(kernel, "the last of three", own, 2048);
  return kernel.program();
}

/** An mbarrier for one arrival, set up by the first lane; gives its address. */
function barrierFor(kernel: Kernel, name: string, leader: string): string {
  kernel.declare(`.shared .align 8 .b64 ${name}_barrier;`);
  const [barrier] = kernel.registers(32, 1) as [string];
  kernel.line(
    `mov.u32 ${barrier}, ${name}_barrier;`,
    `@${leader} mbarrier.init.shared::cta.b64 [${barrier}], 1;`,
    `@${leader} fence.mbarrier_init.release.cluster;`,
    "bar.sync 0;",
  );
  return barrier;
}

function waitFor(kernel: Kernel, barrier: string, parity: number): void {
  const [passed] = kernel.registers(1, 1);
  const again = kernel.label();
  kernel.line(
    `${again}:`,
    `mbarrier.try_wait.parity.shared::cta.b64 ${passed}, [${barrier}], ${parity};`,
    `@!${passed} bra ${again};`,
  );
}

/** Bulk copies into shared memory. */
function bulkLoads(): readonly Program[] {
  const opcodes = expand(
    "cp.async.bulk.{shared::cluster,shared::cta}.global.mbarrier::complete_tx::bytes{,.L2::cache_hint}",
  );
  return opcodes.map((opcode, number) => {
    const name = `bulk_load_${number}`;
    const { kernel, tile, own, leader } = tiled(name);
    const barrier = barrierFor(kernel, name, leader);
    const offset = kernel.place(randomBytes(9, 1024), 16);
    const [policy] = kernel.registers(64, 1);
    kernel.line(`createpolicy.fractional.L2::evict_first.b64 ${policy}, 1.0;`);
    kernel.covers(opcode);
    const hint = opcode.includes("cache_hint") ? `, ${policy}` : "";
    [16, 64, 1024, 496].forEach((bytes, round) => {
      clear(kernel, own);
      kernel.line(
        "fence.proxy.async.shared::cta;",
        "bar.sync 0;",
        `@${leader} mbarrier.arrive.expect_tx.shared::cta.b64 _, [${barrier}], ${bytes};`,
        `@${leader} ${opcode} [${tile}], [%in+${offset}], ${bytes}, [${barrier}]${hint};`,
      );
      waitFor(kernel, barrier, round & 1);
      keep(kernel, `${opcode} of ${bytes} bytes`, own);
      kernel.line("bar.sync 0;");
    });
    return kernel.program();
  });
}

/** The lane's 16 bytes of the tile, from the input. */
function fill(kernel: Kernel, own: string, bytes: Uint8Array): void {
  const stream = kernel.stream(`fill ${bytes.join(",").slice(0, 40)}`, 16, () => bytes);
  const words = kernel.registers(32, 4);
  kernel.line(
    `ld.global.v4.b32 {${words.join(", ")}}, ${kernel.element(stream)};`,
    `st.shared.v4.b32 [${own}], {${words.join(", ")}};`,
    "fence.proxy.async.shared::cta;",
    "bar.sync 0;",
  );
}

/** Bulk copies and reductions into global memory. */
function bulkStores(): readonly Program[] {
  const opcodes = expand("cp.async.bulk.global.shared::cta.bulk_group{,.L2::cache_hint}");
  return opcodes.map((opcode, number) => {
    const { kernel, tile, own, leader } = tiled(`bulk_store_${number}`);
    const [policy] = kernel.registers(64, 1);
    kernel.line(`createpolicy.fractional.L2::evict_first.b64 ${policy}, 1.0;`);
    for (const each of [opcode, "cp.async.bulk.commit_group", "cp.async.bulk.wait_group"])
      kernel.covers(each);
    kernel.covers("cp.async.bulk.wait_group.read");
    fill(kernel, own, randomBytes(11, 1024));
    const hint = opcode.includes("cache_hint") ? `, ${policy}` : "";
    for (const bytes of [16, 1024, 320]) {
      const offset = kernel.slot(`${opcode} of ${bytes} bytes`, 16);
      kernel.line(
        `@${leader} ${opcode} [%out+${offset}], [${tile}], ${bytes}${hint};`,
        `@${leader} cp.async.bulk.commit_group;`,
      );
    }
    kernel.line(
      `@${leader} cp.async.bulk.wait_group.read 1;`,
      `@${leader} cp.async.bulk.wait_group 0;`,
    );
    return kernel.program();
  });
}

/** Reductions by bulk copies: operation and types. */
const reductions: readonly (readonly [operation: string, types: string])[] = [
  ["and", "{b32,b64}"],
  ["or", "{b32,b64}"],
  ["xor", "{b32,b64}"],
  ["add", "{u32,s32,u64,f32,f64}"],
  ["add.noftz", "{f16,bf16}"],
  ["inc", "u32"],
  ["dec", "u32"],
  ["min", "{u32,s32,u64,s64,f16,bf16}"],
  ["max", "{u32,s32,u64,s64,f16,bf16}"],
];

function bulkReductions(): readonly Program[] {
  return reductions.flatMap(([operation, types]) =>
    expand(types).map((type) => {
      const { kernel, tile, own, leader } = tiled(
        `bulk_reduce_${operation.replace(".", "_")}_${type}`,
      );
      const elementBytes = (kindBits(type) / 8) as Slot["elementBytes"];
      const count = 1024 / elementBytes;
      fill(kernel, own, operandStream(type, 0, count));
      const [policy] = kernel.registers(64, 1);
      kernel.line(`createpolicy.fractional.L2::evict_first.b64 ${policy}, 1.0;`);
      for (const hint of ["", ".L2::cache_hint"]) {
        const opcode = `cp.reduce.async.bulk.global.shared::cta.bulk_group${hint}.${operation}.${type}`;
        kernel.covers(opcode);
        const offset = kernel.slot(opcode, elementBytes, {
          bytes: 1024,
          initial: operandStream(type, 1, count),
        });
        kernel.line(
          `@${leader} ${opcode} [%out+${offset}], [${tile}], 1024${hint === "" ? "" : `, ${policy}`};`,
        );
      }
      kernel.line(
        `@${leader} cp.async.bulk.commit_group;`,
        `@${leader} cp.async.bulk.wait_group 0;`,
      );
      return kernel.program();
    }),
  );
}

/** Prefetches leave nothing behind. */
function prefetches(): Program {
  const { kernel, own, leader } = tiled("bulk_prefetch");
  const stream = kernel.stream("random 16", 16, () => randomBytes(3, 16 * kernel.count));
  const [policy] = kernel.registers(64, 1);
  kernel.line(`createpolicy.fractional.L2::evict_first.b64 ${policy}, 1.0;`);
  for (const opcode of expand("cp.async.bulk.prefetch.L2.global{,.L2::cache_hint}")) {
    kernel.covers(opcode);
    const hint = opcode.includes("cache_hint") ? `, ${policy}` : "";
    kernel.line(`@${leader} ${opcode} [%in], 512${hint};`);
  }
  kernel.line(`cp.async.ca.shared.global [${own}], ${kernel.element(stream)}, 16;`);
  kernel.line("cp.async.wait_all;");
  keep(kernel, "a copy behind prefetches", own);
  return kernel.program();
}

export function copyPrograms(): readonly Program[] {
  return [
    ...laneCopies(),
    groups(),
    ...bulkLoads(),
    ...bulkStores(),
    ...bulkReductions(),
    prefetches(),
  ];
}
