/**
 * Verifies that values are defined once and used only where they are visible: after their definition,
 * in the same region or in one inside it.
 *
 *   %0 = …
 *   loop … { (%1)
 *     %2 = unary %0        visible: defined before, outside
 *     yield }
 *   %3 = unary %2          not visible: %2 belongs to the loop's body
 */
import type { Location } from "../../support/location.ts";
import { formatPosition } from "../../support/location.ts";
import { noSlots } from "../make-op.ts";
import type { AnyOp, Kernel, Region, Value } from "../node.ts";
import { operandValues, regionList, walkOps } from "../traverse.ts";
import { typeText } from "../types.ts";
import { reject } from "./report.ts";
import { visitEach } from "../../support/visit-each.ts";

/** Where each value of a kernel is defined: at its op, or at the op whose region it is a parameter of. */
export type Definitions = ReadonlyMap<Value, Location>;

interface Owner {
  readonly location: Location;
}

/** Collects all definitions; an id or a value that stands twice is rejected. */
export function collectDefinitions(kernel: Kernel): Definitions {
  const definitions = new Map<Value, Location>();
  const ids = new Map<number, Location>();
  const define = (value: Value, owner: Owner): void => {
    const before = ids.get(value.id);
    if (before !== undefined)
      reject(owner, "TW2203", `%${value.id} is defined twice`, {
        expected: "a number of its own for each value",
        found: `%${value.id} again`,
        notes: [{ message: "first defined here", location: before }],
      });
    ids.set(value.id, owner.location);
    definitions.set(value, owner.location);
  };
  kernel.body.parameters.forEach((value) => define(value, kernel));
  walkOps(kernel.body, (op) => {
    for (let place = 0; place < op.results.length; place += 1)
      define(op.results[place] as Value, op);
    if (op.regions === noSlots) return;
    for (const region of regionList(op)) for (const value of region.parameters) define(value, op);
  });
  return definitions;
}

function verifyUse(op: AnyOp, value: Value, visible: ReadonlySet<Value>, all: Definitions): void {
  if (visible.has(value)) return;
  const definition = all.get(value);
  reject(
    op,
    "TW2204",
    `${op.kind} uses %${value.id}: ${typeText(value.type)} where it is not visible`,
    {
      expected: "a value defined earlier in this region or in one around it",
      found:
        definition === undefined
          ? "a value of no operation of this kernel"
          : `a value defined at ${formatPosition(definition.position)}`,
      ...(definition !== undefined && {
        notes: [{ message: "defined here", location: definition }],
      }),
    },
  );
}

/** Checks the uses in a region; `visible` holds what is visible where the region stands. */
export function verifyVisibility(
  region: Region,
  definitions: Definitions,
  visible: Set<Value> = new Set(),
): void {
  const own: Value[] = [];
  const see = (value: Value): void => {
    visible.add(value);
    own.push(value);
  };
  region.parameters.forEach(see);
  visitEach(region.ops, (op) => {
    const operands = operandValues(op);
    for (let place = 0; place < operands.length; place += 1)
      verifyUse(op, operands[place] as Value, visible, definitions);
    if (op.regions !== noSlots)
      for (const inner of regionList(op)) verifyVisibility(inner, definitions, visible);
    visitEach(op.results, see);
  });
  own.forEach((value) => visible.delete(value));
}
