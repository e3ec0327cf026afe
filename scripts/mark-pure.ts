/**
 * Lets bundlers drop what a program does not use of a file of joined modules. `sideEffects: false` speaks of whole files;
 * within one, a bundler keeps every declaration whose value might do something while it is made: a call, a class with static
 * parts, an object with another's fields. Ours only make that value, which is said of each (where `@` is the mark):
 *
 *   var names = new Names(list);                     var names = @ new Names(list);
 *   var Tile = class { static all = new Map(); };    var Tile = @ (() => class Tile { … })();
 *
 * What is no declaration stays as it is, and is kept.
 */
import { parseAst } from "rollup/parseAst";

const mark = "/* @__PURE__ */ ";

interface Node {
  readonly type: string;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value;
}

function partsOf(node: Node): readonly Node[] {
  return Object.values(node).flat().filter(isNode);
}

/** Do nothing while they are made, whatever is in them. */
const inert =
  /^(?:Literal|Identifier|PrivateIdentifier|FunctionExpression|ArrowFunctionExpression)$/;

/** Do what their parts do. */
const transparent =
  /^(?:ArrayExpression|ObjectExpression|Property|ClassExpression|ClassBody|MethodDefinition)$/;

/** Whether bundlers see by themselves that making a value does nothing else. */
function isPlain(node: Node): boolean {
  if (inert.test(node.type)) return true;
  // A field of each object of a class is made with the object.
  if (node.type === "PropertyDefinition") return "static" in node && node.static === false;
  if ("computed" in node && node.computed === true) return false;
  return transparent.test(node.type) && partsOf(node).every(isPlain);
}

/** Whether making it is nothing but one call, of what is plain. */
function isPlainCall(node: Node): boolean {
  const { type } = node;
  if (type !== "CallExpression" && type !== "NewExpression") return false;
  return partsOf(node).every(isPlain);
}

/** Where a node stands in the text. */
function rangeOf(node: Node): readonly [number, number] {
  const [start, end] = ["start" in node ? node.start : 0, "end" in node ? node.end : 0];
  if (typeof start !== "number" || typeof end !== "number") throw new TypeError(node.type);
  return [start, end];
}

/** Objects that stand for a module, which the bundler makes empty and then fills: made and filled in one call. */
function withFilledNamespaces(text: string): string {
  return text
    .replace(
      /^(var __export = \(target, all\) => \{\n)([^}]*\}\);\n)\};$/m,
      "$1$2  return target; };",
    )
    .replace(
      /^var (\w+) = \{\};\n__export\(\1, (\{\n(?: .*\n)*\})\);$/gm,
      "var $1 =\n__export({}, $2);",
    );
}

/** The text of a file that a bundler has written, with every declaration of it marked. */
export function markPure(written: string): string {
  const text = withFilledNamespaces(written);
  let marked = "";
  let done = 0;
  for (const statement of parseAst(text).body) {
    if (statement.type !== "VariableDeclaration") continue;
    for (const { id, init } of statement.declarations) {
      if (!init || isPlain(init) || init.type === "AwaitExpression") continue;
      const [start, end] = rangeOf(init);
      const value = text.slice(start, end);
      const name = id.type === "Identifier" ? id.name : "";
      // A class that is not assigned by itself has no name but its own.
      const named =
        init.type === "ClassExpression"
          ? value.replace(/^class(?= \{| extends )/, `class ${name}`)
          : value;
      marked += `${text.slice(done, start)}${mark}${isPlainCall(init) ? value : `(() => ${wrapped(named)})()`}`;
      done = end;
    }
  }
  return marked + text.slice(done);
}

/** As the value of a function without braces. */
function wrapped(value: string): string {
  return value.startsWith("{") ? `(${value})` : value;
}
