/**
 * The kernel of a group: a grid over the elements of the results, a run of points a block, the root's rule at these
 * points, and a store. Kernels of equal groups are one kernel, whatever their ops are called, so that twelve equal
 * layers compile once.
 */
import type { DType } from "../../formats/dtype.ts";
import { i32 } from "../../formats/dtype.ts";
import { tensor, cdiv, iota, kernel, slice } from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { activeTrace } from "../../lang/trace.ts";
import type { Caches } from "../../targets/target.ts";
import { isElementwise } from "../ops/elementwise-kinds.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { operandsOf, opsWithin, regionsOf } from "../ops/traverse.ts";
import { isTensor, sizeOf, typeText } from "../ops/types.ts";
import { PointContext } from "./context.ts";
import type { AnyPointRule } from "./context.ts";
import type { UpdateInPlace } from "./lowering.ts";
import { tileOfIndex } from "./points/indices.ts";
import { Points, stridesOf, sumOfProducts } from "./points/points.ts";
import { loweringOf, updateOf } from "./record.ts";
import { cannotRun, dtypeOf, tensorTypeOf } from "./storage.ts";
import { blockElements, leastColumns, rowTilesOf } from "./tiled/rows-of-points.ts";
import type { RowTiles } from "./tiled/rows-of-points.ts";
import type { TiledKernel } from "./tiled/tiled.ts";

/** What a kernel computes. */
export interface Group {
  /** A name for the kernel, such as `reduce`. */
  readonly title: string;
  /** The ops computed in the kernel, each after those it uses. */
  readonly ops: readonly AnyGraphOp[];
  readonly inputs: readonly GraphValue[];
  /** Values of one shape. */
  readonly results: readonly GraphValue[];
  /** Results at points, where that is not the rule of their op. */
  readonly rule?: ((points: Points, context: PointContext) => readonly Tile[]) | undefined;
  /** A grid and a body of its own instead. */
  readonly tiled?: TiledKernel | undefined;
  /** The op whose regions that rule runs. */
  readonly source?: AnyGraphOp | undefined;
  /** Tells such rules apart. */
  readonly key: string;
  /** Inputs in whose memory results are written, by the results' places; none of `inputs`. */
  readonly inPlace?: InPlace | undefined;
}

/** Values that lie where a result does, by the results' places. */
export type InPlace = ReadonlyMap<number, readonly GraphValue[]>;

const nothing: InPlace = new Map();

/** The rule of an op at points, of maps and folds. */
export const applyRule: AnyPointRule = (op, points, context) => {
  const lowering = loweringOf(op);
  if (lowering.form === "map" || lowering.form === "fold")
    return lowering.rule(op as never, points, context);
  throw cannotRun(op, "it stands where only elementwise ops can");
};

const kernels = new Map<string, KernelDefinition>();

/** Kernels that are remembered; plans hold on to theirs, so the oldest are forgotten without loss but of sharing. */
const mostKernels = 2048;

/** The kernel of a group, made once for all groups with the same text; on a CPU with tiles for its caches. */
export function kernelOf(group: Group, caches?: Caches): KernelDefinition {
  const text = `${caches === undefined ? "" : JSON.stringify(caches)}${groupText(group)}`;
  const known = kernels.get(text);
  if (known !== undefined) return known;
  const made = makeKernel(group, caches);
  const [oldest] = kernels.keys();
  if (kernels.size >= mostKernels && oldest !== undefined) kernels.delete(oldest);
  kernels.set(text, made);
  return made;
}

function flatArray(value: GraphValue) {
  return tensor(dtypeOf(value) as DType, [sizeOf(tensorTypeOf(value).shape)]);
}

interface KernelParts {
  readonly [name: string]: unknown;
}

function makeKernel(group: Group, caches: Caches | undefined): KernelDefinition {
  const { inputs, results, ops, source, tiled, inPlace = nothing } = group;
  const all = [...ops, ...(source === undefined ? [] : [source])];
  const definitions = new Map(all.flatMap(definitionsOf));
  const update = updateWithin(group);
  const run = runOf(update?.shape ?? shapeOfResults(group), caches);
  const rows = update === undefined ? rowTilesOfMap(group, caches) : undefined;
  const arrays = results.map((value, i) => [outputName(i), flatArray(value)] as const);
  const spec = {
    name: nameOf(group),
    grid: tiled?.grid ?? { block: rows?.blocks ?? cdiv(run.count, run.width) },
    inputs: Object.fromEntries(inputs.map((value, i) => [inputName(i), flatArray(value)])),
    outputs: Object.fromEntries(arrays.filter((_, i) => !inPlace.has(i))),
    inouts: Object.fromEntries(arrays.filter((_, i) => inPlace.has(i))),
  };
  return kernel(spec, (parts) => {
    const named = parts as unknown as KernelParts;
    const refs = new Map(inputs.map((value, i) => [value, named[inputName(i)] as Ref]));
    const outputs = results.map((_, i) => named[outputName(i)] as Ref);
    for (const [place, values] of inPlace)
      for (const value of values) refs.set(value, outputs[place] as Ref);
    const context = new PointContext({ refs, definitions, rule: applyRule });
    if (tiled === undefined) {
      const block = named["block"] as Scalar<"i32">;
      const start = block.mul(run.width);
      if (rows !== undefined) storeRows(group, context, rows, block, outputs);
      else if (update === undefined) storeRun(group, context, run, start, outputs);
      else storeUpdate(update, context, run, start, outputs);
      activeTrace(group.title).forgetConditions();
      return;
    }
    tiled.body({
      context,
      outputs,
      ref: (value) => {
        const found = refs.get(value);
        if (found === undefined) throw new Error(`value ${value.id} is not loaded here`);
        return found;
      },
      at: (axis) => named[axis] as Scalar<"i32">,
    });
    activeTrace(group.title).forgetConditions();
  }) as unknown as KernelDefinition;
}

/**
 * Inputs of which each element is read only where the result of its own place is made: such an input may lie where a
 * result is written.
 */
export function pointwiseInputs({ ops, inputs, rule, tiled }: Group): readonly GraphValue[] {
  if (rule !== undefined || tiled !== undefined) return [];
  const isElsewhere = (op: AnyGraphOp): boolean => !isElementwise(op.kind);
  // Backwards: whatever an op needs that looks elsewhere is looked at elsewhere.
  const elsewhere = new Set<GraphValue>();
  for (const op of [...ops].reverse()) {
    const within = regionsOf(op).flatMap((region) => [...opsWithin(region)]);
    const needed = [...operandsOf(op), ...within.flatMap(operandsOf)];
    if (isElsewhere(op) || op.results.some((value) => elsewhere.has(value)))
      for (const value of needed) elsewhere.add(value);
  }
  return inputs.filter((value) => !elsewhere.has(value));
}

/**
 * What the last op of a group changes of an input in whose memory its result may lie. Whatever else the group computes reads that
 * input nowhere: other elements of it may be changed already.
 */
export function updateOfGroup({
  ops,
  inputs,
  results,
  rule,
  tiled,
}: Group): UpdateInPlace | undefined {
  const [result, ...others] = results;
  const root = ops.at(-1);
  if (rule !== undefined || tiled !== undefined || root === undefined) return undefined;
  if (others.length > 0 || root.results[0] !== result) return undefined;
  const update = updateOf(root);
  if (update === undefined || !inputs.includes(update.operand)) return undefined;
  if (sizeOf(update.shape) === 0) return undefined;
  const uses = ops.flatMap(usesWithin).filter((value) => value === update.operand);
  return uses.length === 1 ? update : undefined;
}

/** What an op and those of its regions use. */
function usesWithin(op: AnyGraphOp): readonly GraphValue[] {
  const within = regionsOf(op).flatMap((region) => [...opsWithin(region)]);
  return [...operandsOf(op), ...within.flatMap(operandsOf)];
}

/** The update that a group is, where its result lies in the operand's memory. */
function updateWithin(group: Group): UpdateInPlace | undefined {
  const [value] = group.inPlace?.get(0) ?? [];
  if (value === undefined) return undefined;
  const update = updateOfGroup({ ...group, inputs: [...group.inputs, value] });
  return update?.operand === value ? update : undefined;
}

function nameOf(group: Group): string {
  if (group.tiled !== undefined) return `${group.title}_${group.tiled.title}`;
  return updateWithin(group) === undefined ? group.title : `${group.title}_in_place`;
}

function shapeOfResults({ results }: Group): readonly number[] {
  const [first] = results;
  if (first === undefined) throw new Error("a kernel has results");
  return tensorTypeOf(first).shape;
}

/** How many elements are made, and how many of them a block makes. */
function runOf(shape: readonly number[], caches: Caches | undefined): Run {
  const count = sizeOf(shape);
  return { shape, count, width: blockElements(count, caches) };
}

interface Run {
  readonly shape: readonly number[];
  readonly count: number;
  readonly width: number;
}

/**
 * The tiles of a group of maps that asks for operands elsewhere than at its own points: by rows, indices are computed once a row. The columns are those
 * of the shortest rows that stay together, so that heads which a reshape cuts off are rows of their own.
 */
function rowTilesOfMap(group: Group, caches: Caches | undefined): RowTiles | undefined {
  const { ops, rule } = group;
  const isOfMaps = ops.every((op) => loweringOf(op).form === "map");
  if (rule !== undefined || !isOfMaps || !ops.some(isElsewhere)) return undefined;
  const shape = shapeOfResults(group);
  const columns = ops
    .flatMap(innerCuts)
    .reduce(
      (least, cut) => (cut >= leastColumns && least % cut === 0 ? cut : least),
      shape.at(-1) ?? 1,
    );
  return rowTilesOf(shape, columns, caches);
}

/** Where an op cuts its innermost axis: a reshape into rows, a concatenation between its parts. */
function innerCuts(op: AnyGraphOp): readonly number[] {
  const innermost = ({ type }: GraphValue): readonly number[] =>
    isTensor(type) ? type.shape.slice(-1) : [];
  if (op.kind === "stablehlo.reshape")
    return [op.operands.operand, ...op.results].flatMap(innermost);
  if (op.kind !== "stablehlo.concatenate") return [];
  const [result] = op.results;
  const isInner =
    result !== undefined && tensorTypeOf(result).shape.length - 1 === op.attributes.dimension;
  return isInner ? op.operands.inputs.flatMap(innermost) : [];
}

/** Whether an op asks for elements at other points than its own, and not for the same one at all of them. */
function isElsewhere(op: AnyGraphOp): boolean {
  if (isElementwise(op.kind) || op.kind === "stablehlo.reshape") return false;
  return operandsOf(op).some(({ type }) => isTensor(type) && sizeOf(type.shape) > 1);
}

function storeRows(
  { results }: Group,
  context: PointContext,
  rows: RowTiles,
  block: Scalar<"i32">,
  outputs: readonly Ref[],
): void {
  const points = rows.pointsOf(block);
  for (const [i, value] of results.entries())
    rows.store(outputs[i], context.element(value, points), block);
}

/** Stores results at a run of points. */
function storeRun(
  group: Group,
  context: PointContext,
  { shape, width }: Run,
  start: Scalar<"i32">,
  outputs: readonly Ref[],
): void {
  const points = pointsOfRun(shape, start, width);
  const tiles =
    group.rule === undefined
      ? group.results.map((value) => context.element(value, points))
      : group.rule(points, context);
  for (const [i, tile] of tiles.entries())
    outputs[i]?.at(slice(start, width)).store(tile.broadcastTo([width]));
}

function pointsOfRun(shape: readonly number[], start: Scalar<"i32">, width: number): Points {
  return shape.length === 0 ? Points.run([1], 0, 1).scalar() : Points.run(shape, start, width);
}

/** Stores the elements of a window, a run of them a block, into the array that they are a part of. */
function storeUpdate(
  { operand, shape, rule }: UpdateInPlace,
  context: PointContext,
  { count, width }: Run,
  start: Scalar<"i32">,
  [output]: readonly Ref[],
): void {
  const { axes, value, where } = rule(pointsOfRun(shape, start, width), context);
  if (where === false) return;
  const isLast = count % width === 0 ? [] : [iota(i32, [width], { axis: 0 }).add(start).lt(count)];
  const conditions = [...isLast, ...(where === true ? [] : [where.broadcastTo([width])])];
  const [first, ...others] = conditions;
  const position = sumOfProducts(axes, stridesOf(tensorTypeOf(operand).shape));
  output
    ?.at(tileOfIndex(position).broadcastTo([width]))
    .store(
      value.broadcastTo([width]),
      first === undefined ? {} : { where: others.reduce((all, each) => all.and(each), first) },
    );
}

/** The names of a kernel's arrays. */
export function inputName(at: number): string {
  return `in${at}`;
}

export function outputName(at: number): string {
  return `out${at}`;
}

/** An op's results and those of the ops in its regions, each with its op. */
function definitionsOf(op: AnyGraphOp): readonly (readonly [GraphValue, AnyGraphOp])[] {
  const within = regionsOf(op).flatMap((region) => [...opsWithin(region)]);
  return [op, ...within].flatMap((each) => each.results.map((value) => [value, each] as const));
}

/** Numbers values in the order in which they are met. */
class Names {
  readonly #names = new Map<GraphValue, string>();

  of(value: GraphValue): string {
    const known = this.#names.get(value);
    if (known !== undefined) return known;
    const name = `%${this.#names.size}:${typeText(value.type)}`;
    this.#names.set(value, name);
    return name;
  }
}

/** A text that is the same for groups that compute the same. */
function groupText({ title, ops, inputs, results, source, key, inPlace }: Group): string {
  const names = new Names();
  return [
    `${title} ${key}`,
    inputs.map((value) => names.of(value)).join(),
    ...Array.from(
      inPlace ?? [],
      ([place, values]) => `${place} in ${values.map((value) => names.of(value)).join()}`,
    ),
    ...ops.map((op) => opText(op, names)),
    ...(source === undefined ? [] : [opText(source, names)]),
    results.map((value) => names.of(value)).join(),
  ].join("\n");
}

function opText(op: AnyGraphOp, names: Names): string {
  const operands = operandsOf(op).map((value) => names.of(value));
  const attributes = JSON.stringify(op.attributes, plainAttribute);
  const regions = regionsOf(op).map((region) => regionText(region, names));
  const results = op.results.map((value) => names.of(value));
  return `${results.join()}=${op.kind}(${operands.join()})${attributes}${regions.join()}`;
}

function regionText({ parameters, ops, results }: GraphRegion, names: Names): string {
  const inner = ops.map((op) => opText(op, names));
  const ends = [parameters, results].map((values) => values.map((value) => names.of(value)).join());
  return `{${ends[0]}:${inner.join(";")}:${ends[1]}}`;
}

/** Attributes as JSON has them; typed arrays would otherwise lose −0, NaN and 64 bits. */
function plainAttribute(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (value instanceof Map) return [...(value as Map<unknown, unknown>)];
  if (!ArrayBuffer.isView(value)) return value;
  const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return `${value.constructor.name}:${bytes.join()}`;
}
