/**
 * Source locations: where in the user's program something was written.
 *
 * Tracing creates one location an op, so capturing must be cheap. V8 records the frames when an Error
 * is created and formats them only when `.stack` is read; a location keeps the Error and reads it the
 * first time somebody asks.
 *
 *   user.ts:12   out.at(here).store(x)      <- the frame we want: first one outside the library
 *   lang/ref.ts  Ref.store                  <- ours, skipped
 *   ir/builder.ts                           <- ours, skipped
 */
import { Memo } from "./memo.ts";

/** A place in a source file; lines and columns count from 1. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export interface Location {
  /** Where the user wrote it, or undefined where no frame is the user's. */
  readonly position: Position | undefined;
  /** Where text that was made from it, such as PTX, has the same thing. */
  readonly generated?: Position | undefined;
}

export const unknownLocation: Location = Object.freeze({ position: undefined });

/** A location known in advance, such as one read from IR text. */
export function locationAt(file: string, line: number, column: number): Location {
  return Object.freeze({ position: Object.freeze({ file, line, column }) });
}

export function formatPosition(position: Position | undefined): string {
  return position === undefined
    ? "<unknown>"
    : `${position.file}:${position.line}:${position.column}`;
}

/** A place, with the one in the text that was made from it. */
export function formatPlace({ position, generated }: Location): string {
  return [position, generated]
    .filter((each) => each !== undefined)
    .map(formatPosition)
    .join(", ");
}

const framePattern =
  /^\s*at (?:async )?(?:(?<name>.*?) \()?(?<file>.+?):(?<line>\d+):(?<column>\d+)\)?$/;

interface WrittenFrame {
  readonly text: string;
  readonly position: Position;
}

/** Frames of a V8 stack text as positions, as they are asked for; lines that name no file are dropped. */
function* parseFrames(stack: string): Generator<WrittenFrame> {
  for (const text of stack.split("\n")) {
    const position = positions.get(text, () => positionOf(text));
    if (position !== undefined) yield { text, position };
  }
}

/** Stacks of one kernel share most of their lines. */
const positions = new Memo<Position | undefined>(4096);

function positionOf(text: string): Position | undefined {
  const { file, line, column } = framePattern.exec(text)?.groups ?? {};
  if (file === undefined) return undefined;
  return { file: toPath(file), line: Number(line), column: Number(column) };
}

const paths = new Memo<string>(256);

/** As other paths are written: modules have URLs, and CommonJS has the system's own separators. */
function toPath(file: string): string {
  if (file.startsWith("file://")) return paths.get(file, () => pathOfUrl(file));
  return /^[A-Za-z]:\\/.test(file) ? file.replaceAll("\\", "/") : file;
}

function pathOfUrl(file: string): string {
  const path = decodeURIComponent(new URL(file).pathname);
  return /^\/[A-Za-z]:/.test(path) ? path.slice(1) : path;
}

/** This module's file as stacks name it: the source, a bundle, or what a source map makes of that. */
const [ownFrame] = parseFrames(new Error().stack ?? "");
const ownFile = ownFrame?.position.file ?? "";
const ownName = /support\/location\.[jt]s$/;

/** The folder of the library's modules; undefined where a bundler has joined them. */
const libraryFolder = ownName.test(ownFile) ? ownFile.replace(ownName, "") : undefined;

/** The files that a bundler has joined the modules into: this one, and those that were named. */
const bundles = new Set([ownFile]);

/** Says that a file holds a part of the library, where a bundler has made several files of it. */
export function nameLibraryBundle(file: string): void {
  bundles.add(toPath(file));
  userPaths = new Memo(userPathLimit);
}

/** Tests live beside the source they test, so a test file counts as the user's. */
function isLibraryFile(file: string): boolean {
  if (libraryFolder === undefined) return bundles.has(file);
  return file.startsWith(libraryFolder) && !/\.test\.[jt]s$/.test(file);
}

function isHostFile(file: string): boolean {
  return file.startsWith("node:");
}

/** A kernel may come from a package, so what lies in node_modules can be where a mistake is. */
function isUserFile(file: string): boolean {
  return !isLibraryFile(file) && !isHostFile(file);
}

const userPathLimit = 256;

/** The stacks of one kernel name few files, again and again. */
let userPaths = new Memo<string | undefined>(userPathLimit);

/** The path of a file that V8 names, where it is the user's. */
function userPathOf(name: string): string | undefined {
  return userPaths.get(name, () => {
    const file = toPath(name);
    return isUserFile(file) ? file : undefined;
  });
}

function isPackageFile(file: string): boolean {
  return file.includes("/node_modules/");
}

class CapturedLocation implements Location {
  #trace: Error | undefined;
  #position: Position | undefined;

  constructor(trace: Error) {
    this.#trace = trace;
  }

  get position(): Position | undefined {
    if (this.#trace !== undefined) {
      this.#position = userPosition(this.#trace);
      this.#trace = undefined;
    }
    return this.#position;
  }
}

/** What V8 tells of a frame. */
interface Frame {
  getFileName(): string | null | undefined;
  getLineNumber(): number | null;
  getColumnNumber(): number | null;
}

interface StackHost {
  prepareStackTrace?: ((error: Error, frames: readonly Frame[]) => unknown) | undefined;
}

/** The name of the function by which Node itself writes stacks, where it shows it. */
const nodesOwn = "ErrorPrepareStackTrace";

/** The first frame that is the user's. */
function userPosition(trace: Error): Position | undefined {
  const host = Error as unknown as StackHost;
  const before = host.prepareStackTrace;
  // Whoever has taken over the stack's text may be mapping it back to a source.
  const takenOver = before !== undefined && before.name !== nodesOwn;
  if (takenOver || mapsSources()) return positionInText(trace);
  let found: Position | undefined;
  host.prepareStackTrace = (_, frames) => {
    found = positionInFrames(frames);
    return "";
  };
  try {
    return trace.stack === "" ? found : positionInText(trace);
  } finally {
    host.prepareStackTrace = before;
  }
}

function mapsSources(): boolean {
  const { process } = globalThis as { readonly process?: { readonly sourceMapsEnabled?: boolean } };
  return process?.sourceMapsEnabled === true;
}

/** Lines are looked up for one frame alone, which is most of what a stack's text costs. */
function positionInFrames(frames: readonly Frame[]): Position | undefined {
  for (const frame of frames) {
    const name = frame.getFileName();
    if (name === null || name === undefined) continue;
    const file = userPathOf(name);
    if (file !== undefined)
      return { file, line: frame.getLineNumber() ?? 1, column: frame.getColumnNumber() ?? 1 };
  }
  return undefined;
}

function positionInText(trace: Error): Position | undefined {
  for (const { position } of parseFrames(trace.stack ?? ""))
    if (isUserFile(position.file)) return position;
  return undefined;
}

/**
 * Frames that are recorded: every one costs. Functions of the language ask as soon as they are called, so that the user's frame is among the
 * first three nearly always, and among the first eight in all examples.
 */
const captureDepth = 12;

/** Frames that are recorded for a report, which is made rarely and anywhere within the library. */
export const reportDepth = 64;

/** What everything that is written now is attributed to, where it is not the user's call. */
let attributed: Location | undefined;

/**
 * Runs `body` as if `location` were the user's call; where it calls functions of the user's, it does so by `atOwnLines`.
 * Recording a stack costs more than most of what it is recorded for, so that whatever adds many ops for one call runs so.
 */
export function atLocation<T>(location: Location, body: () => T): T {
  return attributedTo(location, body);
}

/** Runs `body`, which is the user's, so that what it writes is attributed to its own lines. */
export function atOwnLines<T>(body: () => T): T {
  return attributedTo(undefined, body);
}

function attributedTo<T>(location: Location | undefined, body: () => T): T {
  const before = attributed;
  attributed = location;
  try {
    return body();
  } finally {
    attributed = before;
  }
}

/** The location of the user's call that led here, within so many frames. */
export function captureLocation(depth = captureDepth): Location {
  if (attributed !== undefined) return attributed;
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = depth;
  const trace = new Error();
  Error.stackTraceLimit = limit;
  return new CapturedLocation(trace);
}

/**
 * A location whose position is looked up now. One that is not holds on to the stack, and with it to whatever the functions on it can
 * reach: what lives as long as the process, or waits for the garbage collector to find something, must not.
 */
export function settledLocation({ position, generated }: Location = captureLocation()): Location {
  return Object.freeze({ position, generated });
}

/** `stack` without the frames of this library, of packages and of the host below the user's program. */
export function userFrames(stack: string): readonly string[] {
  return [...parseFrames(stack)]
    .filter(({ position: { file } }) => isUserFile(file) && !isPackageFile(file))
    .map(({ text }) => text);
}
