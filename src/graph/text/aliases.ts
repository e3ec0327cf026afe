/**
 * The names that a text gives to attributes, types, locations and data. They may stand before the module or
 * after it, so they are found first and read when somebody asks.
 *
 *   #loc3 = loc("model.py":3:4)
 *   !row = tensor<128xf32>
 */
import type { Attribute } from "../ops/attribute.ts";
import type { Literal } from "../ops/literal.ts";
import type { GraphType, TensorType } from "../ops/types.ts";
import { parseAttribute } from "./attributes.ts";
import type { Aliases } from "./attributes.ts";
import { parseTrailingLocation } from "./locations.ts";
import type { TextLocation } from "./locations.ts";
import { ResourceTable } from "./resources.ts";
import type { Scanner } from "./scanner.ts";
import { parseType } from "./types.ts";

const definition = /^[ \t]*([#!][\w$.-]+)[ \t]*=/gm;

export class AliasTable implements Aliases {
  readonly #scanner: Scanner;
  readonly #resources: ResourceTable;
  readonly #positions: ReadonlyMap<string, number>;
  readonly #locations = new Map<string, TextLocation | undefined>();

  constructor(scanner: Scanner) {
    this.#scanner = scanner;
    this.#resources = new ResourceTable(scanner);
    this.#positions = new Map(
      Array.from(scanner.text.matchAll(definition), (match) => [
        match[1] ?? "",
        match.index + match[0].length,
      ]),
    );
  }

  #read<T>(name: string, read: () => T): T | undefined {
    const position = this.#positions.get(name);
    return position === undefined ? undefined : this.#scanner.elsewhere(position, read);
  }

  attribute(name: string): Attribute | undefined {
    return this.#read(`#${name}`, () => parseAttribute(this.#scanner, this));
  }

  type(name: string): GraphType | undefined {
    return this.#read(`!${name}`, () => parseType(this.#scanner, (other) => this.type(other)));
  }

  resource(name: string, type: TensorType): Literal | undefined {
    return this.#resources.literal(name, type);
  }

  location(name: string): TextLocation | undefined {
    if (!this.#locations.has(name))
      this.#locations.set(
        name,
        this.#read(`#${name}`, () =>
          parseTrailingLocation(this.#scanner, (other) => this.location(other)),
        ),
      );
    return this.#locations.get(name);
  }
}
