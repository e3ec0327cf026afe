/**
 * Runs a relayout plan on simulated lanes, exactly as its steps say: the oracle of its tests, and a
 * definition of what each step means. Values can be anything, such as the numbers of elements; undefined
 * stands for what is not known, as in padding.
 */
import { laneBits, lanesPerWarp } from "../../src/layout/algebra/index-bits.ts";
import { elementTable, padding } from "../../src/layout/algebra/element-maps.ts";
import { registersPerLane } from "../../src/layout/algebra/register-layout.ts";
import type { RegisterLayout } from "../../src/layout/algebra/register-layout.ts";
import { nothing, slotsPerWord, sourceLane } from "../../src/layout/relayout/steps.ts";
import type {
  Access,
  AccessPattern,
  Chunk,
  ExchangeStep,
  RelayoutPlan,
  RelayoutStep,
} from "../../src/layout/relayout/steps.ts";

/** The registers of each thread, one an element. */
export type LaneValues<T> = readonly (readonly (T | undefined)[])[];

/** The slots of each thread. */
type File<T> = readonly (readonly (T | undefined)[])[];

/** The registers of each thread in the target layout. */
export function executeRelayout<T>(plan: RelayoutPlan, lanes: LaneValues<T>): LaneValues<T> {
  let file: File<T> = lanes;
  for (const step of plan.steps) file = run(plan, step, file);
  const count = registersPerLane(plan.target, plan.shape);
  return file.map((slots) => slots.slice(0, count));
}

function run<T>(plan: RelayoutPlan, step: RelayoutStep, file: File<T>): File<T> {
  const width = slotsPerWord(plan.bits);
  const perThread = (read: (thread: number, to: (T | undefined)[]) => void): File<T> =>
    file.map((_, thread) => {
      const to: (T | undefined)[] = [];
      read(thread, to);
      return to;
    });
  const copyWord = (thread: number, word: number, to: (T | undefined)[]): void => {
    for (let part = 0; part < width; part += 1) to.push(file[thread]?.[word * width + part]);
  };
  switch (step.kind) {
    case "pack":
      return perThread((thread, to) => {
        for (const word of step.words)
          for (let part = 0; part < width; part += 1)
            to.push(file[thread]?.[word[part] ?? nothing]);
      });
    case "select":
      return perThread((thread, to) => {
        for (const word of (thread >> step.bit) & 1 ? step.ones : step.zeros)
          copyWord(thread, word, to);
      });
    case "shuffle":
      return perThread((thread, to) => {
        const first = (thread >> laneBits) << laneBits;
        for (const { word, lanes } of step.words)
          copyWord(lanes === undefined ? thread : first + sourceLane(lanes, thread), word, to);
      });
    case "exchange":
      return exchange(plan, step, file);
  }
}

/** The first byte that a thread accesses. */
export function accessByte(pattern: AccessPattern, access: Access, thread: number): number {
  let address = access.offset;
  pattern.threadParts.forEach((part, bit) => {
    if (((thread >> bit) & 1) === 0) return;
    address = pattern.combine === "xor" ? address ^ part : address + part;
  });
  return address + access.base;
}

/** The threads that take part in an access. */
export function activeThreads(
  layout: RegisterLayout,
  { shape, warps }: Pick<RelayoutPlan, "shape" | "warps">,
  pattern: AccessPattern,
  guard: Chunk["guard"],
): (access: Access) => readonly number[] {
  const registers = registersPerLane(layout, shape);
  const threads = Array.from({ length: warps * lanesPerWarp }, (_, thread) => thread);
  const awake = threads.filter((thread) => (thread & pattern.idle) === 0);
  if (guard === undefined) return () => awake;
  const elements = elementTable(layout, shape, warps);
  return ({ register }) =>
    awake.filter((thread) => {
      const element = elements[thread * registers + register] ?? padding;
      return element !== padding && element >= guard.first && element < guard.last;
    });
}

function exchange<T>(plan: RelayoutPlan, step: ExchangeStep, file: File<T>): File<T> {
  const { source, target, bits } = plan;
  const width = slotsPerWord(bits);
  const loaded: (T | undefined)[][] = file.map(() => []);
  const slotOf = ({ words }: Access, index: number): number =>
    (words[Math.floor(index / width)] ?? nothing) * width + (index % width);
  for (const { stores, loads, guard } of step.chunks) {
    const memory = new Map<number, T | undefined>();
    const storing = activeThreads(source, plan, step.stores, guard);
    for (const access of stores) {
      for (const thread of storing(access)) {
        vectorBits(step, step.stores, access, thread).forEach((bit, index) => {
          const value = file[thread]?.[slotOf(access, index)];
          if (memory.has(bit) && memory.get(bit) !== value)
            throw new Error(`two values stored at bit ${bit} of the scratch memory`);
          memory.set(bit, value);
        });
      }
    }
    const loading = activeThreads(target, plan, step.loads, guard);
    for (const access of loads) {
      for (const thread of loading(access)) {
        vectorBits(step, step.loads, access, thread).forEach((bit, index) => {
          const slots = loaded[thread];
          if (slots !== undefined) slots[slotOf(access, index)] = memory.get(bit);
        });
      }
    }
  }
  return loaded;
}

/** Where in the scratch memory each element of a vector begins, in bits. */
function vectorBits(
  { elementBits, bytes }: ExchangeStep,
  pattern: AccessPattern,
  access: Access,
  thread: number,
): readonly number[] {
  const first = accessByte(pattern, access, thread);
  if (first < 0 || first + pattern.vectorBytes > bytes || first % pattern.vectorBytes !== 0)
    throw new Error(`vector at byte ${first} of a scratch memory of ${bytes} bytes`);
  const count = (pattern.vectorBytes * 8) / elementBits;
  return Array.from({ length: count }, (_, index) => first * 8 + index * elementBits);
}
