/**
 * The names that a text gives to attributes, types, locations and data. They may stand before the module or
 * after it, so they are found first and read when somebody asks.
 *
 *   #loc3 = loc("model.py":3:4)
 *   !row = tensor<128xf32>
 */
import type { Attribute } from "../ops/attribute.ts";
import type { Literal } from "../ops/literal.ts";
import { meshesOf } from "../ops/sharding.ts";
import type { GraphType, TensorType } from "../ops/types.ts";
import { parseAttribute } from "./attributes.ts";
import type { Aliases } from "./attributes.ts";
import { parseTrailingLocation } from "./locations.ts";
import type { TextLocation } from "./locations.ts";
import { ResourceTable } from "./resources.ts";
import type { Scanner } from "./scanner.ts";
import { parseType } from "./types.ts";

const mostRead = 10_000;

const definition = /^[ \t]*([#!][\w$.-]+)[ \t]*=/gm;

export class AliasTable implements Aliases {
  readonly #scanner: Scanner;
  readonly #resources: ResourceTable;
  readonly #positions: ReadonlyMap<string, number>;
  readonly #locations = new Map<string, TextLocation | undefined>();
  /** Names that are being read, one within the other, and all that the outermost has led to. */
  #open = 0;
  #read = 0;

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

  #meaning<T>(name: string, read: () => T): T | undefined {
    const position = this.#positions.get(name);
    if (position === undefined) return undefined;
    if (this.#open === 0) this.#read = 0;
    // Names that stand for lists of such names double with every step.
    if (++this.#read > mostRead)
      this.#scanner.tooDeep(`${mostRead} names within what one stands for`, "more");
    this.#open++;
    const found = this.#scanner.elsewhere(position, read);
    this.#open--;
    return found;
  }

  attribute(name: string): Attribute | undefined {
    return this.#meaning(`#${name}`, () => parseAttribute(this.#scanner, this));
  }

  type(name: string): GraphType | undefined {
    return this.#meaning(`!${name}`, () => parseType(this.#scanner, (other) => this.type(other)));
  }

  resource(name: string, type: TensorType): Literal | undefined {
    return this.#resources.literal(name, type);
  }

  /** A body that names a mesh of the module, with that mesh in its place. */
  withMesh(body: string): string {
    return body.replace(/^(\s*mesh = )@([\w.$-]+)/, (written, head: string, name: string) => {
      const mesh = meshesOf({ foreign: this.#meshTexts() }).get(name);
      if (mesh === undefined) return written;
      const axes = mesh.axes.map(
        (axis) => `#stablehlo.mesh_axis<name = "${axis.name}", size = ${axis.size}>`,
      );
      return `${head}#stablehlo.mesh<axes = [${axes.join(", ")}], device_ids = [${mesh.ids.join(", ")}]>`;
    });
  }

  #meshTexts(): readonly { readonly text: string }[] {
    return Array.from(
      this.#scanner.text.matchAll(/^\s*(sdy\.mesh @[^\n]*)/gm),
      ([, text = ""]) => ({ text }),
    );
  }

  location(name: string): TextLocation | undefined {
    if (!this.#locations.has(name))
      this.#locations.set(
        name,
        this.#meaning(`#${name}`, () =>
          parseTrailingLocation(this.#scanner, (other) => this.location(other)),
        ),
      );
    return this.#locations.get(name);
  }
}
