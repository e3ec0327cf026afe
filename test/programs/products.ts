/**
 * Products of matrices that few programs use: f64 with every rounding, m8n8k4 on f16, and those forms of `wmma`
 * that are not in matrices.ts: elements of 4 bits and 1 bit, f64, C and D of different types, other spaces.
 */
import { elementBytes } from "./elements.ts";
import type { Flavour } from "./elements.ts";
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Program } from "./program.ts";

const group = "mma_products";
const flavours: readonly Flavour[] = ["near", "wide", "edges"];

function list(registers: readonly string[]): string {
  return `{${registers.join(", ")}}`;
}

function widthOf(type: string): 32 | 64 {
  return type === "f64" ? 64 : 32;
}

/** A product in registers under each flavour: how many registers of each matrix there are. */
function registerProduct(
  opcode: string,
  counts: readonly [d: number, a: number, b: number, c: number],
): Program {
  const name = opcode.replace("mma.sync.aligned.", "mma_").replaceAll(".", "_");
  const kernel = new Kernel({ name, group, blocks: 1, threads: 32 });
  const [typeD = "", typeA = "", typeB = "", typeC = ""] = opcode.split(".").slice(-4);
  kernel.covers(opcode);
  for (const [round, flavour] of flavours.entries()) {
    const load = (type: string, count: number, seed: number): readonly string[] =>
      Array.from({ length: count }, (_, at) => {
        const bytes = widthOf(type) / 8;
        const make = (): Uint8Array =>
          elementBytes(type, 32 * bytes, flavour, seed + at + 100 * round);
        return kernel.load(kernel.stream(`${seed} ${at} ${round}`, bytes, make));
      });
    const a = load(typeA, counts[1], 10);
    const b = load(typeB, counts[2], 30);
    const c = load(typeC, counts[3], 50);
    const d = kernel.registers(widthOf(typeD), counts[0]);
    kernel.line(`${opcode} ${list(d)}, ${list(a)}, ${list(b)}, ${list(c)};`);
    d.forEach((register, at) =>
      kernel.store(`${flavour} register ${at}`, register, widthOf(typeD)),
    );
  }
  return kernel.program();
}

function quads(): readonly Program[] {
  const counts: { readonly [type: string]: number } = { f16: 4, f32: 8 };
  return expand(
    "mma.sync.aligned.m8n8k4.{row,col}.{row,col}.{f16.f16.f16.f16,f32.f16.f16.f16,f32.f16.f16.f32}",
  ).map((opcode) => {
    const [d = "", , , c = ""] = opcode.split(".").slice(-4);
    return registerProduct(opcode, [counts[d] ?? 0, 2, 2, counts[c] ?? 0]);
  });
}

function doubles(): readonly Program[] {
  const counts: { readonly [shape: string]: readonly [number, number, number, number] } = {
    m8n8k4: [2, 1, 1, 2],
    m16n8k4: [4, 2, 1, 4],
    m16n8k8: [4, 4, 2, 4],
    m16n8k16: [4, 8, 4, 4],
  };
  return Object.entries(counts).flatMap(([shape, count]) =>
    expand(`mma.sync.aligned.${shape}.row.col.{rn,rz,rm,rp}.f64.f64.f64.f64`).map((opcode) =>
      registerProduct(opcode, count),
    ),
  );
}

/** Matrices of `wmma`: shape, types, and the registers that hold them. */
interface Matrices {
  readonly shape: string;
  readonly a: string;
  readonly c: string;
  readonly d: string;
  readonly registers: readonly [d: number, a: number, b: number, c: number];
}

const sumBytes: { readonly [type: string]: 2 | 4 | 8 } = { f16: 2, f32: 4, s32: 4, f64: 8 };
const bitsOf: { readonly [type: string]: number } = {
  f16: 16,
  bf16: 16,
  tf32: 32,
  f64: 64,
  s4: 4,
  u4: 4,
  b1: 1,
};

function sidesOf(shape: string): readonly [m: number, n: number, k: number] {
  const [m = 0, n = 0, k = 0] = (/m(\d+)n(\d+)k(\d+)/.exec(shape)?.slice(1) ?? []).map(Number);
  return [m, n, k];
}

function matricesOf(shape: string, a: string, c: string, d = c): Matrices {
  const [m, n, k] = sidesOf(shape);
  const bits = bitsOf[a] ?? 8;
  const operand = (side: number): number =>
    a === "f16" ? 8 : Math.max(1, (side * k * bits) / 32 / widthOf(a));
  const sums = (type: string): number => (m * n * 8 * (sumBytes[type] ?? 4)) / 32 / widthOf(type);
  return { shape, a, c, d, registers: [sums(d), operand(m), operand(n), sums(c)] };
}

const large = ["m16n16k16", "m8n32k16", "m32n8k16"];

/** Where matrices lie: the suffix of loads and stores, and the registers with the addresses. */
interface Region {
  readonly space: string;
  readonly a: string;
  readonly b: string;
  readonly c: string;
  readonly d: string;
  /** With the stride, or without where lines follow each other. */
  readonly strides: { readonly [M in "a" | "b" | "c" | "d"]: string };
}

/** Loads, multiplies and stores. */
function multiply(
  kernel: Kernel,
  form: Matrices,
  layouts: readonly [a: string, b: string, sums: string],
  multiplication: string,
  region: Region,
): void {
  const { shape, a, c, d, registers } = form;
  const types = [d, a, a, c];
  const [rd, ra, rb, rc] = registers.map((count, at) =>
    kernel.registers(widthOf(types[at] ?? ""), count),
  ) as [readonly string[], readonly string[], readonly string[], readonly string[]];
  const { space, strides } = region;
  const load = (matrix: string, layout: string, type: string): string =>
    `wmma.load.${matrix}.sync.aligned.${layout}.${shape}${space}.${type}`;
  const [loadA, loadB, loadC] = [
    load("a", layouts[0], a),
    load("b", layouts[1], a),
    load("c", layouts[2], c),
  ];
  const store = `wmma.store.d.sync.aligned.${layouts[2]}.${shape}${space}.${d}`;
  for (const opcode of [loadA, loadB, loadC, multiplication, store]) kernel.covers(opcode);
  kernel.line(
    `${loadA} ${list(ra)}, [${region.a}]${strides.a};`,
    `${loadB} ${list(rb)}, [${region.b}]${strides.b};`,
    `${loadC} ${list(rc)}, [${region.c}]${strides.c};`,
    `${multiplication} ${list(rd)}, ${list(ra)}, ${list(rb)}, ${list(rc)};`,
    `${store} [${region.d}], ${list(rd)}${strides.d};`,
  );
}

/** Matrices in global memory, with gaps between their lines. */
function inGlobal(
  form: Matrices,
  layouts: readonly (readonly [string, string])[],
  opcodes: (layouts: string) => readonly string[],
): Program {
  const { shape, a, c, d } = form;
  const kernel = new Kernel({
    name: `wmma_${shape}_${a}_${c}_${d}_global`,
    group,
    blocks: 1,
    threads: 32,
  });
  const [, , k] = sidesOf(shape);
  const stride = Math.max(40, k + 256 / (bitsOf[a] ?? 8));
  for (const flavour of flavours) {
    const [left, right] = [1, 2].map((seed) =>
      kernel.place(elementBytes(a, 8192, flavour, seed), 32),
    ) as [number, number];
    const sums = kernel.place(elementBytes(c, 16384, flavour, 3), 32);
    for (const [layoutA, layoutB] of layouts)
      for (const [at, opcode] of opcodes(`${layoutA}.${layoutB}`).entries()) {
        const size = sumBytes[d] ?? 4;
        const offset = kernel.slot(`${flavour} ${opcode}`, size, {
          bytes: 40 * 40 * size,
        });
        multiply(kernel, form, [layoutA, layoutB, at % 2 === 0 ? "row" : "col"], opcode, {
          space: ".global",
          a: `%in+${left}`,
          b: `%in+${right}`,
          c: `%in+${sums}`,
          d: `%out+${offset}`,
          strides: { a: `, ${stride}`, b: `, ${stride}`, c: ", 40", d: ", 40" },
        });
      }
  }
  return kernel.program();
}

const sharedBytes = 16384;

/** Matrices in shared memory, through each kind of address, one line behind the other. */
function elsewhere(
  form: Matrices,
  layouts: readonly (readonly [string, string])[],
  opcode: (layouts: string) => string,
): Program {
  const { shape, a, c, d } = form;
  const name = `wmma_${shape}_${a}_${c}_${d}_shared`;
  const kernel = new Kernel({ name, group, blocks: 1, threads: 32 });
  kernel.declare(`.shared .align 32 .b8 ${name}_tile[${sharedBytes}];`);
  const parts = [a, a, c].map((type, seed) =>
    kernel.place(elementBytes(type, 4096, "near", seed + 1), 32),
  );
  const [tile, own, pair] = kernel.registers(32, 3) as [string, string, string];
  const [wide] = kernel.registers(64, 1) as [string];
  kernel.line(
    `mov.u32 ${tile}, ${name}_tile;`,
    `mad.lo.u32 ${own}, %t, 16, ${tile};`,
    `mad.lo.u32 ${pair}, %t, 8, ${tile};`,
    `cvt.u64.u32 ${wide}, ${tile};`,
    `cvta.shared.u64 ${wide}, ${wide};`,
  );
  for (const [part, offset] of parts.entries())
    for (let at = 0; at < 4096; at += 512) {
      const words = kernel.registers(32, 4);
      kernel.line(
        `ld.global.v4.b32 ${list(words)}, [%in16+${offset + at}];`,
        `st.shared.v4.b32 [${own}+${4096 * part + at}], ${list(words)};`,
      );
    }
  for (const space of ["", ".shared", ".shared::cta"])
    for (const [at, [layoutA, layoutB]] of layouts.entries()) {
      const base = space === "" ? wide : tile;
      kernel.line("bar.sync 0;");
      multiply(
        kernel,
        form,
        [layoutA, layoutB, at % 2 === 0 ? "col" : "row"],
        opcode(`${layoutA}.${layoutB}`),
        {
          space,
          a: base,
          b: `${base}+4096`,
          c: `${base}+8192`,
          d: `${base}+12288`,
          strides: { a: "", b: "", c: "", d: "" },
        },
      );
      const [m, n] = sidesOf(shape);
      const bytes = m * n * (sumBytes[d] ?? 4);
      const offset = kernel.slot(`${layoutA}.${layoutB} in ${space}`, sumBytes[d] ?? 4, { bytes });
      kernel.line("bar.sync 0;");
      for (let from = 0; from < bytes; from += 256) {
        const words = kernel.registers(32, 2);
        kernel.line(
          `ld.shared.v2.b32 ${list(words)}, [${pair}+${12288 + from}];`,
          `st.global.v2.b32 [%out8+${offset + from}], ${list(words)};`,
        );
      }
    }
  return kernel.program();
}

const all = expand("{row,col} {row,col}").map((pair) => pair.split(" ") as [string, string]);
const straight = [["row", "col"]] as const;

function wholeWarp(): readonly Program[] {
  const mixed = large.flatMap((shape) => [
    matricesOf(shape, "f16", "f32", "f16"),
    matricesOf(shape, "f16", "f16", "f32"),
  ]);
  const double = matricesOf("m8n8k4", "f64", "f64");
  const nibbles = ["s4", "u4"].map((type) => matricesOf("m8n8k32", type, "s32"));
  const bit = matricesOf("m8n8k128", "b1", "s32");
  const plain =
    ({ shape, a, c, d }: Matrices) =>
    (layouts: string): string =>
      `wmma.mma.sync.aligned.${layouts}.${shape}.${a === "f16" ? `${d}.${c}` : `${d}.${a}.${a}.${c}`}`;
  const usual = [
    ...large.flatMap((shape) => [
      ...["f16", "f32"].map((c) => matricesOf(shape, "f16", c)),
      matricesOf(shape, "bf16", "f32"),
      ...["s8", "u8"].map((a) => matricesOf(shape, a, "s32")),
    ]),
    matricesOf("m16n16k8", "tf32", "f32"),
    double,
  ];
  const bits = (layouts: string): readonly string[] =>
    expand(`wmma.mma.{and,xor}.popc.sync.aligned.${layouts}.m8n8k128.s32.b1.b1.s32`);
  return [
    ...mixed.map((form) => inGlobal(form, all, (layouts) => [plain(form)(layouts)])),
    inGlobal(double, all, (layouts) =>
      expand(`wmma.mma.sync.aligned.${layouts}.m8n8k4{,.rn,.rz,.rm,.rp}.f64.f64.f64.f64`),
    ),
    ...nibbles.map((form) =>
      inGlobal(form, straight, (layouts) => expand(`${plain(form)(layouts)}{,.satfinite}`)),
    ),
    inGlobal(bit, straight, bits),
    ...usual.map((form) => elsewhere(form, all, plain(form))),
    ...nibbles.map((form) => elsewhere(form, [...straight, ...straight], plain(form))),
    elsewhere(bit, [...straight, ...straight], (layouts) => bits(layouts)[0] ?? ""),
  ];
}

export function productPrograms(): readonly Program[] {
  return [...quads(), ...doubles(), ...wholeWarp()];
}
