/** What an automated checker has against a page, by the rules of WCAG 2.1, levels A and AA. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** Each rule that the page breaks as it is now, with the elements that break it; `except` names what is not ours to mend. */
export async function violations(
  page: Page,
  except: readonly string[] = [],
): Promise<readonly string[]> {
  // The page's policy has no place for scripts of others, so the checker comes in by the debugger's way.
  const has = await page.evaluate(() => "axe" in globalThis);
  if (!has) await page.evaluate(readFileSync(axe, "utf8"));
  return page.evaluate(async (excluded) => {
    const { axe: checker } = globalThis as unknown as {
      readonly axe: {
        run(
          context: object,
          options: object,
        ): Promise<{
          readonly violations: readonly {
            readonly id: string;
            readonly nodes: readonly { readonly html: string }[];
          }[];
        }>;
      };
    };
    const { violations: found } = await checker.run(
      { exclude: excluded.map((selector) => [selector]) },
      {
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
        iframes: false,
      },
    );
    return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" | ")}`);
  }, except);
}
