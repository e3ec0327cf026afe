/**
 * Writes the entry of a program: registers as they are needed, loads of operands, stores of results. Lane i of
 * the launch has element i of each stream and of each slot.
 */
import { exact } from "./program.ts";
import type { Check, Program, ProgramMap, Slot } from "./program.ts";

export type RegisterBits = 1 | 16 | 32 | 64 | 128;

const prefixes: { readonly [B in RegisterBits]: string } = {
  1: "p",
  16: "h",
  32: "r",
  64: "d",
  128: "q",
};

export interface KernelShape {
  readonly name: string;
  readonly group: string;
  readonly blocks?: number;
  readonly threads?: number;
  readonly cluster?: number;
  readonly sharedBytes?: number;
  /** Blocks that a processor must have room for; the assembler's condition for setmaxnreg. */
  readonly minBlocks?: number;
}

interface Stream {
  readonly offset: number;
  readonly elementBytes: number;
}

export class Kernel {
  readonly #shape: Required<KernelShape>;
  readonly #counts = new Map<RegisterBits, number>();
  readonly #lines: string[] = [];
  readonly #declarations: string[] = [];
  readonly #input = new Map<number, Uint8Array>();
  readonly #streams = new Map<string, Stream>();
  readonly #slots: Slot[] = [];
  readonly #maps: ProgramMap[] = [];
  readonly #opcodes: string[] = [];
  readonly #finds: string[] = [];
  readonly #initial = new Map<number, Uint8Array>();
  #inputBytes = 0;
  #outputBytes = 0;
  #labels = 0;
  #before = "";

  constructor(shape: KernelShape) {
    this.#shape = { blocks: 2, threads: 128, cluster: 1, sharedBytes: 0, minBlocks: 0, ...shape };
  }

  /** Threads of the whole launch. */
  get count(): number {
    return this.#shape.blocks * this.#shape.threads;
  }

  register(bits: RegisterBits): string {
    const number = this.#counts.get(bits) ?? 0;
    this.#counts.set(bits, number + 1);
    return `%${prefixes[bits]}${number}`;
  }

  registers(bits: RegisterBits, count: number): readonly string[] {
    return Array.from({ length: count }, () => this.register(bits));
  }

  line(...texts: readonly string[]): void {
    this.#lines.push(...texts.map((text) => `  ${text}`));
  }

  /** A label of its own. */
  label(): string {
    return `L${this.#labels++}`;
  }

  /** A variable inside the entry. */
  declare(text: string): void {
    this.#declarations.push(`  ${text}`);
  }

  /** Functions and variables before the entry. */
  before(text: string): void {
    this.#before += text;
  }

  /** Notes that the program is there for this opcode. */
  covers(opcode: string): void {
    this.#opcodes.push(opcode);
  }

  /** Notes that the emulator reports the program. */
  finds(code: string): void {
    this.#finds.push(code);
  }

  /** Puts bytes into the input and gives where they lie. */
  place(bytes: Uint8Array, alignment = 16): number {
    const offset = alignment * Math.ceil(this.#inputBytes / alignment);
    this.#input.set(offset, bytes);
    this.#inputBytes = offset + bytes.length;
    return offset;
  }

  /** A stream of operands, an element a lane; the same name gives the same stream. */
  stream(name: string, elementBytes: number, make: () => Uint8Array): Stream {
    const known = this.#streams.get(name);
    if (known !== undefined) return known;
    const bytes = make();
    if (bytes.length !== elementBytes * this.count) throw new Error(`stream ${name} does not fit`);
    const stream = { offset: this.place(bytes), elementBytes };
    this.#streams.set(name, stream);
    return stream;
  }

  /** The address of a lane's element: `[%in4+1024]`. */
  element({ offset, elementBytes }: Stream): string {
    return `[%in${elementBytes}+${offset}]`;
  }

  /** Loads a lane's element. */
  load(stream: Stream): string {
    const bits = (8 * stream.elementBytes) as RegisterBits;
    const register = this.register(bits);
    this.line(`ld.global.b${bits} ${register}, ${this.element(stream)};`);
    return register;
  }

  /** A part of the output; `elementBytes` a lane unless `bytes` says otherwise. */
  slot(
    label: string,
    elementBytes: Slot["elementBytes"],
    options: {
      readonly bytes?: number;
      readonly check?: Check;
      readonly operands?: readonly Stream[];
      readonly initial?: Uint8Array;
    } = {},
  ): number {
    const { bytes = elementBytes * this.count, check = exact, operands, initial } = options;
    const offset = 128 * Math.ceil(this.#outputBytes / 128);
    this.#outputBytes = offset + bytes;
    this.#slots.push({
      label,
      offset,
      bytes,
      elementBytes,
      check,
      ...(operands === undefined ? {} : { operands }),
    });
    if (initial !== undefined) this.#initial.set(offset, initial);
    return offset;
  }

  /** Stores a register of each lane into a slot of its own. */
  store(
    label: string,
    register: string,
    bits: 16 | 32 | 64 | 128,
    options: { readonly check?: Check; readonly operands?: readonly Stream[] } = {},
  ): void {
    const bytes = (bits / 8) as Slot["elementBytes"];
    const offset = this.slot(label, bytes, options);
    this.line(`st.global.b${bits} [%out${bytes}+${offset}], ${register};`);
  }

  /** Stores a predicate as 0 or 1. */
  storePredicate(
    label: string,
    predicate: string,
    options: { readonly operands?: readonly Stream[] } = {},
  ): void {
    const word = this.register(32);
    this.line(`selp.b32 ${word}, 1, 0, ${predicate};`);
    this.store(label, word, 32, options);
  }

  /** A tensor map; gives the name of the parameter. */
  map(map: ProgramMap): string {
    this.#maps.push(map);
    return `${this.#shape.name}_map${this.#maps.length - 1}`;
  }

  program(): Program {
    const { name, group, blocks, threads, cluster, sharedBytes } = this.#shape;
    const input = new Uint8Array(Math.max(1, this.#inputBytes));
    for (const [offset, bytes] of this.#input) input.set(bytes, offset);
    const output = new Uint8Array(16 * Math.ceil(this.#outputBytes / 16));
    for (const [offset, bytes] of this.#initial) output.set(bytes, offset);
    return {
      name,
      group,
      text: this.#text(),
      blocks,
      threads,
      cluster,
      sharedBytes,
      input,
      output,
      slots: this.#slots,
      maps: this.#maps,
      opcodes: this.#opcodes,
      finds: this.#finds,
    };
  }

  #text(): string {
    const { name, threads, cluster, minBlocks } = this.#shape;
    const parameters = [
      `.param .u64 ${name}_input`,
      `.param .u64 ${name}_output`,
      ...this.#maps.map((_, index) => `.param .align 64 .b8 ${name}_map${index}[128]`),
    ];
    const registers = [...this.#counts].map(([bits, count]) => {
      const type = bits === 1 ? "pred" : `b${bits}`;
      return `  .reg .${type} %${prefixes[bits]}<${count}>;`;
    });
    return [
      `${this.#before}.visible .entry ${name}(\n  ${parameters.join(",\n  ")}\n)`,
      `.reqntid ${threads}, 1, 1`,
      ...(minBlocks > 0 ? [`.minnctapersm ${minBlocks}`] : []),
      ...(cluster > 1 ? [".explicitcluster", `.reqnctapercluster ${cluster}, 1, 1`] : []),
      "{",
      ...registers,
      ...this.#declarations,
      ...prologue(name),
      ...this.#lines,
      "  ret;",
      "}",
      "",
    ].join("\n");
  }
}

/** The lane's number in its block (%t) and in the launch (%i), and the addresses of its elements of 1 to 16 bytes. */
function prologue(name: string): readonly string[] {
  const widths = [1, 2, 4, 8, 16];
  return [
    "  .reg .b32 %i, %t, %b, %n;",
    "  .reg .b64 %in, %out;",
    ...widths.map((width) => `  .reg .b64 %in${width}, %out${width};`),
    "  mov.u32 %t, %tid.x;",
    "  mov.u32 %b, %ctaid.x;",
    "  mov.u32 %n, %ntid.x;",
    "  mad.lo.u32 %i, %b, %n, %t;",
    `  ld.param.u64 %in, [${name}_input];`,
    `  ld.param.u64 %out, [${name}_output];`,
    "  cvta.to.global.u64 %in, %in;",
    "  cvta.to.global.u64 %out, %out;",
    ...widths.flatMap((width) => [
      `  mad.wide.u32 %in${width}, %i, ${width}, %in;`,
      `  mad.wide.u32 %out${width}, %i, ${width}, %out;`,
    ]),
  ];
}
