/**
 * A PTX module as data: what the emitter builds, the printer turns into text, and the parser reads back.
 *
 *   .version 8.0
 *   .target sm_90a                                 PtxModule.target
 *   .address_size 64
 *   .file 1 "axpy.ts"                              PtxModule.files
 *   .visible .entry axpy (.param .b64 x) …         PtxFunction: parameters, directives
 *   {
 *     .reg .b32 %r<12>;                            found from the registers that the body names
 *     .loc 1 12 5                                  Instruction.position
 *     @%p0 ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%rd0+16];
 *      |   |                 |                    address operand: base and offset
 *      |   |                 vector operand
 *      |   opcode with all its modifiers
 *      guard
 *   $done:                                         Label
 *   }
 */

/** Types of registers, variables and parameters. */
export const ptxTypes = [
  "pred",
  "b8",
  "b16",
  "b32",
  "b64",
  "b128",
  "u8",
  "u16",
  "u32",
  "u64",
  "s8",
  "s16",
  "s32",
  "s64",
  "f16",
  "f16x2",
  "bf16",
  "bf16x2",
  "f32",
  "f64",
] as const;
export type PtxType = (typeof ptxTypes)[number];

/** A virtual register; one object a register, compared by identity. */
export interface Register {
  readonly kind: "register";
  /** With its leading %. */
  readonly name: string;
  readonly type: PtxType;
  /** Elements of a vector register, `.reg .v4 .f32 %v`. */
  readonly vector?: VectorWidth | undefined;
}

export type VectorWidth = 2 | 4;

export interface IntegerOperand {
  readonly kind: "integer";
  readonly value: number | bigint;
}

/** A float as its bits: 0f3F800000 or 0d3FF0000000000000. */
export interface FloatOperand {
  readonly kind: "float";
  readonly width: 32 | 64;
  readonly bits: number | bigint;
}

/** A variable, parameter, function, label or special register by its name, such as %tid.x. */
export interface SymbolOperand {
  readonly kind: "symbol";
  readonly name: string;
  readonly offset: number;
  /** `generic(name)` in an initial value: the address in the generic space. */
  readonly generic?: boolean | undefined;
  /** `0xFF00(name)` in an initial value: the byte of the address that these ones cover. */
  readonly mask?: number | bigint | undefined;
}

export type Base = Register | SymbolOperand | IntegerOperand;

/** `[base+offset]`; with coordinates, `[map, {c0, c1}]` of a tensor copy. */
export interface AddressOperand {
  readonly kind: "address";
  readonly base: Base;
  readonly offset: number;
  readonly coordinates?: readonly Operand[] | undefined;
}

export interface VectorOperand {
  readonly kind: "vector";
  readonly elements: readonly Operand[];
}

/** `d|p`: two results. */
export interface PairOperand {
  readonly kind: "pair";
  readonly first: Operand;
  readonly second: Operand;
}

/** `!p`. */
export interface NotOperand {
  readonly kind: "not";
  readonly operand: Register;
}

/** `-x`, as in a negated register operand. */
export interface NegatedOperand {
  readonly kind: "negated";
  readonly operand: Operand;
}

/** `_`: a result that nobody wants. */
export interface DiscardOperand {
  readonly kind: "discard";
}

/** `(a, b)`: results or arguments of a call. */
export interface ListOperand {
  readonly kind: "list";
  readonly elements: readonly Operand[];
}

/** One element of a vector register: `%v.x`. */
export interface ElementOperand {
  readonly kind: "element";
  readonly register: Register;
  readonly element: string;
}

export type Operand =
  | Register
  | IntegerOperand
  | FloatOperand
  | SymbolOperand
  | AddressOperand
  | VectorOperand
  | PairOperand
  | NotOperand
  | NegatedOperand
  | DiscardOperand
  | ListOperand
  | ElementOperand;

export interface Guard {
  readonly register: Register;
  readonly negated: boolean;
}

/** A source position: the number of a `.file`, line and column. */
export interface SourcePosition {
  readonly file: number;
  readonly line: number;
  readonly column: number;
  /** Where the compiler inlined the function that holds the position. */
  readonly inlined?: Inlining | undefined;
}

export interface Inlining {
  /** The label of the function's name in a debug section, and an offset from it. */
  readonly name: string;
  readonly offset: number;
  readonly at: SourcePosition;
}

export interface Instruction {
  readonly kind: "instruction";
  /** With its modifiers, as written: `mad.lo.s32`. */
  readonly opcode: string;
  readonly operands: readonly Operand[];
  readonly guard?: Guard | undefined;
  readonly position?: SourcePosition | undefined;
  /** Why it is there, for those the user did not write; printed behind it. */
  readonly comment?: string | undefined;
  /** The line of the PTX text that it was read from. */
  readonly line?: number | undefined;
}

export interface Label {
  readonly kind: "label";
  readonly name: string;
}

/** `.pragma "nounroll";` */
export interface Pragma {
  readonly kind: "pragma";
  readonly text: string;
}

/** `table: .branchtargets a, b;` and `.calltargets`. */
export interface TargetList {
  readonly kind: "targets";
  readonly name: string;
  readonly directive: "branchtargets" | "calltargets";
  readonly labels: readonly string[];
}

/** `name: .callprototype (results) _ (parameters);`, what a call through a register names. */
export interface CallPrototype {
  readonly kind: "prototype";
  readonly name: string;
  readonly results: readonly Variable[];
  readonly parameters: readonly Variable[];
  readonly directives: readonly FunctionDirective[];
}

export type StateSpace = "global" | "shared" | "local" | "const" | "param";

export interface Variable {
  readonly kind: "variable";
  readonly space: StateSpace;
  readonly name: string;
  readonly type: PtxType;
  /** In elements; undefined for a single one, 0 for `[]`. */
  readonly count?: number | undefined;
  readonly vector?: VectorWidth | undefined;
  readonly alignment?: number | undefined;
  readonly linkage?: Linkage | undefined;
  /** What a pointer parameter points to: `.param .u64 .ptr .global .align 16 x`. */
  readonly pointer?: PointerTarget | undefined;
  /** `.attribute(.managed)` and the like, as written between the parentheses. */
  readonly attribute?: string | undefined;
  /** Numbers, floats as bits, or addresses of symbols. */
  readonly initial?: readonly Operand[] | undefined;
}

export interface PointerTarget {
  /** Undefined for the generic space. */
  readonly space?: StateSpace | undefined;
  readonly alignment?: number | undefined;
}

/** `{ … }` within a body, with registers and variables of its own. */
export interface Block {
  readonly kind: "block";
  readonly body: readonly Statement[];
}

export type Statement =
  | Instruction
  | Label
  | Pragma
  | TargetList
  | CallPrototype
  | Variable
  | Block;

export type Linkage = "visible" | "extern" | "weak" | "common";

/** `.reqntid 128, 1, 1` and the like. */
export interface FunctionDirective {
  readonly name: string;
  readonly values: readonly number[];
}

export interface PtxFunction {
  readonly kind: "function";
  readonly entry: boolean;
  readonly name: string;
  readonly linkage?: Linkage | undefined;
  readonly results: readonly Variable[];
  readonly parameters: readonly Variable[];
  readonly directives: readonly FunctionDirective[];
  /** Undefined for a declaration. */
  readonly body?: readonly Statement[] | undefined;
}

export interface PtxModule {
  /** The name of the text that it was read from, by which reports name lines of it. */
  readonly source?: string | undefined;
  /** As written: "8.0". */
  readonly version: string;
  readonly target: string;
  /** What follows the architecture: `.target sm_90a, debug`. */
  readonly targetOptions?: readonly string[] | undefined;
  /** Paths by their number, from 1. */
  readonly files: readonly string[];
  readonly declarations: readonly (Variable | PtxFunction)[];
  /** Debug sections of other compilers. */
  readonly sections?: readonly Section[] | undefined;
}

/** A debug section, its content as written. */
export interface Section {
  readonly name: string;
  readonly text: string;
}
