/** Tensor maps that kernels make and change: every field of them, and copies through them. */
import { tensorMapTypeBytes, tensorMapTypes } from "../../src/emulator/tensor-map.ts";
import type { TensorMap, TensorMapType } from "../../src/emulator/tensor-map.ts";
import { Kernel } from "./kernel.ts";
import type { Program } from "./program.ts";
import {
  arrayBytes,
  boxBytes,
  content,
  fill,
  load,
  mapAddress,
  mapOf,
  randomBytes,
  stridesOf,
  tiled,
  write,
} from "./tile.ts";
import type { Shape, Tile } from "./tile.ts";

const group = "maps";
const mapBytes = 128;

/** Numbers of the types, which are not the driver's. */
const typeNumbers: { readonly [T in TensorMapType]: number } = {
  u8: 0,
  u16: 1,
  u32: 2,
  s32: 3,
  u64: 4,
  s64: 5,
  f16: 6,
  f32: 7,
  "f32.ftz": 8,
  f64: 9,
  bf16: 10,
  tf32: 11,
  "tf32.ftz": 12,
};

/** A field, what comes before its value, and values. */
interface FieldCase {
  readonly field: string;
  readonly bits: 32 | 64;
  readonly axis?: number;
  readonly values: readonly string[];
  /** The assembler wants constants. */
  readonly constant?: boolean;
}

const words = ["0", "1", "2", "7", "0xa5", "0x12345678", "0xffffffff"];
const wides = ["0", "0x10", "0x123456789abcdef0", "0xffffffffffffffff"];
const numbers = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => `${at}`);

const fieldCases: readonly FieldCase[] = [
  { field: "global_address", bits: 64, values: wides },
  { field: "rank", bits: 32, values: words },
  ...[0, 1, 2, 3, 4].flatMap((axis): readonly FieldCase[] => [
    { field: "box_dim", bits: 32, axis, values: words },
    { field: "global_dim", bits: 32, axis, values: words },
    { field: "element_stride", bits: 32, axis, values: words },
  ]),
  ...[0, 1, 2, 3].map(
    (axis) => ({ field: "global_stride", bits: 64, axis, values: wides }) as const,
  ),
  { field: "elemtype", bits: 32, values: numbers(13), constant: true },
  { field: "interleave_layout", bits: 32, values: numbers(3), constant: true },
  { field: "swizzle_mode", bits: 32, values: numbers(4), constant: true },
  { field: "fill_mode", bits: 32, values: numbers(2), constant: true },
];

/** The bytes that each value of a field leaves, of zeros and of ones. */
function fields(space: "" | ".global" | ".shared::cta"): Program {
  const name = `map_fields${space.replace("::", "_").replace(".", "_")}`;
  const kernel = new Kernel({ name, group, blocks: 1, threads: 32 });
  kernel.declare(`.shared .align 128 .b8 ${name}_map[${mapBytes}];`);
  const [shared, own] = kernel.registers(32, 2) as [string, string];
  const [first] = kernel.registers(1, 1) as [string];
  kernel.line(
    `mov.u32 ${shared}, ${name}_map;`,
    `mad.lo.u32 ${own}, %t, 4, ${shared};`,
    `setp.eq.u32 ${first}, %t, 0;`,
  );
  for (const { field, bits, axis, values, constant } of fieldCases)
    for (const value of values)
      for (const pattern of [0, 0xff]) {
        const opcode = `tensormap.replace.tile.${field}${space}.b1024.b${bits}`;
        kernel.covers(opcode);
        const label = `${opcode} ${axis ?? ""} ${value} of ${pattern}`;
        const initial = new Uint8Array(mapBytes).fill(pattern);
        const offset = kernel.slot(label, 4, { bytes: mapBytes, initial });
        const [wide] = kernel.registers(64, 1) as [string];
        const [word] = kernel.registers(32, 1) as [string];
        const register = bits === 64 ? wide : word;
        if (constant !== true) kernel.line(`mov.b${bits} ${register}, ${value};`);
        const operand = constant === true ? value : register;
        const place = axis === undefined ? "" : `${axis}, `;
        if (space !== ".shared::cta") {
          kernel.line(`@${first} ${opcode} [%out+${offset}], ${place}${operand};`);
          continue;
        }
        kernel.line(
          `st.shared.b32 [${own}], ${pattern === 0 ? 0 : -1};`,
          "bar.warp.sync -1;",
          `@${first} ${opcode} [${shared}], ${place}${operand};`,
          "bar.warp.sync -1;",
          `ld.shared.b32 ${word}, [${own}];`,
          `st.global.b32 [%out4+${offset}], ${word};`,
          "bar.warp.sync -1;",
        );
      }
  return kernel.program();
}

/** What a map is told, as fields and values; `array` is the register with the array's address. */
function settings(
  type: TensorMapType,
  { extents, box, elementStrides }: Shape,
  swizzle: TensorMap["swizzle"],
  filling: TensorMap["fill"],
  array: string,
): readonly (readonly [field: string, bits: 32 | 64, operands: string])[] {
  return [
    ["global_address", 64, array],
    ["rank", 32, `${extents.length - 1}`],
    ...extents.flatMap((extent, axis): [string, 32, string][] => [
      ["box_dim", 32, `${axis}, ${box[axis] ?? 1}`],
      ["global_dim", 32, `${axis}, ${extent}`],
      ["element_stride", 32, `${axis}, ${elementStrides?.[axis] ?? 1}`],
    ]),
    ...stridesOf(extents, tensorMapTypeBytes[type]).map((stride, axis): [string, 64, string] => [
      "global_stride",
      64,
      `${axis}, ${stride}`,
    ]),
    ["elemtype", 32, `${typeNumbers[type]}`],
    ["interleave_layout", 32, "0"],
    ["swizzle_mode", 32, `${[0, 32, 64, 128].indexOf(swizzle)}`],
    ["fill_mode", 32, filling === "nan" ? "1" : "0"],
  ];
}

interface MapMaker {
  readonly tile: Tile;
  /** 128 bytes of shared memory, and a predicate of the first warp. */
  readonly scratch: string;
  readonly warp: string;
}

function makingMaps(name: string, tileBytes: number): MapMaker {
  const tile = tiled(name, tileBytes, group);
  const { kernel } = tile;
  kernel.declare(`.shared .align 128 .b8 ${name}_scratch[${mapBytes}];`);
  const [scratch] = kernel.registers(32, 1) as [string];
  const [warp] = kernel.registers(1, 1) as [string];
  kernel.line(`mov.u32 ${scratch}, ${name}_scratch;`, `setp.lt.u32 ${warp}, %t, 32;`);
  return { tile, scratch, warp };
}

const scopes = ["cta", "cluster", "gpu", "sys"] as const;
type Scope = (typeof scopes)[number];

/** Makes a map of zeros in shared memory, as Triton does, and copies it to the output; gives its address. */
function mapThroughShared(
  { tile: { kernel, leader }, scratch, warp }: MapMaker,
  scope: Scope,
  fieldsOf: (array: string) => ReturnType<typeof settings>,
  array: string,
): string {
  const offset = kernel.slot("the map", 4, { bytes: mapBytes });
  const [own] = kernel.registers(32, 1) as [string];
  const [map] = kernel.registers(64, 1) as [string];
  const copy = `tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.${scope}.sync.aligned`;
  kernel.covers(copy);
  kernel.line(
    `mad.lo.u32 ${own}, %t, 4, ${scratch};`,
    `@${warp} st.shared.b32 [${own}], 0;`,
    "bar.warp.sync -1;",
    ...fieldsOf(array).map(
      ([field, bits, operands]) =>
        `@${leader} tensormap.replace.tile.${field}.shared::cta.b1024.b${bits} [${scratch}], ${operands};`,
    ),
    "bar.warp.sync -1;",
    `add.u64 ${map}, %out, ${offset};`,
    `@${warp} ${copy} [${map}], [${scratch}], ${mapBytes};`,
    `@${warp} fence.proxy.tensormap::generic.acquire.${scope} [${map}], ${mapBytes};`,
    "bar.sync 0;",
  );
  return map;
}

/** Changes a map in the output, which may hold another already; gives its address. */
function mapInPlace(
  { tile: { kernel, leader } }: MapMaker,
  scope: Scope,
  changes: ReturnType<typeof settings>,
  offset: number,
): string {
  const [map] = kernel.registers(64, 1) as [string];
  kernel.line(
    `add.u64 ${map}, %out, ${offset};`,
    ...changes.map(
      ([field, bits, operands], at) =>
        `@${leader} tensormap.replace.tile.${field}${at % 2 === 0 ? ".global" : ""}.b1024.b${bits} [${map}], ${operands};`,
    ),
    `@${leader} fence.proxy.tensormap::generic.release.${scope};`,
    `@${leader} fence.proxy.tensormap::generic.acquire.${scope} [${map}], ${mapBytes};`,
    "bar.sync 0;",
  );
  return map;
}

/** Takes the address out of a map: it is another one in each run. */
function forget({ kernel, leader }: Tile, map: string): void {
  kernel.line("bar.sync 0;", `@${leader} st.global.u64 [${map}], 0;`);
}

function arrayAt(kernel: Kernel, buffer: "%in" | "%out", offset: number): string {
  const [array] = kernel.registers(64, 1) as [string];
  kernel.line(`add.u64 ${array}, ${buffer}, ${offset};`);
  return array;
}

const loadOf = (rank: number): string =>
  `cp.async.bulk.tensor.${rank}d.shared::cluster.global.mbarrier::complete_tx::bytes`;

/** Maps made of zeros: each type with each swizzle. */
function types(): readonly Program[] {
  return tensorMapTypes.map((type, number) => {
    const elementBytes = tensorMapTypeBytes[type];
    const maker = makingMaps(`map_type_${type.replace(".", "_")}`, 2048);
    const { kernel } = maker.tile;
    ([0, 32, 64, 128] as const).forEach((swizzle, round) => {
      const width = swizzle === 0 ? 64 : swizzle;
      const shape = { extents: [200 / elementBytes, 40], box: [width / elementBytes, 16] };
      const bytes = arrayBytes(shape, elementBytes);
      const array = arrayAt(kernel, "%in", kernel.place(content(type, bytes, round & 1), 128));
      const filling = type.includes("f") && round % 2 === 1 ? "nan" : "zero";
      const map = mapThroughShared(
        maker,
        scopes[(number + round) % 4] ?? "gpu",
        (address) => settings(type, shape, swizzle, filling, address),
        array,
      );
      const places = [[16 / elementBytes, 30]];
      const label = `${type} swizzle ${swizzle}`;
      const size = boxBytes(shape, elementBytes);
      load(maker.tile, map, loadOf(2), size, elementBytes, places, label, { first: round });
      forget(maker.tile, map);
    });
    return kernel.program();
  });
}

const shapes: readonly Shape[] = [
  { extents: [300], box: [64] },
  { extents: [50, 30], box: [16, 12] },
  { extents: [20, 12, 9], box: [16, 6, 4], elementStrides: [1, 2, 1] },
  { extents: [18, 9, 7, 5], box: [16, 4, 3, 3] },
  { extents: [16, 7, 5, 4, 3], box: [8, 4, 3, 2, 2] },
];

/** Maps made of zeros in place: each number of axes, to load and to store through. */
function axes(): readonly Program[] {
  return shapes.map((shape) => {
    const rank = shape.extents.length;
    const maker = makingMaps(`map_${rank}d`, 8192);
    const { tile } = maker;
    const { kernel } = tile;
    const bytes = arrayBytes(shape, 4);
    const source = arrayAt(kernel, "%in", kernel.place(content("u32", bytes, 0), 128));
    const target = arrayAt(kernel, "%out", kernel.slot("stored", 4, { bytes }));
    const zeros = (): number => kernel.slot("the map", 4, { bytes: mapBytes });
    const place = shape.extents.map((_, axis) => (axis === 0 ? 4 : axis));
    const from = mapInPlace(maker, "gpu", settings("u32", shape, 0, "zero", source), zeros());
    load(tile, from, loadOf(rank), boxBytes(shape, 4), 4, [place], `${rank}d`);
    forget(tile, from);
    if (shape.elementStrides === undefined) {
      const to = mapInPlace(maker, "sys", settings("u32", shape, 0, "zero", target), zeros());
      fill(tile, randomBytes(rank, tile.tileBytes));
      write(tile, `cp.async.bulk.tensor.${rank}d.global.shared::cta.bulk_group`, to, [place]);
      write(tile, `cp.reduce.async.bulk.tensor.${rank}d.global.shared::cta.add.bulk_group`, to, [
        place,
      ]);
      forget(tile, to);
    }
    return kernel.program();
  });
}

/** The 128 bytes of a parameter put into the output. */
function copyOf(tile: Tile, parameter: string): number {
  const { kernel } = tile;
  const offset = kernel.slot("the map", 4, { bytes: mapBytes });
  const [word] = kernel.registers(32, 1) as [string];
  const [from] = kernel.registers(64, 1) as [string];
  const [some] = kernel.registers(1, 1) as [string];
  const source = mapAddress(kernel, parameter);
  kernel.line(
    `setp.lt.u32 ${some}, %t, 32;`,
    `mad.wide.u32 ${from}, %t, 4, ${source};`,
    `@${some} ld.b32 ${word}, [${from}];`,
    `@${some} st.global.b32 [%out4+${offset}], ${word};`,
    "bar.sync 0;",
  );
  return offset;
}

/** A map of the host's, with its bytes, of which one thing is changed. */
function changed(): readonly Program[] {
  const shape: Shape = { extents: [64, 40], box: [16, 16] };
  const changes: readonly (readonly [
    name: string,
    change: readonly (readonly [string, string])[],
  ])[] = [
    ["nothing", [["rank", "1"]]],
    ["box", [["box_dim", "1, 8"]]],
    [
      "extents",
      [
        ["global_dim", "0, 24"],
        ["global_dim", "1, 9"],
      ],
    ],
    ["steps", [["element_stride", "1, 3"]]],
    ["swizzle", [["swizzle_mode", "2"]]],
    ["fill", [["fill_mode", "1"]]],
    [
      "type",
      [
        ["elemtype", "6"],
        ["box_dim", "0, 32"],
        ["global_dim", "0, 128"],
      ],
    ],
    // The bit of tf32 stays.
    [
      "tf32",
      [
        ["elemtype", "11"],
        ["elemtype", "7"],
      ],
    ],
  ];
  return changes.map(([name, change], number) => {
    const maker = makingMaps(`map_changed_${name}`, 2048);
    const { tile } = maker;
    const { kernel } = tile;
    const offset = kernel.place(content("f32", arrayBytes(shape, 4), 0), 128);
    const parameter = kernel.map({ buffer: "input", offset, map: mapOf("f32", shape, 0) });
    const at = copyOf(tile, parameter);
    const list = change.map(([field, operands]) => [field, 32, operands] as const);
    const map = mapInPlace(maker, scopes[number % 4] ?? "gpu", list, at);
    const height = name === "box" ? 8 : name === "steps" ? 6 : 16;
    load(
      tile,
      map,
      loadOf(2),
      64 * height,
      4,
      [
        [8, 3],
        [48, 30],
      ],
      name,
    );
    forget(tile, map);
    return kernel.program();
  });
}

/** The bytes of maps as the host hands them over, but for the address. */
function bytesOf(): Program {
  const maker = makingMaps("map_bytes", 2048);
  const { tile } = maker;
  const { kernel } = tile;
  const offset = kernel.place(new Uint8Array(4096), 128);
  const keepMap = (map: Omit<TensorMap, "address">): void => {
    const at = copyOf(tile, kernel.map({ buffer: "input", offset, map }));
    const [target] = kernel.registers(64, 1) as [string];
    kernel.line(`add.u64 ${target}, %out, ${at};`);
    forget(tile, target);
  };
  for (const type of tensorMapTypes)
    keepMap(mapOf(type, { extents: [100, 7, 5], box: [16, 3, 5] }, 0));
  for (const shape of shapes) keepMap(mapOf("f16", shape, 0, "nan"));
  for (const swizzle of [32, 64, 128] as const)
    keepMap(mapOf("u16", { extents: [100, 70], box: [16, 256], elementStrides: [1, 5] }, swizzle));
  return kernel.program();
}

export function mapPrograms(): readonly Program[] {
  return [
    ...(["", ".global", ".shared::cta"] as const).map(fields),
    ...types(),
    ...axes(),
    ...changed(),
    bytesOf(),
  ];
}
