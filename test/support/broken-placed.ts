/** Texts of placed kernels in which one thing is changed, and what the verifier says of them. */
import { describe, expect, test } from "vitest";
import type { Kernel } from "../../src/ir/node.ts";
import { parseModule } from "../../src/ir/parser/parser.ts";
import { verifyPlaced } from "../../src/lower/verify/index.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";

function parsed(text: string): Kernel {
  return parseModule(text).kernels[0] ?? expect.fail();
}

/** The report; nothing where the kernel is accepted. */
export function reportOf(text: string): TilewrightError | undefined {
  try {
    verifyPlaced(parsed(text));
    return undefined;
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    return error;
  }
}

interface Broken {
  readonly what: string;
  /** Part of the report, where another rule of the same code might speak first. */
  readonly says?: string;
  readonly of: string;
  readonly replace: string | RegExp;
  readonly by: string;
}

/** Cases by the code of the rule that they break. */
export type BrokenCases = readonly (readonly [code: string, cases: readonly Broken[]])[];

/** Tests that texts are accepted as they are, and rejected once one thing of them is changed. */
export function rejectsBroken(
  texts: { readonly [name: string]: string },
  broken: BrokenCases,
): void {
  test.each(Object.entries(texts))("%s as it was placed is accepted", (_, text) => {
    expect(reportOf(text)).toBeUndefined();
  });

  describe.each(broken)("%s", (code, cases) => {
    test.each(cases)("$what", ({ of, replace, by, says = "" }) => {
      const text = texts[of] ?? expect.fail(of);
      const changed = text.replace(replace, by);
      expect(changed).not.toBe(text);
      const report = reportOf(changed);
      expect(report?.code).toBe(code);
      expect(`${report?.message} ${report?.expected}`).toContain(says);
    });
  });
}
