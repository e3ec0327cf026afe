/** What the CUDA toolkit's assembler makes of PTX: the sections of a cubin, an ELF file. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The machine code and initialised memory of each function, by section. */
export function machineCode(text: string, target: string): ReadonlyMap<string, string> {
  const folder = mkdtempSync(join(tmpdir(), "cubin-"));
  try {
    const [source, output] = [join(folder, "module.ptx"), join(folder, "module.cubin")];
    writeFileSync(source, text);
    const { status, stderr } = spawnSync("ptxas", [`-arch=${target}`, "-o", output, source], {
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(stderr);
    return sections(readFileSync(output));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Sections that hold code, constants and variables; names of symbols are not compared. */
const compared = /^\.(?:text|nv\.constant|nv\.global|nv\.shared)/;

/** Reads the section table of a 64-bit little-endian ELF file. */
function sections(elf: Buffer): ReadonlyMap<string, string> {
  const table = Number(elf.readBigUInt64LE(0x28));
  const [entrySize, count, namesIndex] = [0x3a, 0x3c, 0x3e].map((at) => elf.readUInt16LE(at));
  if (entrySize === undefined || count === undefined || namesIndex === undefined)
    throw new Error("not an ELF file");
  const section = (index: number) => {
    const at = table + index * entrySize;
    const [offset, size] = [0x18, 0x20].map((field) => Number(elf.readBigUInt64LE(at + field)));
    return { name: elf.readUInt32LE(at), type: elf.readUInt32LE(at + 4), offset, size };
  };
  const names = section(namesIndex).offset ?? 0;
  const found = new Map<string, string>();
  for (let index = 0; index < count; index++) {
    const { name, type, offset = 0, size = 0 } = section(index);
    const end = elf.indexOf(0, names + name);
    const text = elf.toString("latin1", names + name, end);
    // Uninitialised sections have a size and no bytes.
    const bytes = type === 8 ? `${size} bytes` : elf.toString("hex", offset, offset + size);
    if (compared.test(text)) found.set(text, bytes);
  }
  return found;
}
