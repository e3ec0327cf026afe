/**
 * Products of operands in formats with scales as one op, a call that the library makes on devices and that means other ops elsewhere:
 *
 *   stablehlo.custom_call @tilewright.scaled_matmul(%a, %b, %bScale) {backend_config = "bf16 mxfp4"}      a [m, k] · b [n, k]ᵀ
 *
 * Operands are a, b, the scales of those that have some, and a global scale, [1] of f32, where the settings end with `global`.
 */
import type { Operation } from "../../../device/operation.ts";
import { dtypes } from "../../../formats/dtype.ts";
import { scaledFormats } from "../../../formats/scaled/formats.ts";
import type { ScaledFormat } from "../../../formats/scaled/formats.ts";
import { scaledMatmul } from "../../../kernels/matmul/scaled-matmul.ts";
import type { ScaledOperandFormat } from "../../../kernels/matmul/scaled-matmul.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { scaledProductSettings } from "../../transform/expand/block-scaled.ts";
import { sizeOf } from "../../ops/types.ts";
import { leastProducts } from "../library.ts";
import type { LibraryCall } from "../library.ts";
import { dtypeOf, tensorTypeOf } from "../storage.ts";

type Call = GraphOp<"stablehlo.custom_call">;

const operations = new Map<string, Operation>();

function formatNamed(name: string): ScaledOperandFormat {
  const formats: readonly ScaledFormat[] = Object.values(scaledFormats);
  return formats.find((each) => each.name === name)?.name ?? dtypes.bf16;
}

function operationOf(
  names: readonly [string, string],
  batched: boolean,
  globalScale: boolean,
  result: GraphValue,
): Operation {
  const out = dtypeOf(result);
  const key = [...names, batched, globalScale, out.name].join();
  const known = operations.get(key);
  if (known !== undefined) return known;
  const [a, b] = [formatNamed(names[0]), formatNamed(names[1])];
  const made: Operation = scaledMatmul({ a, b, batched, globalScale, out });
  operations.set(key, made);
  return made;
}

/** The library's product; undefined where there are so few that kernels of the program's own take no longer. */
export function scaledLibraryCall(op: Call): LibraryCall | undefined {
  const settings = scaledProductSettings(op);
  const [result] = op.results;
  if (settings === undefined || result === undefined) return undefined;
  const { a, b, aScale, bScale, globalScale } = settings.operands;
  const { shape } = tensorTypeOf(result);
  const k = tensorTypeOf(a).shape.at(-1) ?? 1;
  if (sizeOf(shape) * k < leastProducts) return undefined;
  const named: { readonly [name: string]: GraphValue | undefined } = {
    ...{ a, b, aScale, bScale, globalScale },
  };
  return {
    operation: operationOf(settings.formats, shape.length === 3, globalScale !== undefined, result),
    inputs: Object.entries(named).flatMap(([name, value]) =>
      value === undefined ? [] : [{ name, value, shape: tensorTypeOf(value).shape }],
    ),
    outputs: [{ name: "out", shape }],
    isNoted: true,
  };
}

/** The name by which a call has a format. */
export function settingName(format: ScaledFormat | "bf16"): string {
  return format === "bf16" ? format : format.name;
}
