/**
 * `inlinePtx`: instructions that the language has no word for. The code is a text of PTX with the names of its registers put in,
 * and its meaning the same in the language, which the simulator takes; devices run the code, and tests hold both against each
 * other:
 *
 *   const [y] = inlinePtx({
 *     operands: [x],                                                   tiles of one shape, or scalars
 *     results: [f32],
 *     code: ([x], [y]) => `ex2.approx.ftz.f32 ${y}, ${x};`,            once for each element
 *     meaning: (x) => [x.exp2()],
 *   });
 *
 * With `layouts` the code runs once for each lane, on all registers that the lane has of every tile, in the order of the
 * layout's R bits: enough for shuffles and for products of tensor cores.
 */
import { dtypes, i32, isWide } from "../formats/dtype.ts";
import type { DType, DTypeName } from "../formats/dtype.ts";
import type { AnyOp, Value } from "../ir/node.ts";
import { accessesOf, onlyComputes, synchronizationsOf, traitsOf } from "../ir/traits.ts";
import { opName } from "../ir/op-names.ts";
import { walkOps } from "../ir/traverse.ts";
import { fitsShape, registersPerLane } from "../layout/algebra/register-layout.ts";
import { parseLayout } from "../layout/algebra/parse-layout.ts";
import { locatedAt, TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { isRecord, requireKnownOptions } from "../support/options.ts";
import { broadcastValue, joinShapes, shapeOf } from "./broadcast.ts";
import { wrongOperand } from "./operands.ts";
import { isDataObject } from "./elementwise.ts";
import { Scalar } from "./elementwise.ts";
import { isPositiveInteger } from "./sizes.ts";
import { Tile } from "./tile.ts";
import { constantValue } from "./constants.ts";
import { Ref } from "./ref.ts";
import { activeTrace, emit, emitValue, originOf } from "./trace.ts";
import { callBody, useValue, wrongKind } from "./traced.ts";

type Data = Tile | Scalar;

/** A result of code that runs once for each lane. */
export interface InlineTile<D extends DTypeName = DTypeName> {
  /** The format of its elements. */
  readonly dtype: DType<D>;
  /** The extents of its axes. */
  readonly shape: readonly number[];
}

type FormatOf<R> = R extends DType<infer D> ? D : R extends InlineTile<infer D> ? D : never;

/** The results: scalars where all operands are, else tiles. */
export type InlineResults<
  Operands extends readonly Data[],
  Results extends readonly (DType | InlineTile)[],
> = {
  readonly [I in keyof Results]: Results[I] extends InlineTile
    ? Tile<FormatOf<Results[I]>>
    : Operands[number] extends Scalar
      ? Scalar<FormatOf<Results[I]>>
      : Tile<FormatOf<Results[I]>>;
};

type Each<List extends readonly unknown[], T> = { readonly [I in keyof List]: T };

/** What the meaning is called with; that is no place to learn what the operands are. */
type Given<Operands extends readonly Data[]> = { readonly [I in keyof Operands]: Operands[I] };

/** Code for each element. */
export interface InlineElements<
  Operands extends readonly Data[],
  Results extends readonly DType[],
> {
  /** Tiles that broadcast to one shape, and scalars. */
  readonly operands: Operands;
  /** The number format of each result. */
  readonly results: Results;
  /** The code, of the names of a register for each operand and each result. */
  readonly code: (operands: Each<Operands, string>, results: Each<Results, string>) => string;
  /** What the results are, in the language. */
  readonly meaning: (...operands: Given<Operands>) => InlineResults<Operands, Results>;
}

/** Windows that code touches. */
export interface InlineMemory {
  /** Windows that it only reads. */
  readonly reads?: readonly Ref[];
  /** Windows that it writes, or updates. */
  readonly writes?: readonly Ref[];
}

/** The names of registers that hold the addresses of windows: of their first elements, of 64 bits in global memory, of 32 in shared. */
export interface InlineAddresses {
  /** Of the windows that the code reads. */
  readonly reads: readonly string[];
  /** Of those that it writes. */
  readonly writes: readonly string[];
}

/** Code for each lane. */
export interface InlineLanes<
  Operands extends readonly Data[],
  Results extends readonly InlineTile[],
> {
  /** The tiles and scalars that the instructions read. */
  readonly operands: Operands;
  /** The number format and the shape of each result. */
  readonly results: Results;
  /** Where each tile lies; an empty text for a scalar, which every lane has. */
  readonly layouts: {
    readonly operands: Each<Operands, string>;
    readonly results: Each<Results, string>;
  };
  /** The code, of the names of the lane's registers of each operand and each result. */
  readonly code: (
    operands: Each<Operands, readonly string[]>,
    results: Each<Results, readonly string[]>,
  ) => string;
  /** What the instructions compute, in TypeScript, for the simulator. */
  readonly meaning: (...operands: Given<Operands>) => InlineResults<Operands, Results>;
}

/** Code for each lane that touches memory. */
export interface InlineAccesses<
  Operands extends readonly Data[],
  Results extends readonly InlineTile[],
> extends Omit<InlineLanes<Operands, Results>, "code"> {
  /** The windows that the code touches. */
  readonly memory: InlineMemory;
  /** The code, of the names of the lane's registers of each operand and each result, and of those that hold addresses. */
  readonly code: (
    operands: Each<Operands, readonly string[]>,
    results: Each<Results, readonly string[]>,
    addresses: InlineAddresses,
  ) => string;
  /** What the instructions compute, and do to memory, in TypeScript, for the simulator. */
  readonly meaning: (...operands: Given<Operands>) => InlineResults<Operands, Results>;
}

/** Instructions of PTX on the registers of operands: for each element, or with layouts for each lane. */
export function inlinePtx<
  const Operands extends readonly Data[],
  const Results extends readonly InlineTile[],
>(options: InlineAccesses<Operands, Results>): InlineResults<Operands, Results>;
export function inlinePtx<
  const Operands extends readonly Data[],
  const Results extends readonly DType[],
>(options: InlineElements<Operands, Results>): InlineResults<Operands, Results>;
export function inlinePtx<
  const Operands extends readonly Data[],
  const Results extends readonly InlineTile[],
>(options: InlineLanes<Operands, Results>): InlineResults<Operands, Results>;
export function inlinePtx(options: UntypedOptions): readonly Data[] {
  const location = captureLocation();
  const names = ["operands", "results", "layouts", "memory", "code", "meaning"];
  requireKnownOptions("inlinePtx", options, names, "TW1033", location);
  const { operands, results } = options;
  if (!Array.isArray(operands))
    wrongKind("the operands of inlinePtx", "a list of tiles and scalars", operands, location);
  if (options.memory !== undefined) return inMemory(options, options.memory, location);
  if (!Array.isArray(results) || results.length === 0)
    wrongKind("the results of inlinePtx", "a list of number formats", results, location);
  const given = givenOperands(operands, location);
  const plan =
    options.layouts === undefined
      ? planElements(given, results, location)
      : planLanes(given, results, options.layouts, location);
  const code = textOf(options.code, plan, location);
  const meaning = meaningOf(options.meaning, plan.sources, location);
  const attributes = {
    code,
    types: plan.types,
    ...(plan.layouts !== undefined && { layouts: plan.layouts }),
  };
  return emit("inline_ptx", { sources: plan.sources, meaning }, attributes, location).map((value) =>
    dataObject(value, location),
  );
}

function givenOperands(operands: readonly unknown[], location: Location): readonly Value[] {
  return operands.map((operand) =>
    isDataObject(operand)
      ? useValue(operand, location)
      : wrongOperand("inlinePtx", operand, location),
  );
}

/** Code that touches memory: addresses are operands too, and the simulator does what the meaning does, where it stands. */
function inMemory(
  { operands, results, layouts, code: write, meaning }: UntypedOptions,
  memory: unknown,
  location: Location,
): readonly Data[] {
  if (!Array.isArray(results))
    wrongKind("the results of inlinePtx", "a list of tiles", results, location);
  if (!isRecord(layouts))
    wrongKind("the layouts of inlinePtx with memory", "{ operands, results }", layouts, location);
  const windows = (name: "reads" | "writes"): readonly Value[] => {
    const list: unknown = isRecord(memory) ? (memory[name] ?? []) : undefined;
    if (!Array.isArray(list) || !list.every((item) => item instanceof Ref))
      return wrongKind(`memory.${name} of inlinePtx`, "a list of windows", list, location);
    return list.map((item) => useValue(item, location));
  };
  const [reads, writes] = [windows("reads"), windows("writes")];
  const given = givenOperands(operands, location);
  const plan = planLanes(given, results, layouts, location);
  const tiles = results.map((result) => requireTile(result, location));
  const addresses = [...reads, ...writes].map((window) => addressOf(window, location));
  const names = addresses.map((_, at) => `%in${given.length + at}_0`);
  const places = { reads: names.slice(0, reads.length), writes: names.slice(reads.length) };
  const stated = plan.layouts ?? [];
  const attributes = {
    code: textOf(write, plan, location, places),
    types: plan.types,
    layouts: [
      ...stated.slice(0, given.length),
      ...addresses.map(() => ""),
      ...stated.slice(given.length),
    ],
  };
  const meant = simulatedMeaning(meaning, given, tiles, location);
  const all = { sources: [...given, ...addresses], reads, writes, meaning: meant };
  return emit("inline_ptx_memory", all, attributes, location).map((value) =>
    dataObject(value, location),
  );
}

/** The address of the first element of a window. */
function addressOf(window: Value, location: Location): Value {
  const { type } = window;
  if (type.kind !== "ref") throw new Error("an address of what is no window");
  const zero = constantValue(i32, [], 0, location);
  const axes = type.shape.map((_, axis) => axis);
  const ref =
    axes.length === 0
      ? window
      : emitValue(
          "slice_ref",
          { ref: window, offsets: axes.map(() => zero) },
          { sizes: axes.map(() => 1), dropped: axes },
          location,
        );
  return emitValue("address_of", { ref }, {}, location);
}

/** What the results are, by a branch that the simulator alone takes. */
function simulatedMeaning(
  meaning: unknown,
  given: readonly Value[],
  results: readonly InlineTile[],
  location: Location,
): readonly Value[] {
  const trace = activeTrace("inlinePtx", location);
  const condition = emitValue("is_simulated", {}, {}, location);
  const label = "the meaning of inlinePtx";
  const then = trace.region(label, [], location, () => meaningOf(meaning, given, location, true));
  const otherwise = trace.region(label, [], location, () =>
    results.map(({ dtype, shape }) => {
      const zero = dtype.kind === "bool" ? false : isWide(dtype) ? 0n : 0;
      return constantValue(dtype, shape, zero, location);
    }),
  );
  return trace.add("if", { condition }, {}, { then, otherwise }, location);
}

interface UntypedOptions {
  readonly operands: readonly unknown[];
  readonly results: readonly unknown[];
  readonly layouts?: unknown;
  readonly memory?: unknown;
  readonly code: unknown;
  readonly meaning: unknown;
}

/** What the op is given, and the names of registers that the code is. */
interface Plan {
  readonly sources: readonly Value[];
  readonly types: readonly string[];
  readonly layouts: readonly string[] | undefined;
  readonly operandNames: readonly unknown[];
  readonly resultNames: readonly unknown[];
}

function dataObject(value: Value, location: Location): Data {
  const made = originOf(value, location);
  return value.type.kind === "tile" ? new Tile(made) : new Scalar(made);
}

function isDType(item: unknown): item is DType {
  return Object.values<unknown>(dtypes).includes(item);
}

function planElements(
  given: readonly Value[],
  results: readonly unknown[],
  location: Location,
): Plan {
  const shape = joinShapes("inlinePtx", given.map(shapeOf), location);
  const types = results.map((result) =>
    isDType(result)
      ? result.name
      : wrongKind("a result of inlinePtx", "a number format", result, location),
  );
  return {
    sources: given.map((value) => broadcastValue(value, shape, location)),
    types,
    layouts: undefined,
    operandNames: given.map((_, position) => `%in${position}`),
    resultNames: types.map((_, position) => `%out${position}`),
  };
}

function planLanes(
  given: readonly Value[],
  results: readonly unknown[],
  stated: unknown,
  location: Location,
): Plan {
  const layouts = isRecord(stated) ? stated : {};
  const listed = (name: string, count: number): readonly string[] => {
    const list: unknown = layouts[name];
    const isList = Array.isArray(list) && list.length === count && list.every(isText);
    return isList
      ? (list as readonly string[])
      : wrongKind(
          `the layouts of ${name} of inlinePtx`,
          `${count} texts of layouts`,
          list,
          location,
        );
  };
  const ofOperands = listed("operands", given.length);
  const ofResults = listed("results", results.length);
  const tiles = results.map((result) => requireTile(result, location));
  const registers = (prefix: string, shape: readonly number[], text: string, position: number) =>
    Array.from(
      { length: text === "" ? 1 : countRegisters(text, shape, location) },
      (_, at) => `%${prefix}${position}_${at}`,
    );
  return {
    sources: given,
    types: tiles.map(({ dtype, shape }) => `${dtype.name}[${shape.join(", ")}]`),
    layouts: [...ofOperands, ...ofResults],
    operandNames: given.map((value, at) =>
      registers("in", shapeOf(value), value.type.kind === "tile" ? (ofOperands[at] ?? "") : "", at),
    ),
    resultNames: tiles.map(({ shape }, at) => registers("out", shape, ofResults[at] ?? "", at)),
  };
}

function isText(item: unknown): boolean {
  return typeof item === "string";
}

function requireTile(result: unknown, location: Location): InlineTile {
  const isTile =
    isRecord(result) &&
    isDType(result["dtype"]) &&
    Array.isArray(result["shape"]) &&
    result["shape"].every(isPositiveInteger);
  if (!isTile)
    return wrongKind("a result of inlinePtx", "{ dtype, shape } of a tile", result, location);
  return result as unknown as InlineTile;
}

function countRegisters(text: string, shape: readonly number[], location: Location): number {
  const layout = locatedAt(location, () => parseLayout(text));
  if (fitsShape(layout, shape)) return registersPerLane(layout, shape);
  throw new TilewrightError({
    code: "TW6102",
    message: `${layout.text} spreads more axes than a tile of shape [${shape.join(", ")}] has`,
    location,
    expected: `a layout of at most ${shape.length} axes`,
    found: layout.text,
  });
}

function textOf(
  code: unknown,
  plan: Plan,
  location: Location,
  addresses: InlineAddresses = { reads: [], writes: [] },
): string {
  const write = code as (
    operands: readonly unknown[],
    results: readonly unknown[],
    addresses: InlineAddresses,
  ) => unknown;
  const { operandNames, resultNames } = plan;
  const label = "the code of inlinePtx";
  const text = callBody(label, location, write, operandNames, resultNames, addresses);
  return typeof text === "string"
    ? text
    : wrongKind("the code of inlinePtx", "a function that gives a text", text, location);
}

/** Whether the op touches memory and does nothing else that others see. */
function accessesMemory(op: AnyOp): boolean {
  const isAsync = accessesOf(op).some(({ proxy, done }) => proxy === "async" || done !== "at once");
  return accessesOf(op).length > 0 && !isAsync && synchronizationsOf(op).length === 0;
}

/** Traces what the results are; nothing of it may act, since devices leave it out. */
function meaningOf(
  meaning: unknown,
  sources: readonly Value[],
  location: Location,
  accesses = false,
): readonly Value[] {
  const trace = activeTrace("inlinePtx", location);
  const start = trace.position;
  const compute = meaning as (...operands: readonly Data[]) => unknown;
  const operands = sources.map((value) => dataObject(value, location));
  const found = callBody("the meaning of inlinePtx", location, compute, ...operands);
  if (!Array.isArray(found) || !found.every(isDataObject))
    return wrongKind("the meaning of inlinePtx", "a list of a result each", found, location);
  const ops = trace.opsSince(start);
  walkOps({ parameters: [], ops }, (op) => {
    if (onlyComputes(op) || traitsOf(op).may === "as its regions") return;
    if (accesses && accessesMemory(op)) return;
    throw new TilewrightError({
      code: "TW1040",
      message: `the meaning of inlinePtx has ${opName(op)} in it`,
      location: op.location,
      expected: "what only computes",
      found: opName(op),
    });
  });
  return found.map((item) => useValue(item, location));
}
