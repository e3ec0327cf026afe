/**
 * The rule `groups` held against what is obvious: random kernels of products and waits, run along many ways, where nothing ends before
 * somebody waits for it. What the rule accepts leaves no more products running than its waits say, on any of them.
 */
import { expect, test } from "vitest";
import type { AnyOp, Region } from "../../ir/node.ts";
import { parseModule } from "../../ir/parser/parser.ts";
import { traitsOf } from "../../ir/traits.ts";
import { regionList } from "../../ir/traverse.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { Random } from "../../support/random.ts";
import { verifyProductGroups } from "./product-groups.ts";

const inflight = "inflight<f32, [64, 16], A>";

/** Statements of a random body, which numbers its values from `next` on. */
class Writer {
  readonly #random: Random;
  #next = 7;

  constructor(random: Random) {
    this.#random = random;
  }

  body(depth: number): string {
    const count = 1 + this.#random.below(4);
    return Array.from({ length: count }, () => this.#statement(depth)).join("");
  }

  #statement(depth: number): string {
    const kind = this.#random.below(depth === 0 ? 4 : 8);
    if (kind < 2) return this.#product();
    if (kind < 4) return this.#wait();
    const inner = (): string => `${this.body(depth - 1)}yield\n`;
    if (kind === 4) return `if %0 then {\n${inner()}} otherwise {\n${inner()}}\n`;
    if (kind === 5) return `on_threads {threads = [1]} body {\n${inner()}}\n`;
    if (kind === 6) return `loop %4, %5, %6 body(%${this.#name()}: i32) {\n${inner()}}\n`;
    const breaks = this.#random.below(2) === 0;
    const body = breaks ? `${this.body(depth - 1)}yield %0\n` : inner();
    return `while ${breaks ? "{breaks = true} " : ""}condition {\n${this.body(0)}yield %0\n} body {\n${body}}\n`;
  }

  #product(): string {
    const [from, to] = [this.#name(), this.#name()];
    const groups = this.#random.below(2) === 0 ? 1 : 4;
    return `%${from} = accumulator {dtype = f32, shape = [64, 16]} : ${inflight}
%${to} = wgmma %${from}, %1, %2 {groups = ${groups}} : ${inflight}\n`;
  }

  /** As many groups as products of one size are, or one more or less than those of both. */
  #wait(): string {
    const pending = this.#random.below(3);
    const groups = this.#random.below(pending === 0 ? 2 : 4 * pending + 2);
    return `products_wait {pending = ${pending}, groups = ${this.#random.below(3) === 0 ? groups : pending}}\n`;
  }

  #name(): number {
    this.#next += 1;
    return this.#next;
  }
}

function kernelText(body: string): string {
  return `kernel @random grid [] threads [main, other] target sm_90a shared 10240 layouts [A = "(L2 L3 L4 R1 W0 W1 | R0 L0 L1)"] (
scalar %0 "flag": bool
) {
%1 = alloc {space = smem, dtype = bf16, shape = [64, 64], name = "a", layout = "shared(swizzle 128)", at = 0} : ref<smem, bf16, [64, 64]>
%2 = alloc {space = smem, dtype = bf16, shape = [64, 16], name = "b", layout = "shared(swizzle 32)", at = 8192} : ref<smem, bf16, [64, 16]>
%4 = constant {value = 0, dtype = i32, shape = []} : i32
%5 = constant {value = 3, dtype = i32, shape = []} : i32
%6 = constant {value = 1, dtype = i32, shape = []} : i32
${body}yield
}
`;
}

/** One way through a kernel: whether a wait left more products than it said. */
class Run {
  /** Groups that were closed and may still run, each by the number of its product. */
  #running: number[] = [];
  #products = 0;
  readonly #random: Random;
  violates = false;

  constructor(random: Random) {
    this.#random = random;
  }

  region({ ops }: Region): void {
    for (const op of ops) this.#op(op);
  }

  #op(op: AnyOp): void {
    if (op.kind === "wgmma") {
      this.#products += 1;
      for (let group = 0; group < (op.attributes.groups ?? 0); group += 1)
        this.#running.push(this.#products);
    } else if (op.kind === "products_wait") {
      const { pending, groups = 0 } = op.attributes;
      this.#running = groups === 0 ? [] : this.#running.slice(-groups);
      this.violates ||= new Set(this.#running).size > pending;
    } else this.#regions(op);
  }

  #regions(op: AnyOp): void {
    const regions = regionList(op);
    const taken = this.#random.below(regions.length + 1);
    const way = traitsOf(op).regions;
    if (way === "one of") this.region(regions[taken % regions.length] ?? expect.fail());
    else if (op.kind === "while" || op.kind === "loop") {
      const rounds = this.#random.below(4);
      for (let round = 0; round <= rounds; round += 1) {
        if (op.kind === "while") this.region(op.regions.condition);
        if (round === rounds) break;
        this.region(op.regions.body);
        if (op.attributes.breaks === true && this.#random.below(2) === 0) break;
      }
    } else if (taken > 0) for (const region of regions) this.region(region);
  }
}

test("no way through a kernel that is accepted leaves more products than a wait says", () => {
  const counts = { accepted: 0, violating: 0, cautious: 0 };
  const wrong: string[] = [];
  for (let seed = 0; seed < 600; seed += 1) {
    const random = new Random(seed);
    const text = kernelText(new Writer(random).body(2));
    const [kernel] = parseModule(text).kernels;
    if (kernel === undefined) throw new Error("a text has a kernel");
    let violates = false;
    for (let run = 0; run < 60 && !violates; run += 1) {
      const way = new Run(random);
      way.region(kernel.body);
      ({ violates } = way);
    }
    const accepted = isAccepted(() => {
      verifyProductGroups(kernel);
    });
    if (accepted && violates) wrong.push(`seed ${seed}\n${text}`);
    counts.accepted += Number(accepted);
    counts.violating += Number(violates);
    counts.cautious += Number(!accepted && !violates);
  }
  expect(wrong).toEqual([]);
  expect(counts.accepted).toBeGreaterThan(150);
  expect(counts.violating).toBeGreaterThan(150);
  // Lists of ways that join are one to the rule, and none of 60 runs may take the worst of them.
  expect(counts.cautious).toBeLessThan(30);
});

function isAccepted(verify: () => void): boolean {
  try {
    verify();
    return true;
  } catch (error) {
    if (!(error instanceof TilewrightError) || error.code !== "TW6210") throw error;
    return false;
  }
}
