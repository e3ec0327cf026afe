/**
 * A tile that layoutCasts state in different places is made in each of them, where making it is cheaper than moving it:
 *
 *   %3 = iota                                %3 = iota
 *   %4 = layout_cast %3 {layout = A}         %4 = layout_cast %3 {layout = A}
 *   %5 = layout_cast %3 {layout = B}         %9 = iota
 *                                            %5 = layout_cast %9 {layout = B}
 *
 * Cheap are positions and a few steps of arithmetic on them; all else is converted.
 */
import { changedOp } from "../../ir/make-op.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../../ir/node.ts";
import { definingOps, nextValueId } from "../../ir/rewrite/analysis.ts";
import {
  changeBody,
  changeOps,
  changeRegions,
  substituteOperands,
} from "../../ir/rewrite/substitute.ts";
import { operandValues, walkOps } from "../../ir/traverse.ts";
import { parseLayout } from "../algebra/parse-layout.ts";
import { fitsShape } from "../algebra/register-layout.ts";
import { commonFunctions } from "../model/layout-functions.ts";
import { tileOf } from "../model/product-instructions.ts";

/** Arithmetic that takes about as long as handing on a register. */
const cheapFunctions: ReadonlySet<string> = new Set([
  ...["add", "sub", "mul", "min", "max"],
  ...["and", "or", "xor", "shl", "shr"],
]);

/** The most ops that are repeated for a place. */
const mostRepeated = 4;

/** The kernel with cheap tiles made once for each layout that is stated of them; the kernel itself where there are none. */
export function repeatPinned(kernel: Kernel): Kernel {
  const casts = repeatedCasts(kernel.body);
  if (casts.size === 0) return kernel;
  let nextId = nextValueId(kernel);
  const repeat = (op: AnyOp, copies: Map<Value, Value>): AnyOp => {
    const results = op.results.map((value) => {
      const copy = Object.freeze({ ...value, id: nextId++ });
      copies.set(value, copy);
      return copy;
    });
    return changedOp(substituteOperands(op, copies), { results: Object.freeze(results) });
  };
  const change = (region: Region): Region =>
    changeOps(
      region,
      region.ops.flatMap((op) => {
        const producers = casts.get(op);
        if (producers === undefined) return [changeRegions(op, change)];
        const copies = new Map<Value, Value>();
        const repeated = producers.map((each) => repeat(each, copies));
        const source = repeated.at(-1)?.results[0];
        return [...repeated, source === undefined ? op : ofSource(op, source)];
      }),
    );
  return changeBody(kernel, change(kernel.body));
}

function ofSource(op: AnyOp, source: Value): AnyOp {
  return op.kind === "layout_cast" ? changedOp(op, { operands: { source } }) : op;
}

/** The casts whose tile already lies elsewhere and is cheap to make, with the ops that make it, in their order. */
function repeatedCasts(body: Region): ReadonlyMap<AnyOp, readonly AnyOp[]> {
  const found = new Map<AnyOp, readonly AnyOp[]>();
  const definitions = definingOps(body);
  const places = new Map<Value, string>();
  walkOps(body, (op) => {
    if (!isPin(op)) return;
    const made = madeAs(op.operands.source, definitions);
    const layout = parseLayout(op.attributes.layout);
    const { shape } = tileOf(made);
    if (!fitsShape(layout, shape)) return;
    const { text } = commonFunctions().normal(layout, shape);
    const first = places.get(made) ?? text;
    places.set(made, first);
    if (first === text) return;
    const producers = cheapProducers(made, definitions);
    if (producers !== undefined) found.set(op, producers);
  });
  return found;
}

function isPin(op: AnyOp): op is Op<"layout_cast"> {
  return op.kind === "layout_cast" && op.attributes.hint !== true && op.attributes.convert !== true;
}

/** The tile behind statements about where it lies. */
function madeAs(value: Value, definitions: ReadonlyMap<Value, AnyOp>): Value {
  let made = value;
  for (;;) {
    const op = definitions.get(made);
    if (op === undefined || !isPin(op)) return made;
    made = op.operands.source;
  }
}

/** The ops that make a tile out of numbers alone, if they are few and cheap. */
function cheapProducers(
  tile: Value,
  definitions: ReadonlyMap<Value, AnyOp>,
): readonly AnyOp[] | undefined {
  const producers = new Set<AnyOp>();
  const visit = (value: Value): boolean => {
    if (value.type.kind !== "tile") return true;
    const op = definitions.get(value);
    if (op === undefined || !isCheap(op) || producers.size > mostRepeated) return false;
    if (producers.has(op)) return true;
    if (!operandValues(op).every(visit)) return false;
    producers.add(op);
    return true;
  };
  if (!visit(tile) || producers.size > mostRepeated) return undefined;
  const ops = [...producers];
  // One number everywhere has no place that it would be moved from.
  return ops.some(({ kind }) => kind === "iota") ? ops : undefined;
}

function isCheap(op: AnyOp): boolean {
  if (op.kind === "binary") return cheapFunctions.has(op.attributes.fn);
  if (op.kind === "broadcast") return op.operands.source.type.kind !== "tile";
  return op.kind === "iota" || op.kind === "constant" || op.kind === "compare";
}
