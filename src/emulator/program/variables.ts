/**
 * Gives variables their places: module variables that the entry's functions use, and every function's own.
 *
 *   .shared .b8 a[40];  .extern .shared .align 1024 .b8 pool[];
 *   shared memory   | a: 0 … 39 | padding | pool: 1024 … (the launch's dynamic bytes)
 */
import { implicitVariables } from "./implicit-memory.ts";
import type { Operand, PtxFunction, PtxModule, Variable } from "../../ptx/module.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { unknownLocation } from "../../support/location.ts";
import type { FlatBody } from "./flatten.ts";
import { bitsOf } from "./registers.ts";
import { Area, variableBytes } from "./symbols.ts";
import type { VariablePlace } from "./symbols.ts";

/** A function's body flattened, with the places of what it declares. */
export interface LoadedFunction {
  readonly declaration: PtxFunction;
  readonly number: number;
  readonly flat: FlatBody;
}

export interface PlacedConstant {
  readonly variable: Variable;
  readonly offset: number;
}

export interface VariableMap {
  readonly places: ReadonlyMap<Variable, VariablePlace>;
  readonly globals: readonly Variable[];
  readonly constants: readonly PlacedConstant[];
  readonly constantBytes: number;
  readonly staticSharedBytes: number;
  readonly localBytes: ReadonlyMap<PtxFunction, number>;
  readonly parameterOffsets: readonly number[];
  readonly parameterBytes: number;
  /** What is used without being declared. */
  readonly implicit: readonly Variable[];
}

/** What a lane may have, and a module's ten banks of constants, on every GPU. */
const mostLocalBytes = 512 * 1024;
const mostConstantBytes = 640 * 1024;

function requireRoom({ bytes }: Area, most: number, message: string): void {
  if (bytes <= most) return;
  throw new TilewrightError({
    code: "TW8003",
    message,
    location: unknownLocation,
    expected: `at most ${most} bytes`,
    found: `${bytes} bytes`,
  });
}

/** Visits the names that an operand mentions. */
export function visitSymbols(operand: Operand, visit: (name: string) => void): void {
  switch (operand.kind) {
    case "symbol":
      visit(operand.name);
      return;
    case "address":
      visitSymbols(operand.base, visit);
      for (const coordinate of operand.coordinates ?? []) visitSymbols(coordinate, visit);
      return;
    case "vector":
    case "list":
      for (const element of operand.elements) visitSymbols(element, visit);
      return;
    case "pair":
      visitSymbols(operand.first, visit);
      visitSymbols(operand.second, visit);
      return;
    case "negated":
      visitSymbols(operand.operand, visit);
      return;
    case "register":
    case "integer":
    case "float":
    case "not":
    case "discard":
    case "element":
  }
}

export function placeVariables(
  module: PtxModule,
  entry: PtxFunction,
  functions: readonly LoadedFunction[],
  names: ReadonlySet<string>,
): VariableMap {
  const places = new Map<Variable, VariablePlace>();
  const globals: Variable[] = [];
  const constants: PlacedConstant[] = [];
  const shared = new Area();
  const dynamic: Variable[] = [];
  const constant = new Area();
  const place = (variable: Variable): void => {
    const { space } = variable;
    if (space === "shared" && (variable.linkage === "extern" || variable.count === 0))
      dynamic.push(variable);
    else if (space === "shared") places.set(variable, { space, offset: shared.add(variable) });
    else if (space === "const") {
      const offset = constant.add(variable);
      constants.push({ variable, offset });
      places.set(variable, { space, offset });
    } else if (space === "global") {
      places.set(variable, { space, offset: globals.length });
      globals.push(variable);
    }
  };
  for (const declaration of module.declarations)
    if (declaration.kind === "variable" && names.has(declaration.name)) place(declaration);
  const implicit = implicitVariables(names);
  implicit.forEach(place);
  const localBytes = new Map<PtxFunction, number>();
  let parameters: Area | undefined;
  for (const { declaration, flat } of functions) {
    const isEntry = declaration === entry;
    const stack = new Area();
    const formal = isEntry ? new Area() : stack;
    if (isEntry) parameters = formal;
    for (const variable of [...declaration.results, ...declaration.parameters])
      places.set(variable, { space: isEntry ? "param" : "local", offset: formal.add(variable) });
    for (const scope of flat.scopes)
      for (const variable of scope.variables.values()) {
        if (places.has(variable)) continue;
        if (variable.space === "local" || variable.space === "param")
          places.set(variable, { space: "local", offset: stack.add(variable) });
        else place(variable);
      }
    requireRoom(
      stack,
      mostLocalBytes,
      `${declaration.name} needs more local memory than a thread has`,
    );
    localBytes.set(declaration, stack.bytes);
  }
  requireRoom(constant, mostConstantBytes, "the module needs more constant memory than there is");
  for (const variable of dynamic) shared.align(variable.alignment ?? bitsOf(variable.type) / 8);
  for (const variable of dynamic) places.set(variable, { space: "shared", offset: shared.bytes });
  return {
    places,
    globals,
    constants,
    constantBytes: constant.bytes,
    staticSharedBytes: shared.bytes,
    localBytes,
    parameterOffsets: entry.parameters.map((variable) => places.get(variable)?.offset ?? 0),
    parameterBytes: parameters?.bytes ?? 0,
    implicit,
  };
}

/** What a variable holds at the start; zeros where nothing is said. */
export function initialBytes(
  variable: Variable,
  addressOf: (name: string, offset: number) => bigint,
): Uint8Array {
  const bytes = new Uint8Array(variableBytes(variable));
  const view = new DataView(bytes.buffer);
  const size = bitsOf(variable.type) / 8;
  (variable.initial ?? []).forEach((operand, position) => {
    const value = initialValue(operand, addressOf);
    for (let byte = 0; byte < size; byte++)
      view.setUint8(position * size + byte, Number((value >> BigInt(8 * byte)) & 0xffn));
  });
  return bytes;
}

function initialValue(
  operand: Operand,
  addressOf: (name: string, offset: number) => bigint,
): bigint {
  if (operand.kind === "integer") return BigInt.asUintN(64, BigInt(operand.value));
  if (operand.kind === "float") return BigInt.asUintN(64, BigInt(operand.bits));
  if (operand.kind === "symbol") return addressOf(operand.name, operand.offset);
  if (operand.kind === "negated")
    return BigInt.asUintN(64, -initialValue(operand.operand, addressOf));
  throw new Error(`${operand.kind} operand as an initial value`);
}
