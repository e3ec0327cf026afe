/**
 * The scan kernel for many rows: a block goes through its rows piece by piece and carries the prefix. Where rows are fewer than
 * processors, several blocks share a row (`grid-cooperative-scan.ts`).
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, HostValue } from "../../formats/dtype.ts";
import { cdiv, constant, full, iota, kernel, loop } from "../../lang/index.ts";
import type { TensorSpec, Index, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import type { ReduceTiles, StatePart } from "../reduce/reducer.ts";
import { storeWhole } from "../support/strided.ts";
import type { StridedForm } from "../support/strided.ts";

/** How a scan is carried out. */
export interface ScanConfiguration {
  /** Rows of a block, and columns of a piece. */
  readonly rows: number;
  /** Columns of a piece. */
  readonly columns: number;
  /** Blocks that share a row. */
  readonly workers: number;
  /** Where TMA moves pieces through a pipeline in shared memory: its stages, and the waves by which aggregates are ahead of results. */
  readonly pipeline?: { readonly stages: number; readonly lookahead: number };
}

/** An array of a scan; its place in the list is its place in the form. */
export interface ScanArray {
  readonly name: string;
  readonly dtype: DType;
  readonly role: "input" | "output";
}

/** A scan operator: how a state of one or more numbers is made of an element, combined, and made into results. */
export interface ScanRule {
  readonly arrays: readonly ScanArray[];
  readonly state: { readonly [name: string]: StatePart };
  readonly reverse: boolean;
  /** The value of inputs beyond the end of rows, which lifts to the identity; without it, the state is masked there. */
  readonly fill?: HostValue;
  /** The state of single elements. */
  readonly lift: (tiles: ReduceTiles) => ReduceTiles;
  /** Two states as one, in their order along the scan. */
  readonly merge: (left: ReduceTiles, right: ReduceTiles) => ReduceTiles;
  /** All states along axis 1, which keeps extent 1: of elements in the direction of the scan, of totals from the first on. */
  readonly total: (state: ReduceTiles) => ReduceTiles;
  readonly together: (state: ReduceTiles) => ReduceTiles;
  /** Each state with those before it along axis 1. */
  readonly running: (state: ReduceTiles) => ReduceTiles;
  /** Results by name, in their formats. */
  readonly finish: (state: ReduceTiles) => ReduceTiles;
}

/** The identity of the state, for each of some rows. */
export function identityState({ state }: Pick<ScanRule, "state">, rows: number): ReduceTiles {
  return eachTile(state, ({ dtype, identity }) => full(dtype, [rows, 1], identity));
}

/** The same of every tile of a state. */
export function eachTile<T>(
  tiles: { readonly [name: string]: T },
  change: (tile: T, name: string) => Tile,
): ReduceTiles {
  return Object.fromEntries(
    Object.entries(tiles).map(([name, tile]) => [name, change(tile, name)]),
  );
}

/** States where a condition holds, the identity elsewhere. */
export function masked(rule: ScanRule, isIn: Tile<"bool">, state: ReduceTiles): ReduceTiles {
  const others = identityState(rule, 1);
  return eachTile(state, (tile, name) => isIn.select(tile, others[name] ?? tile));
}

/** Arrays of the kernel by name. */
export function scanArrays(
  { arrays }: ScanRule,
  form: StridedForm,
  role: ScanArray["role"],
): { readonly [name: string]: TensorSpec } {
  return Object.fromEntries(
    arrays.flatMap(({ name, dtype, role: own }, position) =>
      own === role ? [[name, form.spec(position, dtype)]] : [],
    ),
  );
}

export interface ScanArguments {
  readonly [name: string]: unknown;
}

/** A piece of rows in the format of the state; outside of the rows, the identity. */
export function loadedPiece(
  rule: ScanRule,
  form: StridedForm,
  argument: ScanArguments,
  place: readonly Index[],
  sizes: readonly number[],
): ReduceTiles {
  const last = form.axes.length - 1;
  const [rows, columns] = [sizes[last - 1] ?? 1, sizes[last] ?? 1];
  const { fill = 0 } = rule;
  const tiles = rule.arrays.flatMap(({ name, role }, position): (readonly [string, Tile])[] => {
    if (role === "output") return [];
    const window = form.window(argument[name] as Ref, position, place, sizes);
    const tile = window.load({ fill });
    return [[name, tile.reshape(form.tileShape(position, sizes, [last - 1, last]))]];
  });
  const lifted = eachTile(rule.lift(Object.fromEntries(tiles)), (tile) =>
    tile.broadcastTo([rows, columns]),
  );
  if (rule.fill !== undefined) return lifted;
  const at = iota(dtypes.i32, [1, columns], { axis: 1 }).add(place[last] as never);
  return masked(rule, at.lt(form.extents[last] ?? 1), lifted);
}

/** Stores the results of a piece. */
export function storePiece(
  rule: ScanRule,
  form: StridedForm,
  argument: ScanArguments,
  place: readonly Index[],
  sizes: readonly number[],
  state: ReduceTiles,
): void {
  const last = form.axes.length - 1;
  const results = rule.finish(state);
  for (const [position, { name, role }] of rule.arrays.entries()) {
    const result = results[name];
    if (role === "input" || result === undefined) continue;
    const window = form.window(argument[name] as Ref, position, place, sizes);
    storeWhole(window, result, [sizes[last - 1] ?? 1, sizes[last] ?? 1]);
  }
}

export function scanKernel(
  rule: ScanRule,
  form: StridedForm,
  { rows, columns }: ScanConfiguration,
): KernelDefinition {
  const last = form.axes.length - 1;
  const leads = form.axes.slice(0, -1).map((_, axis) => axis);
  const sizes = form.axes.map((_, axis) =>
    axis === last ? columns : axis === last - 1 ? rows : 1,
  );
  const grid = Object.fromEntries(
    leads.map((axis) => [`block${axis}`, cdiv(form.extents[axis] ?? 1, sizes[axis] ?? 1)]),
  );
  return kernel(
    {
      name: "scan",
      grid,
      inputs: scanArrays(rule, form, "input"),
      outputs: scanArrays(rule, form, "output"),
    },
    (given) => {
      const argument = given as unknown as ScanArguments;
      const starts: readonly Index[] = leads.map((axis) =>
        (argument[`block${axis}`] as Scalar<"i32">).mul(sizes[axis] ?? 1),
      );
      const steps = constant(dtypes.i32, 0).add(cdiv(form.extents[last] ?? 1, columns) as never);
      loop({ to: steps, carry: { ...identityState(rule, rows) } }, (index, carry) => {
        // In reverse, the last piece comes first.
        const piece = rule.reverse ? steps.sub(index).sub(1) : index;
        const place = [...starts, piece.mul(columns)];
        const state = loadedPiece(rule, form, argument, place, sizes);
        storePiece(rule, form, argument, place, sizes, rule.merge(carry, rule.running(state)));
        return { ...rule.merge(carry, rule.total(state)) };
      });
    },
  ) as unknown as KernelDefinition;
}
