/**
 * Meshes and shardings as text has them, and which part of an array each process holds.
 *
 *   sdy.mesh @mesh = <["x"=2, "y"=4]>                 process = 4x + y, unless device_ids says otherwise
 *   <@mesh, [{"y"}, {}]>  of tensor<8x3xf32>          2x3 each: rows 2y and 2y + 1
 *
 * An axis of a mesh may be cut: `"y":(1)2` is the part of extent 2 that one part goes before. A mesh can also stand in the sharding
 * itself, `<mesh<["x"=2]>, [{"x"}]>`.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import type { Attribute } from "./attribute.ts";

export interface MeshAxis {
  readonly name: string;
  readonly size: number;
}

/** Processes along named axes, the last fastest; `ids` are those at each place. */
export interface ProcessMesh {
  readonly axes: readonly MeshAxis[];
  readonly ids: readonly number[];
}

/** An axis of a mesh or a part of one, with its extent and the places from one of its parts to the next. */
export interface AxisPart {
  readonly axis: string;
  readonly size: number;
  readonly stride: number;
}

/** How an array lies on a mesh: for each of its axes those of the mesh that it is cut along, the outermost first. */
export interface TensorSharding {
  readonly mesh: ProcessMesh;
  readonly dimensions: readonly (readonly AxisPart[])[];
}

const product = (numbers: readonly number[]): number =>
  numbers.reduce((all, each) => all * each, 1);

export function meshOf(axes: readonly MeshAxis[], ids?: readonly number[]): ProcessMesh {
  const count = product(axes.map(({ size }) => size));
  return { axes, ids: ids ?? Array.from({ length: count }, (_, id) => id) };
}

/** The body of `mesh<…>` or of `sdy.mesh`. */
function readMesh(body: string): ProcessMesh {
  const axes = Array.from(body.matchAll(/"([^"]*)"\s*=\s*(\d+)/g), ([, name = "", size]) => ({
    name,
    size: Number(size),
  }));
  const listed = /device_ids\s*=\s*\[([\d,\s]*)\]/.exec(body)?.[1];
  const ids = listed?.split(",").flatMap((id) => (id.trim() === "" ? [] : [Number(id)]));
  return meshOf(axes, ids);
}

/** The meshes of a module by name. */
export function meshesOf({
  foreign,
}: {
  readonly foreign: readonly { readonly text: string }[];
}): ReadonlyMap<string, ProcessMesh> {
  const found = new Map<string, ProcessMesh>();
  for (const { text } of foreign) {
    const [, name, body] = /^sdy\.mesh @([\w.$-]+) = <(.*?)>/.exec(text) ?? [];
    if (name !== undefined && body !== undefined) found.set(name, readMesh(body));
  }
  return found;
}

/** A part of an axis of a mesh; undefined where the mesh has none. */
export function axisPart(
  { axes }: ProcessMesh,
  name: string,
  before = 1,
  extent?: number,
): AxisPart | undefined {
  const place = axes.findIndex((axis) => axis.name === name);
  const size = axes[place]?.size;
  if (size === undefined) return undefined;
  const own = extent ?? size;
  const inner = product(axes.slice(place + 1).map((axis) => axis.size));
  return { axis: name, size: own, stride: (inner * size) / (before * own) };
}

/** The texts between brackets at the outermost level: `{"x"}, {}` of `[{"x"}, {}]`. */
function items(text: string): readonly string[] {
  const found: string[] = [];
  let depth = 0;
  let start = 0;
  const take = (end: number): void => {
    const item = text.slice(start, end).trim();
    if (item !== "") found.push(item);
    start = end + 1;
  };
  for (let at = 0; at < text.length; at++) {
    const letter = text.charAt(at);
    if ("<[{(".includes(letter)) depth++;
    else if (">]})".includes(letter)) depth--;
    else if (letter === "," && depth === 0) take(at);
  }
  take(text.length);
  return found;
}

function unreadable(text: string, location: Location | undefined): TilewrightError {
  return new TilewrightError({
    code: "TW9708",
    message: "a sharding does not fit the meshes of the program",
    location,
    expected: '<@mesh, [{"x"}, {}]> with a mesh of the module and its axes, each once',
    found: text,
  });
}

/** A sharding such as `<@mesh, [{"x", ?}, {}]>`, with or without its brackets. */
export function readSharding(
  text: string,
  meshes: ReadonlyMap<string, ProcessMesh>,
  location?: Location,
): TensorSharding {
  const [head = "", list = ""] = items(text.trim().replace(/^<(.*)>$/s, "$1"));
  const name = /^@([\w.$-]+)$/.exec(head)?.[1];
  const mesh = name === undefined ? readInlined(head) : meshes.get(name);
  if (mesh === undefined) throw unreadable(text, location);
  const used = new Set<string>();
  const dimensions = items(list.replace(/^\[(.*)\]$/s, "$1")).map((dimension) =>
    Array.from(
      dimension.matchAll(/"([^"]*)"(?::\((\d+)\)(\d+))?/g),
      ([written, axis = "", before, extent]) => {
        const part = axisPart(
          mesh,
          axis,
          Number(before ?? 1),
          extent === undefined ? undefined : Number(extent),
        );
        if (part === undefined || used.has(written)) throw unreadable(text, location);
        used.add(written);
        return part;
      },
    ),
  );
  return { mesh, dimensions };
}

function readInlined(head: string): ProcessMesh | undefined {
  const body = /^mesh<(.*)>$/s.exec(head)?.[1];
  return body === undefined ? undefined : readMesh(body);
}

function bodyOf(attribute: Attribute): string {
  return attribute.kind === "dialect" ? (attribute.body ?? "") : "";
}

/** The texts of the shardings of `in_shardings=[<…>, <…>]`. */
export function shardingItems(attribute: Attribute): readonly string[] {
  return items(bodyOf(attribute));
}

/** The shardings of `in_shardings=[<…>, <…>]`. */
export function readShardings(
  attribute: Attribute,
  meshes: ReadonlyMap<string, ProcessMesh>,
  location?: Location,
): readonly TensorSharding[] {
  return items(bodyOf(attribute)).map((each) => readSharding(each, meshes, location));
}

/** The sharding of a parameter or a result, where its attributes have one. */
export function shardingAttribute(
  attributes: ReadonlyMap<string, Attribute> | undefined,
  meshes: ReadonlyMap<string, ProcessMesh>,
  location?: Location,
): TensorSharding | undefined {
  const found = attributes?.get("sdy.sharding");
  return found === undefined ? undefined : readSharding(bodyOf(found), meshes, location);
}

/** The names in `manual_axes={"x", "y"}`. */
export function readAxisNames(attribute: Attribute): readonly string[] {
  return Array.from(bodyOf(attribute).matchAll(/"([^"]*)"/g), ([, name = ""]) => name);
}

/** A mesh as it stands in a sharding. */
export function meshText({ axes, ids }: ProcessMesh): string {
  const sizes = axes.map(({ name, size }) => `"${name}"=${size}`).join(", ");
  const isPlain = ids.every((id, place) => id === place);
  return `mesh<[${sizes}]${isPlain ? "" : `, device_ids=[${ids.join(", ")}]`}>`;
}

/** A sharding as text, with its mesh in it. */
export function shardingText({ mesh, dimensions }: TensorSharding): string {
  const lists = dimensions.map((parts) => `{${parts.map(({ axis }) => `"${axis}"`).join(", ")}}`);
  return `<${meshText(mesh)}, [${lists.join(", ")}]>`;
}

/** The same sharding along some axes of the mesh alone. */
export function alongAxes(
  { mesh, dimensions }: TensorSharding,
  names: readonly string[],
): TensorSharding {
  return {
    mesh,
    dimensions: dimensions.map((parts) => parts.filter(({ axis }) => names.includes(axis))),
  };
}

export const cutsOf = (parts: readonly AxisPart[]): number =>
  product(parts.map(({ size }) => size));

export function isWhole({ dimensions }: TensorSharding): boolean {
  return dimensions.every((parts) => cutsOf(parts) === 1);
}

/** Which part along axes of the mesh the process at a place has. */
export function partAt(place: number, parts: readonly AxisPart[]): number {
  return parts.reduce(
    (index, { size, stride }) => index * size + (Math.floor(place / stride) % size),
    0,
  );
}

/** The shape of a part. */
export function partShape(
  shape: readonly number[],
  { dimensions }: TensorSharding,
  location?: Location,
): readonly number[] {
  return shape.map((extent, axis) => {
    const cuts = cutsOf(dimensions[axis] ?? []);
    if (extent % cuts === 0) return extent / cuts;
    const names = (dimensions[axis] ?? []).map((part) => part.axis).join(", ");
    throw new TilewrightError({
      code: "TW9708",
      message: `axis ${axis} of an array of [${shape.join(", ")}] is not cut evenly along ${names} of the mesh`,
      location,
      expected: `a multiple of ${cuts}`,
      found: `${extent}`,
    });
  });
}

/** The groups of processes that differ along parts of axes alone, each in the order of the parts. */
export function groupsAlong(
  mesh: ProcessMesh,
  parts: readonly AxisPart[],
): readonly (readonly number[])[] {
  const offsets = parts.reduce<readonly number[]>(
    (found, { size, stride }) =>
      found.flatMap((offset) => Array.from({ length: size }, (_, i) => offset + i * stride)),
    [0],
  );
  const { ids } = mesh;
  return ids.flatMap((_, place) =>
    partAt(place, parts) === 0 ? [offsets.map((offset) => ids[place + offset] ?? 0)] : [],
  );
}

export function sameSharding(left: TensorSharding, right: TensorSharding): boolean {
  return shardingText(left) === shardingText(right) && partsText(left) === partsText(right);
}

const partsText = ({ dimensions }: TensorSharding): string => JSON.stringify(dimensions);
