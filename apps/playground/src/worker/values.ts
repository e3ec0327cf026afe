/**
 * Arrays of a launch for the eye: a summary, a heat map of at most 96 × 96 cells, and windows of numbers.
 *
 * An array is shown as a matrix: axes before the last are joined, and a vector is folded into rows as long as the
 * square root of its length.
 */
import { isInteger } from "../../../../src/formats/dtype.ts";
import type { HostArray } from "../../../../src/formats/hostarray.ts";
import { toElements, toNumbers } from "../../../../src/formats/hostarray.ts";
import { readElement } from "../../../../src/formats/values.ts";
import type {
  ArrayComparison,
  ArraySummary,
  HeatMap,
  LaunchSummary,
  ValuesReport,
  ValuesRequest,
} from "../protocol.ts";
import type { RecordedArray, RecordedLaunch } from "./recording.ts";

const mostCells = 96;
const windowRows = 16;
const windowColumns = 8;

interface Matrix {
  readonly rows: number;
  readonly columns: number;
}

function matrixOf(shape: readonly number[]): Matrix {
  const count = shape.reduce((product, extent) => product * extent, 1);
  if (shape.length >= 2) {
    const columns = shape.at(-1) ?? 1;
    return { rows: columns === 0 ? 0 : count / columns, columns };
  }
  const columns = count <= windowColumns ? count : 2 ** Math.ceil(Math.log2(Math.sqrt(count)));
  return { rows: columns === 0 ? 0 : Math.ceil(count / columns), columns };
}

export function summarizeArray({ name, role, value }: RecordedArray): ArraySummary {
  const numbers = toNumbers(value);
  let [least, greatest, sum, counted, notANumber] = [Infinity, -Infinity, 0, 0, 0];
  for (const number of numbers) {
    if (Number.isNaN(number)) {
      notANumber += 1;
      continue;
    }
    if (number < least) least = number;
    if (number > greatest) greatest = number;
    sum += number;
    counted += 1;
  }
  const mean = counted === 0 ? NaN : sum / counted;
  const { dtype, shape } = value;
  const heat = heatMap(numbers, matrixOf(shape));
  return { name, role, dtype: dtype.name, shape, least, greatest, mean, notANumber, heat };
}

function heatMap(numbers: Float64Array, { rows, columns }: Matrix): HeatMap {
  const [height, width] = [Math.min(rows, mostCells), Math.min(columns, mostCells)];
  const sums = new Float64Array(height * width);
  const counts = new Uint32Array(height * width);
  for (let index = 0; index < numbers.length; index += 1) {
    const row = Math.floor((Math.floor(index / columns) * height) / rows);
    const column = Math.floor(((index % columns) * width) / columns);
    const cell = row * width + column;
    sums[cell] = (sums[cell] ?? 0) + (numbers[index] ?? 0);
    counts[cell] = (counts[cell] ?? 0) + 1;
  }
  const cells = Float32Array.from(sums, (sum, cell) => sum / (counts[cell] ?? 1));
  return { rows: height, columns: width, cells };
}

export function summarizeLaunch({
  kernel,
  device,
  dimensions,
  scalars,
  arrays,
  milliseconds,
}: RecordedLaunch): LaunchSummary {
  return {
    kernel: kernel.name,
    device,
    dimensions: [...dimensions],
    scalars: [...scalars].map(([name, value]) => [name, String(value)]),
    arrays: arrays.map(summarizeArray),
    milliseconds,
  };
}

/** The summary of a launch, with how each array compares with that of another device's launch. */
export function comparedLaunch(
  launch: RecordedLaunch,
  other: RecordedLaunch | undefined,
): LaunchSummary {
  const summary = summarizeLaunch(launch);
  if (other === undefined) return summary;
  const arrays = summary.arrays.map((array, position) => {
    const [mine, theirs] = [launch.arrays[position], other.arrays[position]];
    if (mine === undefined || theirs === undefined) return array;
    return { ...array, comparison: compareArrays(mine.value, theirs.value, other.device) };
  });
  return { ...summary, arrays };
}

/** Whether the two have the same bits. */
function compareArrays(mine: HostArray, theirs: HostArray, device: string): ArrayComparison {
  const left: ArrayLike<number | bigint> = toElements(mine);
  const right: ArrayLike<number | bigint> = toElements(theirs);
  const different: number[] = [];
  for (let index = 0; index < left.length; index += 1)
    if (!Object.is(left[index], right[index])) different.push(index);
  const [first] = different;
  return {
    device,
    elements: left.length,
    different: different.length,
    ...(first !== undefined && {
      first: {
        index: coordinates(first, mine.shape),
        values: [elementText(mine, first), elementText(theirs, first)],
      },
    }),
  };
}

function coordinates(index: number, shape: readonly number[]): readonly number[] {
  const place: number[] = [];
  let rest = index;
  for (const extent of [...shape].reverse()) {
    place.unshift(rest % extent);
    rest = Math.floor(rest / extent);
  }
  return place;
}

function elementText(array: HostArray, index: number): string {
  const value = readElement(array.dtype, toElements(array), index);
  return typeof value === "number" && !isInteger(array.dtype)
    ? String(Number(value.toPrecision(6)))
    : String(value);
}

/** The numbers of a window, whose corner is moved into the array. */
export function readValues(array: HostArray, { row, column }: ValuesRequest): ValuesReport {
  const { rows, columns } = matrixOf(array.shape);
  const top = Math.max(0, Math.min(row, rows - windowRows));
  const left = Math.max(0, Math.min(column, columns - windowColumns));
  const lanes = toElements(array);
  const text = (index: number): string => {
    if (index >= lanes.length) return "";
    const value = readElement(array.dtype, lanes, index);
    return typeof value === "number" && !isInteger(array.dtype)
      ? String(Number(value.toPrecision(6)))
      : String(value);
  };
  const shownRows = Math.min(rows - top, windowRows);
  const shownColumns = Math.min(columns - left, windowColumns);
  return {
    rows,
    columns,
    row: top,
    column: left,
    values: Array.from({ length: shownRows }, (_, down) =>
      Array.from({ length: shownColumns }, (_, along) =>
        text((top + down) * columns + left + along),
      ),
    ),
  };
}
