/**
 * Bytes of a module, in one array that grows: joining lists of numbers is the slowest way to make a module.
 *
 *   bytes.sized(() => { … })   what is written in between, after its size
 */
export class Bytes {
  #array = new Uint8Array(4096);
  #length = 0;
  readonly #number = new DataView(new ArrayBuffer(8));

  #reserve(count: number): void {
    if (this.#length + count <= this.#array.length) return;
    const larger = new Uint8Array(Math.max(2 * this.#array.length, this.#length + count));
    larger.set(this.#array.subarray(0, this.#length));
    this.#array = larger;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#array[this.#length] = value;
    this.#length += 1;
  }

  bytes(values: ArrayLike<number>): void {
    this.#reserve(values.length);
    this.#array.set(values, this.#length);
    this.#length += values.length;
  }

  /** LEB128 of a number below 2³². */
  unsigned(value: number): void {
    let rest = value >>> 0;
    while (rest >= 0x80) {
      this.byte((rest & 0x7f) | 0x80);
      rest >>>= 7;
    }
    this.byte(rest);
  }

  /** Signed LEB128 of 32 bits. */
  signed(value: number): void {
    let rest = value | 0;
    for (;;) {
      const low = rest & 0x7f;
      rest >>= 7;
      if ((rest === 0 && (low & 0x40) === 0) || (rest === -1 && (low & 0x40) !== 0)) {
        this.byte(low);
        return;
      }
      this.byte(low | 0x80);
    }
  }

  /** Signed LEB128 of 64 bits. */
  signed64(value: bigint): void {
    let rest = BigInt.asIntN(64, value);
    for (;;) {
      const low = Number(rest & 0x7fn);
      rest >>= 7n;
      if ((rest === 0n && (low & 0x40) === 0) || (rest === -1n && (low & 0x40) !== 0)) {
        this.byte(low);
        return;
      }
      this.byte(low | 0x80);
    }
  }

  float32(value: number): void {
    this.#number.setFloat32(0, value, true);
    this.bytes(new Uint8Array(this.#number.buffer, 0, 4));
  }

  float64(value: number): void {
    this.#number.setFloat64(0, value, true);
    this.bytes(new Uint8Array(this.#number.buffer, 0, 8));
  }

  text(value: string): void {
    const encoded = new TextEncoder().encode(value);
    this.unsigned(encoded.length);
    this.bytes(encoded);
  }

  /** What `write` adds, after its size, for which five bytes are kept. */
  sized(write: () => void): void {
    this.#reserve(5);
    const at = this.#length;
    this.#length += 5;
    write();
    let size = this.#length - at - 5;
    for (let index = 0; index < 5; index++) {
      this.#array[at + index] = (size & 0x7f) | (index < 4 ? 0x80 : 0);
      size >>>= 7;
    }
  }

  /** A copy of all bytes so far. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.#array.slice(0, this.#length);
  }
}
