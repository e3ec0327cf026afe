import { expect, test } from "vitest";
import { kernelWith } from "../../../test/support/ir-text.ts";
import { changedOp } from "../make-op.ts";
import type { AnyOp, Kernel, Value } from "../node.ts";
import { changeBody, changeOps, changeRegions, withAttributes } from "../rewrite/substitute.ts";
import { walkOps } from "../traverse.ts";
import { factsOf, following } from "./index.ts";
import type { Facts } from "./index.ts";

/** A counter that turns at 4, and where it begins. */
const ring = kernelWith(`%5 = constant {value = 0, dtype = i32, shape = []} : i32
%6 = constant {value = 1, dtype = i32, shape = []} : i32
%7 = constant {value = 4, dtype = i32, shape = []} : i32
%8 = loop %5, %b, %6 initial(%5) body(%9: i32, %10: i32) {
  %11 = binary %10, %6 {fn = add} : i32
  %12 = compare %11, %7 {predicate = eq} : bool
  %13 = select %12, %5, %11 : i32
  debug_print %9 {format = "{}"}
  yield %13
} : i32
debug_print %8 {format = "{}"}`);

/** An op of whose results nothing is known. */
const [unknown] = kernelWith("%5 = bitcast %b {dtype = i32} : i32").body.ops;

/** The kernel with some of its ops replaced. */
function changed({ ...kernel }: Kernel, change: (op: AnyOp) => readonly AnyOp[]): Kernel {
  const region: Parameters<typeof changeRegions>[1] = (each) =>
    changeOps(
      each,
      each.ops.flatMap((op) => change(op).map((made) => changeRegions(made, region))),
    );
  return changeBody(kernel, region(kernel.body));
}

function resultOf({ body }: Kernel, kind: AnyOp["kind"]): Value {
  const found: Value[] = [];
  walkOps(body, (op) => {
    if (op.kind === kind) found.push(...op.results);
  });
  return found[0] ?? expect.fail(`no ${kind}`);
}

function endsOf(facts: Facts, value: Value): readonly bigint[] {
  const { least, greatest } = facts.of(value);
  return [least, greatest];
}

/** How many facts are worked out when the value's is asked for. */
function rulesAsked(facts: Facts, value: Value): number {
  let asked = 0;
  const { of } = facts;
  Object.defineProperty(facts, "of", {
    value(this: Facts, each: Value) {
      asked += 1;
      return of.call(this, each);
    },
  });
  facts.of(value);
  return asked;
}

test("facts are taken over where ops without integers come, go or change", () => {
  const counter = resultOf(ring, "loop");
  expect(endsOf(factsOf(ring), counter)).toEqual([0n, 3n]);
  const marked = changed(ring, (op) =>
    op.kind === "debug_print" ? [op, withAttributes(op, { format: "again {}" })] : [op],
  );
  following(ring, marked);
  expect(rulesAsked(factsOf(marked), counter)).toBe(1);
  expect(endsOf(factsOf(marked), counter)).toEqual([0n, 3n]);
  const apart = changed(ring, (op) => (op.kind === "debug_print" ? [] : [op]));
  expect(rulesAsked(factsOf(apart), counter)).toBeGreaterThan(1);
});

test("facts are taken over where a loop carries something else beside its integers", () => {
  const beside = kernelWith(`%5 = constant {value = 0, dtype = i32, shape = []} : i32
%6 = constant {value = 1, dtype = i32, shape = []} : i32
%7 = constant {value = 0.5, dtype = f32, shape = []} : f32
%8 = constant {value = 2, dtype = f32, shape = []} : f32
%9, %10 = loop %5, %b, %6 initial(%7, %5) body(%11: i32, %12: f32, %13: i32) {
  %14 = binary %13, %13 {fn = and} : i32
  yield %12, %14
} : f32, i32
debug_print %10 {format = "{}"}`);
  const [, counter] = beside.body.ops.find(({ kind }) => kind === "loop")?.results ?? [];
  const other = beside.body.ops.find(
    ({ attributes }) => "value" in attributes && attributes.value === 2,
  );
  if (counter === undefined || other === undefined) throw new Error("a loop and a number");
  factsOf(beside).of(counter);
  const moved = changed(beside, (op) => {
    if (op.kind !== "loop") return [op];
    const initial = [...other.results, ...op.operands.initial.slice(1)];
    return [changedOp(op, { operands: Object.freeze({ ...op.operands, initial }) })];
  });
  following(beside, moved);
  expect(rulesAsked(factsOf(moved), counter)).toBe(1);
});

test("facts are found again where the results of a loop change places", () => {
  const text = (
    results: string,
  ): string => `%5 = constant {value = 0, dtype = i32, shape = []} : i32
%6 = constant {value = 1, dtype = i32, shape = []} : i32
%7 = constant {value = 7, dtype = i32, shape = []} : i32
%8, %9 = loop %5, %b, %6 initial(%5, %7) body(%10: i32, %11: i32, %12: i32) {
  yield %11, %12
} : i32, i32
debug_print ${results} {format = "{} {}"}`;
  const pair = kernelWith(text("%8, %9"));
  const loop = pair.body.ops.find(({ kind }) => kind === "loop");
  const [first, second] = loop?.results ?? [];
  if (first === undefined || second === undefined) throw new Error("a loop of two results");
  expect(endsOf(factsOf(pair), first)).toEqual([0n, 0n]);
  const turned = following(
    pair,
    changed(pair, (op) =>
      op.kind === "loop" ? [changedOp(op, { results: Object.freeze([second, first]) })] : [op],
    ),
  );
  expect(endsOf(factsOf(turned), first)).toEqual([7n, 7n]);
});

test("facts are found again where an integer is computed otherwise, however far away", () => {
  const counter = resultOf(ring, "loop");
  expect(endsOf(factsOf(ring), counter)).toEqual([0n, 3n]);
  const changes: { readonly [what: string]: (op: AnyOp) => AnyOp } = {
    "a constant": (op) =>
      op.kind === "constant" && op.attributes.value === 4 ? withAttributes(op, { value: 9 }) : op,
    "an operand": (op) =>
      op.kind === "select"
        ? changedOp(op, {
            operands: Object.freeze({ ...op.operands, ifTrue: op.operands.ifFalse }),
          })
        : op,
    "a comparison": (op) => (op.kind === "compare" ? withAttributes(op, { predicate: "ne" }) : op),
    "an op of which nothing is known": (op) =>
      op.kind === "select" && unknown ? changedOp(unknown, { results: op.results }) : op,
    "what begins": (op) =>
      op.kind === "loop"
        ? changedOp(op, {
            operands: Object.freeze({ ...op.operands, initial: [op.operands.upper] }),
          })
        : op,
    "what a step hands on": (op) =>
      op.kind === "yield" && op.operands.values.length > 0
        ? changedOp(op, { operands: Object.freeze({ values: [resultOf(ring, "binary")] }) })
        : op,
  };
  for (const [what, change] of Object.entries(changes)) {
    const other = following(
      ring,
      changed(ring, (op) => [change(op)]),
    );
    const fresh = changed(ring, (op) => [change(op)]);
    const ends = endsOf(factsOf(other), counter);
    expect(ends, what).toEqual(endsOf(factsOf(fresh), counter));
    expect(ends, what).not.toEqual([0n, 3n]);
  }
});

test("facts are found again for other threads, warps or a grid", () => {
  const counter = resultOf(ring, "loop");
  factsOf(ring).of(counter);
  for (const header of [
    { warps: ring.warps * 2 },
    { threads: [...ring.threads, "more"] },
    { grid: [...ring.grid] },
  ]) {
    const other = following(ring, Object.freeze({ ...ring, ...header }));
    expect(rulesAsked(factsOf(other), counter)).toBeGreaterThan(1);
  }
});
