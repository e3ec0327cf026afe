/**
 * Arrays of the host in formats with scales: elements and scales as host arrays, found to belong together.
 *
 *   scaledHostArray(mxfp4, elements [2, 64], scales [2, 2])
 *     -> { format: mxfp4, elements, scales, axis: 1, layout: "plain", globalScale: null }
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { captureLocation } from "../../support/location.ts";
import { isReadable, isRecord, optionText, requireKnownOptions } from "../../support/options.ts";
import { f64 } from "../dtype.ts";
import { formatArray, hostArray, isHostArray, toElements, toNumbers } from "../hostarray.ts";
import type { HostArray } from "../hostarray.ts";
import { dequantizeElements } from "./dequantize.ts";
import { scaledFormats } from "./formats.ts";
import type { ScaledFormat } from "./formats.ts";
import { scaleIndices, scaleLayouts, scalePlaces, scaleShape, takesLayout } from "./layout.ts";
import type { ScaleLayout } from "./layout.ts";

/** An array of the host in a format with scales. */
export interface ScaledHostArray {
  /** The format, such as `mxfp4`. */
  readonly format: ScaledFormat;
  /** An element for each number. */
  readonly elements: HostArray;
  /** A scale for each block, as `layout` says. */
  readonly scales: HostArray;
  /** The axis along which blocks share a scale. */
  readonly axis: number;
  /** How the scales lie. */
  readonly layout: ScaleLayout;
  /** What all numbers are multiplied by besides; null where the format has none. */
  readonly globalScale: number | null;
}

/** What is not said by the arrays themselves. */
export interface ScaledHostArrayOptions {
  /** The axis along which blocks share a scale, the last one by default. */
  readonly axis?: number | undefined;
  /** How the scales lie, plain by default. */
  readonly layout?: ScaleLayout | undefined;
  /** Of nvfp4 what all numbers are multiplied by, 1 by default. */
  readonly globalScale?: number | undefined;
}

/** An array of elements and scales, which are kept and not copied. */
export function scaledHostArray(
  format: ScaledFormat,
  elements: HostArray,
  scales: HostArray,
  options: ScaledHostArrayOptions = {},
): ScaledHostArray {
  const record = Object.values<ScaledFormat>(scaledFormats).find((each) => each === format);
  if (record === undefined)
    throw mismatch("this is no format with scales", "a format such as mxfp4", optionText(format));
  if (!isHostArray(elements) || !isHostArray(scales))
    throw mismatch(
      "elements and scales are arrays of the host",
      "{ dtype, shape, data }",
      optionText(isHostArray(elements) ? scales : elements),
    );
  requireKnownOptions(
    "scaledHostArray",
    options,
    ["axis", "layout", "globalScale"],
    "TW1033",
    captureLocation(),
  );
  const { rank, axis } = axisOf(elements, options);
  const { layout = "plain", globalScale = record.hasGlobalScale ? 1 : undefined } = options;
  if (!scaleLayouts.includes(layout) || !takesLayout(record, rank, axis, layout))
    throw mismatch(
      `scales of ${record.name} along axis ${axis} have no such layout`,
      'layout: "plain"',
      optionText(layout),
    );
  if (elements.dtype !== record.element)
    throw mismatch(
      `elements of ${record.name} have another dtype`,
      record.element.name,
      elements.dtype.name,
    );
  const shape = scaleShape(record, elements.shape, axis, layout);
  if (scales.dtype !== record.scale || scales.shape.join() !== shape.join())
    throw mismatch(
      `the scales are not those of ${record.name}[${elements.shape.join(", ")}]`,
      `${record.scale.name}[${shape.join(", ")}]`,
      `${scales.dtype.name}[${scales.shape.join(", ")}]`,
    );
  if (globalScale !== undefined && (!record.hasGlobalScale || typeof globalScale !== "number"))
    throw mismatch(
      `${record.name} takes no such global scale`,
      record.hasGlobalScale ? "a number" : "none",
      optionText(globalScale),
    );
  const arrays = {
    elements: hostArray(elements.dtype, elements.shape, elements.data),
    scales: hostArray(scales.dtype, scales.shape, scales.data),
  };
  return Object.freeze({
    format: record,
    ...arrays,
    axis,
    layout,
    globalScale: globalScale ?? null,
  });
}

function axisOf({ shape }: HostArray, { axis = -1 }: ScaledHostArrayOptions) {
  const rank = shape.length;
  const own = axis < 0 ? axis + rank : axis;
  if (Number.isInteger(own) && own >= 0 && own < rank) return { rank, axis: own };
  throw mismatch(
    "the elements have no such axis",
    rank === 0 ? "elements with an axis" : `an axis from ${-rank} to ${rank - 1}`,
    optionText(axis),
  );
}

function mismatch(message: string, expected: string, found: string): TilewrightError {
  return new TilewrightError({ code: "TW0010", message, expected, found });
}

/** The numbers of an array in a format with scales, exactly. */
export function scaledNumbers(array: ScaledHostArray): Float64Array {
  const { format, elements, scales, axis, layout, globalScale } = checked(array);
  return dequantizeElements(format, {
    ...{ shape: elements.shape, axis, layout, globalScale: globalScale ?? 1 },
    elements: toElements(elements as HostArray<"f8e4m3fn">),
    scales: toElements(scales as HostArray<"f8e8m0fnu">),
  });
}

const fields = ["format", "elements", "scales", "axis", "layout", "globalScale"];

function checked(array: ScaledHostArray): ScaledHostArray {
  if (!isRecord(array) || !isReadable(array, fields))
    throw mismatch(
      "this is no array in a format with scales",
      "what scaledHostArray gives",
      optionText(array),
    );
  const { format, elements, scales, axis, layout, globalScale } = array;
  return scaledHostArray(format, elements, scales, {
    axis,
    layout,
    globalScale: globalScale ?? undefined,
  });
}

/** How `formatScaledArray` writes. */
export interface FormatScaledArrayOptions {
  /** Whether nothing is left out of long axes. */
  readonly whole?: boolean | undefined;
  /** Whether elements and scales follow, each as they lie. */
  readonly parts?: boolean | undefined;
}

/** Short text for people: format, shape, blocks and scales, then the numbers; elements and scales where asked. */
export function formatScaledArray(
  array: ScaledHostArray,
  options: FormatScaledArrayOptions = {},
): string {
  requireKnownOptions(
    "formatScaledArray",
    options,
    ["whole", "parts"],
    "TW1033",
    captureLocation(),
  );
  const { whole = false, parts = false } = options;
  const { format, elements, scales, axis, layout, globalScale } = checked(array);
  const [across, along] = format.block;
  const blocks = across === 1 ? `${along}` : `${across} × ${along}`;
  const numbers = hostArray(f64, elements.shape, scaledNumbers(array));
  const [, ...rows] = formatArray(numbers, { whole }).split("\n");
  const times = globalScale === null ? "" : `, times ${globalScale}`;
  const head = `${format.name}[${elements.shape.join(", ")}], blocks of ${blocks} along axis ${axis}, ${layout} scales ${scales.dtype.name}[${scales.shape.join(", ")}]${times}`;
  const own = parts
    ? [`elements ${formatArray(elements, { whole })}`, `scales ${formatArray(scales, { whole })}`]
    : [];
  return [head, ...rows, ...own].join("\n");
}

/** What each number is made of, as text: `6 · 0.5`, the element and the scale of its block, with the global scale behind. */
export function scaledElementTexts(array: ScaledHostArray): (index: number) => string {
  const { format, elements, scales, axis, layout, globalScale } = checked(array);
  const { shape } = elements;
  const indices = scaleIndices(format, shape, axis);
  const places = scalePlaces(format, shape, axis, layout);
  const [codes, factors] = [toNumbers(elements), toNumbers(scales)];
  const global = globalScale === null || globalScale === 1 ? "" : ` · ${globalScale}`;
  return (index) => `${codes[index]} · ${factors[places[indices[index] ?? 0] ?? 0]}${global}`;
}
