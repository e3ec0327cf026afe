/**
 * What reports call the parts of a launch. Of any PTX there are warps, blocks, labels of allocations and
 * names of variables; of a kernel of ours also program threads, axes of the grid, arrays and buffers:
 *
 *   warp 5 of block 3                 thread load (warp 5) of block (i = 1, j = 0)
 *   0x7f0000000a10                    element [2, 16] of x, f32[64, 64]
 *   byte 144 of shared memory         element [1, 0] of tile, byte 144 of it
 */
import { coordinatesOf } from "../formats/shape.ts";
import type { DType } from "../formats/dtype.ts";
import type { BufferPlan } from "../ptx/executable.ts";
import type { Variable } from "../ptx/module.ts";
import { elementAtByte, parseSharedLayout } from "../layout/algebra/shared-layout.ts";
import { blockCoordinates } from "../ptx/print-ring.ts";
import { globalBase } from "./addresses.ts";
import type { Allocation, Heap } from "./memory.ts";
import { variableBytes } from "./program/symbols.ts";
import type { VariablePlace } from "./program/symbols.ts";

export interface NamedArray {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/** Names that a launch brings along; plain data. */
export interface LaunchNames {
  /** Arrays by the address of their allocation. */
  readonly arrays: ReadonlyMap<number, NamedArray>;
  /** Of shared memory; the module's variables unless given. */
  readonly buffers?: readonly BufferPlan[] | undefined;
  /** Of a kernel's program; numbers unless given. */
  readonly program?: ProgramNames | undefined;
}

export interface ProgramNames {
  /** In order. */
  readonly threads: readonly string[];
  /** Of each of them. */
  readonly warps: number;
  readonly axes: readonly {
    readonly name: string;
    readonly extent: number;
    readonly cluster: number;
  }[];
}

/** Where the variables of a program lie. */
interface PlacedVariables {
  readonly places: ReadonlyMap<Variable, VariablePlace>;
}

const barrierBytes = 8;

export class Naming {
  readonly #names: LaunchNames | undefined;
  readonly #heap: Heap;
  readonly #buffers: readonly BufferPlan[];

  constructor(heap: Heap, program: PlacedVariables, names: LaunchNames | undefined) {
    this.#heap = heap;
    this.#names = names;
    this.#buffers = names?.buffers ?? sharedVariables(program);
  }

  warp(index: number, block: number): string {
    const program = this.#names?.program;
    if (program === undefined) return `warp ${index} of block ${block}`;
    const { threads, warps, axes } = program;
    const thread = threads[Math.floor(index / warps)] ?? "";
    const place = axes.length === 0 ? "" : ` of ${this.block(block)}`;
    return `thread ${thread} (warp ${index})${place}`;
  }

  block(block: number): string {
    const axes = this.#names?.program?.axes;
    if (axes === undefined) return `block ${block}`;
    const coordinates = blockCoordinates(axes, block);
    const place = axes.map(({ name }, axis) => `${name} = ${coordinates[axis] ?? 0}`).join(", ");
    return place === "" ? "the block" : `block (${place})`;
  }

  /** A byte of the heap, or half of one. */
  global(offset: number): string {
    return this.address(globalBase + offset) ?? `byte ${Math.floor(offset)} of global memory`;
  }

  /** An address in global memory, inside of an allocation or near one; undefined where there is none. */
  address(address: number): string | undefined {
    const { below, above } = this.#heap.around(address);
    const after = below === undefined ? Infinity : address - (below.address + below.bytes);
    const before = above === undefined ? Infinity : above.address - address;
    if (above !== undefined && after >= 0 && before < after)
      return `${before} bytes before ${this.#labelOf(above)}`;
    return below === undefined ? undefined : this.#inAllocation(below, address - below.address);
  }

  /** The array that begins at an address. */
  array(address: number): string {
    const { below } = this.#heap.around(address);
    return below === undefined ? "an allocation" : this.#labelOf(below);
  }

  #labelOf({ address, label }: Allocation): string {
    return this.#names?.arrays.get(address)?.name ?? label ?? "an allocation";
  }

  #inAllocation(allocation: Allocation, byte: number): string {
    const { address, bytes } = allocation;
    const named = this.#names?.arrays.get(address);
    if (named === undefined)
      return `byte ${Math.floor(byte)} of ${this.#labelOf(allocation)} of ${bytes} bytes`;
    const { name, dtype, shape } = named;
    const element = Math.floor((8 * byte) / dtype.bits);
    const elements = shape.reduce((total, extent) => total * extent, 1);
    const type = `${dtype.name}[${shape.join(", ")}]`;
    return element < elements
      ? `element [${coordinatesOf(element, shape).join(", ")}] of ${name}, ${type}`
      : `element ${element} of ${name}, which has ${elements}: ${type}`;
  }

  /** A byte of a block's shared memory, or half of one. */
  shared(offset: number): string {
    const holders = this.#buffers.filter(
      (buffer) => offset >= buffer.offset && offset < buffer.offset + buffer.bytes,
    );
    const places = holders.map((buffer) => placeIn(buffer, offset - buffer.offset));
    return places.join(" or ") || `byte ${Math.floor(offset)} of shared memory`;
  }
}

function placeIn({ name, holds }: BufferPlan, byte: number): string {
  if (holds === undefined) return `byte ${Math.floor(byte)} of ${name}`;
  if (holds === "barriers") {
    const number = Math.floor(byte / barrierBytes);
    return `barrier ${number} of ${name}`;
  }
  const { dtype, shape, layout } = holds;
  const start = byte - (byte % (dtype.bits / 8));
  const element = elementAtByte(parseSharedLayout(layout), shape, dtype.bits, start);
  const whole = Math.floor(byte);
  return element === undefined
    ? `byte ${whole} of ${name}`
    : `element [${coordinatesOf(element, shape).join(", ")}] of ${name}, byte ${whole} of it`;
}

/** Variables of the module in shared memory. */
function sharedVariables({ places }: PlacedVariables): readonly BufferPlan[] {
  return [...places].flatMap(([variable, { space, offset }]) => {
    if (space !== "shared") return [];
    const isDynamic = variable.linkage === "extern" || variable.count === 0;
    const bytes = isDynamic ? Infinity : variableBytes(variable);
    return [{ name: variable.name, offset, bytes }];
  });
}
