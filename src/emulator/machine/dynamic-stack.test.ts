import { describe, expect, test } from "vitest";
import { runPtx } from "../../../test/support/ptx-kernel.ts";
import { DynamicStack, dynamicStart } from "./dynamic-stack.ts";

describe("stacks that lanes take from", () => {
  test("each lane has its own, aligned and without overlap", () => {
    const stack = new DynamicStack();
    expect(stack.take(3, 5, 16)).toBe(dynamicStart);
    expect(stack.take(3, 8, 64)).toBe(dynamicStart + 64);
    expect(stack.take(4, 8, 16)).toBe(dynamicStart);
    expect(stack.top(3)).toBe(dynamicStart + 72);
    stack.restore(3, dynamicStart + 5);
    expect(stack.take(3, 8, 8)).toBe(dynamicStart + 8);
  });

  test("keep what they hold when they grow", () => {
    const stack = new DynamicStack();
    stack.take(1, 16, 16);
    stack.views.bytes[stack.elementBytes + 7] = 42;
    stack.take(31, 5000, 16);
    expect(stack.elementBytes).toBeGreaterThanOrEqual(5000);
    expect(stack.views.bytes[stack.elementBytes + 7]).toBe(42);
  });

  test("give back what lanes of a mask took since", () => {
    const stack = new DynamicStack();
    stack.take(0, 32, 16);
    const saved = stack.save();
    stack.take(0, 32, 16);
    stack.take(1, 32, 16);
    stack.restoreAll(1, saved);
    expect(stack.top(0)).toBe(dynamicStart + 32);
    expect(stack.top(1)).toBe(dynamicStart + 32);
    stack.restoreAll(2, saved);
    expect(stack.top(1)).toBe(dynamicStart);
    // Lanes that entered before anyone took anything.
    stack.restoreAll(1, undefined);
    expect(stack.top(0)).toBe(dynamicStart);
  });

  test("end where local memory does", () => {
    const { codes } = runPtx({
      body: "mov.b64 %d0, 1048576; alloca.u64 %d1, %d0, 16; st.local.b32 [%d1], 1;",
    });
    expect(codes).toEqual(["TW8010"]);
  });

  test("memory that was given back is nobody's", () => {
    const { codes } = runPtx({
      body: `stacksave.u64 %d2; alloca.u64 %d1, 64, 16; st.local.b32 [%d1], 1; stackrestore.u64 %d2;
        ld.local.b32 %r0, [%d1];`,
    });
    expect(codes).toEqual(["TW8010"]);
  });
});
