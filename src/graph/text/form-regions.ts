/** Short forms of the ops whose regions they spell out: reduce, while, scan, manual computations. */
import { arrayAttribute, dialectAttribute, integerAttribute } from "../ops/attribute.ts";
import type { Attribute, AttributeMap } from "../ops/attribute.ts";
import { appliedOp } from "../ops/combiner.ts";
import { graphRegion, graphValue } from "../ops/node.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { isTensor, sameType, tensorType, typeText } from "../ops/types.ts";
import type { GraphType } from "../ops/types.ts";
import { dictionaryText } from "./attributes.ts";
import { operandList } from "./form.ts";
import type { FormRule, NamedParameter, OpReader, OpWriter } from "./form.ts";
import { readBare, trailingDictionary, typesOf } from "./form-labelled.ts";
import { functionTypeText, typesText } from "./types.ts";

/** The name after `applies`, and where it stands. */
interface Applied {
  readonly name: string;
  readonly position: number;
}

function readApplied({ scanner }: OpReader): Applied | undefined {
  if (!scanner.accept("applies")) return undefined;
  const { position } = scanner;
  return { name: scanner.word("an op's name"), position };
}

/** The region that `applies stablehlo.add` stands for. */
function appliedRegion(
  reader: OpReader,
  { name, position }: Applied,
  type: GraphType,
): GraphRegion {
  const parameters = [graphValue(type), graphValue(type)];
  const parts = { operands: parameters, attributes: new Map(), regions: [], resultTypes: [type] };
  const op = reader.build(name, parts, position);
  return graphRegion(parameters, [op], op.results);
}

/** The op that `applies` can stand for: it says its kind and nothing else. */
function plainOp(region: GraphRegion): AnyGraphOp | undefined {
  const op = appliedOp(region);
  const plain =
    op !== undefined &&
    op.extra.size === 0 &&
    Object.keys(op.attributes).length === 0 &&
    op.name === "";
  return plain ? op : undefined;
}

function scalarOf(type: GraphType): GraphType {
  return isTensor(type) ? tensorType(type.element, []) : type;
}

/** `reducer(%a: T, %b: T) (%c: U, %d: U) { … }`: all accumulators, then all elements. */
function readReducer(reader: OpReader, count: number): GraphRegion {
  const { scanner } = reader;
  scanner.expect("reducer");
  const left: NamedParameter[] = [];
  const right: NamedParameter[] = [];
  for (let i = 0; i < count; i++) {
    scanner.expect("(");
    left.push(reader.parameter());
    scanner.expect(",");
    right.push(reader.parameter());
    scanner.expect(")");
  }
  return reader.region([...left, ...right]);
}

function writeReducer(region: GraphRegion, writer: OpWriter): string {
  const names = region.parameters.map(
    (value) => `${writer.define(value)}: ${typeText(value.type)}`,
  );
  const half = names.length / 2;
  const pairs = names.slice(0, half).map((name, i) => `(${name}, ${names[half + i]})`);
  return `${writer.continuation}reducer${pairs.join(" ")} ${writer.region(region, false)}`;
}

/** `stablehlo.reduce(%x init: %z), (%k init: %c) applies stablehlo.add across dimensions = [1] : …`. */
export const reduceForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    const inputs: GraphValue[] = [];
    const inits: GraphValue[] = [];
    do {
      scanner.expect("(");
      inputs.push(reader.operand());
      scanner.expect("init");
      scanner.expect(":");
      inits.push(reader.operand());
      scanner.expect(")");
    } while (scanner.accept(","));
    const applied = readApplied(reader);
    scanner.expect("across");
    scanner.expect("dimensions");
    scanner.expect("=");
    const operands = [...inputs, ...inits];
    const attributes = new Map([["dimensions", readBare(reader)], ...reader.optionalDictionary()]);
    scanner.expect(":");
    const resultTypes = reader.functionType(operands);
    const region =
      applied === undefined
        ? readReducer(reader, inputs.length)
        : appliedRegion(
            reader,
            applied,
            scalarOf(inits[0]?.type ?? scanner.unexpected("an operand")),
          );
    return { operands, attributes, regions: [region], resultTypes };
  },
  write(op, { operands, attributes, resultTypes }, writer) {
    if (op.kind !== "stablehlo.reduce") return undefined;
    const { body } = op.regions;
    const half = operands.length / 2;
    if (half < 1 || op.operands.inputs.length !== half) return undefined;
    if (body.parameters.length !== operands.length) return undefined;
    const applied = half === 1 ? plainOp(body) : undefined;
    const init = operands[half];
    // `applies` gives the region the type of the initial value.
    const plain =
      applied !== undefined &&
      init !== undefined &&
      [...body.parameters, ...body.results].every(({ type }) =>
        sameType(scalarOf(init.type), type),
      );
    const pairs = operands
      .slice(0, half)
      .map(
        (value, i) =>
          `(${writer.value(value)} init: ${operandList(operands.slice(half + i, half + i + 1), writer)})`,
      );
    const applies = plain ? ` applies ${applied.kind}` : "";
    const across = ` across dimensions = [${op.attributes.dimensions.join(", ")}]`;
    const rest = new Map([...attributes].filter(([name]) => name !== "dimensions"));
    const types = functionTypeText(typesOf(operands), resultTypes);
    const head = `${pairs.join(", ")}${applies}${across}${trailingDictionary(rest)} : ${types}`;
    return plain ? head : `${head}${writeReducer(body, writer)}`;
  },
};

/** `stablehlo.while(%a = %x, %b = %y) : T, U cond { … } do { … }`. */
export const whileForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    const names: string[] = [];
    const operands = scanner.list("(", ")", () => {
      names.push(scanner.value());
      scanner.expect("=");
      return reader.operand();
    });
    const types = scanner.accept(":") ? scanner.commaSeparated(() => reader.type()) : [];
    reader.checkTypes(operands, types);
    const attributes: AttributeMap = scanner.accept("attributes")
      ? reader.optionalDictionary()
      : new Map<string, Attribute>();
    const parameters = operands.map(({ type }, i) => ({ name: names[i] ?? "", type }));
    scanner.expect("cond");
    const cond = reader.region(parameters);
    scanner.expect("do");
    const body = reader.region(parameters);
    return { operands, attributes, regions: [cond, body], resultTypes: types };
  },
  write(op, { operands, attributes }, writer) {
    if (op.kind !== "stablehlo.while") return undefined;
    const { cond, body } = op.regions;
    // The types of what is carried are written once.
    const types = typesText(typesOf(operands));
    const all = [cond.parameters, body.parameters, op.results];
    if (all.some((values) => typesText(typesOf(values)) !== types)) return undefined;
    const inits = operandList(operands, writer).split(", ");
    const pairs = cond.parameters.map((parameter, i) => {
      const name = writer.define(parameter);
      const twin = body.parameters[i];
      if (twin !== undefined) writer.define(twin, parameter);
      return `${name} = ${inits[i]}`;
    });
    const carried = operands.length === 0 ? "" : ` : ${types}`;
    const rest = attributes.size === 0 ? "" : ` attributes ${dictionaryText(attributes)}`;
    const head = `(${pairs.join(", ")})${carried}${rest}`;
    return `${head}${writer.continuation}cond ${writer.region(cond, false)} do ${writer.region(body, false)}`;
  },
};

/** `chlo.scan(%x) inits(%c) dimension=0 { ^bb0(…): … } : (T, U) -> (T, U)`. */
export const scanForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    const inputs = scanner.list("(", ")", () => reader.operand());
    scanner.expect("inits");
    const inits = scanner.list("(", ")", () => reader.operand());
    const attributes = new Map<string, Attribute>();
    scanner.expect("dimension");
    scanner.expect("=");
    attributes.set("dimension", integerAttribute(scanner.integer()));
    if (scanner.accept("attributes"))
      for (const [key, value] of reader.optionalDictionary()) attributes.set(key, value);
    const sizes = [inputs.length, inits.length].map(String);
    attributes.set("operandSegmentSizes", arrayAttribute("i32", sizes));
    const region = reader.region();
    scanner.expect(":");
    const operands = [...inputs, ...inits];
    return { operands, attributes, regions: [region], resultTypes: reader.functionType(operands) };
  },
  write(op, { operands, attributes, resultTypes }, writer) {
    if (op.kind !== "chlo.scan") return undefined;
    const { inputs, inits } = op.operands;
    const rest = new Map([...attributes].filter(([name]) => name !== "dimension"));
    const dictionary = rest.size === 0 ? "" : ` attributes ${dictionaryText(rest)}`;
    const head = `(${operandList(inputs, writer)}) inits(${operandList(inits, writer)})`;
    const region = writer.region(op.regions.body, true);
    const types = functionTypeText(typesOf(operands), resultTypes);
    return `${head} dimension=${op.attributes.dimension}${dictionary} ${region} : ${types}`;
  },
};

/** `sdy.manual_computation(%x) in_shardings=[…] out_shardings=[…] manual_axes={…} (%a: T) { … } : (T) -> U`. */
export const manualComputationForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    const operands = scanner.list("(", ")", () => reader.operand());
    const field = (label: string, open: string): Attribute => {
      scanner.expect(label);
      scanner.expect("=");
      return dialectAttribute(`sdy.${label}`, scanner.balanced(open));
    };
    const attributes = new Map<string, Attribute>([
      ["in_shardings", field("in_shardings", "[")],
      ["out_shardings", field("out_shardings", "[")],
      ["manual_axes", field("manual_axes", "{")],
    ]);
    const region = reader.region(scanner.list("(", ")", () => reader.parameter()));
    for (const [key, value] of reader.optionalDictionary()) attributes.set(key, value);
    scanner.expect(":");
    return { operands, attributes, regions: [region], resultTypes: reader.functionType(operands) };
  },
  write(op, { operands, resultTypes }, writer) {
    if (op.kind !== "sdy.manual_computation") return undefined;
    const { in_shardings: inputs, out_shardings: outputs, manual_axes: axes } = op.attributes;
    const fields = { in_shardings: inputs, out_shardings: outputs, manual_axes: axes };
    const isShort = ([label, { kind, ...rest }]: readonly [string, Attribute]): boolean =>
      kind === "dialect" && "name" in rest && rest.name === `sdy.${label}` && "body" in rest;
    if (!Object.entries(fields).every(isShort)) return undefined;
    const body = (attribute: Attribute): string =>
      attribute.kind === "dialect" ? (attribute.body ?? "") : "";
    const shardings = `in_shardings=[${body(inputs)}] out_shardings=[${body(outputs)}]`;
    const parameters = op.regions.body.parameters.map(
      (value) => `${writer.define(value)}: ${typeText(value.type)}`,
    );
    const head = `(${operandList(operands, writer)}) ${shardings} manual_axes={${body(axes)}}`;
    const region = writer.region(op.regions.body, false);
    const types = functionTypeText(typesOf(operands), resultTypes);
    return `${head} (${parameters.join(", ")}) ${region}${trailingDictionary(op.extra)} : ${types}`;
  },
};
