/** Words of a sentence, and the same with two of them in each other's place. */
export function wordsOf(text: string): string[] {
  return text.trim().split(/\s+/).filter(Boolean);
}

export function swapped(words: string[], i: number, j: number): string[] {
  const out = [...words];
  [out[i], out[j]] = [words[j], words[i]];
  return out;
}
