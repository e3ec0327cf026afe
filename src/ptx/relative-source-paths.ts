/** What a kernel was compiled to, with the paths of its sources as another machine can have them too. */
import { relativePath, workingDirectory } from "../support/paths.ts";
import type { Position } from "../support/location.ts";
import type { Executable } from "./executable.ts";

export function portablePosition(
  position: Position | undefined,
  folder = workingDirectory(),
): Position | undefined {
  return position && { ...position, file: relativePath(position.file, folder) };
}

/** The same code, whose `.file` and messages name paths relative to the working directory. */
export function portableExecutable(executable: Executable): Executable {
  const folder = workingDirectory();
  const { module, messages } = executable;
  return {
    ...executable,
    messages: messages.map((message) => ({
      ...message,
      position: portablePosition(message.position, folder),
    })),
    module: { ...module, files: module.files.map((path) => relativePath(path, folder)) },
  };
}
