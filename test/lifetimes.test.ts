/**
 * What programs do to devices and bodies when something goes wrong in between: the error is their own, and what comes
 * after it works as if nothing had been.
 */
import { describe, expect, test } from "vitest";
import {
  tensor,
  bool,
  f32,
  fromNumbers,
  i32,
  kernel,
  open,
  scalar,
  tf32,
  TilewrightError,
  toNumbers,
} from "tilewright";
import type { Ref } from "tilewright";

const arrays = { inputs: { x: tensor(f32, [8]) }, outputs: { out: tensor(f32, [8]) } };

function plusOne() {
  return kernel({ name: "plus_one", ...arrays }, ({ x, out }) => out.store(x.load().add(1)));
}

const numbers = [1, 2, 3, 4, 5, 6, 7, 8];
const input = fromNumbers(f32, [8], numbers);

describe("a body", () => {
  test("that throws an error of its own hands it on, and the next kernel is traced", () => {
    const mine = new RangeError("mine");
    const throwing = (): unknown =>
      kernel({ name: "throwing" }, () => {
        throw mine;
      });
    expect(throwing).toThrow(mine);
    expect(String(plusOne())).toContain("plus_one");
  });

  test("may make another kernel, whose values are not its own", () => {
    const nested = (): unknown =>
      kernel({ name: "outer", ...arrays }, ({ x, out }) => {
        const tile = x.load();
        kernel({ name: "inner", ...arrays }, (inner) => inner.out.store(inner.x.load()));
        out.store(tile);
        kernel({ name: "thief", ...arrays }, (inner) => inner.out.store(tile));
      });
    expect(nested).toThrow(/TW1003: tile<f32, \[8\]> belongs to/);
  });

  test("that is over takes nothing more, be it by a timer", async () => {
    let kept: Ref<"f32"> | undefined;
    kernel({ name: "kept", ...arrays }, ({ x, out }) => {
      kept = out;
      out.store(x.load());
    });
    const late = new Promise((resolve, reject) => {
      setTimeout(() => {
        try {
          resolve(kept?.store(1));
        } catch (error) {
          reject(error as TilewrightError);
        }
      }, 1);
    });
    await expect(late).rejects.toMatchObject({ code: "TW1002" });
  });
});

describe.each(["simulator", "emulator"] as const)("the %s", (name) => {
  test("takes scalars that its kernel's format holds, and no others", async () => {
    const scalars = kernel(
      { name: "scalars", inputs: { s: scalar(i32) }, outputs: { out: tensor(i32, [1]) } },
      ({ s, out }) => out.at(0).store(s),
    );
    const device = await open(name);
    const { out } = await device.run(scalars, { s: -0 });
    expect([...toNumbers(out)]).toEqual([0]);
    for (const wrong of [1.5, 2 ** 31, NaN, "3", 3n, true, null, {}, []])
      await expect(device.run(scalars, { s: wrong as never }), typeof wrong).rejects.toMatchObject({
        code: "TW4013",
      });
    device.dispose();
  });

  test("reads booleans by whether they are 0, and tf32 with all of its bits", async () => {
    const device = await open(name);
    const counts = kernel(
      { name: "counts", inputs: { x: tensor(bool, [4]) }, outputs: { out: tensor(i32, [4]) } },
      ({ x, out }) => out.store(x.load().cast(i32)),
    );
    const x = { dtype: bool, shape: [4], data: Uint8Array.of(0, 1, 2, 255) };
    expect([...toNumbers((await device.run(counts, { x })).out)]).toEqual([0, 1, 1, 1]);
    const widens = kernel(
      { name: "widens", inputs: { x: tensor(tf32, [1]) }, outputs: { out: tensor(f32, [1]) } },
      ({ x: source, out }) => out.store(source.load().cast(f32)),
    );
    const fine = { dtype: tf32, shape: [1], data: Float32Array.of(1 + 2 ** -23) };
    expect([...toNumbers((await device.run(widens, { x: fine })).out)]).toEqual([1 + 2 ** -23]);
    device.dispose();
  });

  test("ends what was under way when it is disposed of, and takes nothing more", async () => {
    const device = await open(name, { onLeak: () => undefined });
    const definition = plusOne();
    const kept = await device.upload(input);
    const runs = Array.from({ length: 5 }, () => device.run(definition, { x: input }));
    device.dispose();
    device.dispose();
    for (const result of await Promise.allSettled(runs))
      if (result.status === "fulfilled")
        expect([...toNumbers(result.value.out)]).toEqual(numbers.map((each) => each + 1));
      else expect(result.reason).toBeInstanceOf(TilewrightError);
    const uses: readonly (() => unknown)[] = [
      () => device.run(definition, { x: input }),
      () => device.upload(input),
      () => device.allocate(f32, [1]),
      () => device.synchronize(),
      () => device.download(kept),
      () => device.time(() => undefined),
      () => device.launch(definition, { x: kept, out: kept }),
      () => device.bind(definition, { x: kept, out: kept }),
    ];
    for (const use of uses)
      await expect((async () => await use())(), String(use)).rejects.toMatchObject({
        code: "TW4001",
      });
    kept.dispose();
  });

  test("takes many runs at once, of many kernels", async () => {
    const device = await open(name);
    const results = await Promise.all(
      Array.from({ length: 60 }, async (_, number) => {
        const own = kernel({ name: `own_${number % 20}`, ...arrays }, ({ x, out }) =>
          out.store(x.load().add(number)),
        );
        return [...toNumbers((await device.run(own, { x: input })).out)];
      }),
    );
    results.forEach((found, number) => expect(found).toEqual(numbers.map((each) => each + number)));
    device.dispose();
  });
});
