/**
 * Runs a relayout plan on simulated lanes, exactly as its steps say: the oracle of its tests, and a
 * definition of what each step means. Values can be anything, such as the numbers of elements; undefined
 * stands for what is not known, as in padding.
 */
import { laneBits, threadsPerProgram } from "../algebra/bits.ts";
import { elementTable, padding } from "../algebra/elements.ts";
import { registersPerLane } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { nothing, slotsPerWord, sourceLane } from "./steps.ts";
import type {
  Access,
  AccessPattern,
  Chunk,
  ExchangeStep,
  RelayoutPlan,
  RelayoutStep,
} from "./steps.ts";

/** The registers of each thread, one an element. */
export type LaneValues<T> = readonly (readonly (T | undefined)[])[];

/** The words of each thread, each with its slots. */
type File<T> = readonly (readonly Word<T>[])[];
type Word<T> = readonly (T | undefined)[];

/** The registers of each thread in the target layout. */
export function executeRelayout<T>(plan: RelayoutPlan, lanes: LaneValues<T>): LaneValues<T> {
  const slots = slotsPerWord(plan.bits);
  let file: File<T> = lanes.map((registers) => toWords(registers, slots));
  for (const step of plan.steps) file = run(plan, step, file);
  const count = registersPerLane(plan.target, plan.shape);
  return file.map((words) =>
    Array.from(
      { length: count },
      (_, register) => words[Math.floor(register / slots)]?.[register % slots],
    ),
  );
}

function toWords<T>(registers: readonly (T | undefined)[], slots: number): readonly Word<T>[] {
  return Array.from({ length: Math.ceil(registers.length / slots) }, (_, word) =>
    registers.slice(word * slots, (word + 1) * slots),
  );
}

function run<T>(plan: RelayoutPlan, step: RelayoutStep, file: File<T>): File<T> {
  const slots = slotsPerWord(plan.bits);
  const word = (thread: number, index: number): Word<T> => file[thread]?.[index] ?? [];
  const perThread = (make: (thread: number) => readonly Word<T>[]): File<T> =>
    file.map((_, thread) => make(thread));
  switch (step.kind) {
    case "pack":
      return perThread((thread) =>
        step.words.map((parts) =>
          parts.map((slot) =>
            slot === nothing ? undefined : word(thread, Math.floor(slot / slots))[slot % slots],
          ),
        ),
      );
    case "select":
      return perThread((thread) =>
        ((thread >> step.bit) & 1 ? step.ones : step.zeros).map((index) => word(thread, index)),
      );
    case "shuffle":
      return perThread((thread) => {
        const warp = thread >> laneBits;
        return step.words.map(({ word: index, lanes }) => {
          const lane = lanes === undefined ? undefined : sourceLane(lanes, thread);
          return word(lane === undefined ? thread : (warp << laneBits) | lane, index);
        });
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
  shape: readonly number[],
  pattern: AccessPattern,
  guard: Chunk["guard"],
): (access: Access) => readonly number[] {
  const registers = registersPerLane(layout, shape);
  const threads = Array.from({ length: threadsPerProgram }, (_, thread) => thread);
  const awake = threads.filter((thread) => (thread & pattern.idle) === 0);
  if (guard === undefined) return () => awake;
  const elements = elementTable(layout, shape);
  return ({ register }) =>
    awake.filter((thread) => {
      const element = elements[thread * registers + register] ?? padding;
      return element !== padding && element >= guard.first && element < guard.last;
    });
}

function exchange<T>(plan: RelayoutPlan, step: ExchangeStep, file: File<T>): File<T> {
  const { source, target, shape, bits } = plan;
  const slots = slotsPerWord(bits);
  const loaded: Word<T>[][] = file.map(() => []);
  for (const { stores, loads, guard } of step.chunks) {
    const memory = new Map<number, T | undefined>();
    const storing = activeThreads(source, shape, step.stores, guard);
    for (const access of stores) {
      for (const thread of storing(access)) {
        vectorBits(step, step.stores, access, thread).forEach((bit, index) => {
          const word = file[thread]?.[access.words[Math.floor(index / slots)] ?? nothing];
          const value = word?.[index % slots];
          if (memory.has(bit) && memory.get(bit) !== value)
            throw new Error(`two values stored at bit ${bit} of the scratch memory`);
          memory.set(bit, value);
        });
      }
    }
    const loading = activeThreads(target, shape, step.loads, guard);
    for (const access of loads) {
      for (const thread of loading(access)) {
        const values = vectorBits(step, step.loads, access, thread).map((bit) => memory.get(bit));
        access.words.forEach((word, index) => {
          const words = loaded[thread];
          if (words !== undefined) words[word] = values.slice(index * slots, (index + 1) * slots);
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
