/**
 * What every emission rule works with: the code being written, where values are, the placed kernel, the block's own numbers, and the launch's parameters. Rules of an op family live in a file
 * each and know nothing of one another beyond this.
 */
import type { DType } from "../../formats/dtype.ts";
import type { AnyOp, Kernel, Region, Value } from "../../ir/node.ts";
import type { OpKind } from "../../ir/ops.ts";
import type { Op } from "../../ir/node.ts";
import { countUses } from "../../ir/rewrite/analysis.ts";
import { sizeText } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { AccumulatorRegisters } from "../../ir/accumulator-registers.ts";
import { windowsOf } from "../../layout/model/windows.ts";
import type { Windows } from "../../layout/model/windows.ts";
import type { Target } from "../../targets/target.ts";
import { Code, SourceFiles } from "../function-builder.ts";
import type { LaunchParameter, LaunchPlan, MessageSite } from "../executable.ts";
import type { Operand, Register, Variable } from "../module.ts";
import { address, integer, symbol } from "../operands.ts";
import { dependentLaunch } from "./programmatic-dependent-launch.ts";
import { AskedBounds } from "./memory/checked-bounds.ts";
import { roundedFunctions } from "./elementwise/rounded-functions.ts";
import type { HalfFormat } from "../math/index.ts";
import { Numbers } from "./numbers.ts";
import { needsFailureCell, startsProducts } from "./failure-cell.ts";
import type { ProfileRing } from "./profile.ts";
import type {
  BarrierValue,
  EmittedValue,
  InflightValue,
  RefValue,
  ScalarValue,
  SemaphoreValue,
  TensorValue,
  TileValue,
} from "./values.ts";

/** A rule writes one op's instructions. */
export type EmitRule<K extends OpKind> = (op: Op<K>, context: EmitContext) => void;
export type EmitRules<Table> = { readonly [K in keyof Table & OpKind]: EmitRule<K> };

/** Who runs the code that is being written. */
export interface Scope {
  /** The program threads, by their index. */
  readonly threads: readonly number[];
  /** Warps that run it together: those of a program thread, or one on its own (`warps`). */
  readonly warps: number;
}

/** Emits the ops of a region; what it yields is left to the caller. */
export type RegionEmitter = (region: Region, context: EmitContext) => void;

export interface EmissionOptions {
  /** Whether what the program promises of numbers is tested, as the emulator does. */
  readonly checkPromises?: boolean;
}

export class EmitContext {
  readonly kernel: Kernel;
  readonly target: Target;
  readonly windows: Windows;
  readonly files = new SourceFiles();
  readonly code = new Code(this.files);
  /** Thread, warp, lane, block: registers made once, when first asked for. */
  readonly numbers: Numbers;
  readonly parameters: LaunchParameter[] = [];
  readonly parameterVariables: Variable[] = [];
  readonly messages: MessageSite[] = [];
  /** b64: the launch's cell for the time of a failure (`failure.ts`); undefined where the kernel has no use for it. */
  readonly failureCell: Register | undefined;
  /** Which accumulators share their registers. */
  readonly accumulatorRegisters: AccumulatorRegisters;
  /** Whether products may be in flight beside other instructions. */
  readonly hasProducts: boolean;
  /** Whether the kernel before may run yet when this one starts. */
  readonly dependentLaunch: LaunchPlan["dependentLaunch"];
  /** Registers that only a window which may be outside is found by, and what they are after a failure. */
  readonly redirects = new Map<Register, Operand>();
  /** Functions of f32 that need be no more exact than a narrower format shows. */
  readonly roundedFunctions: ReadonlyMap<AnyOp, HalfFormat>;
  /** Results of conversions that have taken the factor along that the product with them has (`scaled-casts.ts`). */
  readonly scaledCasts = new Set<Value>();
  /** Those of them, and their products with the factor, that only the product with scales makes numbers of; and what it must know for that. */
  readonly placedCasts = new Map<Value, { readonly factor: number; readonly added: number }>();
  /** Where a profiled kernel writes, once its ring is open. */
  profile: ProfileRing | undefined;
  /** b32: where the kernel's tensor memory begins, once it is allocated. */
  tensorBase: Register | undefined;
  scope: Scope;
  /** Windows that are known to be inside where the next instruction stands. */
  asked = new AskedBounds();
  /** Whether it tests promises instead of relying on them alone. */
  readonly checksPromises: boolean;
  readonly #emitRegion: RegionEmitter;
  readonly #uses: ReadonlyMap<Value, number>;
  readonly #values = new Map<Value, EmittedValue>();
  readonly #parameterRegisters = new Map<string, Register>();

  /** The op that used scratch last, so that it is not used again while lanes read it. */
  lastScratchUser: AnyOp | undefined;

  constructor(
    kernel: Kernel,
    emitRegion: RegionEmitter,
    { checkPromises = false }: EmissionOptions = {},
  ) {
    if (kernel.placed === undefined) throw new Error(`${kernel.name} has not been placed`);
    this.kernel = kernel;
    this.checksPromises = checkPromises;
    this.target = kernel.placed.target;
    this.windows = windowsOf(kernel);
    this.numbers = new Numbers(this.code, kernel.warps);
    this.scope = { threads: kernel.threads.map((_, index) => index), warps: kernel.warps };
    this.#emitRegion = emitRegion;
    this.#uses = countUses(kernel.body);
    this.accumulatorRegisters = new AccumulatorRegisters(kernel.body);
    this.roundedFunctions = roundedFunctions(kernel.body);
    this.hasProducts = startsProducts(kernel);
    this.dependentLaunch = dependentLaunch(kernel);
    if (needsFailureCell(kernel, this.windows.facts))
      this.failureCell = this.parameter({
        kind: "scratch",
        name: "failure",
        bytes: 8,
        zeroed: true,
      });
  }

  /** Writes the region's ops. */
  region(region: Region): void {
    this.#emitRegion(region, this);
  }

  /** Whether anybody reads the value. */
  isUsed(value: Value): boolean {
    return this.#uses.has(value);
  }

  define(value: Value | undefined, emitted: EmittedValue): void {
    if (value === undefined) throw new Error("an op has no such result");
    this.#values.set(value, emitted);
  }

  value(value: Value): EmittedValue {
    const emitted = this.#values.get(value);
    if (emitted === undefined) throw new Error(`%${value.id} has not been emitted`);
    return emitted;
  }

  scalar(value: Value): ScalarValue {
    return this.#kind(value, ["scalar"]) as ScalarValue;
  }

  tile(value: Value): TileValue {
    return this.#kind(value, ["tile"]) as TileValue;
  }

  inflight(value: Value): InflightValue {
    return this.#kind(value, ["inflight"]) as InflightValue;
  }

  ref(value: Value): RefValue {
    return this.#kind(value, ["global", "shared", "reshaped"]) as RefValue;
  }

  tensor(value: Value): TensorValue {
    return this.#kind(value, ["tensor"]) as TensorValue;
  }

  barrier(value: Value): BarrierValue {
    return this.#kind(value, ["barrier"]) as BarrierValue;
  }

  semaphore(value: Value): SemaphoreValue {
    return this.#kind(value, ["semaphore"]) as SemaphoreValue;
  }

  #kind(value: Value, kinds: readonly EmittedValue["kind"][]): EmittedValue {
    const emitted = this.value(value);
    if (!kinds.includes(emitted.kind)) throw new Error(`%${value.id} is a ${emitted.kind}`);
    return emitted;
  }

  /** The bytes of shared memory at which an allocation begins. */
  sharedOffset(value: Value): number {
    const { at } = (this.windows.definitions.get(value)?.attributes ?? {}) as { at?: number };
    if (at === undefined) throw new Error(`%${value.id} has no place in shared memory`);
    return at;
  }

  /** A parameter of the launch, loaded once at the start; 128-byte maps give their generic address. */
  parameter(parameter: LaunchParameter): Register {
    const key = parameterKey(parameter);
    const known = this.#parameterRegisters.get(key);
    if (known !== undefined) return known;
    const variable = parameterVariable(parameter, `${this.parameters.length}`);
    this.parameters.push(parameter);
    this.parameterVariables.push(variable);
    const register = this.code.inPrologue(() => this.#loadParameter(parameter, variable));
    this.#parameterRegisters.set(key, register);
    return register;
  }

  #loadParameter(parameter: LaunchParameter, { name, type }: Variable): Register {
    if (parameter.kind === "tensorMap") {
      const place = this.code.make("b64", "mov.b64", symbol(name));
      return this.code.make("b64", "cvta.param.u64", place);
    }
    if (type === "u8") {
      const narrow = this.code.make("b16", "ld.param.u8", address(symbol(name)));
      return this.code.make("b32", "cvt.u32.u16", narrow);
    }
    if (type !== "b16" && type !== "b32" && type !== "b64")
      throw new Error(`a parameter of ${type}`);
    const loaded = this.code.make(type, `ld.param.${type}`, address(symbol(name)));
    const pointer = parameter.kind === "array" || parameter.kind === "scratch";
    return pointer || parameter.kind === "messages"
      ? this.code.make("b64", "cvta.to.global.u64", loaded)
      : loaded;
  }

  /** A size as a register: a constant, or a parameter that the launch fills in. */
  size(size: Size, bits: 32 | 64 = 32): Register {
    if (typeof size !== "number") return this.parameter({ kind: "size", size, bits });
    return this.code.make(bits === 32 ? "b32" : "b64", `mov.b${bits}`, integer(size));
  }
}

function parameterKey(parameter: LaunchParameter): string {
  switch (parameter.kind) {
    case "size":
      return `size ${sizeText(parameter.size)} ${parameter.bits}`;
    case "tensorMap": {
      const { array, dtype, extents, strides, box, swizzle, fill, use } = parameter.map;
      const sizes = [extents, strides, box].map((list) => list.map(sizeText).join()).join(" ");
      return `map ${array} ${dtype.name} ${sizes} ${swizzle} ${fill} ${use}`;
    }
    case "array":
    case "scalar":
    case "scratch":
      return `${parameter.kind} ${parameter.name}`;
    case "messages":
      return "messages";
  }
}

function parameterVariable(parameter: LaunchParameter, number: string): Variable {
  const name = `${parameter.kind}_${number}`;
  const base = { kind: "variable", space: "param", name } as const;
  switch (parameter.kind) {
    case "tensorMap":
      return { ...base, type: "b8", count: 128, alignment: 64 };
    case "size":
      return { ...base, type: parameter.bits === 32 ? "b32" : "b64" };
    case "scalar":
      return { ...base, type: scalarType(parameter.dtype) };
    case "array":
    case "scratch":
    case "messages":
      return { ...base, type: "b64" };
  }
}

/** Narrow scalars take a byte; they are widened by the prologue of the kernel. */
function scalarType({ bits }: DType): Variable["type"] {
  if (bits <= 8) return "u8";
  return bits === 16 ? "b16" : bits === 32 ? "b32" : "b64";
}
