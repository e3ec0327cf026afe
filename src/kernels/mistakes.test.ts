/** What the library says to those who give it something else: the line, what was found, and a remedy that is one. */
import { describe, expect, test } from "vitest";
import { bf16, f32, i32, i8 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import { array, dim } from "../lang/index.ts";
import { open } from "../runtime/open.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { fill, gather, layerNorm, matmul, pad, permute, reduce, softmax } from "./index.ts";

/** The report, which has this file's line. */
function reportOf(error: unknown): string {
  if (!(error instanceof TilewrightError)) throw error;
  expect(error.position?.file).toContain("mistakes.test");
  return error.message;
}

function told(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    return reportOf(error);
  }
  return "nothing was thrown";
}

const x = array(f32, [2, 3]);

describe("a report of the library", () => {
  test.each([
    [() => softmax(f32 as never), /TW1033[^]*the dtype f32[^]*write softmax\(\{ x: … \}\)/],
    [() => softmax({ x: i32 as never }), /TW9901[^]*use formats that the message lists/],
    [() => reduce({ x, axes: [0, -2] }), /TW9902: reduce names an axis twice[^]*\[0, -2\]/],
    [() => permute({ x, axes: [0, 0] }), /TW9902[^]*found: {4}\[0, 0\]/],
    [() => gather({ x: f32 as never, indices: array(i32, [1]) }), /TW9902[^]*the dtype f32/],
    [
      () => matmul({ a: array(bf16, [3, 4]), b: array(bf16, [5, 6]) }),
      /TW9902[^]*a of \[3, 4\] and b of \[5, 6\]/,
    ],
    [() => layerNorm({ x: bf16, epsilon: -1 }), /TW9904[^]*remedy: {3}give what is expected/],
    [() => fill({ out: array(i8, [2]), value: 300 }), /TW1007: 300 is not a value of i8/],
    [
      () => fill({ out: f32, value: 1 }).plan({ n: -1 }),
      /TW4007: -1 [^]*remedy: {3}give a whole number from 0/,
    ],
    [() => pad({ x: array(i8, [2]), before: [1], after: [0], value: 1.5 }), /TW1007: 1.5/],
  ])("names what was given: %s", (make, wanted) => {
    expect(told(make)).toMatch(wanted);
  });

  test("names arrays as the user has them, and the line that ran what failed", async () => {
    const device = await open("simulator");
    const other = await open("simulator");
    const [own, out] = [await device.upload(fromNumbers(f32, [1, 2], [1, 2])), [1, 2]];
    const foreign = await other.upload(fromNumbers(f32, [1, 2], [1, 2]));
    const result = device.allocate(f32, out);
    const op = softmax({ x: f32 });
    const launched = (given: typeof own): string =>
      told(() => {
        device.launch(op, { x: given, out: result });
      });
    expect(launched(foreign)).toMatch(/TW4011: the array f32\[1, 2\]/);
    own.dispose();
    expect(launched(own)).toMatch(/TW4010: the array f32\[1, 2\]/);
    const picked = gather({ x: array(f32, [dim("n")]), indices: array(i32, [1]) });
    const failed = await device.run(picked, { x: [1, 2, 3], indices: [7] }).catch(reportOf);
    expect(failed).toMatch(/TW3005: load with index 7 on axis 0 of x/);
    for (const each of [foreign, result]) each.dispose();
    for (const each of [device, other]) each.dispose();
  });
});
