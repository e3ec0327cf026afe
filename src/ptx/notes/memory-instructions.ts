/**
 * How wide the accesses are that were emitted, read off the instructions themselves:
 *
 *   ld.global.nc.v4.b32                          global load,  16 bytes a lane
 *   st.shared.b16                                shared store,  2 bytes a lane
 *   ldmatrix.sync.aligned.m8n8.x4.shared.b16     shared load,  16 bytes a lane, as matrices
 *   cp.async.cg.shared.global …, 16              asynchronous copy, 16 bytes a lane
 *   cp.async.bulk.tensor.2d …                    tensor copy, by TMA
 */
import type { Instruction } from "../module.ts";

export interface MemoryAccess {
  readonly kind:
    | "global load"
    | "global store"
    | "global atomic"
    | "shared load"
    | "shared store"
    | "shared atomic"
    | "spill"
    | "async copy"
    | "tensor copy"
    | "bulk copy";
  /** What a lane moves at once; undefined for TMA, which no lane waits for. */
  readonly bytes: number | undefined;
  readonly matrix?: "plain" | "transposed";
}

/** The access that an instruction makes; undefined where it makes none. */
export function memoryAccess(instruction: Instruction): MemoryAccess | undefined {
  const { opcode } = instruction;
  if (opcode.startsWith("cp.async") || opcode.startsWith("cp.reduce"))
    return copyAccess(instruction);
  if (/^(ld|st)matrix\./.test(opcode)) return matrixAccess(opcode);
  const [, name, space] = /^(ld|st|atom|red)\..*?\b(global|shared|local)/.exec(opcode) ?? [];
  if (name === undefined || space === undefined) return undefined;
  const bytes = lanesBytes(opcode);
  if (space === "local") return { kind: "spill", bytes };
  return { kind: `${space as "global" | "shared"} ${directions[name] ?? "atomic"}`, bytes };
}

const directions: { readonly [name: string]: "load" | "store" | "atomic" } = {
  ld: "load",
  st: "store",
  atom: "atomic",
  red: "atomic",
};

/** From `.v4` and the type at the end. */
function lanesBytes(opcode: string): number {
  const vector = Number(/\.v(\d)\b/.exec(opcode)?.[1] ?? 1);
  const [, bits, pair] = /\.(?:[bsuf]|bf)(\d+)(x2)?$/.exec(opcode) ?? [];
  return (vector * Number(bits ?? 0) * (pair === undefined ? 1 : 2)) / 8;
}

function matrixAccess(opcode: string): MemoryAccess {
  const matrices = Number(/\.x(\d)\b/.exec(opcode)?.[1] ?? 1);
  return {
    kind: opcode.startsWith("ld") ? "shared load" : "shared store",
    bytes: 4 * matrices,
    matrix: opcode.includes(".trans") ? "transposed" : "plain",
  };
}

function copyAccess({ opcode, operands }: Instruction): MemoryAccess | undefined {
  if (/^cp\.async\.(bulk\.)?(commit|wait|mbarrier|prefetch)/.test(opcode)) return undefined;
  if (opcode.includes(".tensor")) return { kind: "tensor copy", bytes: undefined };
  if (opcode.includes(".bulk")) return { kind: "bulk copy", bytes: undefined };
  const size = operands[2];
  return { kind: "async copy", bytes: size?.kind === "integer" ? Number(size.value) : undefined };
}
