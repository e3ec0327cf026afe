/** Prologues as specifications give them: checked, and with what they read of the further inputs. */
import type { DType } from "../../../formats/dtype.ts";
import { dtypes } from "../../../formats/dtype.ts";
import { ceilDivSize, multiplySizes } from "../../../ir/size.ts";
import { tensor } from "../../../lang/index.ts";
import type { TensorSpec, Tile } from "../../../lang/index.ts";
import type { Location } from "../../../support/location.ts";
import { isRecord, optionText, requireKnownOptions } from "../../../support/options.ts";
import { byElement } from "../../support/by-element.ts";
import { nameTaken, refused } from "../argument-errors.ts";
import type { MatmulProblem, Operand } from "../problem.ts";
import { prologueInput } from "./prologue.ts";
import type { Prologue, PrologueFunction, QuickPrologue } from "./prologue.ts";
import {
  dequantized,
  isQuick,
  mayBeQuick,
  packedUnit,
  quicklyDequantized,
  quickWeights,
  scaleShape,
  scalesOfUnit,
} from "../weights/quantized.ts";
import type { QuantizedSpec } from "../weights/quantized.ts";

type Given = Pick<MatmulProblem, "prologues" | "prologueInputs">;
type Operands = { readonly [N in "a" | "b"]: Operand };

/** What a specification says about its operands. */
export function prologuesOf(
  given: unknown,
  inputs: { readonly [name: string]: TensorSpec },
  operands: Operands,
  location: Location,
): Given {
  if (given === undefined) return { prologues: { a: undefined, b: undefined }, prologueInputs: {} };
  requireKnownOptions("the prologue of matmul", given, ["a", "b"], "TW1033", location);
  const { a, b } = given as { readonly a?: unknown; readonly b?: unknown };
  const prologues = {
    a: a === undefined ? undefined : prologueOf("a", a, inputs, operands, location),
    b: b === undefined ? undefined : prologueOf("b", b, inputs, operands, location),
  };
  const names = Object.values(prologues).flatMap((each) => each?.inputs.map(({ name }) => name));
  return {
    prologues,
    prologueInputs: Object.fromEntries(
      Object.entries(inputs).filter(([name]) => names.includes(name)),
    ),
  };
}

function prologueOf(
  operand: "a" | "b",
  given: unknown,
  inputs: { readonly [name: string]: TensorSpec },
  operands: Operands,
  location: Location,
): Prologue {
  const what = `the prologue of ${operand}`;
  requireKnownOptions(what, given, ["inputs", "as", "compute"], "TW1033", location);
  const {
    inputs: names = [],
    as,
    compute,
  } = given as { readonly inputs?: unknown; readonly as?: unknown; readonly compute?: unknown };
  if (!Object.values<unknown>(dtypes).includes(as))
    throw refused(
      "TW9905",
      `${what} gives no format`,
      "as: bf16, or the like",
      optionText(as),
      location,
    );
  if (typeof compute !== "function")
    throw refused(
      "TW9905",
      `${what} computes nothing`,
      "compute: (tiles) => …",
      optionText(compute),
      location,
    );
  const isInput = (name: unknown): boolean =>
    typeof name === "string" && Object.hasOwn(inputs, name);
  if (!Array.isArray(names) || !names.every(isInput))
    throw refused(
      "TW9905",
      `${what} reads inputs that there are not`,
      `names among ${Object.keys(inputs).join(", ") || "the inputs, of which there are none"}`,
      isRecord(names) ? "an object" : optionText(names),
      location,
    );
  const { rows, columns } = operands[operand];
  const sizes = operand === "a" ? { k: columns, extent: rows } : { k: rows, extent: columns };
  return {
    ...{
      operand,
      as: as as DType,
      compute: (tiles) => byElement(what, compute as PrologueFunction, tiles, location),
      quick: undefined,
      unit: 1,
    },
    inputs: (names as readonly string[]).flatMap((name) => {
      const spec = inputs[name];
      return spec === undefined ? [] : [prologueInput(name, spec, operand, sizes, location)];
    }),
  };
}

/** Weights as they lie in memory: columns one after the other. */
export function storedOperand({ dtype, shape: [k, n], batch }: QuantizedSpec): Operand {
  const stored = multiplySizes(ceilDivSize(k, packedUnit), packedUnit);
  return {
    spec: tensor(dtype, [...(batch === undefined ? [] : [batch]), n, stored]),
    ...{ batch, rows: k, columns: n, byRows: false },
  };
}

const quickPrologue: QuickPrologue = {
  factor: quickWeights.factor,
  input: "bScale",
  suits: (scales) => isQuick(scales as Tile<"bf16">),
  compute: ({ b, bScale }) => {
    if (b === undefined || bScale === undefined) throw new Error("no weights");
    return quicklyDequantized(b, bScale as Tile<"bf16">);
  },
};

/** How weights are read, with their scales and zero points as further inputs. */
export function weightPrologue(
  weights: QuantizedSpec,
  given: unknown,
  inputs: { readonly [name: string]: TensorSpec },
  /** Whether each matrix of the product has weights of its own. */
  batched: boolean,
  location: Location,
): Given {
  const { dtype, shape, batch, group, span, scale, as, zero } = weights;
  if (given !== undefined)
    throw refused(
      "TW9905",
      "quantised weights have a prologue of their own",
      "no prologue, or an array for b",
      "both",
      location,
    );
  const shared = { group, span, batched, perUnit: scalesOfUnit(weights) };
  const further = [
    { name: "bScale", dtype: scale, ...shared },
    ...(zero ? [{ name: "bZero", dtype, ...shared }] : []),
  ];
  const taken = further.find(({ name }) => Object.hasOwn(inputs, name));
  if (taken !== undefined)
    throw nameTaken(taken.name, "scales or zero points of weights", location);
  return {
    prologues: {
      a: undefined,
      b: {
        ...{ operand: "b", as, inputs: further, unit: packedUnit },
        compute: ({ b, bScale, bZero }) => {
          if (b === undefined || bScale === undefined) throw new Error(`no ${dtype.name} weights`);
          return dequantized(b, bScale, bZero, weights);
        },
        quick: mayBeQuick(weights) ? quickPrologue : undefined,
      },
    },
    prologueInputs: Object.fromEntries(
      further.map((input) => [input.name, tensor(input.dtype, scaleShape(input, ...shape, batch))]),
    ),
  };
}
