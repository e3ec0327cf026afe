/** What a kernel that approximates makes of its functions. */
import { expect, test } from "vitest";
import { f32, f64, i32, u32 } from "../formats/dtype.ts";
import { walkOps } from "../ir/traverse.ts";
import { tensor } from "./arguments.ts";
import { iota } from "./create.ts";
import { kernel } from "./kernel.ts";
import { randomKey } from "./random.ts";

const x = tensor(f32, [4]);

/** The functions of a kernel, with a star where they are approximated. */
function functionsOf({ kernel: { body } }: ReturnType<typeof kernel>): readonly string[] {
  const found: string[] = [];
  walkOps(body, ({ kind, attributes }) => {
    if (kind !== "unary" && kind !== "binary") return;
    found.push(`${attributes.fn}${attributes.approximate === true ? "*" : ""}`);
  });
  return found;
}

test("functions that have an approximation take it, where their call says nothing else", () => {
  const made = kernel(
    { name: "fast", approximate: true, inputs: { x }, outputs: { y: x } },
    (all) => {
      const tile = all.x.load();
      const fast = tile.exp().div(tile.reciprocal()).add(tile.mul(2).logistic());
      const slow = tile.sqrt({ approximate: false }).div(3, { rounding: "up" });
      const wide = tile.cast(f64).log().cast(f32).add(tile.tan()).div(4, { flushToZero: true });
      const whole = tile.cast(i32).div(3).cast(f32).fma(2, tile.pow(2));
      all.y.store(fast.add(slow).add(wide).add(whole));
    },
  );
  expect(functionsOf(made).join(" ")).toBe(
    "exp* div* div* mul logistic* add sqrt div log tan add div div pow add add add",
  );
});

test("without the option nothing is approximated, and a call may ask for it", () => {
  const made = kernel({ name: "slow", inputs: { x }, outputs: { y: x } }, (all) => {
    all.y.store(all.x.load().exp().sin({ approximate: true }));
  });
  expect(functionsOf(made)).toEqual(["exp", "sin*"]);
});

test("random draws are those of any other kernel", () => {
  const drawn = (approximate: boolean): readonly string[] =>
    functionsOf(
      kernel({ name: "draws", approximate, outputs: { y: x } }, ({ y }) => {
        const key = randomKey(7);
        const numbers = iota(u32, [4], { axis: 0 });
        y.store(key.gumbel(numbers).add(key.normal(numbers)));
      }),
    );
  expect(drawn(true)).toEqual(drawn(false));
});

test("the option is true or false", () => {
  expect(() =>
    // @ts-expect-error a text is neither
    kernel({ name: "odd", approximate: "yes", outputs: { y: x } }, () => undefined),
  ).toThrow(/approximate of a kernel/);
});
