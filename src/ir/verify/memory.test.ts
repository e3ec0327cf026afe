/** What memory is used for, in kernels that are given as texts. */
import { describe, expect, test } from "vitest";
import { TilewrightError } from "../../support/diagnostics.ts";
import { parseModule } from "../parser/parser.ts";
import { verifyKernel } from "./index.ts";

function kernelText(parameters: readonly string[], body: string): string {
  return `kernel @k grid [] threads [main] (
  ${parameters.join(",\n  ")}
) {
  ${body.trim()}
  yield
}
`;
}

function codeOf(text: string): string | undefined {
  try {
    for (const kernel of parseModule(text).kernels) verifyKernel(kernel);
    return undefined;
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
}

const [x, y] = ['input %0 "x": ref<gmem, f32, [4]>', 'output %1 "y": ref<gmem, f32, [4]>'];
const zero = "%8 = constant {value = 0, dtype = i32, shape = []} : i32";

describe("an array selected among several", () => {
  test("is one of the kernel's parameters", () => {
    const body = `${zero}\n%9 = select_ref %8 refs(%0, %1) : ref<gmem, f32, [4]>\n%10 = load %9 : tile<f32, [4]>`;
    expect(codeOf(kernelText([x, y], body))).toBeUndefined();
  });

  test("is not written where one of them is an input", () => {
    const body = `${zero}\n%9 = select_ref %8 refs(%1, %0) : ref<gmem, f32, [4]>\n%10 = load %9 : tile<f32, [4]>\nstore %9, %10`;
    expect(codeOf(kernelText([x, y], body))).toBe("TW2220");
  });

  test("is no window and has no strides", () => {
    const window = `${zero}\n%9 = slice_ref %0 offsets(%8) {sizes = [4], dropped = []} : ref<gmem, f32, [4]>\n%10 = select_ref %8 refs(%9, %1) : ref<gmem, f32, [4]>`;
    expect(codeOf(kernelText([x, y], window))).toBe("TW2225");
    const strided = `${zero}\n%10 = select_ref %8 refs(%0, %1) : ref<gmem, f32, [4]>`;
    expect(codeOf(kernelText([`${x} strides [2]`, y], strided))).toBe("TW2225");
  });

  test("has the type of all of them, and there is one", () => {
    const longer = 'output %1 "y": ref<gmem, f32, [5]>';
    const body = `${zero}\n%9 = select_ref %8 refs(%0, %1) : ref<gmem, f32, [4]>`;
    expect(codeOf(kernelText([x, longer], body))).toBe("TW2003");
    const none = `${zero}\n%9 = select_ref %8 : ref<gmem, f32, [4]>`;
    expect(codeOf(kernelText([x, y], none))).toBe("TW2001");
  });
});
