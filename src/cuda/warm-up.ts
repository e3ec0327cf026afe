/**
 * Compiling before there is anything to compile: code that the JavaScript engine has not seen run takes three times as long. While
 * the driver opens a context, kernels go the whole way: one element by element, those of the warm-up operations of the parts of the library
 * that the program has loaded, and one of the language alone whose threads copy, multiply and store by the engines of the GPU, which
 * takes most of the compiler.
 *
 *   small kernel   traced │ simplified │ placed │ … │ emitted │ noted │ printed │ matmul   planned │ traced │ simplified │ …
 *                         └────────────┴────────┴───┴─────────┴───────┴─────────┴─ between these the wait may end
 *
 * Until such a piece has ended nobody sees that the wait has: the driver stands still, or the program does. So they are short, and the
 * small kernel comes first: what it has taken of the compiler makes the longest pieces of the others shorter.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { kernelText } from "../device/compilation.ts";
import { warmUpOperations } from "../device/warm-up-operations.ts";
import { bf16, f32 } from "../formats/dtype.ts";
import type { Kernel } from "../ir/node.ts";
import {
  accumulator,
  tensor,
  block,
  cdiv,
  dim,
  kernel,
  processors,
  slice,
  smem,
  storeThrough,
  tiles,
  warpSpecialized,
  wgmma,
} from "../lang/index.ts";
import { loweringWithNotes } from "../lower/stages.ts";
import { freezePlan, revivePlan } from "../ptx/plan-json.ts";
import { printPtx } from "../ptx/printer.ts";
import { defaultTarget } from "../targets/target.ts";
import type { KernelCache } from "./cache/kernel-cache.ts";

let warm = false;

/** Pieces of the work, once a process; whoever goes through them may stop after any. */
export function* warmUp(cache: () => KernelCache): Generator<void, void> {
  if (warm) return;
  warm = true;
  const small = elementwise();
  askCache(cache(), small);
  yield;
  yield* compiled(small);
  for (const operation of warmUpOperations()) {
    yield;
    const plan = operation.plan();
    yield;
    for (const { kernel: definition } of plan.launches) yield* asked(definition.kernel);
  }
  yield;
  yield* asked(product());
}

/** What happens to a kernel that a program launches. */
function* asked(traced: Kernel): Generator<void, void> {
  yield;
  kernelText(traced, "messages");
  yield* compiled(traced);
}

function askCache(cache: KernelCache, traced: Kernel): void {
  const build = { target: defaultTarget, driverVersion: 0, capability: "" };
  const text = kernelText(traced, "messages");
  cache.readKernel(text, build);
  cache.readPlan(text, build);
  readSomeFile();
}

/** The first file that a process reads takes milliseconds; any will do. In bundles there may be none of this address, or no address. */
function readSomeFile(): void {
  try {
    readFileSync(fileURLToPath(import.meta.url));
  } catch {
    // Whoever reads the first file takes those milliseconds.
  }
}

/** What happens to a kernel that is compiled and kept, and to one that was. */
function* compiled(traced: Kernel): Generator<void, void> {
  const { executable } = yield* loweringWithNotes(traced, defaultTarget);
  const { module, ...plan } = executable;
  yield;
  printPtx(module);
  revivePlan(JSON.parse(JSON.stringify(freezePlan(plan))), { target: defaultTarget });
}

function elementwise(): Kernel {
  const [n, width] = [dim("n"), 512];
  return kernel(
    {
      name: "warm_up",
      grid: { i: cdiv(n, width) },
      inputs: { x: tensor(f32, [n]) },
      outputs: { out: tensor(f32, [n]) },
    },
    ({ i, x, out }) => {
      const here = slice(i.mul(width), width);
      out.at(here).store(x.at(here).load().mul(2).add(1));
    },
  ).kernel;
}

function product(): Kernel {
  const [m, n, k] = [dim("m"), dim("n", { multipleOf: 8 }), dim("k", { multipleOf: 8 })];
  const [rows, width, depth] = [64, 64, 64];
  return kernel(
    {
      name: "warm_up_product",
      grid: { worker: processors },
      threads: ["copy", "first", "second"],
      inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
      outputs: { out: tensor(bf16, [m, n]) },
      scratch: { result: smem(bf16, [2, 2, rows, width]) },
    },
    ({ a, b, out, result }) => {
      warpSpecialized(
        {
          tiles: tiles({ i: cdiv(m, 2 * rows), j: cdiv(n, width) }, { order: "grouped" }),
          grid: { step: cdiv(k, depth) },
          inputs: {
            left: ({ i, step }) => a.at(block(i, 2 * rows), block(step, depth)),
            right: ({ j, step }) => b.at(block(step, depth), block(j, width)),
          },
          depth: 2,
        },
        ({ i, j, part, steps }) => {
          const sums = steps(accumulator(f32, [rows, width]), ({ left, right }, sum) =>
            wgmma(sum, left.at(slice(part.mul(rows), rows)), right),
          );
          const top = i.mul(2).add(part).mul(rows);
          storeThrough(result.at(part), sums.cast(bf16), out, [top, j.mul(width)]);
        },
      );
    },
  ).kernel;
}
