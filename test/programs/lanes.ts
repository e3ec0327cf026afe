/**
 * Programs of instructions that each lane runs for itself. A row of a table is an opcode in short, and what
 * goes in and comes out:
 *
 *   ["add{,.sat}.s32", "$ = $ $"]             $ is the type at the end of the opcode
 *   ["mul.wide.{u,s}16", "b32 = $ $"]         other results by their width
 *   ["setp.lt.s32", "p = $ $"]                predicates are stored as 0 or 1; p|p for two of them
 *   ["prmt.b32", "b32 = b32 b32 #0x5410"]     constants as they stand
 */
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Check, Program } from "./program.ts";
import { kindBits, operandStream } from "./values.ts";

export interface LaneRow {
  readonly opcodes: string;
  readonly signature: string;
  readonly check?: Check;
}

export function row(opcodes: string, signature: string, check?: Check): LaneRow {
  return check === undefined ? { opcodes, signature } : { opcodes, signature, check };
}

/** The last modifier that names operands: `u32` of `mul.wide.u32`. */
function typeOf(opcode: string): string {
  return opcode.split(".").at(-1) ?? "";
}

/** A source operand as text, with the stream it comes from. */
function source(kernel: Kernel, kind: string, position: number, loaded: Map<string, string>) {
  if (kind.startsWith("#")) return { text: kind.slice(1), stream: undefined };
  const predicate = kind === "p" || kind === "!p";
  const name = predicate ? "u32" : kind;
  const bytes = kindBits(name) / 8;
  const stream = kernel.stream(`${name}@${position}`, bytes, () =>
    operandStream(name, position, kernel.count),
  );
  const key = `${kind}@${position}`;
  const known = loaded.get(key);
  if (known !== undefined) return { text: known, stream };
  let text = kernel.load(stream);
  if (predicate) {
    const bit = kernel.register(32);
    const held = kernel.register(1);
    kernel.line(`and.b32 ${bit}, ${text}, 1;`, `setp.ne.u32 ${held}, ${bit}, 0;`);
    text = kind === "p" ? held : `!${held}`;
  }
  loaded.set(key, text);
  return { text, stream };
}

function addForm(
  kernel: Kernel,
  opcode: string,
  signature: string,
  check: Check | undefined,
  loaded: Map<string, string>,
): void {
  const [result = "", sources = ""] = signature.split("=").map((part) => part.trim());
  const kindFor = (kind: string): string => kind.replace("$", typeOf(opcode));
  const given = sources
    .split(/\s+/)
    .filter((kind) => kind !== "")
    .map((kind, position) => source(kernel, kindFor(kind), position, loaded));
  const operands = given.map(({ stream }) => stream).filter((stream) => stream !== undefined);
  const texts = given.map(({ text }) => text);
  kernel.covers(opcode);
  const options = { operands, ...(check === undefined ? {} : { check }) };
  if (result.startsWith("p")) {
    const targets = result.split("|").map((part) => (part === "_" ? "_" : kernel.register(1)));
    kernel.line(`${opcode} ${targets.join("|")}, ${texts.join(", ")};`);
    for (const [at, target] of targets.entries())
      if (target !== "_") kernel.storePredicate(`${opcode} ${at}`, target, { operands });
    return;
  }
  const bits = kindBits(kindFor(result));
  const target = kernel.register(bits);
  kernel.line(`${opcode} ${[target, ...texts].join(", ")};`);
  kernel.store(opcode, target, bits, options);
}

/** The program of some rows, or several where there are too many forms for one. */
export function lanePrograms(
  group: string,
  name: string,
  rows: readonly LaneRow[],
  formsPerProgram = 48,
): readonly Program[] {
  const forms = rows.flatMap(({ opcodes, signature, check }) =>
    expand(opcodes).map((opcode) => ({ opcode, signature, check })),
  );
  const parts = Math.ceil(forms.length / formsPerProgram);
  return Array.from({ length: parts }, (_, part) => {
    const kernel = new Kernel({
      name: parts === 1 ? name : `${name}_${part}`,
      group,
      threads: 192,
    });
    const loaded = new Map<string, string>();
    for (const { opcode, signature, check } of forms.slice(
      part * formsPerProgram,
      (part + 1) * formsPerProgram,
    ))
      addForm(kernel, opcode, signature, check, loaded);
    return kernel.program();
  });
}
