/** Tensor copies: boxes of an array that a tensor map describes, or pixels of it in a row (im2col). */
import { TilewrightError } from "../../support/diagnostics.ts";
import { forLanes, Issue } from "../asynchronous.ts";
import type { Issuer } from "../asynchronous.ts";
import type { Collective, CollectiveInstruction, OperandView, Place } from "../collective.ts";
import {
  decodeTensorMap,
  tensorMapBytes,
  tensorMapProblem,
  tensorMapTypeBytes,
} from "../tensor-map.ts";
import type { TensorMap, TensorMapType } from "../tensor-map.ts";
import { boxRows, boxShape, convertOnLoad, fillRow, forEachStretch } from "./box.ts";
import type { BoxRow } from "./box.ts";
import { CarriedBytes } from "./bytes.ts";
import {
  completeAtBarriers,
  completeInGroup,
  completionBarriers,
  inBlock,
  targetBlocks,
} from "./completion.ts";
import { checkWritten } from "../reports.ts";
import { acceptsReduction, reduceBytes } from "./reduction.ts";
import type { ReductionOperation, ReductionType } from "./reduction.ts";

const boxAlignment = 128;
/** Within so many bytes a swizzle only exchanges chunks. */
const swizzleLine = 128;

/** A box at its coordinates, resolved. */
interface Box {
  readonly map: TensorMap;
  /** Where the map itself lies. */
  readonly mapPlace: Place;
  readonly rows: readonly BoxRow[];
  /** Where each row's inside lies in global memory; undefined for rows outside. */
  readonly places: readonly (Place | undefined)[];
}

/** Of a map, what a copy reads: behind it is only what the driver keeps there. */
const usedMapBytes = 64;

function readMap(issuer: Issuer, source: OperandView): Pick<Box, "map" | "mapPlace"> {
  const { machine, warp, lane, instruction } = issuer;
  const address = source.address(warp, lane);
  const bytes = tensorMapBytes;
  const request = { warp, instruction, lane, kind: "generic", address, bytes } as const;
  const mapPlace = machine.resolve({ ...request, alignment: 64 });
  const { views, offset, space } = mapPlace;
  const map = decodeTensorMap(views.bytes.subarray(offset, offset + bytes));
  const isReachable = space !== "shared" && space !== "local";
  const problem = isReachable ? map && tensorMapProblem(map) : `they are in ${space} memory`;
  if (map !== undefined && problem === undefined) {
    if (space === "global") checkWritten(machine, warp, instruction, mapPlace, usedMapBytes);
    return { map, mapPlace };
  }
  const why = problem === undefined ? "" : `: ${problem}`;
  throw new TilewrightError({
    code: "TW8051",
    message: `${instruction.instruction.opcode}: the 128 bytes at 0x${address.toString(16)} are no tensor map${why}`,
    location: instruction.location,
    expected: "128 bytes that cuTensorMapEncode made, in global or constant memory or a parameter",
    found: problem ?? "other bytes",
  });
}

/** What a copy does with a box; a store writes whole units of 16 bytes, also past the end of a row. */
type BoxUse = "load" | "store";

const storeUnit = 16;

function usedRows(rows: readonly BoxRow[], rowBytes: number, use: BoxUse): readonly BoxRow[] {
  if (use === "load") return rows;
  return rows.map((row) => {
    const whole = storeUnit * Math.ceil(row.inside / storeUnit);
    return { ...row, inside: Math.min(whole, rowBytes - row.before) };
  });
}

/** Stores must begin inside the array; those of pixels must stay within, but for the images. */
function checkStored(
  { instruction }: Issuer,
  { corners }: TensorMap,
  coordinates: readonly number[],
): void {
  const { location } = instruction;
  if (coordinates.some((coordinate) => coordinate < 0))
    throw new TilewrightError({
      code: "TW8058",
      message: "a box that is stored begins before the array",
      location,
      expected: "coordinates from 0 up",
      found: `coordinates ${coordinates.join(", ")}`,
    });
  if (corners === undefined) return;
  const { lower, upper } = corners;
  if (lower.every((corner) => corner >= 0) && upper.every((corner) => corner <= 0)) return;
  throw new TilewrightError({
    code: "TW8058",
    message: "the box of pixels that are stored reaches outside of the array",
    location,
    expected: "lower corners from 0 up, upper corners from 0 down",
    found: `corners ${lower.join(", ")} and ${upper.join(", ")}`,
  });
}

/** Of a gather or scatter, `{column, row, row, row, row}`. */
const rowsOfGather = 4;

/** The map as one of boxes of four rows, which lie anywhere in the array. */
function fourRows({ instruction }: Issuer, map: TensorMap): TensorMap {
  if (map.extents.length === 2 && map.box[1] === 1 && map.corners === undefined)
    return { ...map, box: [map.box[0] ?? 1, rowsOfGather], elementStrides: undefined };
  throw new TilewrightError({
    code: "TW8053",
    message: `${instruction.instruction.opcode} with a tensor map of ${map.extents.length} axes and boxes of ${map.box.join(" by ")}`,
    location: instruction.location,
    expected: "a map of 2 axes whose boxes are one row",
    found: `boxes of ${map.box.join(" by ")}`,
  });
}

function isFourRows({ modifiers }: CollectiveInstruction): boolean {
  return modifiers.includes("tile::gather4") || modifiers.includes("tile::scatter4");
}

/** Rows at their own coordinates, one behind the other. */
function gatheredRows(map: TensorMap, [column = 0, ...rows]: readonly number[]): readonly BoxRow[] {
  const { pitch } = boxShape(map);
  const one = { ...map, box: [map.box[0] ?? 1, 1] };
  return rows.flatMap((row, at) =>
    boxRows(one, [column, row]).map((each) => ({ ...each, start: at * pitch })),
  );
}

function checkCoordinates(
  { instruction }: Issuer,
  map: TensorMap,
  coordinates: readonly number[],
): void {
  const modes = [
    instruction.modifiers.some((modifier) => modifier.startsWith("im2col")),
    map.corners !== undefined,
  ].map((isIm2col) => (isIm2col ? " of im2col" : ""));
  const axes = isFourRows(instruction) ? rowsOfGather + 1 : map.extents.length;
  if (coordinates.length !== axes || modes[0] !== modes[1])
    throw new TilewrightError({
      code: "TW8053",
      message: `${coordinates.length} coordinates${modes[0]} for a tensor map${modes[1]} of ${map.extents.length} axes`,
      location: instruction.location,
      expected: `${map.extents.length} coordinates${modes[1]}`,
      found: `${coordinates.length}${modes[0]}`,
    });
  const column = (coordinates[0] ?? 0) * tensorMapTypeBytes[map.type];
  if (column % 16 !== 0)
    throw new TilewrightError({
      code: "TW8057",
      message: `a box begins ${column} bytes into a row of the array`,
      location: instruction.location,
      expected: "an innermost coordinate that is a multiple of 16 bytes",
      found: `coordinate ${coordinates[0] ?? 0} of ${map.type}`,
    });
}

function locateBox(
  issuer: Issuer,
  source: OperandView,
  use: BoxUse,
  shift: OperandView | undefined,
): Box {
  const { machine, warp, lane, instruction } = issuer;
  const read = readMap(issuer, source);
  const { mapPlace } = read;
  const isFour = isFourRows(instruction);
  const map = isFour ? fourRows(issuer, read.map) : read.map;
  const coordinates = source.elements.map((element) => element.word(warp, lane) | 0);
  checkCoordinates(issuer, map, coordinates);
  // Rows of a scatter that lie outside are dropped.
  if (use === "store") checkStored(issuer, map, isFour ? coordinates.slice(0, 1) : coordinates);
  const offsets = shift?.elements.map((element) => element.word(warp, lane) & 0xffff);
  const boxed = isFour ? gatheredRows(map, coordinates) : boxRows(map, coordinates, offsets);
  const rows = usedRows(boxed, boxShape(map).rowBytes, use);
  const places = rows.map(({ address, inside: bytes }) =>
    bytes === 0
      ? undefined
      : machine.resolve({ warp, instruction, lane, kind: "global", address, bytes, alignment: 1 }),
  );
  return { map, mapPlace, rows, places };
}

function sharedPlace(issuer: Issuer, map: TensorMap, operand: OperandView): Place {
  const { machine, warp, lane, instruction } = issuer;
  const address = operand.address(warp, lane);
  const bytes = boxShape(map).span;
  const alignment = boxAlignment;
  return machine.resolve({ warp, instruction, lane, kind: "shared", address, bytes, alignment });
}

/** Notes the accesses to a box in shared memory. */
function recordShared(
  issue: Issue,
  { map, rows }: Box,
  place: Place,
  mode: "read" | "write",
): void {
  const { pitch, rowBytes, span } = boxShape(map);
  if (pitch === rowBytes && place.offset % swizzleLine === 0 && span % swizzleLine === 0) {
    issue.record(place, span, mode);
    return;
  }
  for (const { start } of rows)
    forEachStretch(place.offset + start, rowBytes, map.swizzle, (_, offset, length) =>
      issue.record({ ...place, offset }, length, mode),
    );
}

function recordGlobal(
  issue: Issue,
  { rows, places }: Box,
  mode: "read" | "write" | "atomic",
): void {
  for (const [index, place] of places.entries())
    if (place !== undefined) issue.record(place, rows[index]?.inside ?? 0, mode);
}

/** Moves a box from global to shared memory. */
function loadBox({ map, rows, places }: Box, targets: readonly Place[]): void {
  const { rowBytes } = boxShape(map);
  const carried = new CarriedBytes(rowBytes);
  for (const [index, { start, before, inside }] of rows.entries()) {
    const place = places[index];
    if (inside < rowBytes) {
      fillRow(map, carried.data);
      carried.states.fill(2);
    }
    if (place !== undefined) {
      carried.take(before, place.views, place.offset, inside);
      convertOnLoad(map.type, carried.data.subarray(before, before + inside));
    }
    for (const { views, offset } of targets)
      forEachStretch(offset + start, rowBytes, map.swizzle, (byte, at, length) =>
        carried.put(byte, views, at, length),
      );
  }
}

/** The vector of offsets of an im2col load at a position, and what comes behind it. */
function takeShift(
  { modifiers, operands }: CollectiveInstruction,
  position: number,
): readonly [shift: OperandView | undefined, next: OperandView | undefined] {
  const isShifted = modifiers.includes("im2col");
  return isShifted ? [operands[position], operands[position + 1]] : [undefined, operands[position]];
}

/** `[dst], [map, {c…}], [mbar] {, {offsets}} {, mask} {, policy}` */
export function tensorLoad(instruction: CollectiveInstruction): Collective | undefined {
  const [destination, source, barrier] = instruction.operands;
  if (destination === undefined || source === undefined || barrier === undefined) return undefined;
  const [shift, mask] = takeShift(instruction, 3);
  const multicast = instruction.modifiers.includes("multicast::cluster");
  return forLanes(instruction, (issuer) => {
    const box = locateBox(issuer, source, "load", shift);
    const own = sharedPlace(issuer, box.map, destination);
    const blocks = targetBlocks(issuer, own, multicast ? mask : undefined);
    const targets = blocks.map((block) => inBlock(own, block));
    const barriers = completionBarriers(issuer, barrier, blocks, multicast);
    const issue = new Issue(issuer, "async");
    issue.recordMap(box.mapPlace, tensorMapBytes);
    recordGlobal(issue, box, "read");
    for (const target of targets) recordShared(issue, box, target, "write");
    completeAtBarriers(issue, () => loadBox(box, targets), barriers, boxShape(box.map).bytes);
  });
}

/** `[map, {c…}], [src] {, policy}`, plain or with a reduction. */
export function tensorStore(
  instruction: CollectiveInstruction,
  reduction: ReductionOperation | undefined,
): Collective | undefined {
  const [destination, source] = instruction.operands;
  if (destination === undefined || source === undefined) return undefined;
  return forLanes(instruction, (issuer) => {
    const box = locateBox(issuer, destination, "store", undefined);
    const place = sharedPlace(issuer, box.map, source);
    const type = reduction && reducedType(issuer, reduction, box.map.type);
    const issue = new Issue(issuer, "async");
    issue.recordMap(box.mapPlace, tensorMapBytes);
    recordShared(issue, box, place, "read");
    recordGlobal(issue, box, reduction === undefined ? "write" : "atomic");
    const carried = box.rows.map(() => new CarriedBytes(boxShape(box.map).rowBytes));
    completeInGroup(
      issue,
      () => gatherBox(issuer, box, place, carried),
      () => writeBox(box, carried, reduction, type),
    );
  });
}

/** Reads the box from shared memory; only what lands inside of the array has to be there. */
function gatherBox(
  { machine, warp, instruction }: Issuer,
  { map, rows, places }: Box,
  place: Place,
  carried: readonly CarriedBytes[],
): void {
  const { rowBytes } = boxShape(map);
  for (const [index, { start, before, inside }] of rows.entries())
    forEachStretch(place.offset + start, rowBytes, map.swizzle, (byte, offset, length) => {
      carried[index]?.take(byte, place.views, offset, length);
      const first = Math.max(byte, before);
      const landing = Math.min(byte + length, before + inside) - first;
      if (places[index] === undefined || landing <= 0) return;
      const part = { ...place, offset: offset + first - byte };
      checkWritten(machine, warp, instruction, part, landing);
    });
}

function writeBox(
  { rows, places }: Box,
  carried: readonly CarriedBytes[],
  reduction: ReductionOperation | undefined,
  type: ReductionType | undefined,
): void {
  for (const [index, { before, inside }] of rows.entries()) {
    const place = places[index];
    const row = carried[index];
    if (place === undefined || row === undefined) continue;
    const { views, offset } = place;
    if (reduction === undefined || type === undefined) row.put(before, views, offset, inside);
    else
      reduceBytes(
        reduction,
        type,
        views.bytes.subarray(offset, offset + inside),
        row.data.subarray(before, before + inside),
      );
  }
}

const reducedTypes: { readonly [T in TensorMapType]: ReductionType | undefined } = {
  u8: undefined,
  u16: undefined,
  u32: "u32",
  s32: "s32",
  u64: "u64",
  s64: "s64",
  f16: "f16",
  f32: "f32",
  f64: "f64",
  bf16: "bf16",
  "f32.ftz": "f32.ftz",
  tf32: undefined,
  "tf32.ftz": undefined,
};

function reducedType(
  { instruction }: Issuer,
  operation: ReductionOperation,
  mapType: TensorMapType,
): ReductionType {
  const type = reducedTypes[mapType];
  // Of s64 the hardware only has the extrema.
  const isKnown = mapType !== "s64" || operation === "min" || operation === "max";
  if (type !== undefined && isKnown && acceptsReduction(operation, type)) return type;
  throw new TilewrightError({
    code: "TW8055",
    message: `${operation} is not defined on a tensor map of ${mapType}`,
    location: instruction.location,
    expected: "an operation that TMA has for the map's type",
    found: `${operation} of ${mapType}`,
  });
}

/** `[map, {c…}] {, {offsets}}`: reads nothing that a program could tell. */
export function tensorPrefetch(instruction: CollectiveInstruction): Collective | undefined {
  const [source] = instruction.operands;
  if (source === undefined) return undefined;
  const [shift] = takeShift(instruction, 1);
  return forLanes(instruction, (issuer) => {
    locateBox(issuer, source, "load", shift);
  });
}
