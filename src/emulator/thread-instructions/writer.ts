/**
 * Writes JavaScript that runs a stretch of instructions lane by lane, with registers in local variables:
 *
 *   mul.lo.s32  %r2, %r0, %r1;          for (let m = mask; m !== 0; m &= m - 1) {
 *   add.rn.f32  %f1, %f0, %r2;            const l = 31 - Math.clz32(m & -m);
 *   @%p0 mov.b32 %r3, 0;                  r0 = I[b + 32]; r1 = I[b + 64];
 *                                         r2 = Math.imul(r0, r1);
 *                                         f0 = F[b + 96]; f2 = (SI[0] = r2, SF[0]);
 *                                         f1 = fround(f0 + f2);
 *                                         r3 = I[b + 160]; if ((P0 >>> l) & 1) { r3 = 0; }
 *                                         I[b + 64] = r2; F[b + 128] = f1; …
 *                                       }
 *
 * A register has two forms, bits and number; whoever reads the other form makes it, once. A number of 32
 * bits that is NaN stands for the one NaN that arithmetic makes, so NaNs with other bits exist only as
 * bits. f64 NaNs have bits of their own: beside a number that is NaN the bits are always there. Under a guard only
 * assignments stand inside the braces: what they need is made ready before. A register that no other step mentions and
 * that is written before it is read is a local variable and nothing else: most of those that compilers make are.
 */
import type { Guard, Operand, Register } from "../../ptx/module.ts";
import type { RegisterPlace } from "../program/registers.ts";
import { Definedness } from "./definedness.ts";

/** The NaN that f32 arithmetic makes. */
const nanWord = 0x7fffffff;

export interface Pair {
  readonly low: string;
  readonly high: string;
}

type Form = "bits" | "number";

interface Local {
  readonly place: RegisterPlace;
  /** The forms that hold what the register holds. */
  readonly forms: Set<Form>;
  /** The forms that ever did. */
  readonly used: Set<Form>;
  written: boolean;
  /** Whether nobody sees it behind the step. */
  readonly temporary: boolean;
}

/** What operands that are no registers stand for. */
export interface OperandResolver {
  /** A symbol or special register, 32 bits of it. */
  symbolWord(name: string, offset: number, writer: LaneWriter): string;
  symbolPair(name: string, offset: number, writer: LaneWriter): Pair;
}

export class LaneWriter {
  /** Before the loop over lanes, inside it, and behind it. */
  readonly before: string[] = [];
  readonly body: string[] = [];
  readonly after: string[] = [];
  readonly #places: ReadonlyMap<Register, RegisterPlace>;
  readonly #resolver: OperandResolver;
  readonly #checks: boolean;
  readonly #temporaries: ReadonlySet<Register>;
  readonly #locals = new Map<Register, Local>();
  readonly #declared: string[] = [];
  readonly #once = new Set<string>();
  /** Where statements of the current instruction go. */
  #inner: string[] | undefined;
  #names = 0;
  #addressSlots = 0;
  #begun = 0;
  #site = 0;
  readonly #definedness = new Definedness(this.after);
  /** Lanes in which what is written now is undefined. */
  #unless: string | undefined;
  /** Whether accesses to the heap leave marks. */
  readonly marks: boolean;
  /** The number of the sources that the address of the instruction came from; see `provenance.ts`. */
  sources: number | undefined;

  constructor(
    places: ReadonlyMap<Register, RegisterPlace>,
    resolver: OperandResolver,
    { checks, marks = false }: { readonly checks: boolean; readonly marks?: boolean | undefined },
    /** Registers that no other step mentions. */
    temporaries: ReadonlySet<Register> = new Set(),
  ) {
    this.#temporaries = temporaries;
    this.#places = places;
    this.#resolver = resolver;
    this.#checks = checks;
    this.marks = marks;
  }

  get checks(): boolean {
    return this.#checks;
  }

  /** The number of the instruction that is being written, for reports at run time. */
  get site(): number {
    return this.#site;
  }

  /** Instructions of the step before the one that is being written. */
  get instructionsBefore(): number {
    return this.#begun - 1;
  }

  /** Writes one instruction; `write` says what each lane does. */
  instruction(site: number, guard: Guard | undefined, write: () => void): void {
    this.#site = site;
    this.#begun += 1;
    this.#definedness.begin(site);
    if (guard === undefined) {
      write();
      if (this.#checks) this.#definedness.end("mask");
      return;
    }
    const condition = this.required(() => this.predicate(guard.register));
    if (this.#checks) this.after.push("w.decide();");
    const inner: string[] = [];
    this.#inner = inner;
    write();
    if (this.#checks) {
      const lanes = this.accumulator("0");
      inner.push(`${lanes} |= 1 << l;`);
      this.#definedness.end(lanes);
    }
    this.#inner = undefined;
    this.body.push(`if (${condition} ${guard.negated ? "===" : "!=="} 0) {`, ...inner, "}");
  }

  /** Reads operands that must be defined, because something comes of them that others see. */
  required<T>(read: () => T): T {
    return this.#definedness.required(read);
  }

  /** Notes that a result is one of two operands, and which: where `first` is not 0, the first. */
  selects(first: string, operands: readonly [Operand, Operand]): void {
    if (!this.#checks) return;
    const lanes = this.accumulator("0");
    this.line(`${lanes} |= (${first}) << l;`);
    const [a, b] = operands.map((operand) =>
      operand.kind === "register" ? this.place(operand).number : undefined,
    );
    this.#definedness.select(lanes, a, b);
  }

  /** Parts the operands read so far from those that follow, for `decides`. */
  get readings(): number {
    return this.#definedness.readings;
  }

  /**
   * Of two groups of operands, each decides the result alone in lanes where its expression is 1, however
   * undefined the other is.
   */
  decides(parted: number, expressions: readonly [string, string]): void {
    if (!this.#checks) return;
    const [first, second] = expressions.map((expression) => {
      const lanes = this.accumulator("0");
      this.line(`${lanes} |= (${expression}) << l;`);
      return lanes;
    });
    this.#definedness.alternatives(parted, [first ?? "0", second ?? "0"]);
  }

  /** Writes results that are undefined in some lanes. */
  unless(lanes: string | undefined, write: () => void): void {
    this.#unless = lanes;
    write();
    this.#unless = undefined;
  }

  /** A register is part of what is stored to the addresses of a row. */
  stores(register: Register, slot: number, offset: number, bytes: number): void {
    this.#definedness.store({ register: this.place(register).number, slot, offset, bytes });
  }

  get isGuarded(): boolean {
    return this.#inner !== undefined;
  }

  line(text: string): void {
    (this.#inner ?? this.body).push(text);
  }

  /** Text before the loop, once for each different one. */
  beforeOnce(text: string): void {
    if (this.#once.has(text)) return;
    this.#once.add(text);
    this.before.push(text);
  }

  /** A fresh local that holds an expression. */
  local(expression: string): string {
    const name = this.variable();
    this.line(`${name} = ${expression};`);
    return name;
  }

  /** A fresh local without a value. */
  variable(): string {
    const name = `t${this.#names++}`;
    this.#declared.push(name);
    return name;
  }

  /** A fresh variable that lives before, during and after the loop over lanes. */
  accumulator(initial: string): string {
    const name = `a${this.#names++}`;
    this.before.push(`let ${name} = ${initial};`);
    return name;
  }

  /** A row of `A`, in which each lane leaves an address for the checks behind the loop. */
  addressSlot(): number {
    this.beforeOnce("const A = w.addresses;");
    return this.#addressSlots++;
  }

  place(register: Register): RegisterPlace {
    const place = this.#places.get(register);
    if (place === undefined) throw new Error(`register ${register.name} has no place`);
    return place;
  }

  /* ---- reading ---- */

  /** Bits of up to 32, as a signed number; narrower registers are extended by zeros. */
  word(operand: Operand): string {
    switch (operand.kind) {
      case "register": {
        const { shape } = this.place(operand);
        if (shape === "predicate") return this.predicate(operand);
        if (shape === "word") return this.#read(operand, "bits");
        return this.pair(operand).low;
      }
      case "integer":
        return `${Number(BigInt.asIntN(32, BigInt(operand.value)))}`;
      case "float":
        return `${Number(operand.bits) | 0}`;
      case "symbol":
        return this.#resolver.symbolWord(operand.name, operand.offset, this);
      case "negated":
        return `(-${this.word(operand.operand)} | 0)`;
      case "not":
        return this.predicate(operand);
      case "address":
      case "vector":
      case "list":
      case "pair":
      case "discard":
      case "element":
        throw new OperandError(`${operand.kind} operand where a word is needed`);
    }
  }

  /** An f32 as a number. */
  single(operand: Operand): string {
    if (operand.kind === "register") return this.#read(operand, "number");
    if (operand.kind === "negated") return `(-${this.single(operand.operand)})`;
    const bits = operand.kind === "float" ? floatBits(operand) : Number(this.word(operand));
    scratch.setInt32(0, bits);
    return numberText(scratch.getFloat32(0));
  }

  pair(operand: Operand): Pair {
    switch (operand.kind) {
      case "register": {
        if (this.place(operand).shape === "word") return { low: this.word(operand), high: "0" };
        const low = this.#read(operand, "bits");
        return { low, high: `h${low.slice(1)}` };
      }
      case "integer":
      case "float": {
        const bits = BigInt(operand.kind === "integer" ? operand.value : operand.bits);
        const low = Number(BigInt.asIntN(32, bits));
        return { low: `${low}`, high: `${Number(BigInt.asIntN(32, bits >> 32n))}` };
      }
      case "symbol":
        return this.#resolver.symbolPair(operand.name, operand.offset, this);
      case "address":
      case "vector":
      case "list":
      case "pair":
      case "not":
      case "negated":
      case "discard":
      case "element":
        throw new OperandError(`${operand.kind} operand where 64 bits are needed`);
    }
  }

  /** The four words of 128 bits. */
  quad(operand: Operand): readonly string[] {
    if (operand.kind !== "register") throw new OperandError(`${operand.kind} operand as 128 bits`);
    const { offset, number } = this.place(operand);
    this.#definedness.read(number);
    return [0, 1, 2, 3].map((word) => this.local(`I[base + 4 * l + ${offset + word}]`));
  }

  setQuad(operand: Operand, words: readonly string[]): void {
    const register = destination(operand);
    if (register === undefined) return;
    const { offset, number } = this.place(register);
    this.#definedness.write(number, this.#unless);
    words.forEach((word, position) =>
      this.line(`I[base + 4 * l + ${offset + position}] = ${word};`),
    );
  }

  /** An f64 as a number. */
  double(operand: Operand): string {
    if (operand.kind === "register") return this.#read(operand, "number");
    if (operand.kind === "negated") return `(-${this.double(operand.operand)})`;
    if (operand.kind === "float" && operand.width === 32) return this.single(operand);
    if (operand.kind !== "float") throw new OperandError(`${operand.kind} operand as f64`);
    scratch.setBigUint64(0, BigInt.asUintN(64, BigInt(operand.bits)));
    return numberText(scratch.getFloat64(0));
  }

  /** 0 or 1. */
  predicate(operand: Operand): string {
    if (operand.kind === "not") return `(${this.predicate(operand.operand)} ^ 1)`;
    if (operand.kind === "integer") return operand.value === 0 || operand.value === 0n ? "0" : "1";
    if (operand.kind === "symbol")
      return this.#resolver.symbolWord(operand.name, operand.offset, this);
    if (operand.kind !== "register") throw new OperandError(`${operand.kind} operand as predicate`);
    this.#requirePredicate(operand);
    return this.#read(operand, "bits");
  }

  #requirePredicate(register: Register): void {
    if (this.place(register).shape !== "predicate")
      throw new OperandError("a register of another kind as predicate");
  }

  #local(register: Register, use: "read" | "write"): Local {
    const known = this.#locals.get(register);
    if (known !== undefined) return known;
    const place = this.place(register);
    const temporary = use === "write" && !this.isGuarded && this.#temporaries.has(register);
    const made = {
      place,
      forms: new Set<Form>(),
      used: new Set<Form>(),
      written: false,
      temporary,
    };
    if (temporary) this.#definedness.temporary(place.number);
    this.#locals.set(register, made);
    return made;
  }

  #read(register: Register, form: Form): string {
    const local = this.#local(register, "read");
    this.#definedness.read(local.place.number);
    this.#make(local, form);
    const { number, shape } = local.place;
    if (shape === "predicate") return `p${number}`;
    return form === "bits" ? `r${number}` : `f${number}`;
  }

  /** Makes a form of a register ready, ahead of the braces of a guard. */
  #make(local: Local, form: Form): void {
    if (local.forms.has(form)) return;
    const { number, shape } = local.place;
    // A number may have lost the bits of a NaN; what nobody wrote here is still in its place.
    if (local.forms.size === 0 || !local.written) this.body.push(loadText(local.place, form));
    else if (shape === "word")
      this.body.push(
        form === "bits"
          ? `if (f${number} === f${number}) { SF[0] = f${number}; r${number} = SI[0]; } else r${number} = ${nanWord};`
          : `SI[0] = r${number}; f${number} = SF[0];`,
      );
    else
      this.body.push(
        form === "bits"
          ? `if (f${number} === f${number}) { SD[0] = f${number}; r${number} = SI[0]; h${number} = SI[1]; }`
          : `SI[0] = r${number}; SI[1] = h${number}; f${number} = SD[0];`,
      );
    if (shape === "predicate" && local.forms.size === 0) this.#hoistPredicate(local.place);
    local.forms.add(form);
    local.used.add(form);
  }

  #hoistPredicate({ number, offset }: RegisterPlace): void {
    this.beforeOnce(`const P${number} = I[base + ${offset}];`);
  }

  /* ---- writing ---- */

  setWord(operand: Operand, expression: string): void {
    const register = destination(operand);
    if (register === undefined) return;
    const { shape, bits } = this.place(register);
    if (shape === "predicate") return this.setPredicate(operand, expression);
    if (shape === "pair") return this.setPair(operand, expression, "0");
    this.#write(register, "bits", narrowed(expression, bits));
  }

  /** An f32; NaN becomes the NaN of arithmetic. */
  setSingle(operand: Operand, expression: string): void {
    const register = destination(operand);
    if (register === undefined) return;
    const local = this.#local(register, "write");
    const isNumber = local.written && local.forms.size === 1 && local.forms.has("number");
    if (!this.isGuarded || isNumber) {
      this.#write(register, "number", expression);
      return;
    }
    const value = this.local(expression);
    this.#write(
      register,
      "bits",
      `(${value} === ${value} ? (SF[0] = ${value}, SI[0]) : ${nanWord})`,
    );
  }

  setPair(operand: Operand, low: string, high: string): void {
    const register = destination(operand);
    if (register === undefined) return;
    const { shape } = this.place(register);
    if (shape === "word") return this.setWord(operand, low);
    if (shape === "predicate") throw new OperandError("a predicate where 64 bits are written");
    const local = this.#local(register, "write");
    this.#beforeWrite(local, "bits");
    const { number } = local.place;
    this.line(`r${number} = ${low}; h${number} = ${high};`);
    this.#afterWrite(local, "bits");
  }

  /** An f64; where it is NaN, `nan` is a call that leaves its bits in the scratch pair. */
  setDouble(operand: Operand, expression: string, nan: string): void {
    const register = destination(operand);
    if (register === undefined) return;
    if (this.place(register).shape !== "pair") throw new OperandError("f64 in another register");
    const local = this.#local(register, "write");
    this.#beforeWrite(local, "number");
    const { number } = local.place;
    const value = this.local(expression);
    this.line(`if (${value} !== ${value}) { ${nan}; r${number} = SI[0]; h${number} = SI[1]; }`);
    this.line(`f${number} = ${value};`);
    this.#afterWrite(local, "number");
  }

  /** An f64 operand for `chooseNaN`: as a number, and its words where that is NaN. */
  nanOperand(operand: Operand): string {
    if (operand.kind === "negated") return this.nanOperand(operand.operand);
    const number = this.double(operand);
    if (operand.kind !== "register") return `${number}, 0, 0`;
    const name = number.slice(1);
    return `${number}, r${name}, h${name}`;
  }

  setPredicate(operand: Operand, expression: string): void {
    const register = destination(operand);
    if (register === undefined) return;
    this.#requirePredicate(register);
    const local = this.#local(register, "write");
    if (!local.temporary) this.#hoistPredicate(local.place);
    this.#beforeWrite(local, "bits");
    this.line(`p${local.place.number} = ${expression};`);
    this.#afterWrite(local, "bits");
  }

  #write(register: Register, form: Form, expression: string): void {
    const local = this.#local(register, "write");
    if (local.place.shape === "predicate")
      throw new OperandError("a predicate where a register of another kind is written");
    this.#beforeWrite(local, form);
    this.line(`${form === "bits" ? "r" : "f"}${local.place.number} = ${expression};`);
    this.#afterWrite(local, form);
  }

  /** Lanes whose guard says no keep what they had: in the form that is written now. */
  #beforeWrite(local: Local, form: Form): void {
    if (this.isGuarded) this.#make(local, form);
  }

  #afterWrite(local: Local, form: Form): void {
    local.forms.clear();
    local.forms.add(form);
    local.used.add(form);
    local.written = true;
    this.#definedness.write(local.place.number, this.#unless);
  }

  /* ---- the whole ---- */

  /** The text of a function body; `last` is what stands behind everything. */
  finish(last: string): string {
    const stores: string[] = [];
    const after: string[] = [];
    for (const { place, forms, written, temporary } of this.#locals.values()) {
      if (!written || temporary) continue;
      const { number, shape, offset } = place;
      if (shape === "predicate") {
        this.before.push(`let Q${number} = 0;`);
        stores.push(`Q${number} |= p${number} << l;`);
        after.push(`I[base + ${offset}] = (P${number} & ~mask) | Q${number};`);
      } else stores.push(storeText(place, forms.has("bits") ? "bits" : "number"));
    }
    if (this.#checks) {
      this.before.push(this.#definedness.flightText());
    }
    after.push(...this.after);
    if (this.#checks) after.push(...this.#definedness.finish());
    const registers = [...this.#locals.values()].flatMap(namesOf);
    const declared = [...registers, ...this.#declared].map((name) => `${name} = 0`).join(", ");
    const loop =
      this.body.length + stores.length === 0
        ? []
        : [
            ...(declared === "" ? [] : [`let ${declared};`]),
            "for (let m = mask; m !== 0; m &= m - 1) {",
            "const l = 31 - Math.clz32(m & -m), b = base + l, c = base + 2 * l;",
            ...this.body,
            ...stores,
            "}",
          ];
    return [
      "const I = w.words, F = w.singles, D = w.doubles, base = w.base;",
      ...this.before,
      ...loop,
      ...after,
      last,
    ].join("\n");
  }
}

/** An operand that an instruction cannot take; the loader adds which. */
export class OperandError extends Error {}

const scratch = new DataView(new ArrayBuffer(8));

function floatBits({
  bits,
  width,
}: {
  readonly bits: number | bigint;
  readonly width: 32 | 64;
}): number {
  if (width === 32) return Number(bits) | 0;
  scratch.setBigUint64(0, BigInt.asUintN(64, BigInt(bits)));
  scratch.setFloat32(0, scratch.getFloat64(0));
  return scratch.getInt32(0);
}

function numberText(value: number): string {
  if (Object.is(value, -0)) return "(-0)";
  return value < 0 ? `(${value})` : `${value}`;
}

function narrowed(expression: string, bits: number): string {
  if (bits === 16) return `(${expression}) & 0xffff`;
  return bits === 8 ? `(${expression}) & 0xff` : expression;
}

/** The register that is written; undefined for `_`. */
function destination(operand: Operand): Register | undefined {
  if (operand.kind === "register") return operand;
  if (operand.kind === "discard") return undefined;
  throw new OperandError(`${operand.kind} operand as a result`);
}

/** The variables that a register's forms take; those of a number of 64 bits have words beside it, for NaNs. */
function namesOf({ place: { number, shape }, used }: Local): readonly string[] {
  if (shape === "predicate") return [`p${number}`];
  const numbers = used.has("number") ? [`f${number}`] : [];
  if (shape === "pair") return [`r${number}`, `h${number}`, ...numbers];
  return used.has("bits") ? [`r${number}`, ...numbers] : numbers;
}

function loadText({ number, shape, offset }: RegisterPlace, form: Form): string {
  if (shape === "predicate") return `p${number} = (P${number} >>> l) & 1;`;
  if (shape === "word")
    return form === "bits" ? `r${number} = I[b + ${offset}];` : `f${number} = F[b + ${offset}];`;
  const bits = `r${number} = I[c + ${offset}]; h${number} = I[c + ${offset + 1}];`;
  return form === "bits"
    ? bits
    : `f${number} = D[(c + ${offset}) >>> 1]; if (f${number} !== f${number}) { ${bits} }`;
}

function storeText({ number, shape, offset }: RegisterPlace, form: Form): string {
  if (shape === "word")
    return form === "bits"
      ? `I[b + ${offset}] = r${number};`
      : `if (f${number} === f${number}) F[b + ${offset}] = f${number}; else I[b + ${offset}] = ${nanWord};`;
  const bits = `I[c + ${offset}] = r${number}; I[c + ${offset + 1}] = h${number};`;
  return form === "bits"
    ? bits
    : `if (f${number} === f${number}) D[(c + ${offset}) >>> 1] = f${number}; else { ${bits} }`;
}
