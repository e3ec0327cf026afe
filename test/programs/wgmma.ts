/**
 * Products of matrices in shared memory. Operands are random bytes of the type laid out as a descriptor
 * tells, so that a descriptor read otherwise gives other numbers:
 *
 *   tile A   16 KB   whatever the input holds, read through descriptors of each swizzle and major
 *   tile B   32 KB
 */
import { Memo } from "../../src/support/memo.ts";
import { Random } from "../../src/support/random.ts";
import { elementBytes, metadataBytes } from "./elements.ts";
import type { Flavour } from "./elements.ts";
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Program } from "./program.ts";

const lanes = 128;
const bytesA = 16384;
const bytesB = 32768;

type Major = "k" | "mn";

interface Form {
  /** `f32.f16.f16`. */
  readonly types: string;
  readonly k: number;
  readonly columns: number;
  readonly swizzle: 0 | 32 | 64 | 128;
  readonly majorA: Major;
  readonly majorB: Major;
  /** Whether A comes in registers. */
  readonly registers: boolean;
  readonly flag: string;
  readonly signs: readonly [number, number];
  /** What elements are like; near each other unless it says otherwise. */
  readonly flavour?: Flavour;
  /** Of a sparse A: which lanes have its metadata, and in which order indices stand. */
  readonly sparse?: { readonly selector: 0 | 1; readonly order: "sorted" | "any" };
}

/** Elements of a type, finite and near each other, as bytes. */
function elements(type: string, bytes: number, seed: number): Uint8Array {
  const random = new Random(seed);
  const data = new DataView(new ArrayBuffer(bytes));
  const step = type === "tf32" ? 4 : type === "f16" || type === "bf16" ? 2 : 1;
  for (let at = 0; at < bytes; at += step) {
    if (type === "tf32")
      data.setUint32(
        at,
        (random.below(2) << 31) | ((122 + random.below(9)) << 23) | random.below(2 ** 23),
        true,
      );
    else if (type === "f16")
      data.setUint16(
        at,
        (random.below(2) << 15) | ((11 + random.below(8)) << 10) | random.below(1024),
        true,
      );
    else if (type === "bf16")
      data.setUint16(
        at,
        (random.below(2) << 15) | ((123 + random.below(8)) << 7) | random.below(128),
        true,
      );
    // 0x7f and 0xff are NaN in e4m3, and 0x7c and up in e5m2: exponents stay below them.
    else if (type === "e4m3") data.setUint8(at, (random.below(2) << 7) | random.below(0x70));
    else if (type === "e5m2") data.setUint8(at, (random.below(2) << 7) | random.below(0x60));
    else data.setUint8(at, random.below(256));
  }
  return new Uint8Array(data.buffer);
}

const swizzleCodes = { 0: 0n, 128: 1n, 64: 2n, 32: 3n } as const;

/** Offsets for a matrix that fills its tile: chunks of rows, or of columns, one behind the other. */
function descriptor(
  major: Major,
  swizzle: Form["swizzle"],
  rows: number,
  bytesOfK: 32 | 64,
): bigint {
  const width = BigInt(swizzle);
  const depth = BigInt(bytesOfK);
  let [leading, stride] = [16n, 8n * width];
  // 64 bytes of k are two patterns of 32.
  if (major === "k" && swizzle < bytesOfK) leading = BigInt(rows) * width;
  if (major === "k" && swizzle === 0) [leading, stride] = [128n, 8n * depth];
  if (major === "mn" && swizzle === 0) [leading, stride] = [BigInt(rows) * 16n, 128n];
  if (major === "mn" && swizzle !== 0) [leading, stride] = [(depth / 2n) * width, 8n * width];
  return ((leading >> 4n) << 16n) | ((stride >> 4n) << 32n) | (swizzleCodes[swizzle] << 62n);
}

function opcodeOf({ types, k, columns, flag, sparse }: Form): string {
  const name = sparse === undefined ? "wgmma.mma_async" : "wgmma.mma_async.sp";
  return `${name}.sync.aligned.m64n${columns}k${k}.${types}${flag}`;
}

function nameOf(form: Form): string {
  const majors = form.registers ? `r${form.majorB}` : `${form.majorA}${form.majorB}`;
  const signs = form.signs.map((sign) => (sign < 0 ? "m" : "p")).join("");
  const { sparse } = form;
  const of = form.flavour === undefined ? "" : `_${form.flavour}`;
  const kind = sparse === undefined ? "wgmma" : `wgmma_sp${sparse.selector}_${sparse.order}${of}`;
  return `${kind}_${form.types}_n${form.columns}_s${form.swizzle}_${majors}_${signs}${form.flag}`.replaceAll(
    ".",
    "_",
  );
}

/** Copies a stretch of the input into a tile, all lanes together. */
function fill(kernel: Kernel, tile: string, offset: number, bytes: number): void {
  const [own] = kernel.registers(32, 1);
  kernel.line(`mad.lo.u32 ${own}, %t, 16, ${tile};`);
  for (let at = 0; at < bytes; at += 16 * lanes) {
    const words = kernel.registers(32, 4);
    kernel.line(
      `ld.global.v4.b32 {${words.join(", ")}}, [%in16+${offset + at}];`,
      `st.shared.v4.b32 [${own}+${at}], {${words.join(", ")}};`,
    );
  }
}

/** A 64-bit descriptor of a tile in shared memory. */
function describe(kernel: Kernel, tile: string, fields: bigint): string {
  const [start] = kernel.registers(32, 1);
  const [wide] = kernel.registers(64, 1) as [string];
  kernel.line(
    `shr.u32 ${start}, ${tile}, 4;`,
    `cvt.u64.u32 ${wide}, ${start};`,
    `or.b64 ${wide}, ${wide}, ${fields};`,
  );
  return wide;
}

/** Tiles of A and B in shared memory, filled from the input. */
interface Tiles {
  readonly kernel: Kernel;
  readonly a: string;
  readonly b: string;
  /** Where the elements of A lie in the input. */
  readonly inputA: number;
}

/** Hundreds of programs have the same few tiles. */
const known = new Memo<Uint8Array>(64);

function drawn(
  type: string,
  bytes: number,
  flavour: Flavour | undefined,
  seed: number,
): Uint8Array {
  return known.get([type, bytes, flavour, seed].join(), () =>
    flavour === undefined ? elements(type, bytes, seed) : elementBytes(type, bytes, flavour, seed),
  );
}

function tiles(
  name: string,
  group: string,
  { types, flavour }: Pick<Form, "types" | "flavour">,
): Tiles {
  const [, typeA = "", typeB = ""] = types.split(".");
  const sharedBytes = bytesA + bytesB;
  const kernel = new Kernel({ name, group, blocks: 1, threads: lanes, sharedBytes });
  kernel.before(`.extern .shared .align 1024 .b8 ${name}_tiles[];\n`);
  for (const opcode of expand("wgmma.{fence,commit_group,wait_group}.sync.aligned"))
    kernel.covers(opcode);
  const inputA = kernel.place(drawn(typeA, bytesA, flavour, 1), 16);
  const inputB = kernel.place(drawn(typeB, bytesB, flavour, 2), 16);
  const [a, b] = kernel.registers(32, 2) as [string, string];
  kernel.line(`mov.u32 ${a}, ${name}_tiles;`, `add.u32 ${b}, ${a}, ${bytesA};`);
  fill(kernel, a, inputA, bytesA);
  fill(kernel, b, inputB, bytesB);
  kernel.line("fence.proxy.async.shared::cta;", "bar.sync 0;");
  return { kernel, a, b, inputA };
}

/** A as the instruction takes it: a descriptor, or four registers. */
function operandA({ kernel, a, inputA }: Tiles, { registers, majorA, swizzle }: Form): string {
  if (!registers) return describe(kernel, a, descriptor(majorA, swizzle, 64, 32));
  const given = kernel.registers(32, 4);
  given.forEach((word, at) => kernel.line(`ld.global.b32 ${word}, [%in4+${inputA + 512 * at}];`));
  return `{${given.join(", ")}}`;
}

/** The constants behind the operands: signs of floats, and which of 16 bits are transposed. */
function constants({ types, registers, majorA, majorB, signs }: Form): string {
  const [accumulator = "", typeA = ""] = types.split(".");
  if (accumulator === "s32") return "";
  const majors =
    typeA === "f16" || typeA === "bf16" ? [...(registers ? [] : [majorA]), majorB] : [];
  const transposes = majors.map((major) => (major === "mn" ? 1 : 0));
  return [...signs, ...transposes].map((value) => `, ${value}`).join("");
}

/** The operands of a sparse A behind the descriptors: a register of metadata and the selector. */
function metadata(
  kernel: Kernel,
  { types, sparse, flavour }: Form,
): { readonly operands: string; readonly after: readonly string[] } {
  if (sparse === undefined) return { operands: "", after: [] };
  const [, typeA = ""] = types.split(".");
  const make = (): Uint8Array => metadataBytes(typeA, lanes, sparse.order, 3);
  const word = kernel.load(kernel.stream(`metadata ${sparse.order}`, 4, make));
  if (flavour === undefined) return { operands: `, ${word}, ${sparse.selector}`, after: [] };
  // They are read while the product runs, and the emulator says so. Nobody reads the register, so the assembler leaves the move out: what was measured is
  // right nonetheless.
  const after = [`mov.b32 ${word}, %t;`];
  kernel.finds("TW8070");
  return { operands: `, ${word}, ${sparse.selector}`, after };
}

/** Stores every register, or a digest of all of a lane's. */
function keep(kernel: Kernel, opcode: string, sums: readonly string[], isDigest: boolean): void {
  if (!isDigest) {
    sums.forEach((sum, at) => kernel.store(`${opcode} register ${at}`, sum, 32));
    return;
  }
  const [digest] = kernel.registers(32, 1) as [string];
  kernel.line(`mov.b32 ${digest}, 0;`);
  for (const sum of sums) kernel.line(`mad.lo.u32 ${digest}, ${digest}, 0x01000193, ${sum};`);
  kernel.store(`${opcode} digest of all registers`, digest, 32);
}

/** Multiplies once for each scale: 0 starts the sums, 1 adds to them. */
function multiply(tile: Tiles, form: Form, scales: readonly (0 | 1)[], isDigest: boolean): void {
  const { kernel } = tile;
  const { types, columns, swizzle, majorB } = form;
  const opcode = opcodeOf(form);
  kernel.covers(opcode);
  const fieldsB = descriptor(majorB, swizzle, columns, form.sparse === undefined ? 32 : 64);
  const descriptorB = describe(kernel, tile.b, fieldsB);
  const sparsity = metadata(kernel, form);
  const a = operandA(tile, form);
  const sums = kernel.registers(32, types.startsWith("f16") ? columns / 4 : columns / 2);
  const [keeps] = kernel.registers(1, 1);
  for (const sum of sums) kernel.line(`mov.b32 ${sum}, ${types.startsWith("s32") ? 100 : 0};`);
  kernel.line("wgmma.fence.sync.aligned;");
  for (const scale of scales)
    kernel.line(
      `setp.ne.b32 ${keeps}, ${scale}, 0;`,
      `${opcode} {${sums.join(", ")}}, ${a}, ${descriptorB}${sparsity.operands}, ${keeps}${constants(form)};`,
    );
  kernel.line(...sparsity.after);
  kernel.line("wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;");
  keep(kernel, opcode, sums, isDigest);
}

function program(form: Form): Program {
  const tile = tiles(nameOf(form), groupOf(form), form);
  multiply(tile, form, [0, 1], false);
  return tile.kernel.program();
}

/** Modules by type of A. */
function groupOf({ types, sparse }: Pick<Form, "types" | "sparse">): string {
  const [, type = ""] = types.split(".");
  if (sparse !== undefined) return /16/.test(type) ? "wgmma_sparse_halves" : "wgmma_sparse_bytes";
  if (type === "f16" || type === "bf16") return "wgmma_halves";
  return type === "tf32" || type.startsWith("e") ? "wgmma_floats" : "wgmma_integers";
}

const plain = {
  columns: 64,
  swizzle: 128,
  majorA: "k",
  majorB: "k",
  registers: false,
  flag: "",
  signs: [1, 1],
} as const;

const swizzles = [0, 32, 64, 128] as const;

/** 16-bit types: both majors of both operands, every swizzle, A in registers, signs. */
function halves(types: string): readonly Form[] {
  const base = { ...plain, types, k: 16 };
  const majors = ["k", "mn"] as const;
  return [
    ...swizzles.flatMap((swizzle) =>
      majors.flatMap((majorA) => majors.map((majorB) => ({ ...base, swizzle, majorA, majorB }))),
    ),
    ...swizzles.flatMap((swizzle) =>
      majors.map((majorB) => ({ ...base, swizzle, majorB, registers: true })),
    ),
    { ...base, signs: [-1, 1] as const },
    { ...base, signs: [1, -1] as const },
    { ...base, registers: true, signs: [-1, -1] as const },
  ];
}

function bytes(types: string, k: number): readonly Form[] {
  const base = { ...plain, types, k };
  return [
    ...swizzles.map((swizzle) => ({ ...base, swizzle })),
    { ...base, registers: true },
    ...(types.startsWith("s32") ? [] : [{ ...base, signs: [-1, 1] as const }]),
  ];
}

/** All numbers of columns that a type takes. */
function columnsOf(types: string): readonly number[] {
  const steps = Array.from({ length: 32 }, (_, at) => 8 * (at + 1));
  return types.startsWith("s32") ? steps.filter((n) => n <= 32 || n % 16 === 0) : steps;
}

const columnsPerProgram = 8;

/** Every number of columns of a type, several a program. */
function columnPrograms(
  types: string,
  k: number,
  flag = "",
  sparse?: Form["sparse"],
): readonly Program[] {
  const all = columnsOf(types);
  const parts = Math.ceil(all.length / columnsPerProgram);
  return Array.from({ length: parts }, (_, part) => {
    const kind = sparse === undefined ? "wgmma" : "wgmma_sp";
    const name = `${kind}_columns_${types}_${part}${flag}`.replaceAll(".", "_");
    const form = { ...plain, types, k, flag, ...(sparse === undefined ? {} : { sparse }) };
    const tile = tiles(name, groupOf(form), form);
    for (const columns of all.filter((_, at) => at % parts === part))
      multiply(tile, { ...form, columns }, [1], true);
    return tile.kernel.program();
  });
}

/** The forms of a dense product with half of A, under each selector, and indices that do not ascend. */
function sparseForms(forms: readonly Form[], selectors: readonly (0 | 1)[]): readonly Form[] {
  const order = "sorted";
  return [
    ...forms.map((form, at) => ({
      ...form,
      k: 2 * form.k,
      sparse: { selector: selectors[at % selectors.length] ?? 0, order } as const,
    })),
    ...forms.slice(0, 1).flatMap((form) =>
      ([undefined, "wide", "edges"] as const).map((flavour) => ({
        ...form,
        k: 2 * form.k,
        swizzle: 128 as const,
        sparse: { selector: selectors.at(-1) ?? 0, order: "any" } as const,
        ...(flavour === undefined ? {} : { flavour }),
      })),
    ),
  ];
}

function sparsePrograms(
  wide: readonly string[],
  small: readonly string[],
  integers: readonly string[],
): readonly Program[] {
  const first = { selector: 0, order: "sorted" } as const;
  const forms = [
    ...wide.flatMap((types) => sparseForms(halves(types), [0, 1, 1])),
    ...sparseForms(bytes("f32.tf32.tf32", 8), [0, 1]),
    ...[...small, ...integers].flatMap((types) => sparseForms(bytes(types, 32), [0])),
  ];
  return [
    ...forms.map(program),
    ...wide.flatMap((types) => columnPrograms(types, 32, "", first)),
    ...columnPrograms("f32.tf32.tf32", 16, "", first),
    ...[...small, ...integers].flatMap((types) => columnPrograms(types, 64, "", first)),
    ...integers.flatMap((types) => columnPrograms(types, 64, ".satfinite", first)),
  ];
}

export function wgmmaPrograms(): readonly Program[] {
  const small = expand("{f32,f16}.{e4m3,e5m2}.{e4m3,e5m2}");
  const integers = expand("s32.{s8,u8}.{s8,u8}");
  const wide = ["f32.f16.f16", "f16.f16.f16", "f32.bf16.bf16"];
  const forms: readonly Form[] = [
    ...wide.flatMap(halves),
    ...bytes("f32.tf32.tf32", 8),
    ...small.flatMap((types) => bytes(types, 32)),
    ...integers.flatMap((types) => bytes(types, 32)),
    ...bytes("s32.b1.b1", 256).map((form) => ({ ...form, flag: ".and.popc" })),
  ];
  return [
    ...forms.map(program),
    ...wide.flatMap((types) => columnPrograms(types, 16)),
    ...columnPrograms("f32.tf32.tf32", 8),
    ...small.flatMap((types) => columnPrograms(types, 32)),
    ...integers.flatMap((types) => columnPrograms(types, 32)),
    ...integers.flatMap((types) => columnPrograms(types, 32, ".satfinite")),
    ...columnPrograms("s32.b1.b1", 256, ".and.popc"),
    ...sparsePrograms(wide, small, integers),
  ];
}
