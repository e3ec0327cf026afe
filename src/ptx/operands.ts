/** Short ways to write operands of PTX instructions. */
import type {
  AddressOperand,
  Base,
  DiscardOperand,
  FloatOperand,
  IntegerOperand,
  NotOperand,
  Operand,
  PairOperand,
  Register,
  SymbolOperand,
  VectorOperand,
} from "./module.ts";

export function integer(value: number | bigint): IntegerOperand {
  return { kind: "integer", value };
}

export function symbol(name: string, offset = 0): SymbolOperand {
  return { kind: "symbol", name, offset };
}

const bytes = new DataView(new ArrayBuffer(8));

/** An f32 immediate of the nearest f32. */
export function float32(value: number): FloatOperand {
  bytes.setFloat32(0, value);
  return { kind: "float", width: 32, bits: bytes.getUint32(0) };
}

export function float64(value: number): FloatOperand {
  bytes.setFloat64(0, value);
  return { kind: "float", width: 64, bits: bytes.getBigUint64(0) };
}

export function address(base: Base, offset = 0): AddressOperand {
  return { kind: "address", base, offset };
}

/** `[map, {c0, c1, …}]`, innermost coordinate first. */
export function tensorAddress(map: Base, coordinates: readonly Operand[]): AddressOperand {
  return { kind: "address", base: map, offset: 0, coordinates };
}

/** `{a, b}`; a single one stays as it is. */
export function vector(elements: readonly Operand[]): Operand {
  const [only] = elements;
  return elements.length === 1 && only !== undefined ? only : braces(elements);
}

export function braces(elements: readonly Operand[]): VectorOperand {
  return { kind: "vector", elements };
}

export function pair(first: Operand, second: Operand): PairOperand {
  return { kind: "pair", first, second };
}

export function not(operand: Register): NotOperand {
  return { kind: "not", operand };
}

export const discard: DiscardOperand = Object.freeze({ kind: "discard" });
