/**
 * Attention on wgmma and the copy engine. One warp copies; consumers of 64 rows multiply q · k of a step together with
 * powers · v of the step before, and take turns, so that the softmax of one runs under the products of another:
 *
 *   copy      q   k0 v0   k1 v1   wait, k2 v2 …
 *   first     q·k0  softmax | q·k1 p0·v0 | softmax    | q·k2 p1·v1 | …
 *   second          q·k0 softmax         | q·k1 p0·v0 | softmax    | …
 */
import {
  accumulator,
  barrier,
  cdiv,
  commitGroup,
  commitShared,
  constant,
  copyAsync,
  kernel,
  loop,
  setRegisters,
  slice,
  smem,
  waitGroup,
  warps,
  wgmma,
  when,
  zeros,
} from "../../lang/index.ts";
import type { Barrier, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { consumerRows } from "./configuration.ts";
import type { SpecialisedAttention } from "./configuration.ts";
import { attentionArrays, optionalRefs, paddedHead } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { columnTiles, finishScores } from "./scores.ts";
import type { ScoreRules } from "./scores.ts";
import { addColumns, finishedRows, startingRows } from "./softmax.ts";

type Index = Scalar<"i32">;
type Half = "bf16";

const consumerNames = ["first", "second", "third"] as const;
/** Registers of a lane of the copying thread, and of the consumers, by how many there are. */
const registers = {
  1: undefined,
  2: { copy: 24, consumer: 240 },
  3: { copy: 32, consumer: 160 },
} as const;

/** What the threads of the kernel share. */
interface Work {
  readonly form: AttentionForm;
  readonly configuration: SpecialisedAttention;
  readonly rules: ScoreRules;
  readonly batch: Index;
  readonly head: Index;
  readonly top: Index;
  readonly first: Index;
  readonly steps: Index;
  readonly refs: Refs;
  readonly sinks: Ref<"f32"> | undefined;
  readonly logSumExp: Ref<"f32"> | undefined;
}

interface Refs {
  readonly q: Ref<Half>;
  readonly k: Ref<Half>;
  readonly v: Ref<Half>;
  readonly out: Ref;
  readonly tileQ: Ref<Half>;
  readonly tileK: Ref<Half>;
  readonly tileV: Ref<Half>;
  readonly fullQ: Barrier;
  readonly fullK: Barrier;
  readonly fullV: Barrier;
  readonly emptyK: Barrier;
  readonly emptyV: Barrier;
  readonly turn: Barrier;
}

/** Bytes of shared memory that a configuration takes. */
export function attentionBytes(
  { consumers, columns, stages }: SpecialisedAttention,
  d: number,
  e: number,
): number {
  const [own, other] = [paddedHead(d), paddedHead(e)];
  return 2 * (consumers * consumerRows * own + stages * columns * (own + other)) + 1024;
}

export function specialisedAttention(
  form: AttentionForm,
  configuration: SpecialisedAttention,
): KernelDefinition {
  const { problem, sizes, location } = form;
  const { consumers, columns, stages } = configuration;
  const { inputs, outputs, dimensions } = attentionArrays(form);
  const rows = consumers * consumerRows;
  const [d, e] = [paddedHead(sizes.d), paddedHead(sizes.e)];
  const format = problem.q.dtype;
  const names = consumerNames.slice(0, consumers);
  return kernel(
    {
      name: "attention",
      grid: { head: dimensions.h, batch: dimensions.b, block: cdiv(dimensions.s, rows) },
      threads: ["copy", ...names],
      inputs,
      outputs,
      scratch: {
        tileQ: smem(format, [consumers, consumerRows, d]),
        tileK: smem(format, [stages, columns, d]),
        tileV: smem(format, [stages, columns, e]),
        fullQ: barrier({ count: consumers }),
        fullK: barrier({ count: stages }),
        fullV: barrier({ count: stages }),
        emptyK: barrier({ count: stages, arrivals: consumers }),
        emptyV: barrier({ count: stages, arrivals: consumers }),
        turn: barrier({ count: consumers }),
      },
    },
    (argument) => {
      const { head, batch, block } = argument as unknown as {
        readonly [N in "head" | "batch" | "block"]: Index;
      };
      const { bias, ...optional } = optionalRefs(form, argument);
      const zero = constant(dtypes.i32, 0);
      const rules: ScoreRules = {
        ...{ problem, sizes, location },
        t: zero.add(dimensions.t),
        bias,
      };
      // With an end to the right, later rows have more to do, and go first.
      const last = zero.add(cdiv(dimensions.s, rows)).sub(1);
      const top = (problem.window.right === undefined ? block : last.sub(block)).mul(rows);
      const range = columnTiles(rules, top, rows, columns);
      const refs = argument as unknown as Refs;
      const place = { batch, head, top, ...range };
      const work: Work = { form, configuration, rules, ...place, refs, ...optional };
      const threads = argument as unknown as {
        readonly [name: string]: (body: () => void) => void;
      };
      threads["copy"]?.(() => {
        copyOperands(work);
      });
      names.forEach((name, part) => {
        threads[name]?.(() => {
          consume(work, part);
        });
      });
    },
  ) as unknown as KernelDefinition;
}

/** One warp brings the rows of q, and k and v step by step. */
function copyOperands({ form, configuration, batch, head, top, first, steps, refs }: Work): void {
  const { consumers, columns, stages } = configuration;
  const { sizes } = form;
  const { q, k, v, tileQ, tileK, tileV, fullQ, fullK, fullV, emptyK, emptyV } = refs;
  const given = registers[consumers];
  if (given !== undefined) setRegisters(given.copy);
  const kvHead = head.div(sizes.h / sizes.kv);
  const [along, across] = [slice(0, paddedHead(sizes.d)), slice(0, paddedHead(sizes.e))];
  warps((warp) => {
    when(warp.eq(0), () => {
      for (let part = 0; part < consumers; part += 1)
        copyAsync(
          q.at(batch, slice(top.add(part * consumerRows), consumerRows), head, along),
          tileQ.at(part),
          { barrier: fullQ.at(part) },
        );
      loop(steps, (step) => {
        const slot = step.and(stages - 1);
        const here = slice(first.add(step).mul(columns), columns);
        when(step.ge(stages), () => {
          emptyK.at(slot).wait();
        });
        copyAsync(k.at(batch, here, kvHead, along), tileK.at(slot), { barrier: fullK.at(slot) });
        when(step.ge(stages), () => {
          emptyV.at(slot).wait();
        });
        copyAsync(v.at(batch, here, kvHead, across), tileV.at(slot), { barrier: fullV.at(slot) });
      });
    });
  });
}

/** A consumer's 64 rows. */
function consume(work: Work, part: number): void {
  const { form, configuration, rules, batch, head, first, steps, refs } = work;
  const { consumers, columns, stages } = configuration;
  const { tileQ, tileK, tileV, fullQ, fullK, fullV, emptyK, emptyV, turn } = refs;
  const given = registers[consumers];
  if (given !== undefined) setRegisters(given.consumer);
  const format = form.problem.q.dtype as DType<Half>;
  const e = paddedHead(form.sizes.e);
  const zero = constant(dtypes.i32, 0);
  const top = work.top.add(part * consumerRows);
  const slotOf = (step: Index): Index => step.and(stages - 1);
  const products = (step: Index) => {
    fullK.at(slotOf(step)).wait();
    const start = accumulator(dtypes.f32, [consumerRows, columns]);
    return wgmma(start, tileQ.at(part), tileK.at(slotOf(step)).transpose());
  };
  const values = (step: Index, sums: Tile<"f32">, powers: Tile<Half>) => {
    fullV.at(slotOf(step)).wait();
    return wgmma(accumulator(dtypes.f32, [consumerRows, e], sums), powers, tileV.at(slotOf(step)));
  };
  const release = (ring: Barrier, step: Index) => {
    when(step.add(stages).lt(steps), () => {
      ring.at(slotOf(step)).arrive();
    });
  };
  const exponents = (step: Index, scores: Tile<"f32">) =>
    finishScores(rules, scores, {
      ...{ batch, head, top, rows: consumerRows, columns },
      left: first.add(step).mul(columns),
    });

  fullQ.at(part).wait();
  if (part === 0 && consumers > 1) turn.at(0).arrive();
  const scores = products(zero).wait();
  release(emptyK, zero);
  const begun = addColumns(
    exponents(zero, scores),
    startingRows(consumerRows, head, work.sinks),
    format,
  );
  const start = {
    ...begun.rows,
    powers: begun.powers,
    sums: zeros(dtypes.f32, [consumerRows, e]),
  };
  const end = loop({ to: steps.sub(1), carry: start }, (step, carried) => {
    if (consumers > 1) turn.at(part).wait();
    const next = products(step.add(1));
    const running = values(step, carried.sums, carried.powers);
    if (consumers > 1) turn.at((part + 1) % consumers).arrive();
    const later = next.wait(); // waits for both products
    const sums = running.wait();
    release(emptyK, step.add(1));
    release(emptyV, step);
    const added = addColumns(exponents(step.add(1), later), carried, format);
    return { ...added.rows, powers: added.powers, sums: sums.mul(added.change) };
  });
  const sums = values(steps.sub(1), end.sums, end.powers).wait();
  const done = finishedRows(sums, end);
  storeRows(work, part, top, done.values);
  work.logSumExp
    ?.at(batch, head, slice(top, consumerRows))
    .store(done.logSumExp.reshape([consumerRows]));
}

/** By the copy engine through the tile of q, or by the lanes themselves where that has another size. */
function storeRows(
  { form, batch, head, refs }: Work,
  part: number,
  top: Index,
  values: Tile<"f32">,
): void {
  const { problem, sizes } = form;
  const { tileQ } = refs;
  const [d, e] = [paddedHead(sizes.d), paddedHead(sizes.e)];
  const window = refs.out.at(batch, slice(top, consumerRows), head, slice(0, e));
  const result = values.cast(problem.out.dtype) as Tile;
  if (d !== e || problem.out.dtype !== problem.q.dtype || sizes.e % 8 !== 0) {
    window.store(result);
    return;
  }
  const own = tileQ.at(part) as Ref;
  own.store(result);
  commitShared();
  copyAsync(own, window);
  commitGroup();
  waitGroup(0, { read: true });
}
