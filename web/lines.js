// The lines of a list as the command reads them: bytes between line ends, whatever their encoding.
// gzip is unpacked, UTF-16 with its mark becomes UTF-8, marks of UTF-8 are dropped. What is no text is
// refused, as the command does: its bytes between line ends would be keys that nobody asks for.

const [LINE, RETURN] = [10, 13];
const starts = (bytes, ...first) => first.every((byte, i) => bytes[i] === byte);
const readAll = async (stream) => new Uint8Array(await new Response(stream).arrayBuffer());

/** What a file is that has no lines, and what to do. The names are those of the command (decode.rs). */
function otherOf(bytes) {
  const isA = (text, at = 0) => starts(bytes.subarray(at), ...Array.from(text, (letter) => letter.charCodeAt(0)));
  const packers = {
    zstd: isA("(\xb5/\xfd") || (isA("*M\x18", 1) && bytes[0] >> 4 === 5),
    xz: isA("\xfd7zXZ\0"),
    bzip2: isA("BZh") && isA("1AY&SY", 4),
    lz4: isA("\x04\"M\x18"),
    compress: isA("\x1f\x9d"),
    lzip: isA("LZIP\x01"),
  };
  const packer = Object.keys(packers).find((name) => packers[name]);
  if (packer) return `compressed with ${packer}; unpack it first`;
  if (isA("PK\x03\x04")) return "a zip archive; unpack it first";
  if (isA("7z\xbc\xaf\x27\x1c")) return "a 7z archive; unpack it first";
  if (isA("koel\r\n\x1a\n")) return "a filter; open it below";
  return undefined;
}

/** The bytes of a file, unpacked and in UTF-8 unless they were neither UTF-8 nor UTF-16. */
async function unpacked(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (starts(bytes, 0x1f, 0x8b)) return readAll(file.stream().pipeThrough(new DecompressionStream("gzip")));
  const other = otherOf(bytes);
  if (other) throw new Error(`${file.name} is ${other}`);
  const order = starts(bytes, 0xff, 0xfe) ? "utf-16le" : starts(bytes, 0xfe, 0xff) ? "utf-16be" : undefined;
  return order ? new TextEncoder().encode(new TextDecoder(order).decode(bytes)) : bytes;
}

/** A line without its carriage return and marks. */
function trimmed(line) {
  let begin = 0;
  while (starts(line.subarray(begin), 0xef, 0xbb, 0xbf)) begin += 3;
  const end = line[line.length - 1] === RETURN ? line.length - 1 : line.length;
  return line.subarray(begin, Math.max(begin, end));
}

/** The lines of bytes. An empty last line is none. */
export function linesOf(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(LINE, at);
    const line = bytes.subarray(at, end < 0 ? bytes.length : end);
    lines.push(trimmed(line));
    at += line.length + 1;
  }
  return lines;
}

/** The lines of a text that was typed. */
export const typed = (text) => linesOf(new TextEncoder().encode(text));

export const linesOfFile = async (file) => linesOf(await unpacked(file));
