/**
 * Memory of the fake driver, host and GPU alike. Every block has an address space of its own, so that an
 * address says which block it means, and one that lies outside of it, or in a block that was freed, is
 * found out.
 *
 *   address = block · 2^32 + offset
 */

const span = 2 ** 32;

export type BlockKind = "host" | "pinned" | "device";

interface Block {
  readonly kind: BlockKind;
  readonly bytes: Uint8Array;
}

/** An access that real hardware would fault on. */
export class FakeFault extends Error {
  readonly result: number;

  constructor(result: number, message: string) {
    super(message);
    this.result = result;
  }
}

const illegalAddress = 700;

export class FakeMemory {
  readonly #blocks = new Map<number, Block>();
  #next = 1;

  allocate(kind: BlockKind, bytes: number): number {
    const number = this.#next;
    this.#next += 1;
    // As little is known of fresh memory as on real hardware.
    this.#blocks.set(number, { kind, bytes: new Uint8Array(bytes).fill(0xa5) });
    return number * span;
  }

  /** Whether there was such a block to free. */
  free(kind: BlockKind, address: number): boolean {
    if (address % span !== 0) return false;
    const number = address / span;
    if (this.#blocks.get(number)?.kind !== kind) return false;
    return this.#blocks.delete(number);
  }

  freeAll(kinds: readonly BlockKind[]): void {
    for (const [number, { kind }] of this.#blocks)
      if (kinds.includes(kind)) this.#blocks.delete(number);
  }

  /** The bytes at an address of that kind of memory. */
  view(kind: "device" | "host", address: number, bytes: number): Uint8Array {
    const block = this.#blocks.get(Math.floor(address / span));
    const offset = address % span;
    const fits = block !== undefined && offset + bytes <= block.bytes.byteLength;
    if (!fits || (block.kind === "device") !== (kind === "device"))
      throw new FakeFault(illegalAddress, `${bytes} bytes of ${kind} memory at ${address}`);
    return block.bytes.subarray(offset, offset + bytes);
  }

  /** Everything from an address to the end of its block. */
  rest(address: number): Uint8Array {
    const block = this.#blocks.get(Math.floor(address / span));
    return this.view("host", address, (block?.bytes.byteLength ?? 0) - (address % span));
  }

  count(kind: BlockKind): number {
    return [...this.#blocks.values()].filter((block) => block.kind === kind).length;
  }

  bytes(kind: BlockKind): number {
    return [...this.#blocks.values()]
      .filter((block) => block.kind === kind)
      .reduce((total, block) => total + block.bytes.byteLength, 0);
  }
}
