/** Lowering of ops with regions, and of ops for finding mistakes. */
import type { AnyOp, Op, Region, Value } from "../../ir/node.ts";
import type { controlOps } from "../../ir/ops/control.ts";
import { i32, op as operation, read, select } from "../loops/builder.ts";
import type { Expression, Local } from "../loops/ir.ts";
import type { HeldTile } from "./held.ts";
import { slotBytes, storeScalar } from "./lanes.ts";
import { countOf, dtypeOf, shapeOf } from "./lazy.ts";
import { polls } from "./flow.ts";
import type { State } from "./flow.ts";
import { tileAddress } from "./lowering.ts";
import type { Lowering } from "./lowering.ts";
import type { LoweringRules, RegionLowering } from "./regions.ts";
import type { Storage } from "./scratch.ts";
import { syncThreads } from "./sync-rules.ts";
import { computeInto, copyTile, isSameTile, tileOf } from "./tiles.ts";

/** A value that regions hand on: a scalar in a local, or a tile in memory of its own. */
type Carry =
  | { readonly kind: "scalar"; readonly local: Local }
  | { readonly kind: "tile"; readonly tile: HeldTile };

function isTile({ type }: Value): boolean {
  return type.kind === "tile" || type.kind === "inflight";
}

function carryStorages(carries: readonly Carry[]): readonly Storage[] {
  return carries.flatMap((carry) =>
    carry.kind === "tile" && carry.tile.storage !== undefined ? [carry.tile.storage] : [],
  );
}

/** Memory and locals for values of such types. */
function emptyCarries(lowering: Lowering, values: readonly Value[]): readonly Carry[] {
  return values.map((value): Carry => {
    if (isTile(value)) {
      const dtype = dtypeOfCarried(value);
      const count = shapeOf(value).reduce((product, extent) => product * extent, 1);
      const storage = lowering.scratch.take(count * slotBytes(dtype));
      return { kind: "tile", tile: lowering.tileAt(storage, dtype, shapeOf(value)) };
    }
    if (value.type.kind !== "scalar") throw new Error(`a ${value.type.kind} is not handed on`);
    return {
      kind: "scalar",
      local: lowering.b.local(lowering.scalarType(value.type.dtype), "carry"),
    };
  });
}

function dtypeOfCarried(value: Value) {
  return value.type.kind === "inflight" ? value.type.dtype : dtypeOf(value);
}

/** Carries that begin with values: a tile that nobody else reads is carried where it lies. */
function beginCarries(
  lowering: Lowering,
  region: RegionLowering,
  op: Op<"loop"> | Op<"while">,
): readonly Carry[] {
  const taken = new Set<Storage>();
  return op.operands.initial.map((value): Carry => {
    const held = lowering.held(value);
    if (held.kind === "tile" && held.storage !== undefined) {
      const isFree = region.isLastUse(value) && !region.readsWithin(op, held.storage);
      if (isFree && !taken.has(held.storage)) {
        taken.add(held.storage);
        return { kind: "tile", tile: held };
      }
    }
    const [carry] = emptyCarries(lowering, [value]);
    if (carry === undefined) throw new Error("a value without a carry");
    if (carry.kind === "scalar") lowering.b.set(carry.local, lowering.scalar(value));
    else if (held.kind === "lazy") computeInto(lowering, value, carry.tile);
    else copyTile(lowering.b, tileOf(lowering, value), carry.tile);
    return carry;
  });
}

/** Names for what is carried. */
function holdCarries(
  lowering: Lowering,
  values: readonly Value[],
  carries: readonly Carry[],
): void {
  values.forEach((value, index) => {
    const carry = carries[index];
    if (carry === undefined) return;
    if (carry.kind === "tile") lowering.alias(value, carry.tile, carry.tile.dtype, shapeOf(value));
    else if (value.type.kind === "scalar")
      lowering.hold(value, { kind: "scalar", dtype: value.type.dtype, value: read(carry.local) });
  });
}

/** Scalars that a loop goes on changing, as they are now. */
function holdResults(lowering: Lowering, op: AnyOp, carries: readonly Carry[]): void {
  holdCarries(lowering, op.results, carries);
  for (const result of op.results)
    if (result.type.kind === "scalar") lowering.holdScalar(result, lowering.scalar(result));
}

/** Moves what a region yields into the carries, as if all at once. */
function advance(lowering: Lowering, yielded: readonly Value[], carries: readonly Carry[]): void {
  const { b } = lowering;
  const moves = carries.map((carry, index) => {
    const value = yielded[index];
    if (value === undefined) throw new Error("a carry that nothing is yielded for");
    if (carry.kind === "scalar") {
      const now = b.local(carry.local.type, "next");
      b.set(now, lowering.scalar(value));
      return () => b.set(carry.local, read(now));
    }
    const from = tileOf(lowering, value);
    if (isSameTile(from, carry.tile)) return () => {};
    const isAnothers = carries.some(
      (other, place) => place !== index && other.kind === "tile" && isSameTile(other.tile, from),
    );
    if (!isAnothers) return () => copyTile(b, from, carry.tile);
    const between = lowering.temporaryTile(from.dtype, from.shape);
    copyTile(b, from, between);
    return () => copyTile(b, between, carry.tile);
  });
  for (const move of moves) move();
}

function compareOf(type: Expression["type"], name: "lt_s" | "ge_s" | "le_s") {
  return type === "i64" ? (`i64.${name}` as const) : (`i32.${name}` as const);
}

function zero(type: Expression["type"]): Expression {
  return type === "i64" ? { form: "constant", type: "i64", value: 0n } : i32.of(0);
}

/** Whether a step from below `to` cannot pass the largest integer. */
function hasRoom(to: Expression, by: Expression): boolean {
  if (to.form !== "constant" || by.form !== "constant") return false;
  const largest = to.type === "i64" ? 2n ** 63n - 1n : 2n ** 31n - 1n;
  const [end, step] = [to.value, by.value].map((value) =>
    typeof value === "object" ? largest : BigInt(value),
  );
  return end !== undefined && step !== undefined && end + step - 1n <= largest;
}

/** `next`, or the end of the loop where it has wrapped around. */
function atMost(lowering: Lowering, next: Expression, index: Local, to: Expression): Expression {
  const kept = lowering.b.keep(next);
  return select(operation(compareOf(kept.type, "lt_s"), kept, read(index)), to, kept);
}

function loop(op: Op<"loop">, lowering: Lowering, region: RegionLowering): void {
  const { lower, upper, step } = op.operands;
  const { body } = op.regions;
  const [from, to, by] = [lower, upper, step].map((value) => lowering.scalar(value));
  if (from === undefined || to === undefined || by === undefined) throw new Error("no bounds");
  const type = from.type === "i64" ? "i64" : "i32";
  if (by.form !== "constant")
    lowering.failIf(
      lowering.b,
      operation(compareOf(type, "le_s"), by, zero(type)),
      lowering.fault("step", "", op.location),
    );
  const carries = beginCarries(lowering, region, op);
  const index = lowering.b.variable(from, "i");
  const [parameter, ...carried] = body.parameters;
  const breaks = op.attributes.breaks === true;
  const stop = breaks ? lowering.b.local("i32", "stop") : undefined;
  if (stop !== undefined) lowering.b.set(stop, i32.of(0));
  const goesOn = (): Expression => {
    const more = operation(compareOf(type, "lt_s"), read(index), to);
    return stop === undefined ? more : operation("i32.and", more, operation("i32.eqz", read(stop)));
  };
  const round = (): void => {
    if (parameter?.type.kind === "scalar")
      lowering.hold(parameter, {
        kind: "scalar",
        dtype: parameter.type.dtype,
        value: lowering.b.keep(read(index)),
      });
    holdCarries(lowering, carried, carries);
    region.lower(
      body,
      (yielded) => {
        if (stop !== undefined) {
          const flag = yielded.at(-1);
          if (flag !== undefined) lowering.b.set(stop, lowering.scalar(flag));
        }
        advance(lowering, yielded, carries);
      },
      { ownsParameters: true },
    );
    const next = operation(`${type}.add`, read(index), by);
    // Beyond the largest integer comes the least, and the loop is over.
    lowering.b.set(index, hasRoom(to, by) ? next : atMost(lowering, next, index, to));
  };
  region.during(carryStorages(carries), () => repeat(lowering, op, goesOn, round));
  holdResults(lowering, op, carries);
}

/** While a condition holds: as a loop, or as states where a round waits. */
function repeat(
  lowering: Lowering,
  op: AnyOp,
  condition: () => Expression,
  body: () => void,
): void {
  const { flow } = lowering;
  if (!flow.splits(op)) {
    lowering.b.whileLoop(condition, body);
    return;
  }
  const [head, inside, exit] = [flow.newState(), flow.newState(), flow.newState()];
  flow.place(head);
  flow.choose(condition(), inside, exit);
  flow.place(inside);
  body();
  flow.jump(head);
  flow.place(exit);
}

function whileLoop(op: Op<"while">, lowering: Lowering, region: RegionLowering): void {
  const { condition, body } = op.regions;
  const carries = beginCarries(lowering, region, op);
  const breaks = op.attributes.breaks === true;
  const stop = breaks ? lowering.b.local("i32", "stop") : undefined;
  if (stop !== undefined) lowering.b.set(stop, i32.of(0));
  const test = (): Expression => {
    holdCarries(lowering, condition.parameters, carries);
    const flag = lowering.b.local("i32", "goes");
    const compute = (): void =>
      region.lower(condition, ([value]) => {
        if (value !== undefined) lowering.b.set(flag, lowering.scalar(value));
      });
    if (stop === undefined) compute();
    else {
      lowering.b.set(flag, i32.of(0));
      lowering.b.if(operation("i32.eqz", read(stop)), compute);
    }
    return read(flag);
  };
  const round = (): void => {
    if (polls(op)) lowering.flow.yield();
    holdCarries(lowering, body.parameters, carries);
    region.lower(
      body,
      (yielded) => {
        if (stop !== undefined) {
          const flag = yielded.at(-1);
          if (flag !== undefined) lowering.b.set(stop, lowering.scalar(flag));
        }
        advance(lowering, yielded, carries);
      },
      { ownsParameters: true },
    );
  };
  region.during(carryStorages(carries), () => repeat(lowering, op, test, round));
  holdResults(lowering, op, carries);
}

/** Regions of which one runs. */
function branches(
  op: Op<"if"> | Op<"switch">,
  lowering: Lowering,
  region: RegionLowering,
  regions: readonly Region[],
  choose: (cases: readonly (() => void)[]) => void,
  chooseState: (states: readonly State[]) => void,
): void {
  const carries = emptyCarries(lowering, op.results);
  const lower = (one: Region) => (): void =>
    region.lower(one, (yielded) => advance(lowering, yielded, carries));
  region.during(carryStorages(carries), () => {
    const { flow } = lowering;
    if (!flow.splits(op)) {
      choose(regions.map(lower));
      return;
    }
    const states = regions.map(() => flow.newState());
    const exit = flow.newState();
    chooseState(states);
    regions.forEach((one, index) => {
      flow.place(states[index] ?? 0);
      lower(one)();
      flow.jump(exit);
    });
    flow.place(exit);
  });
  holdResults(lowering, op, carries);
}

function scoped(op: Op<"scoped">, lowering: Lowering, region: RegionLowering): void {
  const carries = emptyCarries(lowering, op.results);
  const together = !lowering.alone && lowering.kernel.threads.length > 1;
  if (together) syncThreads(lowering, op);
  region.during(carryStorages(carries), () =>
    region.lower(op.regions.body, (yielded) => advance(lowering, yielded, carries)),
  );
  holdResults(lowering, op, carries);
  if (together) syncThreads(lowering, op);
}

/** Only code of the listed threads holds the body. */
function onThreads(op: Op<"on_threads">, lowering: Lowering, region: RegionLowering): void {
  if (!op.attributes.threads.includes(lowering.thread)) return;
  const { alone } = lowering;
  lowering.alone = true;
  region.lower(op.regions.body, () => {});
  lowering.alone = alone;
}

/** One warp after the other, each with what the thread had seen of barriers. */
function warps(op: Op<"warps">, lowering: Lowering, region: RegionLowering): void {
  const { alone } = lowering;
  const [parameter] = op.regions.body.parameters;
  const index = lowering.b.variable(i32.of(0), "warp");
  lowering.alone = true;
  const seen = lowering.seenPhases();
  const before = lowering.temporaryTile({ name: "i32", bits: 32, kind: "signed" }, [seen.words]);
  const copy = (from: Expression, to: Expression): void =>
    lowering.b.run(operation("memory.copy", to, from, i32.of(4 * seen.words)));
  copy(seen.address(), tileAddress(lowering.b, before));
  repeat(
    lowering,
    op,
    () => operation("i32.lt_s", read(index), i32.of(lowering.kernel.warps)),
    () => {
      copy(tileAddress(lowering.b, before), seen.address());
      if (parameter !== undefined) lowering.holdScalar(parameter, read(index));
      region.lower(op.regions.body, () => {});
      lowering.b.set(index, i32.add(read(index), i32.of(1)));
    },
  );
  lowering.alone = alone;
}

function debugPrint(op: Op<"debug_print">, lowering: Lowering): void {
  const { values } = op.operands;
  const sizes = values.map(
    (value) => Math.ceil((countOf(value) * slotBytes(dtypeOf(value))) / 16) * 16,
  );
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const list = lowering.temporaryTile({ name: "u8", bits: 8, kind: "unsigned" }, [total]);
  let offset = list.offset;
  values.forEach((value, index) => {
    const place = { ...list, dtype: dtypeOf(value), shape: shapeOf(value), offset };
    const held = lowering.held(value);
    if (held.kind === "scalar")
      storeScalar(lowering.b, place.dtype, place.base, held.value, place.offset);
    else copyTile(lowering.b, tileOf(lowering, value), place);
    offset += sizes[index] ?? 0;
  });
  lowering.prints.push({
    format: op.attributes.format,
    location: op.location,
    thread: lowering.thread,
    values: values.map((value) => ({ dtype: dtypeOf(value), shape: shapeOf(value) })),
  });
  lowering.message(lowering.prints.length - 1, tileAddress(lowering.b, list), lowering.blockNumber);
}

function assertion(op: Op<"assert">, lowering: Lowering): void {
  const { condition } = op.operands;
  const fault = lowering.fault("assert", op.attributes.message, op.location);
  const held = lowering.held(condition);
  if (held.kind === "scalar") {
    lowering.failIf(lowering.b, operation("i32.eqz", held.value), fault);
    return;
  }
  const tile = tileOf(lowering, condition);
  const { b } = lowering;
  const all = b.variable(i32.of(1), "all");
  b.countedLoop(i32.of(0), i32.of(countOf(condition)), 1, (at) => {
    const flag = { op: "i32.load8_u", address: i32.add(tile.base, at) } as const;
    b.set(
      all,
      operation("i32.and", read(all), {
        form: "operation",
        type: "i32",
        op: flag.op,
        operands: [flag.address],
        offset: tile.offset,
        lanes: [],
      }),
    );
  });
  lowering.failIf(b, operation("i32.eqz", read(all)), fault);
}

export const controlRules: Pick<LoweringRules, keyof typeof controlOps> = {
  loop,
  while: whileLoop,
  if(op, lowering, region) {
    const condition = lowering.scalar(op.operands.condition);
    branches(
      op,
      lowering,
      region,
      [op.regions.then, op.regions.otherwise],
      ([then = () => {}, otherwise = () => {}]) => lowering.b.if(condition, then, otherwise),
      ([then = 0, otherwise = 0]) => lowering.flow.choose(condition, then, otherwise),
    );
  },
  switch(op, lowering, region) {
    const { cases } = op.regions;
    const last = cases.length - 1;
    const index = lowering.scalar(op.operands.index);
    // Below 0 is the first case, above the last.
    const least = lowering.b.keep({
      form: "select",
      type: "i32",
      condition: operation("i32.lt_s", index, i32.of(0)),
      ifTrue: i32.of(0),
      ifFalse: index,
    });
    branches(
      op,
      lowering,
      region,
      cases,
      (list) => lowering.b.switch(least, list),
      (states) =>
        lowering.b.switch(
          least,
          states.map((state, place) => () => {
            if (place <= last) lowering.flow.jump(state);
          }),
        ),
    );
  },
  scoped,
  on_threads: onThreads,
  warps,
  yield() {
    throw new Error("a yield belongs to its region");
  },
  debug_print: debugPrint,
  print_layout() {
    // Tiles have no layouts here.
  },
  assert: assertion,
  profile_mark() {
    // Scopes of a profile are the simulator's and the GPU's.
  },
  debug_break() {
    // The simulator stops there.
  },
};
