import { afterEach, describe, expect, test, vi } from "vitest";
import { takesAll } from "../../test/support/sample.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { Random } from "../support/random.ts";
import { globalBase } from "./addresses.ts";
import { byteStates, EmulatedMemory } from "./memory.ts";

afterEach(() => {
  vi.unstubAllGlobals();
});

/** A process that has no room for buffers of more than so many bytes. */
function haveRoomFor(most: number): void {
  const { ArrayBuffer: Whole } = globalThis;
  class Limited extends Whole {
    constructor(bytes: number) {
      if (bytes > most) throw new RangeError("Array buffer allocation failed");
      super(bytes);
    }
  }
  vi.stubGlobal("ArrayBuffer", Limited);
}

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "none";
}

describe("the emulator's heap", () => {
  test("keeps allocations apart, so that a step past the end hits nothing", () => {
    const memory = new EmulatedMemory();
    const first = memory.allocate(100);
    const second = memory.allocate(512);
    expect(second - first).toBeGreaterThanOrEqual(612);
    const { states } = memory.views;
    const at = first - globalBase;
    expect([states[at - 1], states[at], states[at + 99], states[at + 100]]).toEqual([
      byteStates.absent,
      byteStates.unwritten,
      byteStates.unwritten,
      byteStates.absent,
    ]);
  });

  test("keeps its contents when it grows", () => {
    const memory = new EmulatedMemory();
    const first = memory.allocate(16);
    memory.write(first, Uint8Array.of(1, 2, 3));
    const large = memory.allocate(4 << 20);
    memory.fill(large + (4 << 20) - 2, 2, Uint8Array.of(9));
    expect([...memory.read(first, 3)]).toEqual([1, 2, 3]);
    expect(memory.views.states[first - globalBase]).toBe(byteStates.written);
    expect([...memory.read(large + (4 << 20) - 2, 2)]).toEqual([9, 9]);
  });

  test("uses what was freed again, where it is large enough", () => {
    const memory = new EmulatedMemory();
    const [first, second] = [memory.allocate(1000), memory.allocate(1000)];
    const last = memory.allocate(8);
    memory.free(first);
    expect(memory.allocate(1500)).toBeGreaterThan(last);
    expect(memory.allocate(700)).toBe(first);
    memory.free(second);
    expect(memory.views.states[second - globalBase]).toBe(byteStates.absent);
    expect(memory.allocate(600)).toBe(second);
  });

  test("joins neighbouring gaps", () => {
    const memory = new EmulatedMemory();
    const [first, second] = [memory.allocate(512), memory.allocate(512)];
    memory.allocate(512);
    memory.free(second);
    memory.free(first);
    expect(memory.allocate(1536)).toBe(first);
  });

  test("refuses what lies in no allocation", () => {
    const memory = new EmulatedMemory();
    const address = memory.allocate(64, "x");
    expect(() => memory.read(address, 65)).toThrow("in no allocation");
    expect(() => memory.write(address - 1, Uint8Array.of(0))).toThrow("in no allocation");
    memory.free(address);
    expect(() => memory.read(address, 1)).toThrow("in no allocation");
    expect(() => memory.free(address)).toThrow("nothing is allocated");
  });

  test("names the allocations that an address lies in or between", () => {
    const memory = new EmulatedMemory();
    const first = memory.allocate(64, "x");
    const second = memory.allocate(64, "y");
    expect(memory.around(first + 100).below?.label).toBe("x");
    expect(memory.around(second).below?.label).toBe("y");
    expect(memory.around(first + 100).above?.label).toBe("y");
    expect(memory.around(first - 1).below).toBeUndefined();
    expect(memory.around(first - 1).above?.label).toBe("x");
    expect(memory.around(second + 1).above).toBeUndefined();
  });

  test("copies what was never written as such", () => {
    const memory = new EmulatedMemory();
    const [from, to] = [memory.allocate(4), memory.allocate(4)];
    memory.fill(to, 4, Uint8Array.of(7));
    memory.write(from, Uint8Array.of(1, 2));
    memory.copy(from, to, 4);
    expect([...memory.read(to, 2)]).toEqual([1, 2]);
    expect(memory.unwritten(to, 4)).toBe(2);
  });

  test("ends where its last allocation does", () => {
    const memory = new EmulatedMemory();
    const empty = memory.extent;
    const [first, second] = [memory.allocate(0), memory.allocate(3 << 20)];
    const large = memory.capacity;
    expect(second).toBeGreaterThan(first);
    memory.free(first);
    expect(memory.extent).toBeGreaterThan(3 << 20);
    memory.free(second);
    expect(memory.extent).toBe(empty);
    expect(memory.allocate(4 << 20)).toBe(first);
    expect(memory.capacity).toBeGreaterThanOrEqual(large);
  });
});

describe("memory that is lent", () => {
  test("shows what was allocated meanwhile when it comes back", () => {
    const memory = new EmulatedMemory();
    const first = memory.allocate(100, "first");
    memory.write(first, Uint8Array.of(1, 2, 3));
    memory.lend();
    const { views, extent } = memory;
    const sizes = [8, 70_000, 300_000, 0, 5 << 20];
    const late = sizes.map((bytes) => ({ bytes, address: memory.allocate(bytes, "late") }));
    expect(memory.views).toBe(views);
    expect(memory.extent).toBe(extent);
    expect(memory.allocations.map(({ label }) => label)).toEqual(["first"]);
    expect(memory.around(late[0]?.address ?? 0).below?.label).toBe("first");
    expect(views.states.subarray(extent).every((state) => state === byteStates.absent)).toBe(true);
    // What the launch does.
    views.bytes[first - globalBase + 3] = 4;
    views.states[first - globalBase + 3] = byteStates.written;
    memory.takeBack();
    expect([...memory.read(first, 4)]).toEqual([1, 2, 3, 4]);
    expect(memory.unwritten(first, 100)).toBe(96);
    expect(memory.allocations.length).toBe(6);
    for (const { bytes, address } of late) {
      expect(memory.unwritten(address, bytes)).toBe(bytes);
      memory.fill(address, bytes, Uint8Array.of(9));
      const last = Math.min(2, bytes);
      expect([...memory.read(address + bytes - last, last)]).toEqual([9, 9].slice(0, last));
    }
  });

  test("takes allocations alone", () => {
    const memory = new EmulatedMemory();
    const address = memory.allocate(16);
    memory.lend();
    const uses: readonly (() => unknown)[] = [
      () => memory.lend(),
      () => memory.free(address),
      () => memory.write(address, Uint8Array.of(1)),
      () => memory.fill(address, 16, Uint8Array.of(1)),
      () => memory.copy(address, address, 16),
      () => memory.read(address, 1),
      () => memory.readInto(address, new Uint8Array(1)),
      () => memory.unwritten(address, 1),
    ];
    for (const use of uses) expect(use).toThrow("lent to a launch");
    memory.takeBack();
    expect(() => memory.takeBack()).toThrow("was not lent");
    expect(memory.unwritten(address, 16)).toBe(16);
  });
});

describe.each(["at rest", "lent"])("memory %s", (state) => {
  function prepared() {
    const memory = new EmulatedMemory();
    const first = memory.allocate(1000);
    memory.fill(first, 1000, Uint8Array.of(5));
    if (state === "lent") memory.lend();
    const back = (): void => {
      if (state === "lent") memory.takeBack();
    };
    return { memory, first, back };
  }

  test("tells who asks for more than there is, and is as it was", () => {
    const { memory, first, back } = prepared();
    const { capacity } = memory;
    expect(codeOf(() => memory.allocate(2 ** 32))).toBe("TW8005");
    expect(codeOf(() => memory.allocate(2 ** 60))).toBe("TW8005");
    haveRoomFor(1 << 20);
    expect(codeOf(() => memory.allocate(1 << 20, "x"))).toBe("TW8005");
    expect(memory.capacity).toBe(capacity);
    const small = memory.allocate(500_000);
    expect(codeOf(() => memory.allocate(600_000))).toBe("TW8005");
    back();
    expect([...memory.read(first + 998, 2)]).toEqual([5, 5]);
    expect(memory.unwritten(small, 500_000)).toBe(500_000);
    vi.unstubAllGlobals();
    expect(memory.allocate(600_000)).toBeGreaterThan(small);
  });

  test("grows by what is needed where there is no room for twice as much", () => {
    const { memory, back } = prepared();
    haveRoomFor(100_000);
    const large = memory.allocate(90_000);
    back();
    memory.fill(large, 90_000, Uint8Array.of(1));
    expect(memory.capacity).toBeLessThan(100_000);
  });
});

/** What a test knows of an allocation: each byte, −1 where nothing wrote it. */
type Known = Int16Array;

/** Random steps of a program and of launches, and what memory has to hold by them. */
class Model {
  readonly #memory = new EmulatedMemory();
  readonly #random: Random;
  readonly #arrays = new Map<number, Known>();
  /** The arrays of the launch that memory is lent to. */
  #lentTo: readonly number[] | undefined;

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  step(): void {
    const steps = [
      () => this.#allocate(),
      () => this.#allocate(),
      ...(this.#lentTo === undefined
        ? [() => this.#free(), () => this.#write(), () => this.#copy(), () => this.#lend()]
        : [() => this.#launchWrites(), () => this.#launchWrites(), () => this.#takeBack()]),
    ];
    this.#random.pick(steps)();
    if (this.#lentTo === undefined) this.#check(this.#some());
  }

  end(): void {
    if (this.#lentTo !== undefined) this.#takeBack();
    for (const address of this.#arrays.keys()) this.#check(address);
    for (const address of this.#arrays.keys()) this.#memory.free(address);
    expect(this.#memory.extent).toBe(new EmulatedMemory().extent);
    expect(this.#memory.views.states.every((state) => state === byteStates.absent)).toBe(true);
  }

  #some(of: readonly number[] = [...this.#arrays.keys()]): number | undefined {
    return of.length === 0 ? undefined : this.#random.pick(of);
  }

  #allocate(): void {
    const random = this.#random;
    const bytes = random.below(30) === 0 ? random.below(200_000) : random.below(2000);
    const address = this.#memory.allocate(bytes);
    expect(this.#arrays.has(address)).toBe(false);
    this.#arrays.set(address, new Int16Array(bytes).fill(-1));
  }

  #free(): void {
    const address = this.#some();
    if (address === undefined) return;
    this.#memory.free(address);
    this.#arrays.delete(address);
  }

  #write(): void {
    const address = this.#some();
    const known = this.#arrays.get(address ?? 0);
    if (address === undefined || known === undefined) return;
    const random = this.#random;
    const first = random.below(known.length + 1);
    const length = random.below(Math.min(300, known.length - first) + 1);
    const bytes = Uint8Array.from({ length }, () => random.below(256));
    this.#memory.write(address + first, bytes);
    known.set(bytes, first);
  }

  #copy(): void {
    const [from, to] = [this.#some(), this.#some()];
    const [source, target] = [this.#arrays.get(from ?? 0), this.#arrays.get(to ?? 0)];
    if (from === undefined || to === undefined || source === undefined || target === undefined)
      return;
    const length = this.#random.below(Math.min(source.length, target.length) + 1);
    this.#memory.copy(from, to, length);
    target.set(source.subarray(0, length));
  }

  #lend(): void {
    this.#memory.lend();
    this.#lentTo = [...this.#arrays.keys()];
  }

  #launchWrites(): void {
    const address = this.#some(this.#lentTo);
    const known = this.#arrays.get(address ?? 0);
    if (address === undefined || known === undefined || known.length === 0) return;
    const at = this.#random.below(known.length);
    const { bytes, states } = this.#memory.views;
    bytes[address - globalBase + at] = known[at] = this.#random.below(256);
    states[address - globalBase + at] = byteStates.written;
  }

  #takeBack(): void {
    this.#memory.takeBack();
    this.#lentTo = undefined;
  }

  #check(address: number | undefined): void {
    const known = this.#arrays.get(address ?? 0);
    if (address === undefined || known === undefined) return;
    const { states } = this.#memory.views;
    const found = this.#memory.read(address, known.length);
    const offset = address - globalBase;
    const { unwritten, written } = byteStates;
    const isRight = (byte: number, at: number): boolean =>
      states[offset + at] === (byte < 0 ? unwritten : written) && (byte < 0 || found[at] === byte);
    expect(known.findIndex((byte, at) => !isRight(byte, at))).toBe(-1);
    const guards = [states[offset - 1], states[offset + known.length]];
    expect(guards).toEqual([byteStates.absent, byteStates.absent]);
  }
}

test.each(Array.from({ length: takesAll ? 400 : 8 }, (_, seed) => seed))(
  "memory holds what random steps have written, seed %i",
  (seed) => {
    const model = new Model(seed);
    for (let step = 0; step < 120; step++) model.step();
    model.end();
  },
);
