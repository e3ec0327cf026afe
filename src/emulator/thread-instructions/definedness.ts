/**
 * Which lanes' registers hold something defined. A result is defined where all that it was computed from is;
 * being undefined is no mistake by itself, since compilers compute with registers whose results they drop.
 * It is one where it can be seen: in an address, a guard, a jump, or a value stored to global memory. A value
 * stored elsewhere leaves memory as undefined as it is, and a load from there gives something undefined again.
 *
 *   @%p0 ld.shared.b32 %r0, [%r9];      lanes without %p0: undefined
 *   max.f32 %r1, %r0, %r2;              there %r1 is, too
 *   @%p0 st.shared.b32 [%r9], %r1;      only lanes with %p0 are asked
 *
 * Each register has a word with a bit a lane. The words are worked out once for all lanes, behind the loop,
 * in the order of the instructions and among their other checks. What all lanes of the step have from constants,
 * parameters and the like is known without a word:
 *
 *   mov.u32 %r0, %tid.x;                certain
 *   and.b32 %r1, %r0, 31;               certain, since %r0 is
 *   add.s32 %r2, %r1, %r9;              let e2 = mask & e9
 */

type Source =
  | number
  | {
      readonly lanes: string;
      readonly first: number | undefined;
      readonly second: number | undefined;
    }
  | Alternatives;

/** Either of two groups decides in its lanes whatever the other holds: false in an `and`. */
interface Alternatives {
  readonly groups: readonly [readonly Source[], readonly Source[]];
  readonly decided: readonly [string, string];
}

interface Written {
  readonly register: number;
  /** Lanes in which nothing defined is written, as text. */
  readonly unless: string | undefined;
}

/** A register that is stored, and where in what the lane stores. */
interface Stored {
  readonly register: number;
  readonly slot: number;
  readonly offset: number;
  readonly bytes: number;
}

export class Definedness {
  readonly #lines: string[];
  /** Registers that have a variable, and those of them whose variable holds their word. */
  readonly #named = new Set<number>();
  readonly #current = new Set<number>();
  /** Registers that all lanes of the step have. */
  readonly #certain = new Set<number>();
  /** Registers whose word nobody reads behind the step. */
  readonly #temporary = new Set<number>();
  readonly #changed = new Set<number>();
  /** Registers that the step reads, each with the instruction that does so first. */
  readonly #touched = new Map<number, number>();
  #site = 0;
  #sources: Source[] = [];
  #required = new Set<number>();
  #written: Written[] = [];
  #stored: Stored[] = [];
  #isRequired = false;

  /** `lines` takes the text that stands behind the loop. */
  constructor(lines: string[]) {
    this.#lines = lines;
  }

  begin(site: number): void {
    this.#site = site;
    this.#sources = [];
    this.#required = new Set();
    this.#written = [];
    this.#stored = [];
  }

  required<T>(read: () => T): T {
    const outer = this.#isRequired;
    this.#isRequired = true;
    const result = read();
    this.#isRequired = outer;
    return result;
  }

  /** The register is written by all lanes before it is read, and not seen behind the step. */
  temporary(register: number): void {
    this.#temporary.add(register);
  }

  read(register: number): void {
    const isNew = !this.#touched.has(register) && !this.#temporary.has(register);
    if (isNew) this.#touched.set(register, this.#site);
    if (this.#isRequired) this.#required.add(register);
    else this.#sources.push(register);
  }

  write(register: number, unless?: string): void {
    this.#written.push({ register, unless });
  }

  /** The register is read for nothing but to be stored. */
  store(stored: Stored): void {
    this.#sources = this.#sources.filter((source) => source !== stored.register);
    this.#stored.push(stored);
  }

  /** Parts what has been read so far from what follows, for `alternatives`. */
  get readings(): number {
    return this.#sources.length;
  }

  /** What was read before and behind `parted` are two groups, each of which decides alone in some lanes. */
  alternatives(parted: number, decided: readonly [string, string]): void {
    const groups = [this.#sources.slice(0, parted), this.#sources.slice(parted)] as const;
    this.#sources = [{ groups, decided }];
  }

  /** The result is `first` in these lanes and `second` in the others; neither counts as read otherwise. */
  select(lanes: string, first: number | undefined, second: number | undefined): void {
    this.#sources = this.#sources.filter((source) => source !== first && source !== second);
    this.#sources.push({ lanes, first, second });
  }

  /** The word as it is in memory, where the step has not changed it, or has made it certain. */
  #initial(register: number): string {
    const kept = `I[base + ${register}]`;
    if (!this.#certain.has(register)) return kept;
    return this.#temporary.has(register) ? "mask" : `${kept} | mask`;
  }

  #assign(register: number, text: string): void {
    this.#lines.push(`${this.#named.has(register) ? "" : "let "}e${register} = ${text};`);
    this.#named.add(register);
    this.#current.add(register);
  }

  /** The variable that holds a register's word. */
  #word(register: number): string {
    if (!this.#current.has(register)) this.#assign(register, this.#initial(register));
    return `e${register}`;
  }

  /** The lanes in which a source is defined; undefined for all. */
  #sourceText(source: Source): string | undefined {
    if (typeof source === "number")
      return this.#certain.has(source) ? undefined : this.#word(source);
    if ("groups" in source) {
      const [left, right] = source.groups.map((group) => this.#allOf(group));
      if (left === undefined && right === undefined) return undefined;
      const [alone, other] = source.decided;
      const [one, two] = [left ?? "-1", right ?? "-1"];
      return `((${one} & ${two}) | (${one} & ${alone}) | (${two} & ${other}))`;
    }
    const { lanes, first, second } = source;
    const [one, other] = [first, second].map((register) =>
      register === undefined ? undefined : this.#sourceText(register),
    );
    if (one === undefined && other === undefined) return undefined;
    return `((${lanes} & ${one ?? "-1"}) | (~${lanes} & ${other ?? "-1"}))`;
  }

  #allOf(sources: readonly Source[]): string | undefined {
    const texts = this.#textsOf(sources);
    return texts.length === 0 ? undefined : `(${texts.join(" & ")})`;
  }

  #textsOf(sources: readonly Source[]): readonly string[] {
    return [...new Set(sources)].flatMap((source) => this.#sourceText(source) ?? []);
  }

  /** Ends the instruction, which the lanes of a mask ran. */
  end(mask: string): void {
    for (const register of this.#required) {
      if (this.#certain.has(register)) continue;
      const word = this.#word(register);
      this.#lines.push(
        `if ((${word} & ${mask}) !== ${mask}) w.undefined(${this.#site}, ${register}, ${mask} & ~${word});`,
      );
    }
    for (const { register, slot, offset, bytes } of this.#stored) {
      if (this.#certain.has(register)) continue;
      const word = this.#word(register);
      this.#lines.push(
        `if ((${word} & ${mask}) !== ${mask}) w.storedUndefined(${this.#site}, ${register}, ${mask} & ~${word}, ${slot}, ${offset}, ${bytes});`,
      );
    }
    const known = this.#textsOf(this.#sources);
    for (const { register, unless } of this.#written) {
      if (!this.#temporary.has(register)) this.#changed.add(register);
      this.#becomes(register, mask, unless === undefined ? known : [...known, `~${unless}`]);
    }
  }

  /** The lanes of a mask have written a register, and it is defined where all of `where` are. */
  #becomes(register: number, mask: string, where: readonly string[]): void {
    const all = [mask, ...where].join(" & ");
    if (mask === "mask" && where.length === 0) {
      this.#certain.add(register);
      this.#current.delete(register);
    } else if (where.length === 0) {
      if (!this.#certain.has(register)) this.#assign(register, `${this.#word(register)} | ${mask}`);
    } else if (mask === "mask" && this.#temporary.has(register)) {
      this.#certain.delete(register);
      this.#assign(register, all);
    } else {
      const before = this.#current.has(register) ? `e${register}` : `(${this.#initial(register)})`;
      this.#certain.delete(register);
      this.#assign(register, `(${before} & ~${mask}) | (${all})`);
    }
  }

  /** Puts the words back. */
  finish(): readonly string[] {
    return [...this.#changed].map((register) =>
      this.#certain.has(register)
        ? `I[base + ${register}] |= mask;`
        : `I[base + ${register}] = e${register};`,
    );
  }

  /** What stands before it: registers that an asynchronous instruction has under way are not to be read. */
  flightText(): string {
    const pairs = [...this.#touched].map(([register, site]) => `${register}, ${site}`);
    return pairs.length === 0 ? "" : `if (w.flights.size !== 0) w.inFlight([${pairs.join(", ")}]);`;
  }
}
