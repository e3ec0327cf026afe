/**
 * What a load or store of a tile costs in a layout. One instruction of warp 0 stands for all: layouts
 * and views are permutations of bits, so that the others differ by a shift only.
 *
 *   | tile f32 [64, 128], row-major   | layout                | bytes a lane | instructions | sectors each |
 *   |---------------------------------|-----------------------|--------------|--------------|--------------|
 *   | coalesced, 4 neighbours         | (W0 W1 | R0 R1 L0…L4) | 16           | 16           | 16           |
 *   | the accumulator of wgmma        | (… | R0 L0 L1)        | 8            | 32           | 8            |
 */
import { knownDivisor } from "../../ir/size.ts";
import { greatestCommonDivisor } from "../../support/integers.ts";
import { Memo } from "../../support/memo.ts";
import { phasesOf, wavefrontsOf } from "../algebra/bank-conflicts.ts";
import { lanesPerWarp } from "../algebra/index-bits.ts";
import { elementAt, padding } from "../algebra/element-maps.ts";
import { registersPerLane } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { axisOffsets, swizzleByte } from "../algebra/shared-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import type { SharedView } from "../algebra/shared-view.ts";
import { contiguity, powerOfTwoIn } from "../algebra/vectors.ts";
import { costs } from "./cost.ts";
import { matrixMoves } from "./ldmatrix-cost.ts";
import type { SampledPlaces } from "./ldmatrix-cost.ts";
import type { GlobalWindow, SharedWindow } from "./windows.ts";

const sectorBytes = 32;
const widestBytes = 16;
/** Elements that rows lie apart at least where the launch or an index decides their distance. */
export const farApart = 2 ** 20;

/** A layout's accesses to a window. */
export interface AccessPlan {
  /** Elements that a lane moves at once. */
  readonly vector: number;
  readonly instructions: number;
}

/** The axis along which neighbours are neighbours in memory. */
export function contiguousAxis({ axes }: GlobalWindow): number | undefined {
  const axis = axes.findIndex(({ stride }) => stride === 1);
  return axis < 0 ? undefined : axis;
}

/** How many elements from any row's start on are aligned together, as far as is known. */
export function globalAlignment({ axes, start }: GlobalWindow): number {
  const divisor = axes.reduce((known, { stride, extent }) => {
    if (stride === 1 || extent === 1) return known;
    return greatestCommonDivisor(known, stride === undefined ? 1 : knownDivisor(stride));
  }, start);
  return divisor === 0 ? Infinity : powerOfTwoIn(divisor);
}

export function globalAccess(
  layout: RegisterLayout,
  window: GlobalWindow,
  shape: readonly number[],
): AccessPlan {
  const axis = contiguousAxis(window);
  const widest = (widestBytes * 8) / window.dtype.bits;
  const run =
    axis === undefined
      ? 1
      : Math.min(
          widest,
          globalAlignment(window),
          powerOfTwoIn(contiguity(layout, shape, axis)),
          powerOfTwoIn(shape[axis] ?? 1),
        );
  return { vector: run, instructions: Math.ceil(registersPerLane(layout, shape) / run) };
}

export function globalCost(
  layout: RegisterLayout,
  window: GlobalWindow,
  shape: readonly number[],
): number {
  const { vector, instructions } = globalAccess(layout, window, shape);
  const sectors = sectorsOf(layout, window, shape, (vector * window.dtype.bits) / 8);
  return instructions * (costs.globalInstruction + sectors * costs.globalSector);
}

/** The part of the sectors that an instruction touches and uses, where a lane moves so many bytes at once. */
export function sectorUse(layout: RegisterLayout, window: GlobalWindow, bytes: number): number {
  const shape = window.axes.map(({ extent }) => Number(extent));
  const lanes = new Set(elementsOfLanes(layout, shape)).size;
  return (lanes * bytes) / (sectorBytes * sectorsOf(layout, window, shape, bytes));
}

/** Sectors that one instruction of a warp touches. */
function sectorsOf(
  layout: RegisterLayout,
  window: GlobalWindow,
  shape: readonly number[],
  vectorBytes: number,
): number {
  const bytes = window.dtype.bits / 8;
  const strides = window.axes.map(({ stride }) => (typeof stride === "number" ? stride : farApart));
  const sectors = new Set<number>();
  for (const element of elementsOfLanes(layout, shape)) {
    const first = place(element, shape, strides) * bytes;
    const last = first + vectorBytes - 1;
    for (let sector = Math.floor(first / sectorBytes); sector * sectorBytes <= last; sector += 1)
      sectors.add(sector);
  }
  return sectors.size;
}

/** The element that each lane of warp 0 holds in register 0. */
function elementsOfLanes(layout: RegisterLayout, shape: readonly number[]): readonly number[] {
  const elements: number[] = [];
  for (let lane = 0; lane < lanesPerWarp; lane += 1) {
    const element = elementAt(layout, shape, { warp: 0, lane, register: 0 });
    if (element !== undefined) elements.push(element);
  }
  return elements;
}

function place(element: number, shape: readonly number[], strides: readonly number[]): number {
  let remaining = element;
  let found = 0;
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    const extent = shape[axis] ?? 1;
    found += (remaining % extent) * (strides[axis] ?? 0);
    remaining = Math.floor(remaining / extent);
  }
  return found;
}

/** What is looked at of a layout: the elements of a lane's registers, and of register 0 in each lane. */
interface Sample {
  readonly registers: number;
  readonly ofRegisters: readonly number[];
  readonly ofElements: readonly (number | undefined)[];
  /** Of register 1. */
  readonly nextOfLanes: readonly (number | undefined)[];
}

/** Registers among which neighbours in shared memory are looked for. */
const searched = 64;

const samples = new Memo<Sample>(512);

function sample(layout: RegisterLayout, shape: readonly number[]): Sample {
  return samples.get(`${layout.text} ${shape.join()}`, () => takeSample(layout, shape));
}

function takeSample(layout: RegisterLayout, shape: readonly number[]): Sample {
  const registers = registersPerLane(layout, shape);
  const ofRegisters: number[] = [];
  for (let register = 0; register < Math.min(registers, searched); register += 1) {
    const element = elementAt(layout, shape, { warp: 0, lane: 0, register });
    if (element !== undefined) ofRegisters.push(element);
  }
  const ofRegister = (register: number) =>
    Array.from({ length: lanesPerWarp }, (_, lane) =>
      elementAt(layout, shape, { warp: 0, lane, register }),
    );
  const nextOfLanes = registers > 1 ? ofRegister(1) : [];
  return { registers, ofRegisters, ofElements: ofRegister(0), nextOfLanes };
}

function accessCost(instructions: number, wavefronts: number): number {
  return instructions * (costs.sharedInstruction + wavefronts * costs.sharedWavefront);
}

/** Where whole warps may move a tile as matrices. */
export interface MatrixUse {
  /** Bits of lanes' numbers of which each must tell elements apart. */
  readonly apart: number;
}

/** What accesses cost: by the layout in registers, then by that of the buffer. */
type KnownCosts = Map<string, Map<string, number>>;

/** Costs of accesses to windows that are alike: kernels of one program have many in common, and placing asks for every pair of layouts. */
const knownCosts = new Memo<KnownCosts>(128);

/** Accesses to one window of shared memory, under any layout on both sides. */
export class SharedAccesses {
  readonly #window: SharedWindow;
  readonly #matrices: MatrixUse | undefined;
  readonly #places = new Map<string, Places | undefined>();
  readonly #costs: KnownCosts;

  constructor(window: SharedWindow, matrices?: MatrixUse) {
    this.#window = window;
    const possible = window.space === "smem" && window.dtype.bits === 16;
    this.#matrices = possible ? matrices : undefined;
    // The text says what the views are of any layout; layouts are what their texts say.
    const key = `${window.text}, matrices ${this.#matrices?.apart ?? "never"}`;
    this.#costs = knownCosts.get(key, () => new Map());
  }

  plan(registers: RegisterLayout, shared: SharedLayout): AccessPlan {
    return this.#plan(this.#sample(registers), this.#placesIn(shared));
  }

  cost(registers: RegisterLayout, shared: SharedLayout): number {
    const ofRegisters = this.#costs.get(registers.text) ?? new Map<string, number>();
    const known = ofRegisters.get(shared.text);
    if (known !== undefined) return known;
    const found = this.#findCost(registers, shared);
    this.#costs.set(registers.text, ofRegisters.set(shared.text, found));
    return found;
  }

  #findCost(registers: RegisterLayout, shared: SharedLayout): number {
    const sample = this.#sample(registers);
    const places = this.#placesIn(shared);
    const { vector, instructions } = this.#plan(sample, places);
    // A window that a reshape spreads over what is stored apart is read as if all banks collided.
    if (places === undefined) return accessCost(instructions, lanesPerWarp);
    const moves =
      vector > 2 || !this.#areMatrices(registers, shared)
        ? undefined
        : matrixMoves(placesOf(sample, places), sample.registers);
    if (moves !== undefined) return accessCost(moves.instructions, moves.wavefronts);
    return accessCost(instructions, this.#wavefronts(places.of(sample.ofElements), vector));
  }

  #plan({ ofRegisters, registers }: Sample, places: Places | undefined): AccessPlan {
    const vector = places === undefined ? 1 : this.#vector(places.of(ofRegisters));
    return { vector, instructions: Math.ceil(registers / vector) };
  }

  /** Whether whole warps may move it, which lanes with more than a word side by side have no need of. */
  #areMatrices(registers: RegisterLayout, shared: SharedLayout): boolean {
    if (this.#matrices === undefined || registers.kind === "splat") return false;
    if ((registers.replicated & this.#matrices.apart) !== 0) return false;
    const [near, far] = this.#window.views(shared) ?? [];
    if (near === undefined || far === undefined) return false;
    return ((far.first - near.first) * near.bits) % 128 === 0;
  }

  /** How many elements from the first on lie side by side, aligned. */
  #vector(bits: readonly (number | undefined)[]): number {
    const { dtype } = this.#window;
    const places = new Set(bits);
    const start = bits[0] ?? 0;
    let vector = 1;
    while (vector * 2 * dtype.bits <= widestBytes * 8) {
      const next = vector * 2;
      const aligned = start % (next * dtype.bits) === 0;
      for (let index = vector; aligned && index < next; index += 1)
        if (!places.has(start + index * dtype.bits)) return vector;
      if (!aligned) return vector;
      vector = next;
    }
    return vector;
  }

  #wavefronts(bits: readonly (number | undefined)[], vector: number): number {
    const bytes = Int32Array.from(bits, (bit) => (bit === undefined ? padding : bit >> 3));
    const vectorBytes = Math.max(1, (vector * this.#window.dtype.bits) / 8);
    return phasesOf(bytes, vectorBytes).reduce(
      (sum, words) => sum + (words.length === 0 ? 0 : wavefrontsOf(words)),
      0,
    );
  }

  #sample(layout: RegisterLayout): Sample {
    return sample(layout, this.#window.shape);
  }

  #placesIn(layout: SharedLayout): Places | undefined {
    if (!this.#places.has(layout.text)) {
      const [view] = this.#window.views(layout) ?? [];
      this.#places.set(layout.text, view && new Places(bitsOfElements(view)));
    }
    return this.#places.get(layout.text);
  }
}

type Elements = readonly (number | undefined)[];

/** Bits at which elements lie, each found once: samples of many layouts have elements in common. */
class Places {
  readonly #bitOf: (element: number) => number;
  readonly #bits = new Map<number, number>();
  readonly #ofSamples = new Map<Elements, Elements>();

  constructor(bitOf: (element: number) => number) {
    this.#bitOf = bitOf;
  }

  of(elements: Elements): Elements {
    const known = this.#ofSamples.get(elements);
    if (known !== undefined) return known;
    const found = elements.map((element) =>
      element === undefined ? undefined : this.#bit(element),
    );
    this.#ofSamples.set(elements, found);
    return found;
  }

  #bit(element: number): number {
    const known = this.#bits.get(element);
    if (known !== undefined) return known;
    const bit = this.#bitOf(element);
    this.#bits.set(element, bit);
    return bit;
  }
}

function placesOf({ ofRegisters, ofElements, nextOfLanes }: Sample, places: Places): SampledPlaces {
  return {
    ofRegisters: places.of(ofRegisters),
    ofElements: [places.of(ofElements), places.of(nextOfLanes)],
  };
}

/** The bit at which an element of the view lies. */
function bitsOfElements(view: SharedView): (element: number) => number {
  const { layout, allocation, shape, strides, first, bits } = view;
  const offsets = axisOffsets(layout, allocation);
  return (element) => {
    let number = first + place(element, shape, strides);
    let stored = 0;
    for (let axis = allocation.length - 1; axis >= 0; axis -= 1) {
      const extent = allocation[axis] ?? 1;
      stored += offsets[axis]?.[number % extent] ?? 0;
      number = Math.floor(number / extent);
    }
    const bit = stored * bits;
    return swizzleByte(bit >> 3, layout.swizzle) * 8 + (bit & 7);
  };
}
