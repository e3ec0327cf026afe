/**
 * Kernels around single sequences of PTX: each lane loads operands, computes what is probed, and stores the
 * results. An operand is either a lone element or the words of a piece of a tile.
 *
 *   element   one element a lane; narrow integers are stored extended, as lone registers hold them
 *   words     as many elements a lane as make whole words of every format, packed in memory
 */
import type { DType } from "../src/formats/dtype.ts";
import { Code, SourceFiles } from "../src/ptx/function-builder.ts";
import type { Emission } from "../src/ptx/emit/elementwise/emission.ts";
import { elementClass, slotsOf, wordClass } from "../src/ptx/emit/values.ts";
import type { PtxFunction, PtxModule, Register, Variable } from "../src/ptx/module.ts";
import { address, integer, symbol } from "../src/ptx/operands.ts";
import { ptxVersion } from "../src/ptx/version.ts";
import type { Target } from "../src/targets/target.ts";

export interface Probe {
  readonly name: string;
  readonly level: "element" | "words";
  readonly operands: readonly DType[];
  readonly result: DType;
  /** One register an operand for elements; all words of the operands, one after the other. */
  readonly emit: (
    emission: Emission,
    operands: readonly (readonly Register[])[],
  ) => readonly Register[];
}

/** Elements that a lane takes. */
export function probeWidth({ level, operands, result }: Probe): number {
  return level === "element" ? 1 : Math.max(...[...operands, result].map(slotsOf));
}

export const probeLanes = 128;

/** A module with an entry for each probe. */
export function probeModule(target: Target, probes: readonly Probe[]): PtxModule {
  return moduleOf(
    target,
    probes.map((probe) => ({ name: probe.name, probes: [probe] })),
  );
}

/** A module with all probes one after the other in few entries: for the assembler, who is quicker with it. */
export function joinedModule(target: Target, probes: readonly Probe[], size = 100): PtxModule {
  const chunks = Array.from({ length: Math.ceil(probes.length / size) }, (_, index) => ({
    name: `chunk${index}`,
    probes: probes.slice(index * size, (index + 1) * size),
  }));
  return moduleOf(target, chunks);
}

interface Entry {
  readonly name: string;
  readonly probes: readonly Probe[];
}

function moduleOf(target: Target, entries: readonly Entry[]): PtxModule {
  const declarations = entries.map((entry) => probeFunction(target, entry));
  const version = declarations
    .map(({ body }) => ptxVersion(target.name, body ?? []))
    .reduce((left, right) => (Number(left) > Number(right) ? left : right));
  return { version, target: target.name, files: [], declarations };
}

function probeFunction(target: Target, { name, probes }: Entry): PtxFunction {
  const code = new Code(new SourceFiles());
  const operandCount = Math.max(...probes.map(({ operands }) => operands.length));
  const names = [
    "result",
    ...Array.from({ length: operandCount }, (_, index) => operandName(index)),
  ];
  const parameters = names.map((each): Variable => ({
    kind: "variable",
    space: "param",
    name: each,
    type: "b64",
  }));
  const block = code.make("b32", "mov.u32", symbol("%ctaid.x"));
  const lane = code.make("b32", "mov.u32", symbol("%tid.x"));
  const index = code.make("b32", "mad.lo.u32", block, integer(probeLanes), lane);
  for (const probe of probes) emitProbe(code, target, probe, index);
  code.emit("ret");
  return {
    kind: "function",
    entry: true,
    name,
    linkage: "visible",
    results: [],
    parameters,
    directives: [],
    body: code.statements,
  };
}

function operandName(index: number): string {
  return `operand${index}`;
}

function emitProbe(code: Code, target: Target, probe: Probe, index: Register): void {
  const { level, result } = probe;
  const width = probeWidth(probe);
  const place = (name: string, dtype: DType): Register => {
    const loaded = code.make("b64", "ld.param.b64", address(symbol(name)));
    const base = code.make("b64", "cvta.to.global.u64", loaded);
    const bytes = memoryBytes(level, dtype, width);
    return code.make("b64", "mad.wide.u32", index, integer(bytes), base);
  };
  const operands = probe.operands.map((dtype, number) =>
    loadOperand(code, level, dtype, width, place(operandName(number), dtype)),
  );
  const results = probe.emit({ code, target }, operands);
  storeResult(code, level, result, place("result", result), results);
}

/** Bytes that a lane's elements of a format take in the probe's memory. */
export function memoryBytes(level: Probe["level"], dtype: DType, width: number): number {
  if (dtype.kind === "bool") return width;
  return level === "element" ? Math.max(4, dtype.bits / 8) : (width * dtype.bits) / 8;
}

function loadOperand(
  code: Code,
  level: Probe["level"],
  dtype: DType,
  width: number,
  from: Register,
): readonly Register[] {
  const type = level === "element" ? elementClass(dtype) : wordClass(dtype);
  const count = width / (level === "element" ? 1 : slotsOf(dtype));
  return Array.from({ length: count }, (_, index) => {
    if (type === "pred") {
      const byte = code.make("b32", "ld.global.u8", address(from, index));
      return code.make("pred", "setp.ne.u32", byte, integer(0));
    }
    const size = type === "b64" ? 8 : 4;
    return code.make(type, `ld.global.${type}`, address(from, size * index));
  });
}

function storeResult(
  code: Code,
  level: Probe["level"],
  dtype: DType,
  to: Register,
  results: readonly Register[],
): void {
  const type = level === "element" ? elementClass(dtype) : wordClass(dtype);
  results.forEach((result, index) => {
    if (type === "pred") {
      const byte = code.make("b32", "selp.b32", integer(1), integer(0), result);
      code.emit("st.global.b8", [address(to, index), byte]);
    } else {
      code.emit(`st.global.${type}`, [address(to, (type === "b64" ? 8 : 4) * index), result]);
    }
  });
}
