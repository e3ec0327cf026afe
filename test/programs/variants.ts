/** Forms that differ from others by words which change no value: hints, windows of addresses, fences. */
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import {
  bitsOf,
  cachePolicy,
  elements,
  loadForm,
  randomStream,
  storeForm,
  vectorOpcode,
} from "./memory.ts";
import type { Program, Slot } from "./program.ts";
import { kindBits, operandStream } from "./values.ts";

const group = "variants";
const evictions = "L1::{evict_normal,evict_unchanged,evict_first,evict_last,no_allocate}";

/** Atomics with a policy of the cache; an element a lane. */
function hintedAtomics(): Program {
  const kernel = new Kernel({ name: "atomics_hinted", group });
  const policy = cachePolicy(kernel);
  const forms = [
    ...expand("{atom,red}.global.add.L2::cache_hint.{u32,s32,u64,f32,f64}"),
    ...expand("{atom,red}.global.add.noftz.L2::cache_hint.{f16,f16x2,bf16,bf16x2}"),
    ...expand("{atom,red}.global.{min,max}.L2::cache_hint.{u32,s32,u64,s64}"),
    ...expand("{atom,red}.global.{and,or,xor}.L2::cache_hint.{b32,b64}"),
    ...expand("{atom,red}.global.{inc,dec}.L2::cache_hint.u32"),
    ...expand("atom.global.exch.L2::cache_hint.{b32,b64}"),
    ...expand("{atom,red}.relaxed.gpu.global.add.L2::cache_hint.{u32,f32}"),
  ];
  for (const opcode of forms) {
    const type = opcode.split(".").at(-1) ?? "";
    const bits = kindBits(type);
    const bytes = (bits / 8) as Slot["elementBytes"];
    const operand = kernel.load(
      kernel.stream(`${type}@0`, bytes, () => operandStream(type, 0, kernel.count)),
    );
    const initial = operandStream(type, 1, kernel.count);
    const offset = kernel.slot(`${opcode} memory`, bytes, { initial });
    const place = `[%out${bytes}+${offset}], ${operand}, ${policy};`;
    kernel.covers(opcode);
    if (opcode.startsWith("red")) kernel.line(`${opcode} ${place}`);
    else {
      const old = kernel.register(bits);
      kernel.line(`${opcode} ${old}, ${place}`);
      kernel.store(`${opcode} old`, old, bits);
    }
  }
  return kernel.program();
}

/** Vectors of them. */
function hintedVectors(): Program {
  const kernel = new Kernel({ name: "atomics_hinted_vectors", group });
  const policy = cachePolicy(kernel);
  const ends = [
    ...expand("add.L2::cache_hint.{v2,v4}.f32"),
    ...expand("add.noftz.L2::cache_hint.{v2,v4,v8}.{f16,bf16}"),
    ...expand("add.noftz.L2::cache_hint.{v2,v4}.{f16x2,bf16x2}"),
  ];
  for (const opcode of ends.flatMap((end) => expand(`{atom,red}.global.${end}`))) {
    const [type = "", vector = ""] = opcode.split(".").reverse();
    const count = Number(vector.slice(1));
    const bits = kindBits(type);
    const bytes = ((bits / 8) * count) as Slot["elementBytes"];
    const values = Array.from({ length: count }, (_, at) =>
      kernel.load(
        kernel.stream(`${type}@${at}`, bits / 8, () => operandStream(type, at, kernel.count)),
      ),
    );
    const initial = operandStream(type, 1, kernel.count * count);
    const offset = kernel.slot(`${opcode} memory`, bytes, { initial });
    const olds = opcode.startsWith("atom") ? kernel.registers(bits, count) : [];
    const target = olds.length === 0 ? "" : `{${olds.join(", ")}}, `;
    kernel.covers(opcode);
    kernel.line(`${opcode} ${target}[%out${bytes}+${offset}], {${values.join(", ")}}, ${policy};`);
    olds.forEach((old, at) => kernel.store(`${opcode} old ${at}`, old, bits));
  }
  return kernel.program();
}

const loads = [
  "ld.weak.global.{ca,cg,cs}",
  `ld.global.nc.${evictions}.L2::256B`,
  `ld.global.${evictions}.L2::256B`,
];
const hintedLoads = [
  `ld.global.${evictions}.L2::cache_hint`,
  `ld.global.nc.${evictions}.L2::cache_hint`,
];

/** Qualifiers together. */
function qualified(): readonly Program[] {
  return ["b32", "v4.f32", "u8", "v2.s64", "b128"].map((last) => {
    const [type = "", vector] = last.split(".").reverse();
    const count = vector === undefined ? 1 : Number(vector.slice(1));
    const kernel = new Kernel({ name: `qualified_${last.replace(".", "_")}`, group });
    const bytes = (bitsOf(type) / 8) * count;
    const address = kernel.element(randomStream(kernel, bytes));
    const policy = cachePolicy(kernel);
    for (const opcode of loads.flatMap(expand))
      loadForm(kernel, vectorOpcode(opcode, count, type), type, count, address);
    for (const opcode of hintedLoads.flatMap(expand))
      loadForm(kernel, vectorOpcode(opcode, count, type), type, count, `${address}, ${policy}`);
    const registers = elements(kernel, type, count);
    for (const opcode of expand("st.weak.global.{wb,cg,cs,wt}"))
      storeForm(kernel, vectorOpcode(opcode, count, type), registers, bytes);
    for (const opcode of expand(`st.global.${evictions}.L2::cache_hint`))
      storeForm(kernel, vectorOpcode(opcode, count, type), registers, bytes, `, ${policy}`);
    return kernel.program();
  });
}

const types = "b8 u8 s8 b16 u16 s16 b32 u32 s32 f32 b64 u64 s64 f64".split(" ");

/** `ldu` through generic addresses. */
function uniformLoads(): Program {
  const kernel = new Kernel({ name: "ldu_generic", group });
  for (const type of types)
    for (const count of [1, 2, 4].filter((each) => each * bitsOf(type) <= 128)) {
      const address = kernel.element(randomStream(kernel, (bitsOf(type) / 8) * count));
      loadForm(kernel, vectorOpcode("ldu", count, type), type, count, address);
    }
  for (const opcode of ["ldu.b128", "ldu.global.b128"])
    loadForm(kernel, opcode, "b128", 1, kernel.element(randomStream(kernel, 16)));
  return kernel.program();
}

/** Windows of shared memory and of parameters, there and back. */
function windows(): Program {
  const name = "address_windows";
  const kernel = new Kernel({ name, group });
  kernel.declare(`.shared .align 16 .b32 ${name}_shared[4];`);
  const leader = kernel.register(1);
  kernel.line(
    `setp.eq.u32 ${leader}, %t, 0;`,
    `@${leader} st.shared.u32 [${name}_shared+4], 99;`,
    "bar.sync 0;",
  );
  for (const space of ["shared::cta", "shared::cluster"]) {
    const [specific, generic, back] = kernel.registers(64, 3);
    kernel.covers(`cvta.${space}.u64`);
    kernel.covers(`cvta.to.${space}.u64`);
    kernel.line(
      `mov.u64 ${specific}, ${name}_shared;`,
      `cvta.${space}.u64 ${generic}, ${specific};`,
      `cvta.to.${space}.u64 ${back}, ${generic};`,
    );
    loadForm(kernel, "ld.u32", "u32", 1, `[${generic}+4]`);
    loadForm(kernel, `ld.${space}.u32`, "u32", 1, `[${back}+4]`);
  }
  const [own, generic, back] = kernel.registers(64, 3);
  const same = kernel.register(1);
  for (const opcode of expand("cvta{,.to}.param::entry.u64")) kernel.covers(opcode);
  kernel.line(
    `mov.u64 ${own}, ${name}_input;`,
    `cvta.param::entry.u64 ${generic}, ${own};`,
    `cvta.to.param::entry.u64 ${back}, ${generic};`,
    `setp.eq.u64 ${same}, ${own}, ${back};`,
  );
  kernel.storePredicate("cvta.to.param::entry.u64", same);
  return kernel.program();
}

/** Fences between stores and loads of neighbours. */
function fences(): Program {
  const name = "one_way_fences";
  const kernel = new Kernel({ name, group });
  kernel.declare(`.shared .align 4 .b32 ${name}_tile[128];`);
  const [own, other, value] = kernel.registers(32, 3) as [string, string, string];
  kernel.line(
    `mov.u32 ${own}, ${name}_tile;`,
    `xor.b32 ${other}, %t, 37;`,
    `mad.lo.u32 ${other}, ${other}, 4, ${own};`,
    `mad.lo.u32 ${own}, %t, 4, ${own};`,
    `mov.u32 ${value}, %i;`,
  );
  for (const opcode of [
    ...expand("fence.{acquire,release}.{cta,cluster,gpu,sys}"),
    "membar.proxy.alias",
  ]) {
    const [found] = kernel.registers(32, 1) as [string];
    kernel.covers(opcode);
    kernel.line(
      `add.u32 ${value}, ${value}, 1000;`,
      `st.shared.u32 [${own}], ${value};`,
      `${opcode};`,
      "bar.sync 0;",
      `ld.shared.u32 ${found}, [${other}];`,
      "bar.sync 0;",
    );
    kernel.store(opcode, found, 32);
  }
  return kernel.program();
}

export function variantPrograms(): readonly Program[] {
  return [hintedAtomics(), hintedVectors(), ...qualified(), uniformLoads(), windows(), fences()];
}
