/**
 * The instructions that multiply matrices, as data. Code asks what an instruction is like, by a property of its record, and not which one it is:
 *
 *   | instruction          | issued by | left, right               | scales    | sums      | is over                    |
 *   |----------------------|-----------|---------------------------|-----------|-----------|----------------------------|
 *   | mma.sync             | warp      | registers                 |           | registers | when it returns            |
 *   | mma.sync.block_scale | warp      | registers                 | registers | registers | when it returns            |
 *   | wgmma                | warpgroup | shared or registers, shared |         | registers | with its group             |
 *   | tcgen05              | thread    | shared or tensor, shared  | tensor    | tensor    | when a barrier was arrived at |
 *
 * `"wgmma"` is a name of three things. The instruction is the one meant here, and its name stands as text in this folder and in the emitter
 * (`src/ptx/emit`) alone. The op of the language with that name is one of `src/ir/ops`, asked for by its kind like any other; the layout with that
 * name is a key of `namedLayouts`. `test/architecture.test.ts` holds them apart.
 */
import type { DTypeName } from "../formats/dtype.ts";
import type { Feature, Target } from "./target.ts";

/** Where an operand, a scale or a sum lies. */
export type ProductMemory = "registers" | "shared" | "tensor";

/** Rows and columns of one instruction, and the bits of an element's row that it takes of the sum. */
export interface ProductShape {
  readonly rows: readonly number[];
  /** A multiple of it, up to `mostColumns`; of sums of integers beyond 32 columns a multiple of `integerColumns`. */
  readonly columns: number;
  readonly integerColumns: number;
  readonly mostColumns: number;
  readonly depthBits: number;
}

export interface ProductInstruction {
  readonly name: string;
  /** The first part of its opcode. */
  readonly root: string;
  /** What a target must have for it; undefined where all have it. */
  readonly feature: Feature | undefined;
  /** What it must have besides for factors of integers, likewise. */
  readonly integerFeature: Feature | undefined;
  readonly issuer: "thread" | "warp" | "warpgroup";
  readonly left: readonly ProductMemory[];
  readonly right: readonly ProductMemory[];
  /** Undefined where it takes none. */
  readonly scales: ProductMemory | undefined;
  readonly sums: ProductMemory;
  /** What tells that it is over, and in what order its instructions run: one after the other, or as groups or arrivals say. */
  readonly completion: "return" | "group" | "arrival";
  readonly shape: ProductShape;
  /** The formats of factors that it takes as they are, and of sums. */
  readonly factors: readonly DTypeName[];
  readonly accumulators: readonly DTypeName[];
  /** Clocks until the sums of a step are there, by its columns, as the cost model counts them. */
  readonly clocks: (columns: number) => number;
}

const halves: readonly DTypeName[] = ["f16", "bf16", "tf32"];
const bytes: readonly DTypeName[] = ["f8e4m3fn", "f8e5m2"];
const integers: readonly DTypeName[] = ["i8", "u8"];

const byFragments = {
  root: "mma",
  integerFeature: undefined,
  issuer: "warp",
  left: ["registers"],
  right: ["registers"],
  sums: "registers",
  completion: "return",
  shape: { rows: [16], columns: 8, integerColumns: 8, mostColumns: 8, depthBits: 256 },
  clocks: () => 35,
} as const;

export const productInstructions = Object.freeze({
  "mma.sync": {
    ...byFragments,
    name: "mma.sync",
    feature: undefined,
    scales: undefined,
    factors: [...halves, ...integers, "f64"],
    accumulators: ["f32", "f16", "i32", "f64"],
  },
  "mma.sync.block_scale": {
    ...byFragments,
    name: "mma.sync.block_scale",
    feature: "mma.block_scale",
    scales: "registers",
    factors: [...bytes, "f4e2m1fn"],
    accumulators: ["f32"],
  },
  wgmma: {
    name: "wgmma",
    root: "wgmma",
    feature: "wgmma",
    integerFeature: undefined,
    issuer: "warpgroup",
    left: ["shared", "registers"],
    right: ["shared"],
    scales: undefined,
    sums: "registers",
    completion: "group",
    shape: { rows: [64], columns: 8, integerColumns: 16, mostColumns: 256, depthBits: 256 },
    factors: [...halves, ...bytes, ...integers],
    accumulators: ["f32", "f16", "i32"],
    clocks: () => 70,
  },
  tcgen05: {
    name: "tcgen05",
    root: "tcgen05",
    feature: "tcgen05",
    integerFeature: "tcgen05.i8",
    issuer: "thread",
    left: ["shared", "tensor"],
    right: ["shared"],
    scales: "tensor",
    sums: "tensor",
    completion: "arrival",
    shape: { rows: [64, 128], columns: 8, integerColumns: 16, mostColumns: 256, depthBits: 256 },
    factors: [...halves, ...bytes, "f4e2m1fn", ...integers],
    accumulators: ["f32", "f16", "i32"],
    clocks: (columns) => Math.max(56, 0.55 * columns),
  },
} as const satisfies { readonly [name: string]: ProductInstruction });

/** The name of an instruction, as IR text and notes have it. */
export type ProductInstructionName = keyof typeof productInstructions;

const byName: ReadonlyMap<string, ProductInstruction> = new Map<string, ProductInstruction>(
  Object.entries(productInstructions),
);

/** The record of what an op says it is made by; undefined where no instruction of matrices makes it. */
export function productInstruction(name: string | undefined): ProductInstruction | undefined {
  return name === undefined ? undefined : byName.get(name);
}

/** Whether its sums stay in registers that nothing may touch until the product is over. */
export function sumsInFlight({ sums, completion }: ProductInstruction): boolean {
  return sums === "registers" && completion === "group";
}

/** Whether an op is made by an instruction whose sums are in flight. */
export function isInFlight(name: string | undefined): boolean {
  const found = productInstruction(name);
  return found !== undefined && sumsInFlight(found);
}

/** Whether a target has an instruction. */
export function hasInstruction({ features }: Target, { feature }: ProductInstruction): boolean {
  return feature === undefined || features.includes(feature);
}

/** Whether an instruction that a target has multiplies factors of a format there. */
export function multipliesOn(
  { features }: Target,
  { factors, integerFeature }: ProductInstruction,
  name: DTypeName,
): boolean {
  const has = integerFeature === undefined || features.includes(integerFeature);
  return factors.includes(name) && (has || !integers.includes(name));
}

/** Whether a target multiplies windows of shared memory into registers while its threads go on, as ops with sums in flight do. */
export function hasSumsInFlight(target: Target): boolean {
  return [...byName.values()].some((each) => sumsInFlight(each) && hasInstruction(target, each));
}

/** What columns of a product are a multiple of, in an instruction that sums in a format. */
export function columnGrain(
  { shape }: ProductInstruction,
  sum: { readonly name: DTypeName },
  columns: number,
): number {
  return sum.name === "i32" && columns > 32 ? shape.integerColumns : shape.columns;
}

/** The instruction of a target that adds up in tensor memory; undefined where there is none. */
export function tensorMemoryInstruction(target: Target): ProductInstruction | undefined {
  return [...byName.values()].find(
    (each) => each.sums === "tensor" && hasInstruction(target, each),
  );
}

/** Where products of whole tiles add up on a target that has a place of its own for it; in registers elsewhere. */
export function sumsMemory(target: Target): ProductMemory {
  return tensorMemoryInstruction(target)?.sums ?? "registers";
}
