/**
 * What kernels say on the CPU: the prints and the faults of a compiled kernel name their values, which lie in memory one after the
 * other, each on a multiple of 16 bytes. The words are those of the simulator.
 */
import { packedBytes } from "../../formats/dtype.ts";
import { hostArray, storageBytes, toElements } from "../../formats/hostarray.ts";
import { coordinatesOf, elementCount } from "../../formats/shape.ts";
import { placeText } from "../../happens-before/access.ts";
import type { Place } from "../../happens-before/access.ts";
import { evaluateSize } from "../../ir/size.ts";
import type { DimensionValues } from "../../ir/size.ts";
import {
  assertionReport,
  brokenPromise,
  falseText,
  printText,
  stepReport,
  valueText,
} from "../../sim/print-messages.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { DiagnosticDetails } from "../../support/diagnostics.ts";
import { parsePrintFormat } from "../../support/print-format.ts";
import type { CpuKernel, Fault, FaultValue, PrintSite } from "../compiled-kernel.ts";
import type { CpuMemory } from "./memory.ts";

type Elements = ReturnType<typeof toElements>;

/** Values at an address, in their order. */
function valuesAt(
  memory: CpuMemory,
  address: number,
  values: readonly FaultValue[],
): readonly Elements[] {
  let at = address >>> 0;
  return values.map(({ dtype, shape }) => {
    const array = hostArray(dtype, shape);
    const bytes = packedBytes(dtype, elementCount(shape));
    storageBytes(array.data).set(memory.view(at, bytes));
    at += Math.ceil(bytes / 16) * 16;
    return toElements(array);
  });
}

/** Who speaks: a block of the grid, by its number. */
function placeOf(
  { grid }: CpuKernel,
  dimensions: DimensionValues,
  block: number,
  thread: string,
): Place {
  const extents = grid.map(({ extent }) => evaluateSize(extent, dimensions));
  return {
    thread,
    axes: grid.map(({ name }) => name),
    block: coordinatesOf(block, extents),
    iterations: [],
  };
}

export interface Speaker {
  readonly kernel: CpuKernel;
  readonly dimensions: DimensionValues;
  readonly memory: CpuMemory;
}

/** A line of `debugPrint`. */
export function printedLine(
  { kernel, dimensions, memory }: Speaker,
  { format, values, thread }: PrintSite,
  at: number,
  block: number,
): string {
  const { whole } = parsePrintFormat(format);
  const texts = valuesAt(memory, at, values).map((elements, i) => {
    const { dtype, shape } = values[i] as FaultValue;
    return valueText(dtype, shape, elements, whole[i] === true);
  });
  return printText(format, texts, placeOf(kernel, dimensions, block, String(thread)));
}

type Reports = {
  readonly [K in Fault["kind"]]: (
    fault: Fault,
    found: readonly Elements[],
    place: string,
  ) => DiagnosticDetails;
};

function first(found: readonly Elements[]): string {
  return String(found[0]?.[0] ?? "");
}

const reports: Reports = {
  assert: ({ text, location, values }, [flags], place) => {
    const [value] = values;
    const isTile = value !== undefined && value.shape.length > 0 && flags !== undefined;
    const what = isTile ? falseText(Array.from(flags, Number), value.shape) : "false";
    return assertionReport(text, location, `${what} in ${place}`);
  },
  promise: ({ text, location }, found, place) =>
    brokenPromise(text, location, `${first(found)} in ${place}`),
  step: ({ location }, found, place) => stepReport(Number(first(found)), location, place),
  bounds: ({ text, location }, found, place) => ({
    code: "TW4702",
    message: `an access of ${text} is out of bounds`,
    location,
    expected: "accesses within the array",
    found: found.length === 0 ? place : `${first(found)} in ${place}`,
  }),
  deadlock: ({ text, location }, _, place) => ({
    code: "TW4705",
    message: `nobody will ever do what the kernel waits for: ${text}`,
    location,
    expected: "an arrival or an update that ends the wait",
    found: place,
  }),
};

/** What a fault is told as; its block and values lie at `at`. */
export function faultError(
  { kernel, dimensions, memory }: Speaker,
  fault: Fault,
  at: number,
): TilewrightError {
  const block = new DataView(memory.memory.buffer).getInt32(at >>> 0, true);
  const place = placeText(placeOf(kernel, dimensions, block, "main"));
  const found = valuesAt(memory, at + 16, fault.values);
  return new TilewrightError(reports[fault.kind](fault, found, place));
}
