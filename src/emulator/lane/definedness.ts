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
 * in the order of the instructions and among their other checks.
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
  readonly #loaded = new Set<number>();
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

  read(register: number): void {
    if (!this.#touched.has(register)) this.#touched.set(register, this.#site);
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

  #word(register: number): string {
    if (!this.#loaded.has(register)) {
      this.#loaded.add(register);
      this.#lines.push(`let e${register} = I[base + ${register}];`);
    }
    return `e${register}`;
  }

  #sourceText(source: Source): string {
    if (typeof source === "number") return this.#word(source);
    if ("groups" in source) {
      const [left, right] = source.groups.map((group) =>
        group.length === 0 ? "-1" : `(${group.map((each) => this.#sourceText(each)).join(" & ")})`,
      );
      const [alone, other] = source.decided;
      return `((${left} & ${right}) | (${left} & ${alone}) | (${right} & ${other}))`;
    }
    const { lanes, first, second } = source;
    const one = first === undefined ? "-1" : this.#word(first);
    const other = second === undefined ? "-1" : this.#word(second);
    return `((${lanes} & ${one}) | (~${lanes} & ${other}))`;
  }

  /** Ends the instruction, which the lanes of a mask ran. */
  end(mask: string): void {
    for (const register of this.#required) {
      const word = this.#word(register);
      this.#lines.push(
        `if ((${word} & ${mask}) !== ${mask}) w.undefined(${this.#site}, ${register}, ${mask} & ~${word});`,
      );
    }
    for (const { register, slot, offset, bytes } of this.#stored) {
      const word = this.#word(register);
      this.#lines.push(
        `if ((${word} & ${mask}) !== ${mask}) w.storedUndefined(${this.#site}, ${register}, ${mask} & ~${word}, ${slot}, ${offset}, ${bytes});`,
      );
    }
    const known = [...new Set(this.#sources)].map((source) => this.#sourceText(source));
    for (const { register, unless } of this.#written) {
      const word = this.#word(register);
      this.#changed.add(register);
      const where = unless === undefined ? known : [...known, `~${unless}`];
      const all = [mask, ...where].join(" & ");
      this.#lines.push(
        where.length === 0 ? `${word} |= ${mask};` : `${word} = (${word} & ~${mask}) | (${all});`,
      );
    }
  }

  /** Puts the words back. */
  finish(): readonly string[] {
    return [...this.#changed].map((register) => `I[base + ${register}] = e${register};`);
  }

  /** What stands before it: registers that an asynchronous instruction has under way are not to be read. */
  flightText(): string {
    const pairs = [...this.#touched].map(([register, site]) => `${register}, ${site}`);
    return pairs.length === 0 ? "" : `if (w.flights.size !== 0) w.inFlight([${pairs.join(", ")}]);`;
  }
}
