/**
 * How an instruction of WebAssembly is written: its bytes, the types it takes and gives, and what follows it in the code.
 *
 *   plain(0xfd, 0xe4, "vv:v")         f32x4.add: two vectors give one
 *   memory(undefined, 0x2a, "i:f", 4) f32.load: an address gives a number; a constant offset follows
 */

export type ValueType = "i32" | "i64" | "f32" | "f64" | "v128";

/** What stands behind the bytes of the instruction. */
export type Immediate = "none" | "memory" | "lane" | "memory and lane" | "shuffle";

export interface Opcode {
  /** The byte before the code, where there is one. */
  readonly prefix: number | undefined;
  readonly code: number;
  readonly parameters: readonly ValueType[];
  readonly result: ValueType | undefined;
  readonly immediate: Immediate;
  /** Bytes an access moves; 0 of others. */
  readonly bytes: number;
  /** Lanes that an immediate chooses from; 0 of others. */
  readonly lanes: number;
  /** Bytes that always follow, such as the index of the one memory. */
  readonly fixed: readonly number[];
}

const letters: { readonly [letter: string]: ValueType } = {
  i: "i32",
  l: "i64",
  f: "f32",
  d: "f64",
  v: "v128",
};

function typeOf(letter: string): ValueType {
  const type = letters[letter];
  if (type === undefined) throw new Error(`${letter} is no type`);
  return type;
}

const none: readonly number[] = Object.freeze([]);

function opcode(
  prefix: number | undefined,
  code: number,
  signature: string,
  immediate: Immediate,
  { bytes = 0, lanes = 0, fixed = none },
): Opcode {
  const [parameters = "", result = ""] = signature.split(":");
  return Object.freeze({
    prefix,
    code,
    parameters: Object.freeze(Array.from(parameters, typeOf)),
    result: result === "" ? undefined : typeOf(result),
    immediate,
    bytes,
    lanes,
    fixed,
  });
}

/** An instruction without immediates; `signature` has a letter a type: i32, i64 (l), f32, f64 (d), v128. */
export function plain(prefix: number | undefined, code: number, signature: string): Opcode {
  return opcode(prefix, code, signature, "none", {});
}

/** A load or store of so many bytes. */
export function memory(
  prefix: number | undefined,
  code: number,
  signature: string,
  bytes: number,
): Opcode {
  return opcode(prefix, code, signature, "memory", { bytes });
}

/** An instruction on one lane of a vector. */
export function lane(
  prefix: number | undefined,
  code: number,
  signature: string,
  lanes: number,
): Opcode {
  return opcode(prefix, code, signature, "lane", { lanes });
}

/** A load or store of one lane. */
export function memoryLane(
  prefix: number | undefined,
  code: number,
  signature: string,
  bytes: number,
  lanes: number,
): Opcode {
  return opcode(prefix, code, signature, "memory and lane", { bytes, lanes });
}

/** An instruction that sixteen lane numbers follow. */
export function shuffle(prefix: number, code: number, signature: string): Opcode {
  return opcode(prefix, code, signature, "shuffle", { lanes: 32 });
}

/** An instruction on the memory as a whole, which its index follows. */
export function bulk(
  prefix: number | undefined,
  code: number,
  signature: string,
  fixed: readonly number[],
): Opcode {
  return opcode(prefix, code, signature, "none", { fixed });
}

/** The fence, which a byte follows that is kept for later versions. */
export function fence(prefix: number, code: number): Opcode {
  return opcode(prefix, code, ":", "none", { fixed: [0] });
}
