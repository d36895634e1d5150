// A WebAssembly module as text in a script, which compresses nearly as well as its bytes do: 2 % more,
// where hexadecimal digits take 13 % more (docs/decisions/0032-wasm.md).
//
//     | frequent bytes, one character each | other bytes: one of two marks, and a character |
//
// Which bytes are frequent is said by the module: scripts/inline-wasm.mjs counts them and writes the text.

/** Characters that neither a script nor a page gives a meaning in a text; the last two are the marks. */
const FORBIDDEN = "\"$'<\\`";
export const ALPHABET = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).filter((char) => !FORBIDDEN.includes(char));
export const MARKS = 2;

/** The bytes of a text. `order` has all bytes, the frequent ones first. */
export function bytesOfText({ order, text }) {
  const numbers = new Uint8Array(128);
  ALPHABET.forEach((char, i) => (numbers[char.charCodeAt(0)] = i));
  const frequent = ALPHABET.length - MARKS;
  const bytes = new Uint8Array(text.length);
  let length = 0;
  for (let i = 0; i < text.length; i += 1) {
    let number = numbers[text.charCodeAt(i)];
    if (number >= frequent) {
      i += 1;
      number = frequent + (number - frequent) * ALPHABET.length + numbers[text.charCodeAt(i)];
    }
    bytes[length] = order[number];
    length += 1;
  }
  return bytes.subarray(0, length);
}
