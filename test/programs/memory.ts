/** Loads and stores of every width, vector, space and cache qualifier; addresses between spaces; hints. */
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Program, Slot } from "./program.ts";
import { Random } from "../../src/support/random.ts";

const group = "memory";

const types = [..."b8 u8 s8 b16 u16 s16 b32 u32 s32 f32 b64 u64 s64 f64".split(" ")] as const;

export function bitsOf(type: string): number {
  return Number(type.slice(1));
}

/** The register that an element of the type is kept in: bytes take 16 bits. */
function registerBits(type: string): 16 | 32 | 64 | 128 {
  return Math.max(16, bitsOf(type)) as 16 | 32 | 64 | 128;
}

/** Vectors of a type, up to 16 bytes. */
function vectorsOf(type: string): readonly (1 | 2 | 4)[] {
  if (type === "b128") return [1];
  return ([1, 2, 4] as const).filter((count) => count * bitsOf(type) <= 128);
}

function randomBytes(seed: number, bytes: number): Uint8Array {
  const random = new Random(seed);
  return Uint8Array.from({ length: bytes }, () => random.below(256));
}

/** A stream of random bytes, so many a lane. */
export function randomStream(kernel: Kernel, bytes: number) {
  return kernel.stream(`random ${bytes}`, bytes, () => randomBytes(bytes, bytes * kernel.count));
}

function listText(registers: readonly string[]): string {
  return registers.length === 1 ? (registers[0] ?? "") : `{${registers.join(", ")}}`;
}

/** `ld.global` and `v2.b32` as an opcode. */
export function vectorOpcode(start: string, count: number, type: string): string {
  return `${start}${count === 1 ? "" : `.v${count}`}.${type}`;
}

/** Loads through `opcode` from an address, then stores what the registers hold. */
export function loadForm(
  kernel: Kernel,
  opcode: string,
  type: string,
  count: number,
  address: string,
  width: 16 | 32 | 64 | 128 = registerBits(type),
): void {
  const registers = kernel.registers(width, count);
  kernel.covers(opcode);
  kernel.line(`${opcode} ${listText(registers)}, ${address};`);
  registers.forEach((register, at) =>
    kernel.store(`${opcode} element ${at} in ${width} bits`, register, width),
  );
}

/** Elements in registers, made from a lane's random bytes. */
export function elements(kernel: Kernel, type: string, count: number): readonly string[] {
  const bytes = (bitsOf(type) / 8) * count;
  const registers = kernel.registers(registerBits(type), count);
  const loaded = type === "b128" ? "b128" : `b${bitsOf(type)}`;
  kernel.line(
    `${vectorOpcode("ld.global", count, loaded)} ${listText(registers)}, ${kernel.element(randomStream(kernel, bytes))};`,
  );
  return registers;
}

/** Every type and vector from global memory, and into wider registers. */
function globalLoads(): readonly Program[] {
  return [...types, "b128"].map((type) => {
    const kernel = new Kernel({ name: `ld_global_${type}`, group });
    for (const count of vectorsOf(type)) {
      const bytes = (bitsOf(type) / 8) * count;
      const address = kernel.element(randomStream(kernel, bytes));
      loadForm(kernel, vectorOpcode("ld.global", count, type), type, count, address);
      loadForm(kernel, vectorOpcode("ld", count, type), type, count, address);
      if (bitsOf(type) <= 16)
        loadForm(kernel, vectorOpcode("ld.global", count, type), type, count, address, 32);
      if (bitsOf(type) <= 32)
        loadForm(kernel, vectorOpcode("ld.global", count, type), type, count, address, 64);
      if (type !== "b128")
        loadForm(kernel, vectorOpcode("ldu.global", count, type), type, count, address);
      loadForm(kernel, vectorOpcode("ld.global.nc", count, type), type, count, address);
    }
    return kernel.program();
  });
}

const evictions = "L1::{evict_normal,evict_unchanged,evict_first,evict_last,no_allocate}";
const scopes = "{cta,cluster,gpu,sys}";

const loadQualifiers = [
  "ld.weak{,.global}",
  "ld{,.global}.{ca,cg,cs,lu,cv}",
  "ld.global.{ca,cg,cs}.nc",
  `ld{,.global}.${evictions}`,
  `ld.global.nc.${evictions}`,
  "ld{,.global}.L2::{64B,128B,256B}",
  "ld.global.nc.L2::{64B,128B,256B}",
  `ld.global.${evictions}.L2::{64B,128B}`,
  "ld.volatile{,.global}",
  `ld.{relaxed,acquire}.${scopes}{,.global}`,
  `ld.relaxed.gpu.global.${evictions}`,
  "ld.mmio.relaxed.sys{,.global}",
];

function qualifiedLoads(): readonly Program[] {
  return ["b32", "v4.f32", "u8", "v2.s64", "b128"].map((last) => {
    const [type = "", vector] = last.split(".").reverse();
    const count = vector === undefined ? 1 : Number(vector.slice(1));
    const kernel = new Kernel({ name: `ld_qualified_${last.replace(".", "_")}`, group });
    const bytes = (bitsOf(type) / 8) * count;
    const address = kernel.element(randomStream(kernel, bytes));
    for (const opcode of loadQualifiers.flatMap(expand)) {
      // Accesses to devices are of single elements.
      if (opcode.includes("mmio") && bytes > 4) continue;
      loadForm(kernel, vectorOpcode(opcode, count, type), type, count, address);
    }
    const policy = cachePolicy(kernel);
    for (const opcode of expand("ld{,.global,.global.nc}{,.L2::128B}.L2::cache_hint")) {
      const full = vectorOpcode(opcode, count, type);
      const registers = kernel.registers(registerBits(type), count);
      kernel.covers(full);
      kernel.line(`${full} ${listText(registers)}, ${address}, ${policy};`);
      registers.forEach((register, at) =>
        kernel.store(`${full} element ${at}`, register, registerBits(type)),
      );
    }
    return kernel.program();
  });
}

export function cachePolicy(kernel: Kernel): string {
  const policy = kernel.register(64);
  kernel.covers("createpolicy.fractional.L2::evict_first.b64");
  kernel.line(`createpolicy.fractional.L2::evict_first.b64 ${policy}, 1.0;`);
  return policy;
}

/** Stores from registers into a slot. */
export function storeForm(
  kernel: Kernel,
  opcode: string,
  registers: readonly string[],
  bytes: number,
  end = "",
): void {
  const offset = kernel.slot(opcode, bytes as Slot["elementBytes"]);
  kernel.covers(opcode);
  kernel.line(`${opcode} [%out${bytes}+${offset}], ${listText(registers)}${end};`);
}

function globalStores(): readonly Program[] {
  return [...types, "b128"].map((type) => {
    const kernel = new Kernel({ name: `st_global_${type}`, group });
    for (const count of vectorsOf(type)) {
      const bytes = (bitsOf(type) / 8) * count;
      const registers = elements(kernel, type, count);
      for (const start of ["st.global", "st"])
        storeForm(kernel, vectorOpcode(start, count, type), registers, bytes);
    }
    return kernel.program();
  });
}

const storeQualifiers = [
  "st.weak{,.global}",
  "st{,.global}.{wb,cg,cs,wt}",
  `st{,.global}.${evictions}`,
  "st.volatile{,.global}",
  `st.{relaxed,release}.${scopes}{,.global}`,
  `st.relaxed.gpu.global.${evictions}`,
  "st.mmio.relaxed.sys{,.global}",
];

function qualifiedStores(): readonly Program[] {
  return ["b32", "v4.f32", "u8", "v2.s64", "b128"].map((last) => {
    const [type = "", vector] = last.split(".").reverse();
    const count = vector === undefined ? 1 : Number(vector.slice(1));
    const kernel = new Kernel({ name: `st_qualified_${last.replace(".", "_")}`, group });
    const bytes = (bitsOf(type) / 8) * count;
    const registers = elements(kernel, type, count);
    for (const opcode of storeQualifiers.flatMap(expand)) {
      if (opcode.includes("mmio") && bytes > 4) continue;
      storeForm(kernel, vectorOpcode(opcode, count, type), registers, bytes);
    }
    const policy = cachePolicy(kernel);
    for (const opcode of expand("st{,.global}.L2::cache_hint"))
      storeForm(kernel, vectorOpcode(opcode, count, type), registers, bytes, `, ${policy}`);
    return kernel.program();
  });
}

/** Writes to shared memory and reads what the neighbour wrote. */
function sharedMemory(): readonly Program[] {
  const spaces = ["shared", "shared::cta", "shared::cluster"];
  return [...types, "b128"].map((type) => {
    const name = `shared_${type}`;
    const kernel = new Kernel({ name, group });
    kernel.declare(`.shared .align 16 .b8 ${name}_tile[2048];`);
    const [base, own, other] = kernel.registers(32, 3);
    kernel.line(`mov.u32 ${base}, ${name}_tile;`);
    for (const count of vectorsOf(type)) {
      const bytes = (bitsOf(type) / 8) * count;
      const registers = elements(kernel, type, count);
      kernel.line(
        `mad.lo.u32 ${own}, %t, ${bytes}, ${base};`,
        `xor.b32 ${other}, %t, 37;`,
        `mad.lo.u32 ${other}, ${other}, ${bytes}, ${base};`,
      );
      for (const space of spaces) {
        const opcode = vectorOpcode(`st.${space}`, count, type);
        kernel.covers(opcode);
        kernel.line("bar.sync 0;", `${opcode} [${own}], ${listText(registers)};`, "bar.sync 0;");
        loadForm(kernel, vectorOpcode(`ld.${space}`, count, type), type, count, `[${other}]`);
      }
    }
    return kernel.program();
  });
}

const sharedQualifiers = [
  ["st.weak.shared", "ld.weak.shared"],
  ["st.volatile.shared", "ld.volatile.shared"],
  ["st.volatile.shared::cta", "ld.volatile.shared::cta"],
  ...["cta", "cluster", "gpu", "sys"].flatMap((scope) => [
    [`st.relaxed.${scope}.shared`, `ld.relaxed.${scope}.shared`],
    [`st.release.${scope}.shared::cta`, `ld.acquire.${scope}.shared::cta`],
    [`st.release.${scope}.shared::cluster`, `ld.acquire.${scope}.shared::cluster`],
  ]),
] as const;

function qualifiedShared(): Program {
  const name = "shared_qualified";
  const kernel = new Kernel({ name, group });
  kernel.declare(`.shared .align 16 .b8 ${name}_tile[2048];`);
  const [base, own, other] = kernel.registers(32, 3);
  const [register] = elements(kernel, "b32", 1);
  kernel.line(
    `mov.u32 ${base}, ${name}_tile;`,
    `mad.lo.u32 ${own}, %t, 4, ${base};`,
    `xor.b32 ${other}, %t, 99;`,
    `mad.lo.u32 ${other}, ${other}, 4, ${base};`,
  );
  for (const [store = "", load = ""] of sharedQualifiers) {
    kernel.covers(`${store}.b32`);
    kernel.line(`add.u32 ${register}, ${register}, 12345;`, "bar.sync 0;");
    kernel.line(`${store}.b32 [${own}], ${register};`, "bar.sync 0;");
    loadForm(kernel, `${load}.b32`, "b32", 1, `[${other}]`);
  }
  return kernel.program();
}

/** Local memory with indices that the lane computes. */
function localMemory(): readonly Program[] {
  return [...types, "b128"].map((type) => {
    const name = `local_${type}`;
    const kernel = new Kernel({ name, group });
    kernel.declare(`.local .align 16 .b8 ${name}_array[128];`);
    const [base, address] = kernel.registers(64, 2);
    const [at] = kernel.registers(32, 1);
    kernel.line(`mov.u64 ${base}, ${name}_array;`, `and.b32 ${at}, %t, 7;`);
    kernel.line(`mad.wide.u32 ${address}, ${at}, 16, ${base};`);
    for (const count of vectorsOf(type)) {
      const registers = elements(kernel, type, count);
      const opcode = vectorOpcode("st.local", count, type);
      kernel.covers(opcode);
      kernel.line(`${opcode} [${address}], ${listText(registers)};`);
      loadForm(kernel, vectorOpcode("ld.local", count, type), type, count, `[${address}]`);
    }
    return kernel.program();
  });
}

/** Constant memory: a table with an initial value. */
function constantMemory(): readonly Program[] {
  return [...types, "b128"].map((type) => {
    const name = `const_${type}`;
    const kernel = new Kernel({ name, group });
    const bytes = randomBytes(77, 256);
    kernel.before(`.const .align 16 .b8 ${name}_table[256] = {${bytes.join(", ")}};\n`);
    const [base, address] = kernel.registers(64, 2);
    const [at] = kernel.registers(32, 1);
    kernel.line(`mov.u64 ${base}, ${name}_table;`, `and.b32 ${at}, %t, 15;`);
    kernel.line(`mad.wide.u32 ${address}, ${at}, 16, ${base};`);
    for (const count of vectorsOf(type))
      loadForm(kernel, vectorOpcode("ld.const", count, type), type, count, `[${address}]`);
    return kernel.program();
  });
}

/** Addresses there and back: the loads show that they lead to the same place. */
function addressSpaces(): Program {
  const name = "address_spaces";
  const kernel = new Kernel({ name, group });
  kernel.before(`.const .align 16 .b32 ${name}_table[4] = {11, 22, 33, 44};\n`);
  kernel.before(`.global .align 16 .b32 ${name}_variable[4] = {55, 66, 77, 88};\n`);
  kernel.declare(`.shared .align 16 .b32 ${name}_shared[4];`);
  kernel.declare(`.local .align 16 .b32 ${name}_local[4];`);
  const spaces = ["global", "shared", "local", "const"] as const;
  const variables = { global: "variable", shared: "shared", local: "local", const: "table" };
  const leader = kernel.register(1);
  const word = kernel.register(32);
  kernel.line(`setp.eq.u32 ${leader}, %t, 0;`, `mov.u32 ${word}, 99;`);
  kernel.line(`@${leader} st.shared.u32 [${name}_shared+4], ${word};`, "bar.sync 0;");
  kernel.line(`st.local.u32 [${name}_local+4], %i;`);
  for (const space of spaces) {
    const [specific, generic, back] = kernel.registers(64, 3);
    kernel.covers(`cvta.${space}.u64`);
    kernel.covers(`cvta.to.${space}.u64`);
    kernel.line(`mov.u64 ${specific}, ${name}_${variables[space]};`);
    kernel.line(`cvta.${space}.u64 ${generic}, ${specific};`);
    kernel.line(`cvta.to.${space}.u64 ${back}, ${generic};`);
    loadForm(kernel, "ld.u32", "u32", 1, `[${generic}+4]`);
    loadForm(kernel, `ld.${space}.u32`, "u32", 1, `[${back}+4]`);
    const inside = expand("{global,shared,shared::cta,shared::cluster,local,const}");
    for (const other of inside) {
      const held = kernel.register(1);
      kernel.covers(`isspacep.${other}`);
      kernel.line(`isspacep.${other} ${held}, ${generic};`);
      kernel.storePredicate(`isspacep.${other} of ${space}`, held);
    }
  }
  return kernel.program();
}

/** The parameters of the entry, by their generic address. */
function entryParameters(): Program {
  const name = "entry_parameters";
  const kernel = new Kernel({ name, group });
  const [plain, own, generic, back, found] = kernel.registers(64, 5);
  for (const opcode of ["ld.param::entry.u64", ...expand("cvta{,.to}.param.u64")])
    kernel.covers(opcode);
  kernel.line(
    `ld.param.u64 ${plain}, [${name}_output];`,
    `ld.param::entry.u64 ${found}, [${name}_output];`,
    `mov.b64 ${own}, ${name}_output;`,
    `cvta.param.u64 ${generic}, ${own};`,
    `cvta.to.param.u64 ${back}, ${generic};`,
  );
  // Addresses are not compared, only whether they are the same.
  const same = (label: string, left: string | undefined, right: string | undefined): void => {
    const [held] = kernel.registers(1, 1) as [string];
    kernel.line(`setp.eq.u64 ${held}, ${left}, ${right};`);
    kernel.storePredicate(label, held);
  };
  same("ld.param::entry.u64", plain, found);
  same("cvta.to.param.u64", own, back);
  kernel.line(`ld.u64 ${found}, [${generic}];`);
  same("ld.u64 of a parameter", plain, found);
  for (const space of expand("{param,param::entry,global,shared,const,local}")) {
    const [held] = kernel.registers(1, 1) as [string];
    kernel.covers(`isspacep.${space}`);
    kernel.line(`isspacep.${space} ${held}, ${generic};`);
    kernel.storePredicate(`isspacep.${space} of a parameter`, held);
  }
  return kernel.program();
}

/** What only hints at future accesses: nothing may change. */
function hints(): Program {
  const kernel = new Kernel({ name: "hints", group });
  const stream = randomStream(kernel, 16);
  const address = kernel.element(stream);
  const prefetches = expand(
    "prefetch{,.global,.local}.{L1,L2} prefetch.global.L2::{evict_last,evict_normal} prefetchu.L1",
  ).flatMap((opcode) => opcode.split(" "));
  kernel.declare(".local .align 16 .b8 hints_local[64];");
  for (const opcode of new Set(prefetches)) {
    kernel.covers(opcode);
    kernel.line(`${opcode} ${opcode.includes("local") ? "[hints_local]" : address};`);
  }
  const [line] = kernel.registers(64, 1);
  const scratch = kernel.slot("discard.global.L2", 16, { bytes: 128 * kernel.count });
  kernel.line(`mad.wide.u32 ${line}, %i, 128, %out;`);
  for (const opcode of expand("applypriority{,.global}.L2::evict_normal")) {
    kernel.covers(opcode);
    kernel.line(`${opcode} [${line}+${scratch}], 128;`);
  }
  for (const opcode of expand("discard{,.global}.L2")) {
    kernel.covers(opcode);
    kernel.line(`${opcode} [${line}+${scratch}], 128;`);
  }
  // What a discarded line holds is undefined until it is written again.
  const quarters = kernel.registers(32, 4);
  kernel.line(`ld.global.v4.b32 {${quarters.join(", ")}}, ${address};`);
  for (let at = 0; at < 128; at += 16)
    kernel.line(`st.global.v4.b32 [${line}+${scratch + at}], {${quarters.join(", ")}};`);
  kernel.covers("pmevent");
  kernel.line("pmevent 1;", "pmevent.mask 3;");
  kernel.covers("pmevent.mask");
  return kernel.program();
}

/** Policies of the cache are opaque, and so only used. */
function policies(): Program {
  const kernel = new Kernel({ name: "policies", group });
  const address = kernel.element(randomStream(kernel, 4));
  const first = "L2::{evict_last,evict_normal,evict_first,evict_unchanged}";
  const use = (opcode: string, operands: string): void => {
    const [policy] = kernel.registers(64, 1);
    const [word] = kernel.registers(32, 1);
    kernel.covers(opcode);
    kernel.line(`${opcode} ${policy}, ${operands};`);
    kernel.line(`ld.global.L2::cache_hint.b32 ${word}, ${address}, ${policy};`);
    kernel.store(opcode, word ?? "", 32);
  };
  for (const opcode of expand(`createpolicy.fractional.${first}.b64`)) use(opcode, "0.5");
  for (const opcode of expand(
    "createpolicy.fractional.L2::{evict_last,evict_normal}.L2::{evict_first,evict_unchanged}.b64",
  ))
    use(opcode, "0.25");
  const [property] = kernel.registers(64, 1);
  kernel.line(`mov.b64 ${property}, 0x12f0000000000000;`);
  use("createpolicy.cvt.L2.b64", property ?? "");
  for (const opcode of expand(
    `createpolicy.range{,.global}.${first}{,.L2::evict_first,.L2::evict_unchanged}.b64`,
  ))
    use(opcode, "[%in], 0x1000, 0x2000");
  return kernel.program();
}

export function memoryPrograms(): readonly Program[] {
  return [
    ...globalLoads(),
    ...qualifiedLoads(),
    ...globalStores(),
    ...qualifiedStores(),
    ...sharedMemory(),
    qualifiedShared(),
    ...localMemory(),
    ...constantMemory(),
    addressSpaces(),
    entryParameters(),
    hints(),
    policies(),
  ];
}
