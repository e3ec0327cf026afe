/**
 * Which lanes' registers hold something defined. A result is defined where all that it was computed from is;
 * being undefined is no mistake by itself, since compilers compute with registers whose results they drop.
 * It is one where it can be seen: in an address, a stored value, a guard or a jump.
 *
 *   @%p0 ld.shared.b32 %r0, [%r9];      lanes without %p0: undefined
 *   max.f32 %r1, %r0, %r2;              there %r1 is, too
 *   @%p0 st.shared.b32 [%r9], %r1;      only lanes with %p0 are asked
 *
 * Each register has a word with a bit a lane. The words are worked out once for all lanes, behind the loop.
 */

type Source =
  | number
  | {
      readonly lanes: string;
      readonly first: number | undefined;
      readonly second: number | undefined;
    };

export class Definedness {
  readonly #lines: string[] = [];
  readonly #loaded = new Set<number>();
  readonly #changed = new Set<number>();
  /** Registers that the step reads, each with the instruction that does so first. */
  readonly #touched = new Map<number, number>();
  #site = 0;
  #sources: Source[] = [];
  #required = new Set<number>();
  #written: number[] = [];
  #isRequired = false;

  begin(site: number): void {
    this.#site = site;
    this.#sources = [];
    this.#required = new Set();
    this.#written = [];
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

  write(register: number): void {
    this.#written.push(register);
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
    const known = [...new Set(this.#sources)].map((source) => this.#sourceText(source));
    for (const register of this.#written) {
      const word = this.#word(register);
      this.#changed.add(register);
      const all = [mask, ...known].join(" & ");
      this.#lines.push(
        known.length === 0 ? `${word} |= ${mask};` : `${word} = (${word} & ~${mask}) | (${all});`,
      );
    }
  }

  /** What stands behind the loop. */
  text(): readonly string[] {
    const stores = [...this.#changed].map((register) => `I[base + ${register}] = e${register};`);
    return [...this.#lines, ...stores];
  }

  /** What stands before it: registers that an asynchronous instruction has under way are not to be read. */
  flightText(): string {
    const pairs = [...this.#touched].map(([register, site]) => `${register}, ${site}`);
    return pairs.length === 0 ? "" : `if (w.flights.size !== 0) w.inFlight([${pairs.join(", ")}]);`;
  }
}
