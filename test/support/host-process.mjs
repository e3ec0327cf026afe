/** The process of `host-process.ts`: evaluates each program that it is sent, and answers with what it came to and wrote. */
import process from "node:process";

const AsyncFunction = (async () => {}).constructor;
const load = (url) => import(url);

/** Leads what is written to a stream elsewhere; gives what was written. */
function capture(stream) {
  const { write } = stream;
  let text = "";
  stream.write = (chunk, encoding, done) => {
    text += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8");
    (typeof encoding === "function" ? encoding : done)?.();
    return true;
  };
  return () => {
    stream.write = write;
    return text;
  };
}

/** Evaluates a program and answers; it never fails itself. */
async function answerTo(program) {
  const stdout = capture(process.stdout);
  const stderr = capture(process.stderr);
  let answer;
  try {
    answer = { value: await new AsyncFunction("load", program)(load) };
  } catch (error) {
    answer = { failure: error instanceof Error ? String(error.stack) : String(error) };
  }
  process.send({ ...answer, stdout: stdout(), stderr: stderr() });
}

process.on("message", (program) => {
  void answerTo(program);
});
