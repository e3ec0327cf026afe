/**
 * What the host computes for a kernel: ops that have no vectors yet, by the very functions of the simulator, on memory that
 * both see. A call is data, so that a kernel can be handed to a worker; `runHostCall` does it.
 *
 *   { op: "unary", fn: "erf_inv", dtype: "f32", count: 1024 }     addresses: the source, the result
 */
import {
  argElements,
  binaryElements,
  classifyElements,
  compareElements,
  dotElements,
  fusedMultiplyAddElements,
  reduceElements,
  scanElements,
  sortElements,
  sparseDotElements,
  unaryElements,
} from "../../formats/arithmetic/index.ts";
import type {
  Axis,
  BinaryFunction,
  ComparePredicate,
  DotShape,
  UnaryFunction,
} from "../../formats/arithmetic/index.ts";
import type {
  ArgFunction,
  ClassifyFunction,
  ReduceFunction,
  RoundingManner,
  ScanFunction,
} from "../../formats/arithmetic/functions.ts";
import { convertElements } from "../../formats/convert.ts";
import { dtypes, elementConstructors } from "../../formats/dtype.ts";
import type { DTypeName, Elements } from "../../formats/dtype.ts";
import type { ConversionOptions } from "../../formats/floats.ts";

type DotData = Omit<DotShape, "operand" | "operandB" | "accumulator"> & {
  readonly operand: DTypeName;
  readonly operandB: DTypeName;
  readonly accumulator: DTypeName;
};

export type HostCall =
  | {
      readonly op: "unary";
      readonly fn: UnaryFunction;
      readonly dtype: DTypeName;
      readonly count: number;
      readonly manner: RoundingManner;
    }
  | {
      readonly op: "binary";
      readonly fn: BinaryFunction;
      readonly dtype: DTypeName;
      readonly count: number;
      readonly manner: RoundingManner;
    }
  | {
      readonly op: "classify";
      readonly fn: ClassifyFunction;
      readonly dtype: DTypeName;
      readonly count: number;
    }
  | {
      readonly op: "compare";
      readonly predicate: ComparePredicate;
      readonly dtype: DTypeName;
      readonly count: number;
    }
  | {
      readonly op: "fma";
      readonly dtype: DTypeName;
      readonly count: number;
      readonly manner: RoundingManner;
    }
  | {
      readonly op: "cast";
      readonly from: DTypeName;
      readonly dtype: DTypeName;
      readonly count: number;
      readonly options: ConversionOptions;
    }
  | {
      readonly op: "reduce";
      readonly fn: ReduceFunction;
      readonly dtype: DTypeName;
      readonly axis: Axis;
    }
  | {
      readonly op: "scan";
      readonly fn: ScanFunction;
      readonly dtype: DTypeName;
      readonly axis: Axis;
      readonly reverse: boolean;
    }
  | {
      readonly op: "arg";
      readonly fn: ArgFunction;
      readonly dtype: DTypeName;
      readonly axis: Axis;
    }
  | {
      /** The keys and then the payloads, each sorted in place. */
      readonly op: "sort";
      readonly dtypes: readonly DTypeName[];
      readonly axis: Axis;
      readonly descending: boolean;
      readonly first: number | undefined;
    }
  | {
      /** The left and right factors, the accumulator in place, and the metadata of a sparse one. */
      readonly op: "dot";
      readonly shape: DotData;
      /** Words of metadata of a sparse product, whose left factor has half its columns; 0 of others. */
      readonly metadata: number;
    };

/** Elements at the address with a number in a call's list. */
type Places = <N extends DTypeName>(index: number, name: N, count: number) => Elements<N>;

type HostRules = {
  readonly [Op in HostCall["op"]]: (call: Extract<HostCall, { op: Op }>, at: Places) => void;
};

const hostRules: HostRules = {
  unary(call, at) {
    unaryElements(
      call.fn,
      dtypes[call.dtype],
      at(0, call.dtype, call.count),
      at(1, call.dtype, call.count),
      call.manner,
    );
  },
  binary(call, at) {
    binaryElements(
      call.fn,
      dtypes[call.dtype],
      at(0, call.dtype, call.count),
      at(1, call.dtype, call.count),
      at(2, call.dtype, call.count),
      call.manner,
    );
  },
  classify(call, at) {
    classifyElements(
      call.fn,
      dtypes[call.dtype],
      at(0, call.dtype, call.count),
      at(1, "bool", call.count),
    );
  },
  compare(call, at) {
    compareElements(
      call.predicate,
      dtypes[call.dtype],
      at(0, call.dtype, call.count),
      at(1, call.dtype, call.count),
      at(2, "bool", call.count),
    );
  },
  fma(call, at) {
    fusedMultiplyAddElements(
      dtypes[call.dtype],
      at(0, call.dtype, call.count),
      at(1, call.dtype, call.count),
      at(2, call.dtype, call.count),
      at(3, call.dtype, call.count),
      call.manner,
    );
  },
  cast(call, at) {
    convertElements(
      dtypes[call.from],
      dtypes[call.dtype],
      at(0, call.from, call.count),
      at(1, call.dtype, call.count),
      call.options,
    );
  },
  reduce(call, at) {
    reduceElements(
      call.fn,
      dtypes[call.dtype],
      at(0, call.dtype, countOf(call.axis)),
      call.axis,
      at(1, call.dtype, call.axis.outer * call.axis.inner),
    );
  },
  scan(call, at) {
    scanElements(
      call.fn,
      dtypes[call.dtype],
      at(0, call.dtype, countOf(call.axis)),
      call.axis,
      at(1, call.dtype, countOf(call.axis)),
      call.reverse,
    );
  },
  arg(call, at) {
    argElements(
      call.fn,
      dtypes[call.dtype],
      at(0, call.dtype, countOf(call.axis)),
      call.axis,
      at(1, "i32", call.axis.outer * call.axis.inner),
    );
  },
  sort(call, at) {
    const [keys, ...payloads] = call.dtypes.map((name, index) =>
      at(index, name, countOf(call.axis)),
    );
    const [name = "f32"] = call.dtypes;
    if (keys !== undefined)
      sortElements(dtypes[name], keys, payloads, call.axis, call.descending, call.first);
  },
  dot(call, at) {
    const { shape, metadata } = call;
    const { m, n, k } = shape;
    const dot = {
      ...shape,
      operand: dtypes[shape.operand],
      operandB: dtypes[shape.operandB],
      accumulator: dtypes[shape.accumulator],
    };
    const right = at(1, shape.operandB, k * n);
    const sums = at(2, shape.accumulator, m * n);
    if (metadata > 0)
      sparseDotElements(
        dot,
        at(0, shape.operand, (m * k) / 2),
        at(3, "u16", metadata),
        right,
        sums,
      );
    else dotElements(dot, at(0, shape.operand, m * k), right, sums);
  },
};

/** Does one call on the memory at the addresses of a list. */
export function runHostCall(call: HostCall, memory: ArrayBufferLike, list: number): void {
  const addresses = new Uint32Array(memory, list, 16);
  const at: Places = (index, name, count) =>
    new elementConstructors[name](memory, addresses[index] ?? 0, count);
  switch (call.op) {
    case "unary":
      return hostRules.unary(call, at);
    case "binary":
      return hostRules.binary(call, at);
    case "classify":
      return hostRules.classify(call, at);
    case "compare":
      return hostRules.compare(call, at);
    case "fma":
      return hostRules.fma(call, at);
    case "cast":
      return hostRules.cast(call, at);
    case "reduce":
      return hostRules.reduce(call, at);
    case "scan":
      return hostRules.scan(call, at);
    case "arg":
      return hostRules.arg(call, at);
    case "sort":
      return hostRules.sort(call, at);
    case "dot":
      return hostRules.dot(call, at);
  }
}

function countOf({ outer, length, inner }: Axis): number {
  return outer * length * inner;
}
