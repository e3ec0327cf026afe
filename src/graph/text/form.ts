/** What a rule for a short form is given to read and to print with. */
import type { Attribute, AttributeMap } from "../ops/attribute.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import type { GraphType } from "../ops/types.ts";
import type { OpParts } from "./parts.ts";
import type { Scanner } from "./scanner.ts";

/** The parser, as the short forms see it. */
export interface OpReader {
  readonly scanner: Scanner;
  operand(): GraphValue;
  attribute(): Attribute;
  /** `{…}` where there is one. */
  optionalDictionary(): AttributeMap;
  type(): GraphType;
  /** `T` or `(T, U)`. */
  resultTypes(): readonly GraphType[];
  /** `(T, U) -> T`: checks the operands' types and gives the results'. */
  functionType(operands: readonly GraphValue[]): readonly GraphType[];
  /** Fails unless the operands have these types. */
  checkTypes(operands: readonly GraphValue[], types: readonly GraphType[]): void;
  /** `%a: T`, with a location that is not kept. */
  parameter(): NamedParameter;
  /** The op of a name, which stands at a position of the text. */
  build(name: string, parts: OpParts, position: number): AnyGraphOp;
  /** `{ … }`; its parameters are those given, or those of the block's label. */
  region(parameters?: readonly NamedParameter[]): GraphRegion;
}

export interface NamedParameter {
  readonly name: string;
  readonly type: GraphType;
}

/** The printer, as the short forms see it. */
export interface OpWriter {
  value(value: GraphValue): string;
  /** `{ … }` over several lines. With `labelled`, parameters are printed as a block's. */
  region(region: GraphRegion, labelled: boolean): string;
  /** A new name for a region's parameter; the same one as another's where that is given. */
  define(value: GraphValue, like?: GraphValue): string;
  /** A line break with the indentation of the op, one step deeper. */
  readonly continuation: string;
}

export interface FormRule {
  /** Reads what follows the op's name, which stands at `position`. */
  read(reader: OpReader, name: string, position: number): OpParts;
  /** What follows the op's name; undefined where only the generic form can say it. */
  write(op: AnyGraphOp, parts: OpParts, writer: OpWriter): string | undefined;
}

export const noRegions: readonly GraphRegion[] = Object.freeze([]);

/** Operands between commas, as printed. */
export function operandList(operands: readonly GraphValue[], writer: OpWriter): string {
  return operands.map((value) => writer.value(value)).join(", ");
}
