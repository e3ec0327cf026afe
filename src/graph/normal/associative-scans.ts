/**
 * Unrolled scans become scans: one launch that reads and writes each array once, instead of two for each of log₂ n levels. What others use of the
 * levels, such as the derivatives of a program, are strided slices of the scan.
 */
import { scanByRegion } from "../lower/expand/scan-by-region.ts";
import type { AnyPointRule } from "../lower/context.ts";
import { GraphBuilder } from "../infer/builder.ts";
import { graphRegion, graphValue } from "../ops/node.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { rebuildOp, replaceOperands } from "../ops/rebuild.ts";
import { operandsOf } from "../ops/traverse.ts";
import { tensorType } from "../ops/types.ts";
import { elementConstructor, slotsOf } from "../ops/elements.ts";
import { literal } from "../ops/literal.ts";
import { mapBodies, mapRegions } from "../passes/pass.ts";
import type { GraphPass } from "../passes/pass.ts";
import {
  addValues,
  broadcastInDim,
  multiply,
  splatOf,
  typeOfValue,
} from "../transform/arithmetic.ts";
import { gradientsOf, recurrencesOf } from "./scan-gradients.ts";
import type { RecurrenceGradient } from "./scan-gradients.ts";
import { scanNetwork } from "./scan-levels.ts";
import type { ScanNetwork } from "./scan-levels.ts";
import { anchorOf, capturedBy, constantText } from "./scan-networks.ts";
import type { Anchor, Definitions } from "./scan-networks.ts";

/** Shorter scans are as well made level by level. */
const leastScanned = 4;

export function associativeScansPass(rule: AnyPointRule): GraphPass {
  return {
    name: "associative-scans",
    run: (module) => mapBodies(module, (body) => withScans(body, rule, new Map())),
  };
}

function withScans(
  region: GraphRegion,
  rule: AnyPointRule,
  outer: ReadonlyMap<GraphValue, AnyGraphOp>,
): GraphRegion {
  const definitions = new Map(outer);
  for (const op of region.ops) for (const value of op.results) definitions.set(value, op);
  const definition: Definitions = (value) => definitions.get(value);
  const networks = networksOf(region, definition);
  const ends = new Map<GraphValue, ScanNetwork>();
  for (const network of networks)
    for (const level of network.levels)
      for (const { anchor } of level) ends.set(anchor.value, network);
  const builder = new GraphBuilder();
  const replaced = new Map<GraphValue, GraphValue>();
  const lookUp = (value: GraphValue): GraphValue => replaced.get(value) ?? value;
  const gradients = new Map<GraphValue, RecurrenceGradient>();
  for (const recurrence of networks.flatMap(recurrencesOf))
    for (const gradient of gradientsOf(region, recurrence, definition))
      for (const value of [...gradient.byTerms, ...gradient.byFactors])
        gradients.set(value, gradient);
  const done = new Set<ScanNetwork | RecurrenceGradient>();
  for (const original of region.ops) {
    const op = mapRegions(replaceOperands(original, lookUp), (inner) =>
      withScans(inner, rule, definitions),
    );
    const [value] = original.results;
    const network = value === undefined ? undefined : ends.get(value);
    const gradient = value === undefined ? undefined : gradients.get(value);
    if (gradient !== undefined) {
      if (done.has(gradient)) continue;
      done.add(gradient);
      builder.within(op, () => {
        for (const [from, to] of differentiated(builder, gradient, lookUp, rule))
          replaced.set(from, to);
      });
      continue;
    }
    if (network === undefined) {
      builder.append(op);
      continue;
    }
    if (done.has(network)) continue;
    done.add(network);
    builder.within(op, () => {
      for (const [from, to] of scanned(builder, network, definition, lookUp, rule))
        replaced.set(from, to);
    });
  }
  return graphRegion(region.parameters, builder.ops, region.results.map(lookUp));
}

/** The scans of a region, outermost ends first, none within another. */
function networksOf({ ops }: GraphRegion, definition: Definitions): readonly ScanNetwork[] {
  const anchors = new Map<GraphValue, Anchor>();
  for (const op of ops) {
    const anchor = anchorOf(op, definition);
    if (anchor !== undefined) anchors.set(anchor.value, anchor);
  }
  const taken = new Set<GraphValue>();
  const found: ScanNetwork[] = [];
  for (const anchor of [...anchors.values()].sort((a, b) => b.extent - a.extent)) {
    if (taken.has(anchor.value) || anchor.extent < leastScanned) continue;
    const network = scanNetwork(anchor, anchors, definition);
    const values = network?.levels.flatMap((level) => level.map((each) => each.anchor.value)) ?? [];
    if (network === undefined || values.some((value) => taken.has(value))) continue;
    for (const value of values) taken.add(value);
    found.push(network);
  }
  return found;
}

/** What each end of a level is replaced by. */
function scanned(
  builder: GraphBuilder,
  { axis, inputs, templates, levels }: ScanNetwork,
  definition: Definitions,
  lookUp: (value: GraphValue) => GraphValue,
  rule: AnyPointRule,
): readonly (readonly [GraphValue, GraphValue])[] {
  const shape = inputs[0] === undefined ? [] : typeOfValue(inputs[0]).shape;
  const captures: {
    readonly key: string;
    readonly value: GraphValue;
    readonly dimensions: readonly number[];
  }[] = [];
  const captured = (value: GraphValue, dimensions: readonly number[]): number => {
    const key = `${value.id}[${dimensions.join()}]`;
    const known = captures.findIndex((each) => each.key === key);
    return known < 0 ? captures.push({ key, value, dimensions }) - 1 : known;
  };
  // Captures are found while the function is made, so it is made twice: for their number, then with parameters for them.
  const made = (count: number): GraphRegion =>
    functionOf(builder, {
      axis,
      inputs,
      templates,
      captures: captures.slice(0, count),
      captured,
      definition,
    });
  made(0);
  const body = made(captures.length);
  const whole = captures.map(({ value, dimensions }) =>
    broadcastInDim(builder, lookUp(value), shape, dimensions),
  );
  const [outermost = []] = levels;
  const wanted = outermost.map(({ input }) => input);
  const scan = {
    inputs: [...inputs.map(lookUp), ...whole],
    body,
    axis,
    isReverse: false,
    identity: undefined,
    wanted,
  };
  const results = scanByRegion(builder, scan, rule);
  const replaced: (readonly [GraphValue, GraphValue])[] = [];
  const current = new Map(wanted.map((input, i) => [input, results[i]] as const));
  for (const [depth, level] of levels.entries()) {
    for (const { anchor, input } of level) {
      const above = current.get(input);
      if (above === undefined) continue;
      const own = depth === 0 ? above : oddElements(builder, above, axis);
      current.set(input, own);
      replaced.push([anchor.value, own]);
    }
  }
  return replaced;
}

/** The derivatives of a recurrence: a recurrence from the end, over the factors of the elements behind. */
function differentiated(
  builder: GraphBuilder,
  { recurrence, cotangent, byTerms, byFactors }: RecurrenceGradient,
  lookUp: (value: GraphValue) => GraphValue,
  rule: AnyPointRule,
): readonly (readonly [GraphValue, GraphValue])[] {
  const { axis, factors, terms, running } = recurrence;
  const { element } = typeOfValue(running);
  const scalar = tensorType(element, []);
  const body = builder.region([scalar, scalar, scalar, scalar], (inner, given) => {
    const [sum, factor, term, own] = given as [GraphValue, GraphValue, GraphValue, GraphValue];
    const carried = multiply(inner, own, sum);
    return [addValues(inner, carried, term), multiply(inner, own, factor)];
  });
  const behind = moved(builder, lookUp(factors), axis, -1, 0);
  const [byTerm] = scanByRegion(
    builder,
    {
      inputs: [lookUp(cotangent), behind],
      body,
      axis,
      isReverse: true,
      identity: undefined,
      wanted: [0],
    },
    rule,
  );
  if (byTerm === undefined) return [];
  const before = moved(builder, lookUp(running), axis, 1, terms === undefined ? 1 : 0);
  const byFactor = multiply(builder, byTerm, before);
  return [
    ...Array.from(byTerms, (value) => [value, byTerm] as const),
    ...Array.from(byFactors, (value) => [value, byFactor] as const),
  ];
}

/** All elements one place further along an axis, or one place back, and a number where none is. */
function moved(
  builder: GraphBuilder,
  operand: GraphValue,
  axis: number,
  by: 1 | -1,
  number: number,
): GraphValue {
  const { shape, element } = typeOfValue(operand);
  const along = (places: number): readonly number[] =>
    shape.map((_, at) => (at === axis ? places : 0));
  return builder.one(
    "stablehlo.pad",
    { operand, padding_value: splatOf(builder, tensorType(element, []), number) },
    {
      edge_padding_low: along(by),
      edge_padding_high: along(-by),
      interior_padding: shape.map(() => 0),
    },
  );
}

function oddElements(builder: GraphBuilder, operand: GraphValue, axis: number): GraphValue {
  const { shape } = typeOfValue(operand);
  return builder.one(
    "stablehlo.slice",
    { operand },
    {
      start_indices: shape.map((_, at) => (at === axis ? 1 : 0)),
      limit_indices: shape,
      strides: shape.map((_, at) => (at === axis ? 2 : 1)),
    },
  );
}

interface FunctionParts extends Pick<ScanNetwork, "axis" | "inputs" | "templates"> {
  readonly captures: readonly { readonly value: GraphValue }[];
  readonly captured: (value: GraphValue, dimensions: readonly number[]) => number;
  readonly definition: Definitions;
}

/** The function over scalars: two of each input and of each capture, which is the same on both sides. */
function functionOf(builder: GraphBuilder, parts: FunctionParts): GraphRegion {
  const { inputs, templates, captures } = parts;
  const scalars = [...inputs, ...captures.map(({ value }) => value)].map((value) =>
    tensorType(typeOfValue(value).element, []),
  );
  return builder.region([...scalars, ...scalars], (inner, parameters) => {
    const before = parameters.slice(0, scalars.length);
    const after = parameters.slice(scalars.length);
    const functions = inputs.map((_, input) => {
      const template = templates[input];
      // Nobody asks for the running values of this one.
      const [own] = after.slice(input);
      if (template === undefined && own !== undefined) return own;
      if (template === undefined) throw new Error("an input has a parameter");
      return new Scalars(inner, parts, template, before, after).of(template.expression.root);
    });
    return [...functions, ...after.slice(inputs.length)];
  });
}

/** An expression of arrays over scalars. */
class Scalars {
  readonly #builder: GraphBuilder;
  readonly #parts: FunctionParts;
  readonly #template: NonNullable<ScanNetwork["templates"][number]>;
  readonly #before: readonly GraphValue[];
  readonly #after: readonly GraphValue[];
  #leaf = 0;

  constructor(
    builder: GraphBuilder,
    parts: FunctionParts,
    template: NonNullable<ScanNetwork["templates"][number]>,
    before: readonly GraphValue[],
    after: readonly GraphValue[],
  ) {
    this.#builder = builder;
    this.#parts = parts;
    this.#template = template;
    this.#before = before;
    this.#after = after;
  }

  of(value: GraphValue): GraphValue {
    const { leafOf } = this.#template.expression;
    const leaf = leafOf(value);
    if (leaf !== undefined) {
      // Leaves come in the order in which they were found.
      const input = this.#template.inputs[this.#leaf++] ?? 0;
      return (leaf.side === "before" ? this.#before : this.#after)[input] ?? value;
    }
    return this.#make(value);
  }

  #make(value: GraphValue): GraphValue {
    const { axis, definition, captured, inputs } = this.#parts;
    const { element } = typeOfValue(value);
    const type = tensorType(element, []);
    const broadcast = capturedBy(value, axis, definition);
    const source = broadcast === undefined ? value : broadcast.operands.operand;
    const op = definition(source);
    if (
      constantText(source, definition) !== undefined &&
      op?.kind === "stablehlo.constant" &&
      "data" in op.attributes.value
    )
      return this.#builder.one(
        "stablehlo.constant",
        {},
        { value: literal(type, op.attributes.value.data) },
      );
    if (broadcast !== undefined) {
      const at = inputs.length + captured(source, broadcast.attributes.broadcast_dimensions);
      return (
        this.#after[at] ??
        this.#builder.one("stablehlo.constant", {}, { value: literal(type, zeroData(element)) })
      );
    }
    if (op === undefined) throw new Error("the expression was read");
    // An operand that is used twice is made twice, as it was read.
    const list = operandsOf(op).map((operand) => this.of(operand));
    let place = 0;
    const result = graphValue(type);
    const own = rebuildOp(op, { operand: () => list[place++] ?? result, results: [result] });
    this.#builder.append(own);
    return result;
  }
}

function zeroData(element: Parameters<typeof elementConstructor>[0]) {
  return new (elementConstructor(element))(slotsOf(element));
}
