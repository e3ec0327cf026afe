/** Tensor copies: boxes of an array that a tensor map describes. */
import { TilewrightError } from "../../support/diagnostics.ts";
import { forLanes, Issue } from "../asynchronous.ts";
import type { Issuer } from "../asynchronous.ts";
import type { Collective, CollectiveInstruction, OperandView, Place } from "../collective.ts";
import { decodeTensorMap, tensorMapBytes, tensorMapTypeBytes } from "../tensor-map.ts";
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
import { acceptsReduction, reduceBytes } from "./reduction.ts";
import type { ReductionOperation, ReductionType } from "./reduction.ts";

const boxAlignment = 128;
/** Within so many bytes a swizzle only exchanges chunks. */
const swizzleLine = 128;

/** A box at its coordinates, resolved. */
interface Box {
  readonly map: TensorMap;
  readonly rows: readonly BoxRow[];
  /** Where each row's inside lies in global memory; undefined for rows outside. */
  readonly places: readonly (Place | undefined)[];
}

function readMap(issuer: Issuer, source: OperandView): TensorMap {
  const { machine, warp, lane, instruction } = issuer;
  const address = source.address(warp, lane);
  const bytes = tensorMapBytes;
  const request = { warp, instruction, lane, kind: "generic", address, bytes } as const;
  const { views, offset } = machine.resolve({ ...request, alignment: 64 });
  const map = decodeTensorMap(views.bytes.subarray(offset, offset + bytes));
  if (map !== undefined) return map;
  throw new TilewrightError({
    code: "TW8051",
    message: `${instruction.instruction.opcode}: the 128 bytes at 0x${address.toString(16)} are no tensor map`,
    location: instruction.location,
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

function locateBox(issuer: Issuer, source: OperandView, use: BoxUse): Box {
  const { machine, warp, lane, instruction } = issuer;
  const map = readMap(issuer, source);
  const coordinates = source.elements.map((element) => element.word(warp, lane) | 0);
  if (coordinates.length !== map.extents.length)
    throw new TilewrightError({
      code: "TW8053",
      message: `${coordinates.length} coordinates for a tensor map of ${map.extents.length} axes`,
      location: instruction.location,
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
  if (use === "store" && coordinates.some((coordinate) => coordinate < 0))
    throw new TilewrightError({
      code: "TW8058",
      message: "a box that is stored begins before the array",
      location: instruction.location,
      expected: "coordinates from 0 up",
      found: `coordinates ${coordinates.join(", ")}`,
    });
  const rows = usedRows(boxRows(map, coordinates), boxShape(map).rowBytes, use);
  const places = rows.map(({ address, inside: bytes }) =>
    bytes === 0
      ? undefined
      : machine.resolve({ warp, instruction, lane, kind: "global", address, bytes, alignment: 1 }),
  );
  return { map, rows, places };
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

/** `[dst], [map, {c…}], [mbar] {, mask} {, policy}` */
export function tensorLoad(instruction: CollectiveInstruction): Collective | undefined {
  const [destination, source, barrier, fourth] = instruction.operands;
  if (destination === undefined || source === undefined || barrier === undefined) return undefined;
  const multicast = instruction.modifiers.includes("multicast::cluster");
  return forLanes(instruction, (issuer) => {
    const box = locateBox(issuer, source, "load");
    const own = sharedPlace(issuer, box.map, destination);
    const blocks = targetBlocks(issuer, own, multicast ? fourth : undefined);
    const targets = blocks.map((block) => inBlock(own, block));
    const barriers = completionBarriers(issuer, barrier, blocks, multicast);
    const issue = new Issue(issuer, "async");
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
    const box = locateBox(issuer, destination, "store");
    const place = sharedPlace(issuer, box.map, source);
    const type = reduction && reducedType(issuer, reduction, box.map.type);
    const issue = new Issue(issuer, "async");
    recordShared(issue, box, place, "read");
    recordGlobal(issue, box, reduction === undefined ? "write" : "atomic");
    const carried = box.rows.map(() => new CarriedBytes(boxShape(box.map).rowBytes));
    completeInGroup(
      issue,
      () => gatherBox(box, place, carried),
      () => writeBox(box, carried, reduction, type),
    );
  });
}

function gatherBox({ map, rows }: Box, place: Place, carried: readonly CarriedBytes[]): void {
  const { rowBytes } = boxShape(map);
  for (const [index, { start }] of rows.entries())
    forEachStretch(place.offset + start, rowBytes, map.swizzle, (byte, offset, length) =>
      carried[index]?.take(byte, place.views, offset, length),
    );
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
  });
}

/** `[map, {c…}]`: reads nothing that a program could tell. */
export function tensorPrefetch(instruction: CollectiveInstruction): Collective | undefined {
  const [source] = instruction.operands;
  if (source === undefined) return undefined;
  return forLanes(instruction, (issuer) => {
    locateBox(issuer, source, "load");
  });
}
