/**
 * Writes a module: types, imports, functions, exports and code, in the order of the format.
 *
 *   writeModule({ memory, imports: [], functions: [{ name: "run", exported: true, …, write: (code) => … }] })
 *
 * Functions are numbered imports first, in their order.
 */
import { Bytes } from "./bytes.ts";
import type { Opcode, ValueType } from "./opcode.ts";

export interface Signature {
  readonly parameters: readonly ValueType[];
  readonly results: readonly ValueType[];
}

export interface ImportedFunction extends Signature {
  readonly module: string;
  readonly name: string;
}

export interface WrittenFunction extends Signature {
  readonly name: string;
  readonly exported: boolean;
  /** Types of the locals behind the parameters. */
  readonly locals: readonly ValueType[];
  /** Writes the instructions, without the last `end`. */
  write(code: Bytes): void;
}

/** The memory that a module takes from outside, in pages of 64 KiB. */
export interface ImportedMemory {
  readonly module: string;
  readonly name: string;
  readonly minimum: number;
  readonly maximum: number;
  readonly shared: boolean;
}

export interface ModuleParts {
  readonly memory: ImportedMemory | undefined;
  readonly imports: readonly ImportedFunction[];
  readonly functions: readonly WrittenFunction[];
}

export const typeCodes: { readonly [Type in ValueType]: number } = {
  i32: 0x7f,
  i64: 0x7e,
  f32: 0x7d,
  f64: 0x7c,
  v128: 0x7b,
};

/** Instructions of control and of locals. */
export const controlCodes = {
  unreachable: 0x00,
  block: 0x02,
  loop: 0x03,
  if: 0x04,
  else: 0x05,
  end: 0x0b,
  br: 0x0c,
  br_if: 0x0d,
  br_table: 0x0e,
  return: 0x0f,
  call: 0x10,
  drop: 0x1a,
  select: 0x1b,
  selectOfType: 0x1c,
  "local.get": 0x20,
  "local.set": 0x21,
  "local.tee": 0x22,
  "i32.const": 0x41,
  "i64.const": 0x42,
  "f32.const": 0x43,
  "f64.const": 0x44,
  /** Of a block that gives nothing. */
  empty: 0x40,
} as const;

/** Writes an instruction's code; its immediates follow. */
export function writeOpcode(code: Bytes, { prefix, code: number }: Opcode): void {
  if (prefix === undefined) code.byte(number);
  else {
    code.byte(prefix);
    code.unsigned(number);
  }
}

const sections = { types: 1, imports: 2, functions: 3, exports: 7, code: 10 } as const;

function signatureKey({ parameters, results }: Signature): string {
  return `${parameters.join(" ")}:${results.join(" ")}`;
}

export function writeModule({ memory, imports, functions }: ModuleParts): Uint8Array<ArrayBuffer> {
  const bytes = new Bytes();
  bytes.bytes([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
  const all: readonly Signature[] = [...imports, ...functions];
  const types = [...new Map(all.map((one) => [signatureKey(one), one])).values()];
  const typeNumbers = new Map(types.map((type, index) => [signatureKey(type), index]));
  const typeNumber = (signature: Signature) => typeNumbers.get(signatureKey(signature)) ?? 0;
  const section = (id: number, count: number, write: () => void) => {
    bytes.byte(id);
    bytes.sized(() => {
      bytes.unsigned(count);
      write();
    });
  };
  const listOfTypes = (list: readonly ValueType[]) => {
    bytes.unsigned(list.length);
    for (const type of list) bytes.byte(typeCodes[type]);
  };
  section(sections.types, types.length, () => {
    for (const { parameters, results } of types) {
      bytes.byte(0x60);
      listOfTypes(parameters);
      listOfTypes(results);
    }
  });
  section(sections.imports, imports.length + (memory === undefined ? 0 : 1), () => {
    for (const imported of imports) {
      bytes.text(imported.module);
      bytes.text(imported.name);
      bytes.byte(0);
      bytes.unsigned(typeNumber(imported));
    }
    if (memory === undefined) return;
    bytes.text(memory.module);
    bytes.text(memory.name);
    bytes.byte(2);
    bytes.byte(memory.shared ? 3 : 1);
    bytes.unsigned(memory.minimum);
    bytes.unsigned(memory.maximum);
  });
  section(sections.functions, functions.length, () => {
    for (const one of functions) bytes.unsigned(typeNumber(one));
  });
  const exported = functions.flatMap((one, index) => (one.exported ? [{ one, index }] : []));
  section(sections.exports, exported.length, () => {
    for (const { one, index } of exported) {
      bytes.text(one.name);
      bytes.byte(0);
      bytes.unsigned(imports.length + index);
    }
  });
  section(sections.code, functions.length, () => {
    for (const one of functions)
      bytes.sized(() => {
        writeLocals(bytes, one.locals);
        one.write(bytes);
        bytes.byte(controlCodes.end);
      });
  });
  return bytes.finish();
}

/** Locals are declared in runs of one type. */
function writeLocals(bytes: Bytes, locals: readonly ValueType[]): void {
  const runs: { type: ValueType; count: number }[] = [];
  for (const type of locals) {
    const last = runs.at(-1);
    if (last?.type === type) last.count += 1;
    else runs.push({ type, count: 1 });
  }
  bytes.unsigned(runs.length);
  for (const { type, count } of runs) {
    bytes.unsigned(count);
    bytes.byte(typeCodes[type]);
  }
}
