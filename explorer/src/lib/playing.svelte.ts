/** A number that walks by itself while it plays: every `pace` milliseconds one step on, from the last to the first. */
export function player(pace: () => number, step: () => void): { on: boolean } {
  const state = $state({ on: false });
  $effect(() => {
    if (!state.on) return;
    let frame = 0;
    let before = performance.now();
    const tick = (now: number) => {
      if (now - before >= pace()) {
        before = now;
        step();
      }
      frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
    return () => cancelAnimationFrame(frame);
  });
  return state;
}
