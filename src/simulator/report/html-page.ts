import type { SimulationReport } from "../simulate.ts";

export function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

export interface PageOptions {
  /** Command that reproduces this report. @default the command for its seed */
  readonly replay?: string;
}

/**
 * Returns an HTML page with the drawing `svg`, key numbers, a legend and the violations. The page
 * loads no other files.
 */
export function pageOf(report: SimulationReport, svg: string, options: PageOptions): string {
  const { scenario, violations, breaks, hash } = report;
  const { replay = `npm run sim -- --seed ${scenario.seed}` } = options;
  const found = violations.map(({ rule, atMs, text }) =>
    row([`${atMs.toFixed(1)} ms`, rule, text]),
  );
  const broken = breaks.map(({ promise, why, fromMs, untilMs }) =>
    row([`${fromMs.toFixed(1)}–${untilMs.toFixed(1)} ms`, promise, why]),
  );
  const leases = scenario.work.resources.map(
    (name) => `<span><i class="${name}"></i>lease on ${name}</span>`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Holdfast simulator, seed ${scenario.seed}</title>
<style>${style}</style>
<main>
<h1>Seed ${scenario.seed} <span class="${violations.length === 0 ? "good" : "bad"}">${
    violations.length === 0 ? "no violation" : `${violations.length} violations`
  }</span></h1>
<p class="facts">${factsOf(report).map(escapeHtml).join(" · ")}</p>
<div class="legend">
${leases.join("")}
<span><i class="fault"></i>fault</span>
<span><i class="loss"></i>data lost</span><span><i class="lost"></i>lease lost</span>
<span><i class="doubtful"></i>doubtful</span><span><i class="admitted"></i>node admitted</span>
<span><i class="other"></i>fence raised, phase of the run</span>
<span><i class="violation"></i>violation</span>
</div>
<div class="plot">${svg}</div>
${table("Violations", found)}${table("Broken assumptions", broken)}
<p class="foot">Replay: <code>${escapeHtml(replay)}</code>,
trace <code>${hash}</code></p>
</main>
</html>
`;
}

function factsOf(report: SimulationReport): string[] {
  const { scenario, history, eventCount, unfenced, fenced } = report;
  const { nodes, clients, store, work, faults } = scenario;
  return [
    `${nodes.length} nodes`,
    `${clients.length} clients`,
    store.fencing ? `fences, admission ${store.admission}` : "no fences",
    `ttl ${work.ttlMs} ms`,
    `${faults.length} faults`,
    `${history.tenures.length} tenures`,
    `${eventCount} events`,
    `lost updates: ${unfenced.lost} of ${unfenced.accepted} unfenced, ` +
      `${fenced.lost} of ${fenced.accepted} fenced`,
  ];
}

function row(cells: readonly string[]): string {
  return `<tr>${cells.map((cell) => `<td>${escapeHtml(cell)}</td>`).join("")}</tr>`;
}

function table(title: string, rows: readonly string[]): string {
  if (rows.length === 0) return "";
  return `<h2>${title}</h2><table>${rows.join("")}</table>`;
}

const style = `
:root{color-scheme:light dark;--bg:#fbfaf8;--ink:#22262b;--dim:#6b7280;--line:#e3e1dc;--a:#2f6fde;
--b:#14906b;--c:#9a5bd0;--fault:#c9923a;--loss:#b3452f;--lost:#d0344a;--doubt:#e0a020;--ok:#14906b}
@media (prefers-color-scheme:dark){:root{--bg:#14171b;--ink:#e6e7ea;--dim:#98a0ab;--line:#2a2f36;
--a:#6fa0ff;--b:#43c59a;--c:#c18bf0;--fault:#d6a855;--loss:#e2745c;--lost:#ff6b81;--doubt:#f0c050;
--ok:#43c59a}}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1360px;margin:0 auto;padding:28px 20px}
h1{font-size:24px;margin:0 0 4px}h1 span{font-size:14px;font-weight:600;padding:3px 10px;
border-radius:12px;vertical-align:middle;margin-left:8px;color:var(--bg)}
.good{background:var(--ok)}.bad{background:var(--lost)}h2{font-size:16px;margin:22px 0 6px}
.facts,.foot{color:var(--dim);margin:0 0 14px}.legend{display:flex;flex-wrap:wrap;gap:6px 18px;
color:var(--dim);font-size:13px;margin-bottom:10px}.legend i{display:inline-block;width:12px;
height:12px;border-radius:3px;margin-right:6px;vertical-align:-1px}
.plot{overflow-x:auto;border:1px solid var(--line);border-radius:10px;padding:8px 0;
margin-bottom:14px}
svg{display:block;width:100%;min-width:900px}svg text{font:11px system-ui,sans-serif}
.name{fill:var(--ink);text-anchor:end}.tick{fill:var(--dim);text-anchor:middle}
.lane,.grid{stroke:var(--line)}.phase{stroke:var(--dim);stroke-dasharray:4 4}
.lease.a{fill:var(--a)}.lease.b{fill:var(--b)}.lease.c{fill:var(--c)}
.legend .a{background:var(--a)}.legend .b{background:var(--b)}.legend .c{background:var(--c)}
.fault{fill:var(--fault);opacity:.75}.legend .fault{background:var(--fault)}
.fault.crash,.fault.flush,.fault.evict,.fault.evict-record{fill:var(--loss)}
.legend .loss{background:var(--loss)}
.mark{fill:var(--dim)}.mark.lost,.mark.violation{fill:var(--lost)}.mark.doubtful{fill:var(--doubt)}
.mark.admitted{fill:var(--ok)}.mark.violation{stroke:var(--ink);stroke-width:1.5}
.legend .lost,.legend .violation{background:var(--lost);border-radius:50%}
.legend .violation{outline:2px solid var(--ink)}
.legend .doubtful{background:var(--doubt);border-radius:50%}
.legend .other{background:var(--dim);border-radius:50%}
.legend .admitted{background:var(--ok);border-radius:50%}
table{border-collapse:collapse;font-size:13px}
td{border-top:1px solid var(--line);padding:5px 14px 5px 0;
vertical-align:top}code{font-size:13px}
`;
