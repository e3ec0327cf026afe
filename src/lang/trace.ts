/**
 * The active trace: the kernel whose body is running now, and the regions open in it.
 *
 *   kernel(…, ({ i, x }) => {          scope 0 opens
 *     const t = x.at(…).load();          t belongs to scope 0
 *     loop(4, (k) => {                   scope 1 opens; k belongs to it
 *       const u = t.add(k);                t is visible, scope 0 being open
 *     });                                scope 1 closes; u may not be used any more
 *   });                                scope 0 closes
 *
 * Traces form a stack, because a kernel's body may build another kernel.
 */
import { i32 } from "../formats/dtype.ts";
import { Builder } from "../ir/builder.ts";
import type { InferContext } from "../ir/infer/index.ts";
import { noSlots, nothing } from "../ir/make-op.ts";
import type { AnyOp, GridAxis, Region, Value } from "../ir/node.ts";
import { opName } from "../ir/op-names.ts";
import type { OpAttributes, OpKind, OpOperands, OpRegions } from "../ir/ops.ts";
import { dimensionsOf } from "../ir/size.ts";
import type { Dimension } from "../ir/size.ts";
import type { Type } from "../ir/types.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import type { Target } from "../targets/target.ts";
import { requireAttributeKinds } from "./attribute-kinds.ts";

/** A region of the program being traced; its values are usable while it is open. */
export interface Scope {
  readonly trace: Trace;
  /** What the region is, for messages: "the body of loop". */
  readonly label: string;
  open: boolean;
  /** The i32 scalars among its ops that are plain numbers. */
  readonly numbers: Map<number, Value>;
  /** Whether it has numbers of its own instead of those around it. */
  readonly apart: boolean;
  /** What the branches share of which it is one and one runs; undefined where it is none. */
  readonly choice: object | undefined;
}

/** Which IR value a traced object stands for, and where it was made. */
export interface Origin {
  readonly value: Value;
  readonly scope: Scope;
  readonly location: Location;
}

/** A condition that nothing has used yet. */
interface PendingCondition {
  readonly location: Location;
  readonly made: string;
}

/** What a kernel's specification says that its body may depend on. */
export interface TracedSpec extends InferContext {
  /** The axes of the cluster that are none of the grid. */
  readonly clusterAxes: readonly string[];
  /** Blocks that a multiprocessor is to hold at once. */
  readonly resident: number | undefined;
  /** Whether functions are approximated where a call does not say otherwise. */
  readonly approximate: boolean;
  /** The target that the kernel is traced for. */
  readonly target: Target;
}

/** Code that each warp of a thread runs on its own. */
export interface WarpCode {
  /** Where the warps split up. */
  readonly location: Location;
  /** Which of them runs the code. */
  readonly index: Origin;
  /** Whether it is a branch that one warp takes. */
  readonly alone: boolean;
  /** What must be allocated around the code. */
  readonly around: AnyOp[];
}
/** Conditions that may wait for their use at once; there are more in a loop that JavaScript never leaves. */
const mostUnused = 2 ** 14;

export class Trace {
  readonly kernelName: string;
  readonly spec: TracedSpec;
  /** What ops may ask of the kernel: its grid, its program threads. */
  readonly context: InferContext;
  /** The program thread whose code is being traced; undefined where all of them run it. */
  thread: string | undefined = undefined;
  /** How many program threads run the code that is being traced. */
  runners: number;
  /** Whether the body has asked for the target: the kernel is another for each then. */
  asksTarget = false;
  /** The warps whose code is being traced, each on its own. */
  warps: WarpCode | undefined = undefined;
  readonly #builder: Builder;
  readonly #grid: GridAxis[];
  readonly #dimensions: Dimension[];
  readonly #scopes: Scope[] = [];
  readonly #conditions = new Map<Value, PendingCondition>();

  constructor(kernelName: string, spec: TracedSpec) {
    const { threads, warps } = spec;
    this.kernelName = kernelName;
    this.spec = spec;
    this.#grid = [...spec.grid];
    this.#dimensions = [...spec.dimensions];
    this.context = { grid: this.#grid, dimensions: this.#dimensions, threads, warps };
    this.runners = threads.length;
    this.#builder = new Builder(this.context);
  }

  /** Gives a kernel whose specification names no grid an axis, before those of its cluster. */
  addGridAxis(axis: GridAxis): void {
    this.#grid.unshift(axis);
    const known = new Set(this.#dimensions.map(({ name }) => name));
    this.#dimensions.push(...dimensionsOf(axis.extent).filter(({ name }) => !known.has(name)));
  }

  get scope(): Scope {
    const scope = this.#scopes.at(-1);
    if (scope === undefined) throw new Error("the trace has no open region");
    return scope;
  }

  add<K extends OpKind>(
    kind: K,
    operands: OpOperands<K>,
    attributes: OpAttributes<K>,
    regions: OpRegions<K>,
    location: Location,
  ): readonly Value[] {
    return this.#builder.add(kind, operands, attributes, regions, location);
  }

  /** Adds counters for all of the kernel, wherever the code that uses them stands. */
  addCounters(attributes: OpAttributes<"alloc_semaphore">, location: Location): Origin {
    const [value] =
      this.#scopes.length > 1
        ? this.#builder.addCounters(attributes, location)
        : this.add("alloc_semaphore", noSlots, attributes, noSlots, location);
    if (value === undefined) throw new Error("counters have a name");
    return { value, scope: this.scope, location };
  }

  /**
   * An i32 scalar that is a plain number. Kernels are full of them, nearly all of them the same few, and every stage up to the one that
   * merges equal ops would meet each again: one that is visible here already is taken.
   */
  number(value: number, location: Location): Value {
    const known = this.#knownNumber(value);
    if (known !== undefined) return known;
    const attributes = { value, dtype: i32, shape: nothing };
    const [made] = this.add("constant", noSlots, attributes, noSlots, location);
    if (made === undefined) throw new Error("constant has no result");
    this.scope.numbers.set(value, made);
    return made;
  }

  #knownNumber(value: number): Value | undefined {
    for (let depth = this.#scopes.length - 1; depth >= 0; depth -= 1) {
      const { numbers, apart } = this.#scopes[depth] as Scope;
      const known = numbers.get(value);
      if (known !== undefined || apart) return known;
    }
    return undefined;
  }

  /**
   * Traces a region; what `body` returns is what the region yields. One `apart` makes its numbers itself: the warps of a thread,
   * each on its own, and what is traced to be looked at rather than to run.
   */
  region(
    label: string,
    types: readonly Type[],
    location: Location,
    body: (parameters: readonly Value[]) => readonly Value[],
    {
      apart = false,
      choice,
    }: { readonly apart?: boolean; readonly choice?: object | undefined } = {},
  ): Region {
    const depth = this.#scopes.length;
    const parameters = this.begin(label, types, { apart, choice });
    try {
      return this.end(body(parameters), location);
    } finally {
      // What is still open here was begun by a body that has failed.
      while (this.#scopes.length > depth) {
        this.#leave();
        this.#builder.abandonRegion();
      }
    }
  }

  /** Begins a region within the innermost one, up to its `end`; `region` does where a function is the whole of it. */
  begin(
    label: string,
    types: readonly Type[],
    { apart = false, choice }: { readonly apart?: boolean; readonly choice?: object | undefined },
  ): readonly Value[] {
    const parameters = this.#builder.openRegion(types);
    this.#scopes.push({ trace: this, label, open: true, numbers: new Map(), apart, choice });
    return parameters;
  }

  /** Uses values as a branch does that has no code of its own. */
  within<T>(label: string, choice: object, use: () => T): T {
    this.#scopes.push({ trace: this, label, open: true, numbers: new Map(), apart: false, choice });
    try {
      return use();
    } finally {
      this.#leave();
    }
  }

  /** Ends the innermost region, which yields the values. */
  end(values: readonly Value[], location: Location): Region {
    const region = this.#builder.closeRegion(values, location);
    this.#leave();
    return region;
  }

  #leave(): void {
    const scope = this.#scopes.pop();
    if (scope !== undefined) scope.open = false;
  }

  /** The open regions, the kernel's body first. */
  get path(): readonly Scope[] {
    return [...this.#scopes];
  }

  /** Traces a branch that is taken where the condition holds: by one warp where it says so, `warp.eq(1)` alone or with other conditions. */
  ofWarp<T>(condition: Value, branch: () => T): T {
    const { warps } = this;
    return warps !== undefined && this.#isOneWarp(condition, warps.index.value)
      ? this.ofOneWarp(warps, branch)
      : branch();
  }

  /** Traces a branch that one warp takes. */
  ofOneWarp<T>(warps: WarpCode, branch: () => T): T {
    this.warps = { ...warps, alone: true };
    try {
      return branch();
    } finally {
      this.warps = warps;
    }
  }

  #isOneWarp(condition: Value, index: Value): boolean {
    const op = this.#builder.madeBy(condition);
    if (op?.kind === "binary" && op.attributes.fn === "and")
      return [op.operands.left, op.operands.right].some((each) => this.#isOneWarp(each, index));
    if (op?.kind !== "compare" || op.attributes.predicate !== "eq") return false;
    const { left, right } = op.operands;
    const other = left === index ? right : right === index ? left : undefined;
    return other !== undefined && this.#builder.madeBy(other)?.kind === "constant";
  }

  /** Allocates what `make` allocates around the warps whose code is being traced. */
  aroundWarps<T>({ around }: WarpCode, make: () => T): T {
    const { made, ops } = this.#builder.aside(make);
    around.push(...ops);
    return made;
  }

  /** Appends ops that were made before. */
  append(ops: readonly AnyOp[]): void {
    for (const op of ops) this.#builder.append(op);
  }

  /** How many ops the innermost region has so far. */
  get position(): number {
    return this.#builder.position;
  }

  /** The ops of the innermost region from a position on. */
  opsSince(position: number): readonly AnyOp[] {
    return this.#builder.opsSince(position);
  }

  /** Whether a value differs between program threads that run this code, by their index. */
  dependsOnThread(value: Value): boolean {
    return this.runners > 1 && this.#builder.dependsOn(value, "thread_index");
  }

  /** Remembers a condition until it is used. */
  expectUse(value: Value, condition: PendingCondition): void {
    this.#conditions.set(value, condition);
    if (this.#conditions.size > mostUnused) this.#refuseEndless(condition);
  }

  /** A JavaScript loop on a condition does not end by itself, since every condition is true to it. */
  #refuseEndless({ made, location }: PendingCondition): never {
    throw new TilewrightError({
      code: "TW1006",
      message: `the condition made by ${made} is never used`,
      location,
      expected: "whileLoop or loop, which the kernel runs",
      found: "one that nothing reads, again and again, as of a JavaScript while",
    });
  }

  noteUse(value: Value): void {
    this.#conditions.delete(value);
  }

  /** Takes unused conditions for no mistake, in kernels that a compiler writes: it drops a test where another one cannot hold. */
  forgetConditions(): void {
    this.#conditions.clear();
  }

  /** Reports the conditions that only JavaScript has seen. */
  requireUsedConditions(): void {
    const [first, ...others] = this.#conditions.values();
    if (first === undefined) return;
    throw new TilewrightError({
      code: "TW1006",
      message: `the condition made by ${first.made} is never used`,
      location: first.location,
      expected: "a condition in when(), select() or where",
      found: "one that nothing reads, as of a JavaScript if",
      notes: others.map(({ made, location }) => ({
        message: `the condition made by ${made} is not used either`,
        location,
      })),
    });
  }
}

/** Whose `what` is, and whose it should be; one function may have traced two kernels of a name. */
export function otherKernelText(what: string, owner: Trace, active: Trace): string {
  return owner.kernelName === active.kernelName
    ? `${what} belongs to another trace of kernel ${owner.kernelName}`
    : `${what} belongs to kernel ${owner.kernelName}, not to kernel ${active.kernelName}`;
}

const traces: Trace[] = [];

/** The trace that `name`, a function of the language, records into. */
export function activeTrace(name: string, location?: Location): Trace {
  const trace = traces.at(-1);
  if (trace === undefined) {
    throw new TilewrightError({
      code: "TW1002",
      message: `${name} was used outside a kernel's body`,
      location,
      expected: "a call while a kernel's body is traced",
      found: "no kernel that is being traced",
    });
  }
  return trace;
}

/** Runs `body` with `trace` active. */
export function withTrace<T>(trace: Trace, body: () => T): T {
  traces.push(trace);
  try {
    return body();
  } finally {
    traces.pop();
  }
}

/** Adds an op without regions to the active trace. */
export function emit<K extends OpKind>(
  kind: K,
  operands: OpOperands<K>,
  attributes: OpAttributes<K>,
  location: Location,
): readonly Value[] {
  requireAttributeKinds(kind, attributes, location);
  const trace = traces.at(-1) ?? activeTrace(opName({ kind, attributes }), location);
  return trace.add(kind, operands, attributes, noSlots as OpRegions<K>, location);
}

/** Adds an op of one result, and gives the result with its origin. */
export function emitOrigin<K extends OpKind>(
  kind: K,
  operands: OpOperands<K>,
  attributes: OpAttributes<K>,
  location: Location,
): Origin {
  return originOf(emitValue(kind, operands, attributes, location), location);
}

/** Adds an op of one result. */
export function emitValue<K extends OpKind>(
  kind: K,
  operands: OpOperands<K>,
  attributes: OpAttributes<K>,
  location: Location,
): Value {
  const [value] = emit(kind, operands, attributes, location);
  if (value === undefined) throw new Error(`${kind} has no result`);
  return value;
}

/** The origin of a value that was made just now. */
export function originOf(value: Value, location: Location): Origin {
  return { value, scope: activeTrace("a value", location).scope, location };
}
