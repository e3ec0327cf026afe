/** What a lane rule works with: an instruction taken apart, and the writer of its JavaScript. */
import type { Instruction, Operand } from "../../ptx/module.ts";
import { OperandError } from "./writer.ts";
import type { LaneWriter } from "./writer.ts";

/** Writes what one lane does. */
export type LaneRule = (instruction: LaneInstruction, writer: LaneWriter) => void;
export type LaneRules = { readonly [root: string]: LaneRule };

const typePattern =
  /^(?:[usb](?:8|16|32|64|128)|[us]16x2|b1|pred|f16|f16x2|bf16|bf16x2|f32|f32x2|f64|tf32|e[2-5]m[1-3]x[24]|ue8m0x2)$/;

export class LaneInstruction {
  readonly instruction: Instruction;
  readonly root: string;
  readonly modifiers: readonly string[];
  /** The modifiers that are types, in order. */
  readonly types: readonly string[];

  constructor(instruction: Instruction) {
    this.instruction = instruction;
    const [root = "", ...modifiers] = instruction.opcode.split(".");
    this.root = root;
    this.modifiers = modifiers;
    this.types = modifiers.filter((modifier) => typePattern.test(modifier));
  }

  has(modifier: string): boolean {
    return this.modifiers.includes(modifier);
  }

  /** The first of these modifiers that is there. */
  oneOf<const M extends string>(choices: readonly M[]): M | undefined {
    return choices.find((choice) => this.modifiers.includes(choice));
  }

  /** The last type, which is that of the operands. */
  get type(): string {
    const type = this.types.at(-1);
    if (type === undefined) throw new OperandError("no type");
    return type;
  }

  get operandCount(): number {
    return this.instruction.operands.length;
  }

  operand(position: number): Operand {
    const operand = this.instruction.operands[position];
    if (operand === undefined) throw new OperandError(`no operand ${position + 1}`);
    return operand;
  }

  /** A constant operand's value; undefined for registers. */
  constant(position: number): number | undefined {
    const operand = this.operand(position);
    return operand.kind === "integer" ? Number(operand.value) : undefined;
  }
}

export interface IntegerType {
  readonly bits: 8 | 16 | 32 | 64;
  readonly signed: boolean;
}

/** An integer or untyped type; undefined for others. */
export function integerType(type: string): IntegerType | undefined {
  const match = /^([usb])(8|16|32|64)$/.exec(type);
  if (match === null) return undefined;
  return { bits: Number(match[2]) as IntegerType["bits"], signed: match[1] === "s" };
}

/** An operand of up to 32 bits as the number it stands for; u32 operands stay signed words. */
export function integerWord(
  writer: LaneWriter,
  operand: Operand,
  { bits, signed }: IntegerType,
): string {
  const word = writer.word(operand);
  if (bits === 16) return signed ? `(${word} << 16 >> 16)` : `(${word} & 0xffff)`;
  if (bits === 8) return signed ? `(${word} << 24 >> 24)` : `(${word} & 0xff)`;
  return word;
}
