/**
 * Waits for products that read registers (`wgmma-register-waits.ts`), held against runs of random kernels along many ways, where nothing ends before
 * somebody waits for it: no such product runs on into a loop behind it, into the next round of its own, or into a branch that may
 * give its factor. The verifier asks `wgmma-register-waits.ts` itself, which this test does not.
 */
import { expect, test } from "vitest";
import type { AnyOp, Region } from "../../ir/node.ts";
import { parseModule } from "../../ir/parser/parser.ts";
import { traitsOf } from "../../ir/traits.ts";
import { regionList } from "../../ir/traverse.ts";
import { Random } from "../../support/random.ts";
import { productsInFlight } from "./wgmma-register-waits.ts";

const inflight = "inflight<f32, [64, 8], A>";
const tiles = { narrow: "tile<bf16, [64, 16], A>", wide: "tile<f32, [64, 8], A>" };

class Writer {
  readonly #random: Random;
  #next = 20;

  constructor(random: Random) {
    this.#random = random;
  }

  body(depth: number): string {
    const count = 1 + this.#random.below(4);
    return Array.from({ length: count }, () => this.#statement(depth)).join("");
  }

  #statement(depth: number): string {
    const kind = this.#random.below(depth === 0 ? 4 : 9);
    if (kind < 2) return this.#product(kind === 0 ? "%3" : "%1");
    if (kind === 2) return `products_wait {pending = ${this.#random.below(3)}}\n`;
    if (kind === 3) return `%${this.#name()} = unary %4 {fn = exp} : ${tiles.wide}\n`;
    const inner = (given = ""): string => `${this.body(depth - 1)}yield ${given}\n`;
    if (kind === 4) return `if %0 then {\n${inner()}} otherwise {\n${inner()}}\n`;
    if (kind === 5)
      return `%${this.#name()} = if %0 then {\n${inner("%3")}} otherwise {\n${inner("%3")}} : ${tiles.narrow}\n`;
    if (kind === 6)
      return `%${this.#name()} = if %0 then {\n${inner("%4")}} otherwise {\n${inner("%4")}} : ${tiles.wide}\n`;
    if (kind === 7) return `loop %5, %6, %7 body(%${this.#name()}: i32) {\n${inner()}}\n`;
    return `scoped body {\n${inner()}}\n`;
  }

  #product(factor: string): string {
    const [from, to] = [this.#name(), this.#name()];
    return `%${from} = accumulator {dtype = f32, shape = [64, 8]} : ${inflight}
%${to} = wgmma %${from}, ${factor}, %2 : ${inflight}\n`;
  }

  #name(): number {
    this.#next += 1;
    return this.#next;
  }
}

function kernelText(body: string): string {
  return `kernel @random grid [] threads [main] target sm_90a layouts [A = "(L2 L3 L4 R1 W0 W1 | R0 L0 L1)"] (
scalar %0 "flag": bool
) {
%1 = alloc {space = smem, dtype = bf16, shape = [64, 16], name = "a"} : ref<smem, bf16, [64, 16]>
%2 = alloc {space = smem, dtype = bf16, shape = [16, 8], name = "b"} : ref<smem, bf16, [16, 8]>
%3 = load %1 : ${tiles.narrow}
%4 = constant {value = 0, dtype = f32, shape = [64, 8]} : ${tiles.wide}
%5 = constant {value = 0, dtype = i32, shape = []} : i32
%6 = constant {value = 3, dtype = i32, shape = []} : i32
%7 = constant {value = 1, dtype = i32, shape = []} : i32
${body}yield
}
`;
}

/** One way through a kernel in which waits are made as they were found to be needed. */
class Run {
  /** Whether each product that may still run reads registers, the youngest last. */
  #running: boolean[] = [];
  readonly #random: Random;
  readonly #waits: ReadonlyMap<AnyOp, number>;
  touched: AnyOp | undefined;

  constructor(random: Random, waits: ReadonlyMap<AnyOp, number>) {
    this.#random = random;
    this.#waits = waits;
  }

  region({ ops }: Region): void {
    for (const op of ops) {
      const pending = this.#waits.get(op);
      if (pending !== undefined) this.#wait(pending);
      this.#op(op);
    }
  }

  #wait(pending: number): void {
    this.#running = pending === 0 ? [] : this.#running.slice(-pending);
  }

  #requireNone(op: AnyOp): void {
    if (this.#running.includes(true)) this.touched ??= op;
  }

  #op(op: AnyOp): void {
    if (op.kind === "wgmma") this.#running.push(op.operands.a.type.kind === "tile");
    else if (op.kind === "products_wait") this.#wait(op.attributes.pending);
    else if (op.kind === "loop") {
      this.#requireNone(op);
      for (let round = this.#random.below(4); round > 0; round -= 1) {
        this.region(op.regions.body);
        this.#requireNone(op.regions.body.ops.at(-1) ?? op);
      }
    } else if (traitsOf(op).regions === "one of") {
      if (op.results.some(({ type }) => type.kind === "tile" && type.dtype.bits === 16))
        this.#requireNone(op);
      const regions = regionList(op);
      this.region(regions[this.#random.below(regions.length)] ?? expect.fail());
    } else for (const region of regionList(op)) this.region(region);
  }
}

test("products that read registers are over where somebody else may write these", () => {
  const counts = { waits: 0, without: 0 };
  const wrong: string[] = [];
  for (let seed = 0; seed < 300; seed += 1) {
    const random = new Random(seed);
    const text = kernelText(new Writer(random).body(3));
    const [kernel] = parseModule(text).kernels;
    if (kernel === undefined) throw new Error("a text has a kernel");
    const waits = productsInFlight(kernel.body);
    const touches = (given: ReadonlyMap<AnyOp, number>): AnyOp | undefined => {
      for (let count = 0; count < 40; count += 1) {
        const run = new Run(random, given);
        run.region(kernel.body);
        if (run.touched !== undefined) return run.touched;
      }
      return undefined;
    };
    const touched = touches(waits);
    if (touched !== undefined) wrong.push(`seed ${seed}, ${touched.kind}\n${text}`);
    counts.waits += waits.size;
    counts.without += Number(touches(new Map()) !== undefined);
  }
  expect(wrong.slice(0, 1)).toEqual([]);
  // Without the waits that were found, many of these kernels would be wrong.
  expect(counts.without).toBeGreaterThan(75);
  expect(counts.waits).toBeGreaterThan(counts.without / 2);
});
