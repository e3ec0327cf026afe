/**
 * Random programs whose results are computed beside them, element by element: the simulator and the emulator are held against a third opinion, and
 * data has NaN, infinities, subnormal numbers, ends of ranges and every format.
 */
import { dtypes, i32 } from "../../../src/formats/dtype.ts";
import { gmem, kernel, scalar, slice } from "../../../src/index.ts";
import type { Ref, Scalar } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";
import { elementsText } from "../data.ts";
import type { Program } from "../parts.ts";
import { controlSteps } from "./control-steps.ts";
import { copyOutStep, copyStep } from "./copy-steps.ts";
import { anyItem, Draft } from "./draft.ts";
import { elementSteps } from "./element-steps.ts";
import { held } from "./held.ts";
import type { Held } from "./held.ts";
import { keptStep } from "./kept-steps.ts";
import { gatherStep, loadScalarStep, loadStep, memorySteps } from "./memory-steps.ts";
import type { Source } from "./memory-steps.ts";
import type { Item } from "./numbers.ts";
import { declaredOutputs, drawOutput, isWhole, leftIn } from "./outputs.ts";
import { pipelineStep } from "./pipeline-steps.ts";
import { dotStep } from "./product-steps.ts";
import { computeSteps, neededSteps, traceSteps } from "./steps.ts";
import type { Slot, Step, Value } from "./steps.ts";
import {
  computingOf,
  declaredSources,
  drawMemory,
  drawSource,
  hostOf,
  missing,
  sourceView,
  tracingOf,
} from "./surroundings.ts";
import { tileSteps } from "./tile-steps.ts";
import { warpsOf } from "./warp-steps.ts";

/** Runs code on a program thread. */
type Running = (body: () => void) => void;

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
      return drawSource(random, `in${at}`, shape);
    });
    this.#data = new Map(
      this.#sources.map((source) => [source.name, drawMemory(source, random)] as const),
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
        this.#random.pick([
          ...memorySteps,
          keptStep,
          keptStep,
          copyStep,
          copyOutStep,
          warpsOf(this.#warps),
        ])(draft, this.#sources);
      else if (draft.depth < 2 && this.#random.below(4) === 0)
        pipelineStep(draft, this.#sources, this.#fill);
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
    const { inputs, dimensions: given } = declaredSources(this.#sources);
    const dimensions: { [name: string]: number } = { ...given };
    const numbers = Object.fromEntries(
      this.#numbers.map(([{ dtype }], at) => [`number${at}`, scalar(dtype)]),
    );
    const threads = Array.from({ length: this.#threads }, (_, thread) => `thread${thread}`);
    const outputsOf = (thread: string): readonly (readonly [string, Slot])[] =>
      results.map((slot, at) => [`${thread}_out${at}`, slot]);
    const named = threads.flatMap(outputsOf);
    const outputs = named.map(([name, { dtype, shape }]) =>
      drawOutput(this.#random, name, dtype, [blocks, ...shape]),
    );
    for (const { lying } of outputs) Object.assign(dimensions, lying?.dimensions);
    const inOrder = [...outputs.filter(isWhole), ...outputs.filter((each) => !isWhole(each))];
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
        outputs: declaredOutputs(outputs.filter(isWhole)),
        inouts: declaredOutputs(outputs.filter((each) => !isWhole(each))),
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
    const computed = results.map((slot) => this.#computed(steps, slot));
    const expected = inOrder.map((output) => {
      const given = computed[outputs.indexOf(output) % computed.length] ?? missing(output.name);
      return `${output.name}: ${elementsText(hostOf(leftIn(output, given)))}`;
    });
    const before = outputs.flatMap(({ name, before: own }) => (own ? [[name, own] as const] : []));
    return {
      kernel: traced,
      dimensions,
      scalars: Object.fromEntries(this.#numbers.map(([, item], at) => [`number${at}`, item])),
      data: Object.fromEntries(
        [...this.#data, ...before].map(([name, value]) => [name, hostOf(value)]),
      ),
      expected: expected.join("\n"),
    };
  }

  #store(output: Value, index: Scalar<"i32">, value: Value, { shape }: Slot): void {
    if (this.#random.below(2) === 0 || shape.length === 0) output.at(index).store(value);
    else output.at(slice(index, 1)).store(value.expand({ axis: 0 }));
  }

  /** The elements of a result in all blocks, one after the other. */
  #computed(steps: readonly Step[], slot: Slot): readonly Item[] {
    const arrays = new Map(
      this.#sources.map((source) => {
        const { name } = source;
        return [name, sourceView(source, this.#data.get(name) ?? missing(name))] as const;
      }),
    );
    return Array.from({ length: this.#draft.blocks }, (_, block) => {
      const first = this.#numbers.map(
        ([own, item]) => [own, held(own.dtype, [], () => item)] as const,
      );
      const index = held(i32, [], () => BigInt(block));
      const computing = computingOf(new Map([[this.#block, index], ...first]), arrays);
      computeSteps(steps, computing);
      return computing.read(slot).items;
    }).flat();
  }
}

export function referenced(random: Random): Program {
  return new ReferenceProgram(random).program();
}
