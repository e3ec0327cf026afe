/**
 * The state of one kernel's lowering: the function that is being written, what is held for each value, scratch memory, and
 * what a launch must hand over.
 */
import type { DType } from "../../formats/dtype.ts";
import type { AnyOp, Kernel, Value } from "../../ir/node.ts";
import type { Size } from "../../ir/size.ts";
import { sizeText } from "../../ir/size.ts";
import { walkOps } from "../../ir/traverse.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import type {
  ArgumentField,
  CpuFeatures,
  Fault,
  FaultValue,
  PrintSite,
} from "../compiled-kernel.ts";
import { FunctionBuilder, i32, load, op, read } from "../loops/builder.ts";
import type { ModuleBuilder } from "../loops/builder.ts";
import type { Callee, Expression, Local } from "../loops/ir.ts";
import { StraightFlow } from "./flow.ts";
import type { Flow, FlowCode } from "./flow.ts";
import { extentOf } from "./held.ts";
import type { Extent, Held, HeldRef, HeldTile } from "./held.ts";
import type { HostCall } from "./host-calls.ts";
import { laneKind, loadScalar, slotBytes } from "./lanes.ts";
import type { Code } from "./code.ts";
import { callListOffset, faultOffset, Scratch } from "./scratch.ts";
import type { Storage } from "./scratch.ts";

/** An argument of the module's functions. */
type FieldRequest =
  | { readonly kind: "array"; readonly name: string }
  | { readonly kind: "scalar"; readonly name: string; readonly dtype: DType }
  | { readonly kind: "size"; readonly size: Size }
  | {
      readonly kind: "memory";
      readonly name: string;
      readonly bytes: Size;
      readonly zeroed: boolean;
    }
  | { readonly kind: "stop flag" };

/** Elements from which on a loop is a function of its own. */
const outlinedFrom = 64;

export class Lowering implements FlowCode {
  readonly kernel: Kernel;
  readonly module: ModuleBuilder;
  readonly relaxed: boolean;
  /** Rows of a block of a product. */
  readonly blockRows: 4 | 6;
  readonly scratch = new Scratch();
  readonly fields: ArgumentField[] = [];
  readonly faults: Fault[] = [];
  readonly prints: PrintSite[] = [];
  readonly hostCalls: HostCall[] = [];
  readonly values = new Map<Value, Held>();
  /** Storages of tiles, whose life ends behind their value's last use. */
  readonly storages = new Map<Value, Storage>();
  /** Those that end with the op that is being lowered. */
  temporaries: Storage[] = [];
  /** Where statements go. */
  b: FunctionBuilder;
  /** Statements before all others of the function. */
  head: FunctionBuilder;
  readonly argumentBlock: Local;
  readonly scratchBase: Local;
  readonly #coordinateLocals: readonly Local[];
  readonly #blockLocal: Local;
  /** How the thread goes through its code. */
  flow: Flow;
  /** Memory of waiting threads that is zero when a block begins, besides that of barriers. */
  readonly zeroed: Storage[] = [];
  readonly #sync: Storage;
  #syncEnd = 0;
  readonly #syncOffsets = new Map<string, number>();
  readonly #seen: readonly { readonly storage: Storage; readonly offsets: Map<string, number> }[];
  readonly #seenWords: number;
  /** The number of the program thread whose code is written, and of the warp. */
  thread = 0;
  readonly #hostCall: Callee;
  readonly #message: Callee;
  usesMessages = false;
  /** Whether some of the threads alone run what is lowered, so that what they allocate is their own. */
  alone = false;
  readonly #shared = new Map<AnyOp, Map<string, number>>();
  /** Whether a loop may have noted a fault since `failIfNoted`. */
  noted = false;
  #argumentBytes = 0;
  #fieldReads = new Map<string, Expression>();
  readonly #fieldOffsets = new Map<string, number>();
  /** Whether anything is done that depends on the order of blocks. */
  order: "independent" | "atomic" | "in order" = "independent";

  constructor(
    kernel: Kernel,
    module: ModuleBuilder,
    { relaxed, keepsLoadsInOrder = false }: CpuFeatures,
  ) {
    this.kernel = kernel;
    this.module = module;
    this.relaxed = relaxed;
    // Products and sums by two instructions are as fast in blocks of 4.
    this.blockRows = relaxed && keepsLoadsInOrder ? 6 : 4;
    this.b = new FunctionBuilder();
    this.head = this.b.fork();
    this.argumentBlock = this.b.local("i32", "arguments");
    this.scratchBase = this.b.local("i32", "scratch");
    this.#coordinateLocals = kernel.grid.map(({ name }) => this.b.local("i32", name));
    this.#blockLocal = this.b.local("i32", "block");
    this.flow = new StraightFlow(this);
    const threads = kernel.threads.length;
    let words = 2;
    let phases = 0;
    walkOps(kernel.body, (op) => {
      if (op.kind !== "alloc_barrier") return;
      words += threads * (2 * op.attributes.count + 2);
      phases += op.attributes.count;
    });
    this.#sync = this.scratch.take(4 * words);
    this.#seenWords = phases;
    this.#seen = kernel.threads.map(() => ({
      storage: this.scratch.take(4 * phases),
      offsets: new Map(),
    }));
    this.#hostCall = module.import("host", "call", ["i32", "i32"], []);
    this.#message = module.import("host", "message", ["i32", "i32", "i32"], []);
  }

  /** All memory that is zero when a block begins; what barriers take of it is known when all threads are lowered. */
  get zeroedMemory(): readonly Storage[] {
    const sync = { offset: this.#sync.offset, bytes: this.#syncEnd };
    const seen = this.#seen.map(({ storage }) => ({
      offset: storage.offset,
      bytes: 4 * this.#seenWords,
    }));
    return [sync, ...seen, ...this.zeroed].filter(({ bytes }) => bytes > 0);
  }

  get code(): Code {
    return { builder: this.b, relaxed: this.relaxed };
  }

  get argumentBytes(): number {
    return Math.ceil(this.#argumentBytes / 16) * 16;
  }

  /** The parameters of the functions of blocks and threads. */
  get parameters(): readonly Local[] {
    return [this.argumentBlock, this.scratchBase, ...this.#coordinateLocals, this.#blockLocal];
  }

  /** The block's coordinates, by the grid's axes. */
  get coordinates(): readonly Expression[] {
    return this.#coordinateLocals.map(read);
  }

  get blockNumber(): Expression {
    return read(this.#blockLocal);
  }

  get scratchAddress(): Expression {
    return read(this.scratchBase);
  }

  /** Begins another function with the same parameters; what was read of arguments is read again. */
  beginFunction(): void {
    this.b = this.b.fork();
    this.head = this.b.fork();
    this.#fieldReads = new Map();
  }

  /* ---- arguments ---- */

  #field(key: string, request: FieldRequest, bytes: number): number {
    const known = this.#fieldOffsets.get(key);
    if (known !== undefined) return known;
    const offset = Math.ceil(this.#argumentBytes / bytes) * bytes;
    this.#argumentBytes = offset + bytes;
    this.#fieldOffsets.set(key, offset);
    this.fields.push({ offset, ...request });
    return offset;
  }

  #read(key: string, make: () => Expression): Expression {
    const known = this.#fieldReads.get(key);
    if (known !== undefined) return known;
    const value = this.head.keep(make(), key.split(" ").at(-1)?.replace(/\W+/g, "_") ?? "field");
    this.#fieldReads.set(key, value);
    return value;
  }

  /** The address of an array argument. */
  arrayAddress(name: string): Expression {
    const offset = this.#field(`array ${name}`, { kind: "array", name }, 4);
    return this.#read(`array ${name}`, () => load("i32.load", read(this.argumentBlock), offset));
  }

  scalarArgument(name: string, dtype: DType): Expression {
    const offset = this.#field(
      `scalar ${name}`,
      { kind: "scalar", name, dtype },
      Math.max(4, slotBytes(dtype)),
    );
    return this.#read(`scalar ${name}`, () => loadScalar(dtype, read(this.argumentBlock), offset));
  }

  /** Memory for the time of the launch. */
  launchMemory(name: string, bytes: Size, zeroed: boolean): Expression {
    const offset = this.#field(`memory ${name}`, { kind: "memory", name, bytes, zeroed }, 4);
    return this.#read(`memory ${name}`, () => load("i32.load", read(this.argumentBlock), offset));
  }

  stopFlag(): Expression {
    const offset = this.#field("stop flag", { kind: "stop flag" }, 4);
    return this.#read("stop flag", () => load("i32.load", read(this.argumentBlock), offset));
  }

  size(size: Size): Extent {
    if (typeof size === "number") return size;
    const text = sizeText(size);
    const offset = this.#field(`size ${text}`, { kind: "size", size }, 4);
    return this.#read(`size ${text}`, () => load("i32.load", read(this.argumentBlock), offset));
  }

  /* ---- values ---- */

  held(value: Value): Held {
    const found = this.values.get(value);
    if (found === undefined) throw new Error(`%${value.id} has not been lowered`);
    return found;
  }

  hold(value: Value, held: Held): void {
    this.values.set(value, held);
  }

  scalar(value: Value): Expression {
    const held = this.held(value);
    if (held.kind !== "scalar") throw new Error(`%${value.id} is a ${held.kind}, no scalar`);
    return held.value;
  }

  holdScalar(value: Value | undefined, expression: Expression): void {
    if (value?.type.kind !== "scalar") throw new Error("a result that is no scalar");
    const { dtype } = value.type;
    this.hold(value, { kind: "scalar", dtype, value: this.b.keep(expression, "s") });
  }

  ref(value: Value): HeldRef {
    const held = this.held(value);
    if (held.kind !== "ref") throw new Error(`%${value.id} is a ${held.kind}, no window`);
    return held;
  }

  index(value: Value): Extent {
    const expression = this.scalar(value);
    if (expression.type === "i64")
      return extentOf(this.b.keep(op("i32.wrap_i64", expression), "index"));
    return extentOf(expression);
  }

  /** A tile of its own, whose life ends with its value's. */
  allocateTile(value: Value, dtype: DType, shape: readonly number[]): HeldTile {
    const count = shape.reduce((product, extent) => product * extent, 1);
    const storage = this.scratch.take(count * slotBytes(dtype));
    this.storages.set(value, storage);
    const held = this.tileAt(storage, dtype, shape);
    this.hold(value, held);
    return held;
  }

  tileAt(storage: Storage, dtype: DType, shape: readonly number[]): HeldTile {
    const { offset } = storage;
    return { kind: "tile", dtype, shape, base: this.scratchAddress, offset, storage };
  }

  /** A tile whose life ends with the op that is lowered. */
  temporaryTile(dtype: DType, shape: readonly number[]): HeldTile {
    const count = shape.reduce((product, extent) => product * extent, 1);
    const storage = this.scratch.take(count * slotBytes(dtype));
    this.temporaries.push(storage);
    return this.tileAt(storage, dtype, shape);
  }

  /** A temporary tile that becomes a value's own: it ends with that. */
  keepTemporary({ storage }: HeldTile): void {
    this.temporaries = this.temporaries.filter((one) => one !== storage);
  }

  /** The same elements under another value, which keeps them alive. */
  alias(value: Value, tile: HeldTile, dtype: DType, shape: readonly number[]): void {
    this.hold(value, { ...tile, dtype, shape });
    if (tile.storage !== undefined) this.storages.set(value, tile.storage);
  }

  /** Memory of the block for as long as it runs, the same for all of its threads unless each has its own. */
  sharedMemory(op: AnyOp, bytes: number): Expression {
    const key = this.alone ? `${this.thread}` : "all";
    const known = this.#shared.get(op) ?? new Map<string, number>();
    this.#shared.set(op, known);
    const offset = known.get(key) ?? this.scratch.takeFresh(bytes).offset;
    known.set(key, offset);
    return this.b.keep(i32.add(this.scratchAddress, i32.of(offset)), "shared");
  }

  /** Words by which the block's threads order themselves, by name: their address. */
  syncWords(key: string, words: number): () => Expression {
    const offset = this.#syncOffsets.get(key) ?? this.#syncEnd;
    if (!this.#syncOffsets.has(key)) {
      this.#syncOffsets.set(key, offset);
      this.#syncEnd += 4 * words;
      if (this.#syncEnd > this.#sync.bytes) throw new Error("more barriers than were counted");
    }
    return () => i32.add(this.scratchAddress, i32.of(this.#sync.offset + offset));
  }

  /** Where the thread counts the phases of barriers that it has waited for. */
  seenPhases(): {
    readonly words: number;
    readonly address: (offset?: number) => Expression;
    readonly take: (key: string, count: number) => number;
  } {
    const own = this.#seen[this.thread];
    if (own === undefined) throw new Error(`no thread ${this.thread}`);
    const { storage, offsets } = own;
    return {
      words: this.#seenWords,
      address: (offset = 0) => i32.add(this.scratchAddress, i32.of(storage.offset + offset)),
      take: (key, count) => {
        const known = offsets.get(key);
        if (known !== undefined) return known;
        const used = offsets.get("") ?? 0;
        offsets.set(key, used);
        offsets.set("", used + 4 * count);
        return used;
      },
    };
  }

  /* ---- statements ---- */

  /** Statements that work on so many elements: a function of their own where these are many. */
  root(name: string, count: number, write: (b: FunctionBuilder) => void): void {
    const outer = this.b;
    const inner = outer.fork();
    this.b = inner;
    try {
      write(inner);
    } finally {
      this.b = outer;
    }
    if (count < outlinedFrom) outer.append(inner.statements);
    else outer.run(this.module.outline(name, inner.statements));
  }

  /** A fault's number, which `run` gives. */
  fault(
    kind: Fault["kind"],
    text: string,
    location: Location,
    values: readonly FaultValue[] = [],
  ): number {
    this.faults.push({ kind, text, location, values });
    return this.faults.length;
  }

  /** Ends the block with a fault where the condition holds. */
  failIf(b: FunctionBuilder, condition: Expression, fault: number): void {
    b.if(condition, () => b.return(i32.of(fault)));
  }

  /** Notes a fault from inside of a loop, which goes on; `failIfNoted` ends the block behind it. */
  noteFault(b: FunctionBuilder, condition: Expression, fault: number): void {
    this.noted = true;
    b.if(condition, () => b.store("i32.store", this.scratchAddress, i32.of(fault), faultOffset));
  }

  failIfNoted(): void {
    if (!this.noted) return;
    this.noted = false;
    const { b } = this;
    const found = b.keep(load("i32.load", this.scratchAddress, faultOffset), "fault");
    b.if(found, () => b.return(found));
  }

  /** The host computes something on memory. */
  callHost(call: HostCall, addresses: readonly Expression[]): void {
    const { b } = this;
    this.hostCalls.push(call);
    addresses.forEach((address, index) =>
      b.store("i32.store", this.scratchAddress, address, callListOffset + 4 * index),
    );
    b.run({
      form: "call",
      type: undefined,
      callee: this.#hostCall,
      operands: [
        i32.of(this.hostCalls.length - 1),
        i32.add(this.scratchAddress, i32.of(callListOffset)),
      ],
    });
  }

  message(site: number, values: Expression, block: Expression): void {
    this.usesMessages = true;
    this.b.run({
      form: "call",
      type: undefined,
      callee: this.#message,
      operands: [i32.of(site), values, block],
    });
  }

  /** What cannot be lowered, with the user's line. */
  refuse(op: AnyOp, found: string, remedy?: string): never {
    throw new TilewrightError({
      code: "TW4710",
      message: `${this.kernel.name} cannot run on the CPU device: ${found}`,
      location: op.location,
      expected: "what docs/cpu.md lists",
      found,
      ...(remedy !== undefined && { remedy }),
    });
  }

  /** Needed where a scalar is loaded into the local of its format. */
  scalarType(dtype: DType): "i32" | "i64" | "f32" | "f64" {
    return laneKind(dtype);
  }
}

/** The address of a tile. */
export function tileAddress(b: FunctionBuilder, { base, offset }: HeldTile): Expression {
  return b.keep(i32.add(base, i32.of(offset)), "tile");
}
