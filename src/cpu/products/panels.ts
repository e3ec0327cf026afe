/** Panels of packed operands: the ways of filling one, and the function that chooses one of them by the strides of the source. */
import type { DType } from "../../formats/dtype.ts";
import { i32, op, read, select } from "../loops/builder.ts";
import type { FunctionBuilder, ModuleBuilder } from "../loops/builder.ts";
import type { Callee, Expression } from "../loops/ir.ts";

/** Bytes of an element of a source, each in a slot of its own. */
export const slotBytes = ({ bits }: DType): number => Math.ceil(bits / 8);

export interface Packing {
  /** The format of the source, one element a slot: f64 stays, other floats become f32, and integers i32 or pairs of i16. */
  readonly from: DType;
  /** Lines of a panel, an even number. */
  readonly lines: number;
}

const parameters = ["source", "target", "lines", "steps", "lineStride", "stepStride"] as const;

export type Body = (builder: FunctionBuilder, ...parameters: readonly Expression[]) => void;

export interface Panel {
  readonly source: Expression;
  readonly target: Expression;
  readonly count: Expression;
  readonly steps: Expression;
  readonly lineStride: Expression;
  readonly stepStride: Expression;
}

export function panelBody(write: (builder: FunctionBuilder, panel: Panel) => void): Body {
  return (builder, source, target, count, steps, lineStride, stepStride) => {
    if (!source || !target || !count || !steps || !lineStride || !stepStride)
      throw new Error(`packing takes ${parameters.join(", ")}`);
    write(builder, { source, target, count, steps, lineStride, stepStride });
  };
}

/** Addresses of all lines, those that are missing at the last one. */
export function lineAddresses(
  builder: FunctionBuilder,
  lines: number,
  { source, count, lineStride }: Panel,
): readonly Expression[] {
  const addresses = [source];
  for (let line = 1; line < lines; line++) {
    const before = addresses[line - 1] ?? source;
    const next = i32.add(before, lineStride);
    addresses.push(builder.keep(select(op("i32.gt_u", count, i32.of(line)), next, before), "line"));
  }
  return addresses;
}

export interface Way {
  /** What must be neighbours in memory for it. */
  readonly when: "lines" | "steps" | "any";
  readonly write: Body;
}

/** A function over all panels, which calls the first way that the strides allow. */
export function overPanels(
  module: ModuleBuilder,
  { from, lines }: Packing,
  targetBytes: number,
  inPairs: boolean,
  ways: readonly Way[],
): Callee {
  const types = parameters.map(() => "i32" as const);
  const name = `pack_${from.name}_${lines}`;
  const callees = ways.map(({ when, write }) => ({
    when,
    callee: module.define(`${name}_${when}`, types, [], write, { names: parameters }),
  }));
  const element = slotBytes(from);
  // Two steps of an integer lie beside one another.
  const stepBytes = i32.of(lines * targetBytes);
  const body = panelBody((builder, panel) => {
    const { steps, count, lineStride, stepStride } = panel;
    const origin = builder.variable(panel.source, "from");
    const to = builder.variable(panel.target, "to");
    const packedSteps = inPairs ? op("i32.shr_u", i32.add(steps, i32.of(1)), i32.of(1)) : steps;
    const panelBytes = builder.keep(i32.mul(packedSteps, stepBytes));
    const areNeighbours = (stride: Expression): Expression =>
      builder.keep(op("i32.eq", stride, i32.of(element)));
    const conditions = { lines: areNeighbours(lineStride), steps: areNeighbours(stepStride) };
    builder.countedLoop(i32.of(0), count, lines, (line) => {
      const left = builder.keep(i32.sub(count, line));
      const isPart = op("i32.lt_u", left, i32.of(lines));
      const here = builder.keep(select(isPart, left, i32.of(lines)));
      const choose = (rest: typeof callees): void => {
        const [first, ...others] = rest;
        if (first === undefined) return;
        const call = (): void => {
          builder.call(first.callee, read(origin), read(to), here, steps, lineStride, stepStride);
        };
        if (first.when === "any") call();
        else builder.if(conditions[first.when], call, () => choose(others));
      };
      choose(callees);
      builder.set(origin, i32.add(read(origin), i32.mul(lineStride, i32.of(lines))));
      builder.set(to, i32.add(read(to), panelBytes));
    });
  });
  return module.define(name, types, [], body, { names: parameters });
}

/** Integers of at most 8 bits are packed in pairs, for exact products. */
export function isPaired({ bits, kind }: DType): boolean {
  return bits <= 8 && (kind === "signed" || kind === "unsigned");
}
