/**
 * Where evaluation stands: the values of one function's activation, and what all of the program shares.
 *
 * Rules are plain functions from an op and its frame to results. Those of ops with regions, and of ops at
 * which processes meet, are generators: they may stop with a `Request` until other processes have
 * arrived (`processes.ts`).
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { LimitedProgram } from "../../support/run-limits.ts";
import type {
  AnyGraphOp,
  ElementType,
  GraphModule,
  GraphOp,
  GraphRegion,
  GraphValue,
  TensorType,
} from "../ops/index.ts";
import { isTensor, textNameOf, typeText } from "../ops/index.ts";
import type { ScalarKind, ScalarTypes } from "./elementwise/index.ts";
import type { ScalarFunction } from "./elementwise/forms.ts";
import type { Datum, Tensor, TokenDatum } from "./value.ts";
import { datumText } from "./value.ts";

/** The place of a process in the grid: rows are replicas, columns partitions. */
export interface ProcessPlace {
  readonly replica: number;
  readonly partition: number;
}

/** What a process waits for, and where. */
export type Request = { readonly op: AnyGraphOp } & (
  | {
      /** Each member of `group` brings `value`; all get all values, in the order of the group. */
      readonly kind: "exchange";
      readonly channel: string;
      readonly group: readonly number[];
      readonly value: readonly Datum[];
    }
  | { readonly kind: "receive"; readonly channel: string }
  | { readonly kind: "send"; readonly channel: string; readonly value: readonly Datum[] }
  | { readonly kind: "infeed" }
  | { readonly kind: "outfeed"; readonly value: readonly Datum[] }
);

/** Between two pieces of work: limits are looked at, and the host may have its turn. */
export interface Pause {
  readonly kind: "pause";
}

export const pause: Pause = Object.freeze({ kind: "pause" });

/** Elements, products or comparisons, roughly, between two pauses of an op. */
export const pieceWork = 2 ** 15;

export type Steps<T> = Generator<Request | Pause, T, readonly (readonly Datum[])[]>;

/** Takes all steps at once; undefined where processes would have to meet. */
export function atOnce<T>(
  steps: Steps<T>,
  look = (): void => undefined,
): { readonly value: T } | undefined {
  let step = steps.next([]);
  for (; step.done !== true && step.value.kind === "pause"; step = steps.next([])) look();
  return step.done === true ? { value: step.value } : undefined;
}

/** What a rule gives: results, or steps that end in results. */
export type RuleResult = readonly Datum[] | Steps<readonly Datum[]>;

/** What numbers are: how they are kept, and what is done with them. */
export interface Arithmetic {
  /** The element type in which elements are kept. */
  stored(element: ElementType): ElementType;
  /** A tensor of a program's own elements as it is kept. */
  kept(own: Tensor): Tensor;
  /** The function of an op that works place by place, of elements as they are kept; undefined where it has none. */
  scalarFunction(op: GraphOp<ScalarKind>, types: ScalarTypes): ScalarFunction | undefined;
  /** Ops that are computed as a whole otherwise than by their rules; undefined where they are not. */
  results(op: AnyGraphOp, frame: Frame): readonly Datum[] | undefined;
  /** Whether sums and products are those of whole numbers modulo 2^32. */
  readonly isModular: boolean;
}

/** What all activations of a program's process share. */
export interface Session {
  readonly module: GraphModule;
  readonly arithmetic: Arithmetic;
  readonly place: ProcessPlace;
  readonly replicas: number;
  readonly partitions: number;
  /** A source of random bits for `rng`. */
  readonly random: () => number;
  /** Where `interpreter.print` writes. */
  readonly print: (text: string) => void;
  /** What `interpreter.probe` has seen, by its name. */
  readonly probes: Map<string, Tensor[]>;
  /** Asked before each op. */
  readonly limits: LimitedProgram;
  /** Whether the host has its turn between two ops. */
  readonly hasBreaks: boolean;
  /** How the ops of a region are run. */
  readonly runRegion: (
    region: GraphRegion,
    inputs: readonly Datum[],
    frame: Frame,
  ) => Steps<readonly Datum[]>;
  readonly runFunction: (
    name: string,
    inputs: readonly Datum[],
    session: Session,
    op?: AnyGraphOp,
  ) => Steps<readonly Datum[]>;
}

export class Frame {
  readonly session: Session;
  readonly #values = new Map<GraphValue, Datum>();

  constructor(session: Session) {
    this.session = session;
  }

  /** The same values for another process, which goes on by itself. */
  fork(session: Session): Frame {
    const frame = new Frame(session);
    for (const [value, datum] of this.#values) frame.define(value, datum);
    return frame;
  }

  define(value: GraphValue, datum: Datum): void {
    this.#values.set(value, datum);
  }

  forget(value: GraphValue): void {
    this.#values.delete(value);
  }

  datum(value: GraphValue): Datum {
    const datum = this.#values.get(value);
    if (datum === undefined) throw new Error(`value ${value.id} is used before it is defined`);
    return datum;
  }

  data(values: readonly GraphValue[]): readonly Datum[] {
    return values.map((value) => this.datum(value));
  }

  tensor(value: GraphValue): Tensor {
    const datum = this.datum(value);
    if (datum.kind === "tensor") return datum;
    throw new Error(`a tensor was expected, not ${datumText(datum)}`);
  }

  tensors(values: readonly GraphValue[]): readonly Tensor[] {
    return values.map((value) => this.tensor(value));
  }

  /** The type that a value's tensor has here. */
  typeOf(value: GraphValue, op: AnyGraphOp): TensorType {
    if (!isTensor(value.type)) throw unsupported(op, `it has the type ${typeText(value.type)}`);
    const { element, shape } = value.type;
    return { kind: "tensor", element: this.stored(element), shape };
  }

  /** The type of an op's result. */
  result(op: AnyGraphOp, index = 0): TensorType {
    const value = op.results[index];
    if (value === undefined) throw new Error(`${op.kind} has no result ${index}`);
    return this.typeOf(value, op);
  }

  /** The element type in which elements are kept. */
  stored(element: ElementType): ElementType {
    return this.session.arithmetic.stored(element);
  }
}

/** An op that the evaluator cannot run. */
export function unsupported(op: AnyGraphOp, reason: string): TilewrightError {
  return new TilewrightError({
    code: "TW9501",
    message: `${textNameOf(op)} cannot be evaluated: ${reason}`,
    location: op.location,
    expected: "an op that the evaluator runs, see docs/stablehlo-operations.md",
    found: op.name === "" ? textNameOf(op) : op.name,
  });
}

export type { TokenDatum };
