/**
 * Makes a failing kernel small, as text: ops are dropped, or replaced by constants, for as long as the rest is a
 * valid kernel that still fails.
 *
 *   %20 = binary %17, %19 {fn = add} : tile<f32, [16]>
 *   %20 = constant {value = 0, dtype = f32, shape = [16]} : tile<f32, [16]>
 *
 * An op with regions goes with all of its lines, or is left alone while its body shrinks.
 */
import type { Kernel } from "../../src/ir/node.ts";
import { parseModule } from "../../src/ir/parser/parser.ts";
import { printKernel } from "../../src/ir/printer.ts";
import { verifyKernel } from "../../src/ir/verify/index.ts";
import { unknownLocation } from "../../src/support/location.ts";

/** The kernel that text stands for; undefined where it stands for none. */
export function kernelOf(text: string): Kernel | undefined {
  try {
    const [kernel] = parseModule(text).kernels;
    if (kernel === undefined) return undefined;
    verifyKernel(kernel);
    return kernel;
  } catch {
    return undefined;
  }
}

/** The lines of the op that begins at a line: itself, or with its regions. */
function endOfOp(lines: readonly string[], start: number): number {
  let depth = 0;
  for (let at = start; at < lines.length; at++) {
    for (const letter of lines[at] ?? "") depth += letter === "{" ? 1 : letter === "}" ? -1 : 0;
    if (depth <= 0) return at + 1;
  }
  return lines.length;
}

/** A constant in place of an op with one result that is a number or a tile. */
function constantFor(first: string, last: string): string | undefined {
  const result = /^(\s*%\d+) = /.exec(first)?.[1];
  const type = / : (tile<(\w+), (\[[\d, ]*\])>|\w+)$/.exec(last);
  if (result === undefined || type === null || first.includes("= constant")) return undefined;
  const [, whole = "", element, shape] = type;
  const dtype = element ?? whole;
  const value = dtype === "bool" ? "false" : "0";
  return `${result} = constant {value = ${value}, dtype = ${dtype}, shape = ${shape ?? "[]"}} : ${whole}`;
}

/** Every text with one op less, the largest first. */
function* candidates(lines: readonly string[]): Generator<string> {
  const starts = lines
    .map((line, at) => ({ at, end: endOfOp(lines, at), line }))
    .filter(
      ({ line }) =>
        /^\s+(?:%[\d, %]+ = )?[a-z_]+\b/.test(line) &&
        !/^\s+(?:yield|input|output|inout|scalar)\b/.test(line),
    );
  starts.sort((left, right) => right.end - right.at - (left.end - left.at));
  for (const { at, end, line } of starts) {
    yield [...lines.slice(0, at), ...lines.slice(end)].join("\n");
    const constant = constantFor(line, lines[end - 1] ?? "");
    if (constant !== undefined)
      yield [...lines.slice(0, at), constant, ...lines.slice(end)].join("\n");
  }
}

/** The smallest kernel found that still fails, within a number of tries. */
export async function shrink(
  kernel: Kernel,
  fails: (kernel: Kernel) => Promise<boolean>,
  tries = 400,
): Promise<Kernel> {
  let best = kernel;
  let left = tries;
  for (let progressed = true; progressed && left > 0;) {
    progressed = false;
    for (const text of candidates(printKernel(best).split("\n"))) {
      const smaller = kernelOf(text);
      if (smaller === undefined) continue;
      left -= 1;
      if (left < 0) break;
      if (!(await fails({ ...smaller, location: unknownLocation }))) continue;
      best = smaller;
      progressed = true;
      break;
    }
  }
  return best;
}
