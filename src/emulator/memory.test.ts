import { describe, expect, test } from "vitest";
import { globalBase } from "./addresses.ts";
import { byteStates, EmulatedMemory } from "./memory.ts";

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
});
