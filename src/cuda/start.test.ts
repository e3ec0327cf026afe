/** The context that is opened ahead, beside the compiler's warm-up. */
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { FakeDriver } from "../../test/support/fake-driver/driver.ts";
import type { AsideName } from "./driver.ts";
import type { DriverArguments } from "./functions.ts";
import { startAhead } from "./start.ts";

/** Nothing to do meanwhile. */
const noWork = (): Promise<Iterator<void>> => Promise.resolve([].values());

test("a context opened ahead is held until it is let go of", async () => {
  const driver = new FakeDriver();
  const letGo = await startAhead(driver, 0, noWork);
  expect(driver.live).toEqual({ context: 1 });
  letGo();
  expect(driver.live).toEqual({});
  expect(driver.misuses).toEqual([]);
});

test.each([
  ["cuInit", 999],
  ["cuDeviceGet", 101],
  ["cuDevicePrimaryCtxRetain", 2],
] as const)("a failure of %s is left to who opens next", async (name, result) => {
  const driver = new FakeDriver();
  driver.fail(name, result);
  const letGo = await startAhead(driver, 0, noWork);
  letGo();
  expect(driver.live).toEqual({});
});

/** A driver that answers what another thread is asked when it is told to. */
class SlowDriver extends FakeDriver {
  readonly asked: string[] = [];
  readonly #answers: (() => void)[] = [];

  override async callAside<N extends AsideName>(
    name: N,
    ...values: DriverArguments<N>
  ): Promise<number> {
    this.asked.push(name);
    await new Promise<void>((resolve) => this.#answers.push(resolve));
    const call: (...numbers: readonly number[]) => number = this.calls[name];
    return call(...values);
  }

  answer(): void {
    this.#answers.shift()?.();
  }
}

test("the driver goes on between two pieces of work, and no piece follows the last of its answers", async () => {
  const driver = new SlowDriver();
  const seen: string[][] = [];
  function* work(): Generator<void, void> {
    for (;;) {
      seen.push([...driver.asked]);
      if (seen.length === 2 || seen.length === 4) driver.answer();
      yield;
    }
  }
  const letGo = await startAhead(driver, 0, () => Promise.resolve(work()));
  const [first, both] = [["cuInit"], ["cuInit", "cuDevicePrimaryCtxRetain"]];
  expect(seen).toEqual([first, first, both, both]);
  letGo();
  expect(driver.live).toEqual({});
});

test("work that ends before the driver does is waited out", async () => {
  const driver = new SlowDriver();
  const opened = startAhead(driver, 0, noWork);
  for (const name of ["cuInit", "cuDevicePrimaryCtxRetain"]) {
    while (driver.asked.at(-1) !== name) await setImmediate();
    driver.answer();
  }
  (await opened)();
  expect(driver.live).toEqual({});
});

test("a call that fails while work is done is reported behind it", async () => {
  class BrokenDriver extends FakeDriver {
    override callAside(): Promise<number> {
      return Promise.reject(new Error("no thread"));
    }
  }
  let pieces = 0;
  function* work(): Generator<void, void> {
    for (; pieces < 3; pieces += 1) yield;
  }
  const opened = startAhead(new BrokenDriver(), 0, async () => {
    await setImmediate();
    return work();
  });
  await expect(opened).rejects.toThrow("no thread");
  expect(pieces).toBeLessThan(3);
});

function fail(): never {
  throw new Error("no such file");
}

test.each<[string, () => Promise<Iterator<void>>]>([
  ["loaded", async () => fail()],
  ["done", () => Promise.resolve({ next: () => fail() })],
])("where the work cannot be %s, the context is let go of", async (_, load) => {
  const driver = new FakeDriver();
  await expect(startAhead(driver, 0, load)).rejects.toThrow("no such file");
  expect(driver.live).toEqual({});
});
