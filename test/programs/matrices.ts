/** Matrices between shared memory and registers, and products of matrices in registers. */
import { Random } from "../../src/support/random.ts";
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Program, Slot } from "./program.ts";
import { kindBits, operandStream } from "./values.ts";

const group = "matrices";

function randomBytes(seed: number, bytes: number): Uint8Array {
  const random = new Random(seed);
  return Uint8Array.from({ length: bytes }, () => random.below(256));
}

/** A block of one warp with a tile of 2 KB, rows of 8 elements with a gap between them. */
function tiled(name: string) {
  const kernel = new Kernel({ name, group, blocks: 1, threads: 32 });
  kernel.declare(`.shared .align 16 .b8 ${name}_tile[2048];`);
  const [tile, own, row] = kernel.registers(32, 3) as [string, string, string];
  kernel.line(
    `mov.u32 ${tile}, ${name}_tile;`,
    `mad.lo.u32 ${own}, %t, 64, ${tile};`,
    // Rows of a matrix lie 48 bytes apart, in an order that is not that of the lanes.
    `xor.b32 ${row}, %t, 5;`,
    `mad.lo.u32 ${row}, ${row}, 48, ${tile};`,
  );
  return { kernel, own, row };
}

/** Each lane fills or keeps 64 bytes of the tile. */
function fill(kernel: Kernel, own: string): void {
  const offset = kernel.place(randomBytes(21, 2048), 16);
  const [from] = kernel.registers(64, 1);
  kernel.line(`mad.wide.u32 ${from}, %t, 64, %in;`);
  for (let at = 0; at < 64; at += 16) {
    const words = kernel.registers(32, 4);
    kernel.line(
      `ld.global.v4.b32 {${words.join(", ")}}, [${from}+${offset + at}];`,
      `st.shared.v4.b32 [${own}+${at}], {${words.join(", ")}};`,
    );
  }
  kernel.line("bar.sync 0;");
}

function keep(kernel: Kernel, label: string, own: string): void {
  const offset = kernel.slot(label, 2, { bytes: 2048 });
  const [to] = kernel.registers(64, 1);
  kernel.line("bar.sync 0;", `mad.wide.u32 ${to}, %t, 64, %out;`);
  for (let at = 0; at < 64; at += 16) {
    const words = kernel.registers(32, 4);
    kernel.line(
      `ld.shared.v4.b32 {${words.join(", ")}}, [${own}+${at}];`,
      `st.global.v4.b32 [${to}+${offset + at}], {${words.join(", ")}};`,
    );
  }
  kernel.line("bar.sync 0;");
}

const counts: { readonly [modifier: string]: number } = { x1: 1, x2: 2, x4: 4 };

function genericOf(kernel: Kernel, shared: string): string {
  const [wide] = kernel.registers(64, 1) as [string];
  kernel.line(`cvt.u64.u32 ${wide}, ${shared};`, `cvta.shared.u64 ${wide}, ${wide};`);
  return wide;
}

function loads(): Program {
  const { kernel, own, row } = tiled("ldmatrix");
  fill(kernel, own);
  const wide = genericOf(kernel, row);
  for (const opcode of expand(
    "ldmatrix.sync.aligned.m8n8.{x1,x2,x4}{,.trans}{,.shared,.shared::cta}.b16",
  )) {
    const count = counts[opcode.split(".")[4] ?? ""] ?? 1;
    const registers = kernel.registers(32, count);
    kernel.covers(opcode);
    const address = opcode.includes("shared") ? row : wide;
    kernel.line(`${opcode} {${registers.join(", ")}}, [${address}];`);
    registers.forEach((register, at) => kernel.store(`${opcode} ${at}`, register, 32));
  }
  return kernel.program();
}

function stores(): Program {
  const { kernel, own, row } = tiled("stmatrix");
  const wide = genericOf(kernel, row);
  const values = [0, 1, 2, 3].map((at) =>
    kernel.load(kernel.stream(`b32@${at}`, 4, () => randomBytes(30 + at, 4 * kernel.count))),
  );
  for (const opcode of expand(
    "stmatrix.sync.aligned.m8n8.{x1,x2,x4}{,.trans}{,.shared,.shared::cta}.b16",
  )) {
    fill(kernel, own);
    const count = counts[opcode.split(".")[4] ?? ""] ?? 1;
    kernel.covers(opcode);
    const address = opcode.includes("shared") ? row : wide;
    kernel.line(`${opcode} [${address}], {${values.slice(0, count).join(", ")}};`);
    keep(kernel, opcode, own);
  }
  return kernel.program();
}

function transposes(): Program {
  const { kernel } = tiled("movmatrix");
  const opcode = "movmatrix.sync.aligned.m8n8.trans.b16";
  const value = kernel.load(kernel.stream("b32@0", 4, () => randomBytes(33, 4 * kernel.count)));
  const [result] = kernel.registers(32, 1) as [string];
  kernel.covers(opcode);
  kernel.line(`${opcode} ${result}, ${value};`);
  kernel.store(opcode, result, 32);
  return kernel.program();
}

/** A product of matrices in registers: opcode, registers of A, B and C, kinds of their contents. */
interface Product {
  readonly opcode: string;
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly kindA: string;
  readonly kindB: string;
  readonly kindC: string;
}

/** Registers of A and B: elements times their bits over 32 lanes of 32 bits; C of 8 columns. */
function product(
  opcode: string,
  shape: string,
  bits: number,
  kinds: readonly [a: string, b: string, c: string],
): Product {
  const [m = 0, n = 0, k = 0] = (/m(\d+)n(\d+)k(\d+)/.exec(shape)?.slice(1) ?? []).map(Number);
  const [kindA, kindB, kindC] = kinds;
  const width = bits === 64 ? 64 : 32;
  const wideC = kindC === "f16x2" ? 16 : kindC === "f64" ? 64 : 32;
  return {
    opcode,
    a: (m * k * bits) / 32 / width,
    b: (n * k * bits) / 32 / width,
    c: (m * n * wideC) / 32 / (kindC === "f64" ? 64 : 32),
    kindA,
    kindB,
    kindC,
  };
}

/** Types, shapes, and accumulators. */
function products(): readonly Product[] {
  const found: Product[] = [];
  const add = (
    shapes: readonly string[],
    bits: number,
    ends: readonly (readonly [end: string, kinds: readonly [string, string, string]])[],
    before = "",
    flags: readonly string[] = [""],
  ): void => {
    for (const shape of shapes)
      for (const [end, kinds] of ends)
        for (const flag of flags) {
          const opcode = `mma.sync.aligned.${shape}.row.col${flag}.${end}${before}`;
          found.push(product(opcode, shape, bits, kinds));
        }
  };
  add(["m16n8k8", "m16n8k16"], 16, [
    ["f32.f16.f16.f32", ["f16x2", "f16x2", "f32"]],
    ["f16.f16.f16.f16", ["f16x2", "f16x2", "f16x2"]],
    ["f32.bf16.bf16.f32", ["bf16x2", "bf16x2", "f32"]],
  ]);
  add(["m16n8k4", "m16n8k8"], 32, [["f32.tf32.tf32.f32", ["f32", "f32", "f32"]]]);
  const small = ["e4m3", "e5m2"];
  for (const a of small)
    for (const b of small) {
      add(["m16n8k32"], 8, [[`f32.${a}.${b}.f32`, ["b32", "b32", "f32"]]]);
      add(["m16n8k32"], 8, [[`f16.${a}.${b}.f16`, ["b32", "b32", "f16x2"]]]);
      add(["m16n8k16"], 8, [[`f32.${a}.${b}.f32`, ["b32", "b32", "f32"]]]);
      add(["m16n8k16"], 8, [[`f16.${a}.${b}.f16`, ["b32", "b32", "f16x2"]]]);
    }
  for (const [types, bits, shapes] of [
    [["s8", "u8"], 8, ["m8n8k16", "m16n8k16", "m16n8k32"]],
    [["s4", "u4"], 4, ["m8n8k32", "m16n8k32", "m16n8k64"]],
  ] as const)
    for (const a of types)
      for (const b of types)
        add(shapes, bits, [[`s32.${a}.${b}.s32`, ["b32", "b32", "s32"]]], "", ["", ".satfinite"]);
  for (const operation of ["and", "xor"])
    add(
      ["m8n8k128", "m16n8k128", "m16n8k256"],
      1,
      [["s32.b1.b1.s32", ["b32", "b32", "s32"]]],
      `.${operation}.popc`,
    );
  add(["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"], 64, [
    ["f64.f64.f64.f64", ["f64", "f64", "f64"]],
  ]);
  return found;
}

/** Finite operands near each other, so that sums keep and lose bits; and the kind's edges among them. */
function operands(kernel: Kernel, kind: string, count: number, seed: number): readonly string[] {
  const bytes = kindBits(kind) / 8;
  return Array.from({ length: count }, (_, at) =>
    kernel.load(
      kernel.stream(`${kind} ${seed} ${at}`, bytes, () => moderate(kind, seed + at, kernel.count)),
    ),
  );
}

/** Values of a kind without infinities and NaNs, which the last rounds take from the usual stream. */
function moderate(kind: string, seed: number, count: number): Uint8Array {
  const random = new Random(seed);
  const bytes = kindBits(kind) / 8;
  const data = new DataView(new ArrayBuffer(bytes * count));
  for (let lane = 0; lane < count; lane++) {
    const sign = random.below(2) === 0 ? 0 : 0x80000000;
    if (kind === "f32")
      data.setUint32(
        4 * lane,
        sign | ((120 + random.below(12)) << 23) | random.below(2 ** 23),
        true,
      );
    else if (kind === "f64") {
      data.setUint32(8 * lane, random.bits(), true);
      data.setUint32(
        8 * lane + 4,
        sign | ((1016 + random.below(12)) << 20) | random.below(2 ** 20),
        true,
      );
    } else if (kind === "f16x2" || kind === "bf16x2")
      for (const half of [0, 1]) data.setUint16(4 * lane + 2 * half, narrow(kind, random), true);
    else data.setUint32(4 * lane, random.bits(), true);
  }
  return new Uint8Array(data.buffer);
}

/** Bits of a narrow float with an exponent near that of one. */
function narrow(kind: "f16x2" | "bf16x2", random: Random): number {
  const sign = random.below(2) << 15;
  if (kind === "f16x2") return sign | ((11 + random.below(8)) << 10) | random.below(1024);
  return sign | ((123 + random.below(8)) << 7) | random.below(128);
}

function multiplications(): readonly Program[] {
  return products().map((form) => {
    const name = form.opcode.replace("mma.sync.aligned.", "mma_").replaceAll(".", "_");
    const kernel = new Kernel({ name, group: "mma", blocks: 1, threads: 32 });
    kernel.covers(form.opcode);
    // The last round has the edges of each kind: infinities, NaNs, subnormal numbers.
    for (const round of [0, 1, 2]) {
      const read = (kind: string, count: number, seed: number): readonly string[] =>
        round < 2
          ? operands(kernel, kind, count, seed + 100 * round)
          : Array.from({ length: count }, (_, at) =>
              kernel.load(
                kernel.stream(`${kind} edges ${seed + at}`, kindBits(kind) / 8, () =>
                  operandStream(kind, (seed + at) % 2, kernel.count),
                ),
              ),
            );
      const a = read(form.kindA, form.a, 1);
      const b = read(form.kindB, form.b, 11);
      const c = read(form.kindC, form.c, 20);
      const bits = kindBits(form.kindC) as 32 | 64;
      const d = kernel.registers(bits, form.c);
      const list = (registers: readonly string[]): string => `{${registers.join(", ")}}`;
      kernel.line(`${form.opcode} ${list(d)}, ${list(a)}, ${list(b)}, ${list(c)};`);
      d.forEach((register, at) => kernel.store(`round ${round} register ${at}`, register, bits));
    }
    return kernel.program();
  });
}

interface Wmma {
  readonly shape: string;
  readonly a: string;
  readonly c: string;
  readonly registersA: number;
  readonly registersB: number;
  readonly registersC: number;
}

const wmmaForms: readonly Wmma[] = ["m16n16k16", "m8n32k16", "m32n8k16"].flatMap((shape) => {
  const byteCounts: { readonly [shape: string]: readonly [number, number] } = {
    m16n16k16: [2, 2],
    m8n32k16: [1, 4],
    m32n8k16: [4, 1],
  };
  const [byteA, byteB] = byteCounts[shape] ?? [2, 2];
  const halves = { m16n16k16: [4, 4], m8n32k16: [2, 8], m32n8k16: [8, 2] }[shape] ?? [4, 4];
  return [
    ...["f16", "f32"].map((c) => ({
      shape,
      a: "f16",
      c,
      registersA: 8,
      registersB: 8,
      registersC: c === "f16" ? 4 : 8,
    })),
    {
      shape,
      a: "bf16",
      c: "f32",
      registersA: halves[0] ?? 4,
      registersB: halves[1] ?? 4,
      registersC: 8,
    },
    ...["s8", "u8"].map((a) => ({
      shape,
      a,
      c: "s32",
      registersA: byteA,
      registersB: byteB,
      registersC: 8,
    })),
  ];
});

const wmmaTf32: Wmma = {
  shape: "m16n16k8",
  a: "tf32",
  c: "f32",
  registersA: 4,
  registersB: 4,
  registersC: 8,
};

/** wmma in every layout: which lane holds what is not told, so only what is stored counts. */
function wholeWarp(): readonly Program[] {
  return [...wmmaForms, wmmaTf32].map((form) => {
    const { shape, a, c, registersA, registersB, registersC } = form;
    const name = `wmma_${shape}_${a}_${c}`;
    const kernel = new Kernel({ name, group: "mma", blocks: 1, threads: 32 });
    const kind = { f16: "f16x2", bf16: "bf16x2", tf32: "f32" }[a] ?? "b32";
    const data = moderate(kind, 5, 1024);
    const [left, right] = [kernel.place(data, 32), kernel.place(moderate(kind, 6, 1024), 32)];
    const kindC = { f16: "f16x2", f32: "f32" }[c] ?? "s32";
    const sums = kernel.place(moderate(kindC, 7, 1024), 32);
    const elementBytes = (c === "f16" ? 2 : 4) as Slot["elementBytes"];
    const flags = c === "s32" ? ["", ".satfinite"] : [""];
    for (const layouts of expand("{row,col}.{row,col}")) {
      const [layoutA = "", layoutB = ""] = layouts.split(".");
      for (const flag of flags) {
        const [ra, rb, rc, rd] = [registersA, registersB, registersC, registersC].map((count) =>
          kernel.registers(32, count),
        ) as [readonly string[], readonly string[], readonly string[], readonly string[]];
        const list = (registers: readonly string[]): string => `{${registers.join(", ")}}`;
        const loadOf = (part: string, layout: string, type: string): string =>
          `wmma.load.${part}.sync.aligned.${layout}.${shape}.global.${type}`;
        const types = a === "f16" ? `${c}.${c}` : `${c}.${a}.${a}.${c}`;
        const multiply = `wmma.mma.sync.aligned.${layouts}.${shape}.${types}${flag}`;
        const store = `wmma.store.d.sync.aligned.${layoutB}.${shape}.global.${c}`;
        const opcodes = [loadOf("a", layoutA, a), loadOf("b", layoutB, a), loadOf("c", layoutA, c)];
        const offset = kernel.slot(multiply, elementBytes, { bytes: 1600 * elementBytes });
        for (const opcode of [...opcodes, multiply, store]) kernel.covers(opcode);
        kernel.line(
          `${opcodes[0]} ${list(ra)}, [%in+${left}], 32;`,
          `${opcodes[1]} ${list(rb)}, [%in+${right}], 32;`,
          `${opcodes[2]} ${list(rc)}, [%in+${sums}], 32;`,
          `${multiply} ${list(rd)}, ${list(ra)}, ${list(rb)}, ${list(rc)};`,
          `${store} [%out+${offset}], ${list(rd)}, 40;`,
        );
      }
    }
    return kernel.program();
  });
}

export function matrixPrograms(): readonly Program[] {
  return [loads(), stores(), transposes(), ...multiplications(), ...wholeWarp()];
}
