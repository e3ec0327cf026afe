/**
 * Random programs whose results are computed beside them, element by element: the simulator and the emulator are held against a third opinion, and
 * data has NaN, infinities, subnormal numbers, ends of ranges and every format.
 */
import { dtypes, i32 } from "../../../src/formats/dtype.ts";
import { array, dim, fromNumbers, gmem, kernel, scalar, slice } from "../../../src/index.ts";
import type { HostArray, Ref, Scalar } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";
import { elementsText } from "../data.ts";
import type { Program } from "../parts.ts";
import { controlSteps } from "./control-steps.ts";
import { anyItem, Draft, formats } from "./draft.ts";
import { elementSteps } from "./element-steps.ts";
import { held, viewOf } from "./held.ts";
import type { Held } from "./held.ts";
import { keptStep } from "./kept-steps.ts";
import { copyStep, gatherStep, loadScalarStep, loadStep, memorySteps } from "./memory-steps.ts";
import type { Source } from "./memory-steps.ts";
import type { Item } from "./numbers.ts";
import { dotStep } from "./product-steps.ts";
import { computeSteps, neededSteps, traceSteps, valueOf } from "./steps.ts";
import type { Computing, Slot, Step, TracedValue, Tracing, Value } from "./steps.ts";
import { tileSteps } from "./tile-steps.ts";
import { warpsOf } from "./warp-steps.ts";

function hostOf({ dtype, shape, items }: Held): HostArray {
  return fromNumbers(dtype, shape, items as number[]);
}

/** Runs code on a program thread. */
type Running = (body: () => void) => void;

function tracingOf(
  values: ReadonlyMap<Slot, TracedValue>,
  arrays: (name: string) => object,
): Tracing {
  const own = new Map(values);
  return {
    read: (slot) => valueOf(own.get(slot) ?? missing(slot)),
    give: (slot, value) => own.set(slot, value),
    inner: (more) => tracingOf(new Map([...own, ...more]), arrays),
    array: (name) => valueOf(arrays(name)),
  };
}

function computingOf(
  values: ReadonlyMap<Slot, Held>,
  arrays: ReadonlyMap<string, Held>,
): Computing {
  const own = new Map(values);
  return {
    read: (slot) => own.get(slot) ?? missing(slot),
    give: (slot, value) => own.set(slot, value),
    inner: (more) => computingOf(new Map([...own, ...more]), arrays),
    array: (name) => viewOf(arrays.get(name) ?? missing(name)),
  };
}

function missing(what: Slot | string): never {
  throw new Error(`there is no ${typeof what === "string" ? what : `value ${what.id}`}`);
}

/** A program before it is traced, of which outputs may be left out to find the step that goes wrong. */
export class ReferenceProgram {
  readonly #random: Random;
  readonly #draft: Draft;
  readonly #sources: readonly Source[];
  readonly #data: ReadonlyMap<string, Held>;
  readonly #block: Slot;
  readonly #numbers: readonly (readonly [Slot, Item])[];
  readonly #warps: number;
  readonly #threads: number;

  constructor(random: Random, steps = 4 + random.below(10)) {
    this.#random = random;
    const draft = new Draft(random, { blocks: random.pick([1, 1, 2, 3]) });
    this.#draft = draft;
    this.#warps = random.pick([4, 4, 4, 4, 1, 2, 8, 16, 32]);
    this.#threads = this.#warps <= 16 && random.below(4) === 0 ? 2 : 1;
    this.#sources = Array.from({ length: 2 + random.below(2) }, (_, at): Source => {
      const [a = 1, b = 1, c = 1] = draft.extents;
      const shape = random.pick([[a], [a, b], [b, a], [a, b, c], [a + 3, b]]);
      const isLaunched = random.below(3) === 0;
      return { name: `in${at}`, dtype: random.pick(formats), shape, isLaunched };
    });
    this.#data = new Map(
      this.#sources.map(({ name, dtype, shape }) => [
        name,
        held(dtype, shape, () => anyItem(dtype, random)),
      ]),
    );
    this.#block = draft.slot(i32, []);
    const given = ["i32", "f32", "bool", "i64", "f16", "u8"].map(
      (name) => dtypes[name as keyof typeof dtypes],
    );
    this.#numbers = [i32, random.pick(given)].map((dtype) => {
      const item = dtype === i32 ? BigInt(random.below(9) - 3) : anyItem(dtype, random);
      return [draft.slot(dtype, []), item] as const;
    });
    draft.pool.push(this.#block, ...this.#numbers.map(([slot]) => slot));
    loadStep(draft, this.#sources);
    this.#fill(draft, steps);
  }

  readonly #fill = (draft: Draft, count: number): void => {
    for (let made = 0; made < count; made++) {
      const kind = this.#random.below(20);
      if (kind < 8) this.#random.pick(elementSteps)(draft);
      else if (kind < 13) this.#random.pick([...tileSteps, dotStep])(draft);
      else if (kind < 15) loadStep(draft, this.#sources);
      else if (kind === 15)
        this.#random.pick([loadScalarStep, gatherStep, gatherStep])(draft, this.#sources);
      else if (kind < 18)
        this.#random.pick([...memorySteps, keptStep, keptStep, copyStep, warpsOf(this.#warps)])(
          draft,
          this.#sources,
        );
      else if (draft.depth < 2) this.#random.pick(controlSteps)(draft, this.#fill);
    }
  };

  get steps(): readonly Step[] {
    return this.#draft.steps;
  }

  /** The last values that fit into some outputs. */
  get results(): readonly Slot[] {
    return this.steps.flatMap(({ gives }) => gives).slice(-5);
  }

  /** The steps that some results follow from. */
  needed(results: readonly Slot[]): readonly Step[] {
    return neededSteps(this.steps, results);
  }

  program(results: readonly Slot[] = this.results): Program {
    const { blocks } = this.#draft;
    const steps = this.needed(results);
    const dimensions: { [name: string]: number } = {};
    const inputs = Object.fromEntries(
      this.#sources.map(({ name, dtype, shape, isLaunched }) => {
        if (!isLaunched) return [name, array(dtype, shape)];
        const own = `${name}_rows`;
        dimensions[own] = shape[0] ?? 1;
        return [name, array(dtype, [dim(own), ...shape.slice(1)])];
      }),
    );
    const numbers = Object.fromEntries(
      this.#numbers.map(([{ dtype }], at) => [`number${at}`, scalar(dtype)]),
    );
    const threads = Array.from({ length: this.#threads }, (_, thread) => `thread${thread}`);
    const outputsOf = (thread: string): readonly (readonly [string, Slot])[] =>
      results.map((slot, at) => [`${thread}_out${at}`, slot]);
    const named = threads.flatMap(outputsOf);
    const outputs = Object.fromEntries(
      named.map(([name, { dtype, shape }]) => [name, array(dtype, [blocks, ...shape])]),
    );
    const scratch = Object.fromEntries(
      threads.flatMap((thread) =>
        [...this.#draft.scratch].map(([name, { dtype, shape }]) => [
          `${thread}_${name}`,
          gmem(dtype, [blocks, ...shape]),
        ]),
      ),
    );
    const { kernel: traced } = kernel(
      {
        name: "referenced",
        grid: { i: blocks },
        warps: this.#warps,
        threads,
        inputs: { ...inputs, ...numbers },
        outputs,
        scratch,
      } as never,
      (args: { readonly [name: string]: Ref | Scalar | Running }) => {
        const index = (args["i"] ?? missing("i")) as Scalar<"i32">;
        const first = this.#numbers.map(([slot], at) => {
          const name = `number${at}`;
          return [slot, (args[name] ?? missing(name)) as Scalar] as const;
        });
        // Threads that take the same steps have memory of their own for them.
        for (const thread of threads)
          (args[thread] as Running)(() => {
            const tracing = tracingOf(new Map([[this.#block, index], ...first]), (name) =>
              this.#draft.scratch.has(name)
                ? (args[`${thread}_${name}`] as Ref).at(index)
                : (args[name] ?? missing(name)),
            );
            traceSteps(steps, tracing);
            for (const [name, slot] of outputsOf(thread))
              this.#store(tracing.array(name), index, tracing.read(slot), slot);
          });
      },
    );
    const texts = results.map((slot) => this.#computed(steps, slot));
    const expected = named.map(([name], at) => `${name}: ${texts[at % texts.length]}`);
    return {
      kernel: traced,
      dimensions,
      scalars: Object.fromEntries(this.#numbers.map(([, item], at) => [`number${at}`, item])),
      data: Object.fromEntries([...this.#data].map(([name, value]) => [name, hostOf(value)])),
      expected: expected.join("\n"),
    };
  }

  #store(output: Value, index: Scalar<"i32">, value: Value, { shape }: Slot): void {
    if (this.#random.below(2) === 0 || shape.length === 0) output.at(index).store(value);
    else output.at(slice(index, 1)).store(value.expand(0));
  }

  /** The elements of a result in all blocks, as text. */
  #computed(steps: readonly Step[], slot: Slot): string {
    const texts = Array.from({ length: this.#draft.blocks }, (_, block) => {
      const first = this.#numbers.map(
        ([own, item]) => [own, held(own.dtype, [], () => item)] as const,
      );
      const index = held(i32, [], () => BigInt(block));
      const computing = computingOf(new Map([[this.#block, index], ...first]), this.#data);
      computeSteps(steps, computing);
      return elementsText(hostOf(computing.read(slot)));
    });
    return texts.join(" ");
  }
}

export function referenced(random: Random): Program {
  return new ReferenceProgram(random).program();
}
