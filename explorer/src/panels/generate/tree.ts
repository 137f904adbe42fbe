/** Where the nodes of a search's tree go: across by depth, down so that branches do not meet. */
export type Node = { parent: number; token: string; logprob: number; score: number; end: string | null; place: number | null };
export type Placed = Node & { index: number; depth: number; row: number; p: number };

/** Nodes up to a depth, each with its depth (from 1), its row, and the probability of the whole text to it. */
export function placed(nodes: Node[], deepest: number): Placed[] {
  const out: (Placed | undefined)[] = [];
  const children = new Map<number, number[]>();
  nodes.forEach((node, i) => {
    const above = node.parent < 0 ? undefined : out[node.parent];
    const depth = (above?.depth ?? 0) + 1;
    out[i] = { ...node, index: i, depth, row: 0, p: Math.exp(node.logprob) * (above?.p ?? 1) };
    if (depth <= deepest) children.set(node.parent, [...(children.get(node.parent) ?? []), i]);
  });
  let next = 0;
  const settle = (i: number): number => {
    const below = (children.get(i) ?? []).sort((a, b) => nodes[b].logprob - nodes[a].logprob);
    const rows = below.map(settle);
    const row = rows.length ? rows[0] : next++;
    if (i >= 0) out[i]!.row = row;
    return row;
  };
  settle(-1);
  return out.filter((node): node is Placed => node !== undefined && node.depth <= deepest);
}
