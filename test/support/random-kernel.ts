/**
 * Random kernels for fuzzing: valid by construction, since every op passes inference as it is added,
 * and free of races, since each program thread stores to buffers and outputs of its own. They compute
 * on scalars and tiles of many formats, load and store, loop with carries, branch and switch, with
 * constants that passes like (0, 1, -0, NaN) more often than chance would give.
 *
 *   randomKernel(7)    always the same kernel
 */
import {
  acceptsArg,
  acceptsBinary,
  acceptsClassify,
  acceptsCompare,
  acceptsFused,
  acceptsReduce,
  acceptsScan,
  acceptsSort,
  acceptsUnary,
  argFunctions,
  binaryFunctions,
  classifyFunctions,
  comparePredicates,
  inDomain,
  reduceFunctions,
  scanFunctions,
  unaryFunctions,
} from "../../src/formats/arithmetic/functions.ts";
import { bf16, bool, f16, f32, i32, i64 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import type { Kernel, KernelParameter, ParameterRole, Region, Value } from "../../src/ir/node.ts";
import { ceilDivSize, dimension } from "../../src/ir/size.ts";
import { dataShape, dataType, isData, refType, scalarType } from "../../src/ir/types.ts";
import type { DataType } from "../../src/ir/types.ts";
import { Random } from "../../src/support/random.ts";
import { inexactFunctions } from "./inexact-functions.ts";
import { blockRows, columns, RandomAccesses, windowShape } from "./random-accesses.ts";
import { formats, shapes } from "./random-values.ts";
import type { DataValue } from "./random-values.ts";

const n = dimension("n");

/** Formats of the arrays that a random kernel reads, and that each of its threads writes. */
const inputFormats: readonly DType[] = [f32, i32, bf16];
const outputFormats: readonly DType[] = [f32, i32, f16, i64];

export interface RandomKernelOptions {
  /** Only what has one right result, whatever the order of its steps. */
  readonly exact?: boolean;
  /** The most statements of a thread, those inside others aside; 19 unless given. */
  readonly statements?: number;
}

export function randomKernel(seed: number, options: RandomKernelOptions = {}): Kernel {
  return new Generator(seed, options).kernel();
}

/** Sums depend on the order of their terms. */
const orderedOrInexact: ReadonlySet<string> = new Set([...inexactFunctions, "sum", "prod"]);

/** Warps of the kernel's threads; no draw of the generator's own, so that kernels of old seeds stay what they were. */
function warpsFor(seed: number): number {
  return [4, 4, 4, 1, 4, 8, 4, 2, 4, 16][seed % 10] ?? 4;
}

class Generator extends RandomAccesses {
  readonly #seed: number;
  readonly #exact: boolean;
  readonly #statementLimit: number;
  readonly #header: Pick<Kernel, "grid" | "threads" | "warps" | "dimensions">;

  constructor(seed: number, { exact = false, statements = 19 }: RandomKernelOptions) {
    const random = new Random(seed);
    const axis = Object.freeze({ name: "i", extent: ceilDivSize(n, blockRows), cluster: 1 });
    const header = {
      grid: Object.freeze([axis]),
      threads: Object.freeze(random.uniform() < 0.8 ? ["main"] : ["first", "second"]),
      warps: warpsFor(seed),
      dimensions: Object.freeze([n]),
    };
    super(random, header);
    this.#seed = seed;
    this.#exact = exact;
    this.#statementLimit = statements;
    this.#header = header;
  }

  kernel(): Kernel {
    const { threads } = this.#header;
    const declared = [
      ...inputFormats.map((dtype) => this.#array("input", `in_${dtype.name}`, dtype)),
      { role: "scalar" as const, name: "count", type: scalarType(i32) },
      { role: "scalar" as const, name: "factor", type: scalarType(f32) },
      ...threads.flatMap((thread) =>
        outputFormats.map((dtype) => this.#array("output", `${thread}_${dtype.name}`, dtype)),
      ),
    ];
    const values = this.builder.openRegion(declared.map(({ type }) => type));
    const parameters = declared.map(({ role, name }, position): KernelParameter => {
      const value = values[position];
      if (value === undefined) throw new Error("a parameter has a value");
      return Object.freeze({ role, name, value });
    });
    this.inputs = values.slice(0, inputFormats.length);
    this.pool = values.filter((value): value is DataValue => isData(value.type));
    const outputs = values.slice(inputFormats.length + 2);
    this.#threads(outputs);
    const body = this.builder.closeRegion(Object.freeze([]), this.location());
    const name = `random_${this.#seed}`;
    return Object.freeze({
      name,
      ...this.#header,
      parameters: Object.freeze(parameters),
      body,
      location: this.location(),
    });
  }

  #array(role: ParameterRole, name: string, dtype: DType) {
    return { role, name, type: refType("gmem", dtype, [n, columns]) };
  }

  #threads(outputs: readonly Value[]): void {
    const { threads } = this.#header;
    const buffers = threads.map(() =>
      this.one("alloc", {}, { space: "smem", dtype: f32, shape: windowShape }),
    );
    for (const thread of threads.keys()) {
      const own = outputs.slice(thread * outputFormats.length).slice(0, outputFormats.length);
      const program = () => {
        this.buffers = buffers.slice(thread, thread + 1);
        for (const buffer of this.buffers)
          this.store(buffer, this.constantOf(dataType(f32, windowShape)));
        this.#statements(4 + this.random.below(this.#statementLimit - 3), 0);
        this.#finish(own);
      };
      if (threads.length === 1) program();
      else {
        const body = this.#region([], () => {
          program();
          return [];
        });
        this.add("on_threads", {}, { threads: [thread] }, { body });
      }
    }
  }

  /** Stores a number to each of the outputs. */
  #finish(outputs: readonly Value[]): void {
    for (const [position, dtype] of outputFormats.entries()) {
      const output = outputs[position];
      if (output === undefined) throw new Error("an output for each format");
      const source = this.spread(this.pickFrom(this.pool), windowShape);
      const value = source.type.dtype === dtype ? source : this.cast(source, dtype);
      this.store(this.window(output), value);
    }
  }

  /* ---- statements ---- */

  #statements(count: number, depth: number): void {
    for (let made = 0; made < count; made++) this.#statement(depth);
  }

  #statement(depth: number): void {
    const nested = depth < 3 && this.chance(0.2);
    const makers = nested ? this.#structured : this.#simple;
    this.random.pick(makers)(depth + 1);
  }

  readonly #simple: readonly ((depth: number) => void)[] = [
    () => this.remember(this.constantOf(this.type())),
    () => this.remember(this.constantOf(this.pickFrom(this.pool).type)),
    () => this.#unary(),
    () => this.#unary(),
    () => this.#binary(),
    () => this.#binary(),
    () => this.#binary(),
    () => this.#binary(),
    () => this.#compare(),
    () => this.#classify(),
    () => this.#fused(),
    () => this.remember(this.#select()),
    () => this.#select(),
    () => this.remember(this.cast(this.pickFrom(this.pool), this.random.pick(formats))),
    () => this.#bitcast(),
    () => this.remember(this.spread(this.pickFrom(this.pool), this.random.pick(shapes))),
    () => this.#rearrange(),
    () => this.#rearrange(),
    () => this.#combine(),
    () => this.#dot(),
    () => this.#iota(),
    () => this.load(),
    () => this.load(),
    () => this.pick(),
    () => this.pick(),
    () => this.storeSomewhere(),
    () => this.scatter(),
    () => this.#scalar(),
  ];

  readonly #structured: readonly ((depth: number) => void)[] = [
    (depth) => this.#loop(depth),
    (depth) => this.#loop(depth),
    (depth) => this.#while(depth),
    (depth) => this.#if(depth),
    (depth) => this.#if(depth),
    (depth) => this.#switch(depth),
    (depth) => this.#scoped(depth),
  ];

  #unary(): void {
    const source = this.pickFrom(this.pool);
    const fns = unaryFunctions.filter(
      (fn) => acceptsUnary(fn, source.type.dtype) && this.#allows(fn, source.type.dtype),
    );
    this.give("unary", { source }, { fn: this.random.pick(fns) });
  }

  #binary(): void {
    const left = this.pickFrom(this.pool);
    const fns = binaryFunctions.filter(
      (fn) => acceptsBinary(fn, left.type.dtype) && this.#allows(fn, left.type.dtype),
    );
    const right = this.partner(left);
    const swapped = this.chance(0.3);
    const operands = swapped ? { left: right, right: left } : { left, right };
    this.give("binary", operands, { fn: this.random.pick(fns) });
  }

  #compare(): void {
    const left = this.pickFrom(this.pool);
    const predicates = comparePredicates.filter((one) => acceptsCompare(one, left.type.dtype));
    this.give(
      "compare",
      { left, right: this.partner(left) },
      { predicate: this.random.pick(predicates) },
    );
  }

  #classify(): void {
    const source = this.find(({ type }) => acceptsClassify("is_nan", type.dtype));
    if (source) this.give("classify", { source }, { fn: this.random.pick(classifyFunctions) });
  }

  #fused(): void {
    const a = this.find(({ type }) => acceptsFused(type.dtype));
    if (a) this.give("fma", { a, b: this.partner(a), c: this.partner(a) }, {});
  }

  #select(): DataValue {
    const ifTrue = this.pickFrom(this.pool);
    const condition = this.ofType(dataType(bool, dataShape(ifTrue.type)));
    return this.number("select", { condition, ifTrue, ifFalse: this.partner(ifTrue) }, {});
  }

  /** Bits of floats show the payloads of NaNs, which are not part of a value; so only bits of integers. */
  #bitcast(): void {
    const source = this.find(({ type }) => inDomain("integer", type.dtype));
    const targets = formats.filter(
      ({ bits, kind }) => bits === source?.type.dtype.bits && kind !== "bool",
    );
    if (source) this.give("bitcast", { source }, { dtype: this.random.pick(targets) });
  }

  #rearrange(): void {
    const source = this.find(({ type }) => type.kind === "tile");
    if (!source) return;
    const shape = dataShape(source.type);
    const elements = shape.reduce((product, extent) => product * extent, 1);
    const reversed = shape.map((_, axis) => shape.length - 1 - axis);
    const targets = [...shapes, [elements], [...shape, 1]].filter(
      (target) => target.reduce((product, extent) => product * extent, 1) === elements,
    );
    const makers = [
      () => this.give("reshape", { source }, { shape: this.random.pick(targets) }),
      () =>
        this.give(
          "transpose",
          { source },
          { permutation: this.chance(0.8) ? reversed : shape.map((_, axis) => axis) },
        ),
      () => this.#slice(source, shape),
      () => this.give("layout_cast", { source }, { layout: "(L0 L1 L2 L3 L4)" }),
      () =>
        this.give(
          "concatenate",
          { parts: [source, ...(this.chance(0.5) ? [source] : [])] },
          { axis: 0 },
        ),
    ];
    this.random.pick(makers)();
  }

  #slice(source: DataValue, shape: readonly number[]): void {
    const starts = shape.map((extent) => (this.chance(0.5) ? 0 : this.random.below(extent)));
    const sizes = shape.map((extent, axis) => 1 + this.random.below(extent - (starts[axis] ?? 0)));
    const whole = this.chance(0.2);
    this.give(
      "slice",
      { source },
      whole ? { starts: shape.map(() => 0), sizes: shape } : { starts, sizes },
    );
  }

  #combine(): void {
    const source =
      this.find(({ type }) => type.kind === "tile" && inDomain("logic", type.dtype)) ??
      this.find(({ type }) => type.kind === "tile");
    if (!source) return;
    const { dtype } = source.type;
    const axis = this.random.below(dataShape(source.type).length);
    const reductions = reduceFunctions.filter(
      (fn) => acceptsReduce(fn, dtype) && this.#allows(fn, dtype),
    );
    const scans = scanFunctions.filter((fn) => acceptsScan(fn, dtype) && this.#allows(fn, dtype));
    const argReductions = argFunctions.filter((fn) => acceptsArg(fn, dtype));
    const flag = this.chance(0.5);
    const makers = [
      () => this.give("reduce", { source }, { fn: this.random.pick(reductions), axes: [axis] }),
      ...(scans.length > 0
        ? [
            () =>
              this.give("scan", { source }, { fn: this.random.pick(scans), axis, reverse: flag }),
          ]
        : []),
      ...(argReductions.length > 0
        ? [() => this.give("arg_reduce", { source }, { fn: this.random.pick(argReductions), axis })]
        : []),
      ...(acceptsSort(dtype) ? [() => this.#sort(source, axis)] : []),
    ];
    this.random.pick(makers)();
  }

  /** A sort of all or of the first elements, with and without positions and a payload. */
  #sort(keys: DataValue, axis: number): void {
    const extent = dataShape(keys.type)[axis] ?? 1;
    const first = 2 ** this.random.below(1 + Math.floor(Math.log2(extent)));
    const payloads = this.chance(0.3) ? [this.ofType(keys.type)] : [];
    const attributes = {
      axis,
      descending: this.chance(0.5),
      ...(this.chance(0.5) && { first }),
      ...(this.chance(0.5) && { positions: true }),
    };
    this.give("sort", { keys, payloads }, attributes);
  }

  #allows(fn: string, dtype: DType): boolean {
    return !this.#exact || dtype.kind !== "float" || !orderedOrInexact.has(fn);
  }

  #dot(): void {
    if (this.#exact) return;
    const dtype = this.random.pick([f32, bf16]);
    const left = this.ofType(dataType(dtype, [4, 8]));
    const right = this.ofType(dataType(dtype, [8, 4]));
    const precision = dtype === f32 ? "ieee" : "native";
    this.give("dot", { left, right }, { dtype: f32, precision });
  }

  #iota(): void {
    const dtype = this.random.pick(formats.filter((format) => inDomain("number", format)));
    const shape = this.random.pick(shapes.filter(({ length }) => length > 0));
    this.give("iota", {}, { dtype, shape, axis: this.random.below(shape.length) });
  }

  #scalar(): void {
    const makers = [
      () => this.give("block_index", {}, { axis: "i" }),
      () => this.give("grid_size", {}, { axis: "i" }),
      () => this.give("cluster_rank", {}, { axis: "i" }),
      () => this.give("size", {}, { of: this.random.pick([n, ceilDivSize(n, 4)]) }),
      () => this.give("thread_index", {}, {}),
    ];
    this.random.pick(makers)();
  }

  /* ---- control ---- */

  /** A region whose statements see what is around it; nothing of it is in sight afterwards. */
  #region(
    types: readonly DataType[],
    fill: (parameters: readonly DataValue[]) => readonly Value[],
  ): Region {
    const [pool, buffers] = [this.pool, this.buffers];
    this.pool = [...pool];
    this.buffers = [...buffers];
    const parameters = this.builder.openRegion(types) as readonly DataValue[];
    this.pool.push(...parameters);
    const yielded = fill(parameters);
    const region = this.builder.closeRegion(Object.freeze([...yielded]), this.location());
    [this.pool, this.buffers] = [pool, buffers];
    return region;
  }

  #body(types: readonly DataType[], results: readonly DataType[], depth: number): Region {
    return this.#region(types, () => {
      this.#statements(1 + this.random.below(4), depth);
      return results.map((type) => this.ofType(type));
    });
  }

  #carries(): readonly DataValue[] {
    return Array.from({ length: this.random.below(3) }, () => this.pickFrom(this.pool));
  }

  /** A small number of trips, sometimes one that depends on data. */
  #bound(): DataValue {
    const constant = this.constant(i32, [], this.random.below(4));
    if (this.chance(0.7)) return constant;
    const source = this.ofType(scalarType(i32));
    const least = this.number("binary", { left: source, right: constant }, { fn: "min" });
    return this.number("binary", { left: least, right: this.constant(i32, [], 0) }, { fn: "max" });
  }

  #loop(depth: number): void {
    const initial = this.#carries();
    const types = initial.map(({ type }) => type);
    const lower = this.constant(i32, [], this.random.below(2));
    const operands = {
      lower,
      upper: this.#bound(),
      step: this.constant(i32, [], 1 + this.random.below(2)),
      initial,
    };
    const body = this.#region([scalarType(i32), ...types], (parameters) => {
      this.#statements(1 + this.random.below(4), depth);
      return types.map((type, slot) =>
        this.chance(0.2) ? (parameters[slot + 1] ?? this.ofType(type)) : this.ofType(type),
      );
    });
    this.remember(...(this.add("loop", operands, {}, { body }) as readonly DataValue[]));
  }

  /** Counts its first carry up to a bound, so it ends. */
  #while(depth: number): void {
    const initial = [this.constant(i32, [], 0), ...this.#carries()];
    const types = initial.map(({ type }) => type);
    const bound = this.#bound();
    const condition = this.#region(types, (parameters) => {
      const left = parameters[0] ?? bound;
      return [this.number("compare", { left, right: bound }, { predicate: "lt" })];
    });
    const body = this.#region(types, (parameters) => {
      this.#statements(1 + this.random.below(3), depth);
      const left = parameters[0] ?? bound;
      const next = this.number("binary", { left, right: this.constant(i32, [], 1) }, { fn: "add" });
      return [next, ...types.slice(1).map((type) => this.ofType(type))];
    });
    this.remember(
      ...(this.add("while", { initial }, {}, { condition, body }) as readonly DataValue[]),
    );
  }

  #if(depth: number): void {
    const results = this.#carries().map(({ type }) => type);
    const condition = this.ofType(scalarType(bool));
    const then = this.#body([], results, depth);
    const otherwise = this.#body([], results, depth);
    this.remember(
      ...(this.add("if", { condition }, {}, { then, otherwise }) as readonly DataValue[]),
    );
  }

  #switch(depth: number): void {
    const results = this.#carries().map(({ type }) => type);
    const index = this.ofType(scalarType(i32));
    const cases = Object.freeze(
      Array.from({ length: 1 + this.random.below(3) }, () => this.#body([], results, depth)),
    );
    this.remember(...(this.add("switch", { index }, {}, { cases }) as readonly DataValue[]));
  }

  #scoped(depth: number): void {
    const results = this.#carries().map(({ type }) => type);
    const body = this.#region([], () => {
      const buffer = this.one("alloc", {}, { space: "smem", dtype: f32, shape: windowShape });
      this.store(buffer, this.constantOf(dataType(f32, windowShape)));
      this.buffers.push(buffer);
      this.#statements(1 + this.random.below(4), depth);
      return results.map((type) => this.ofType(type));
    });
    this.remember(...(this.add("scoped", {}, {}, { body }) as readonly DataValue[]));
  }
}
