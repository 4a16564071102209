//! Colours and letters, light and dark as the reader's system has it.

/// Both have these. A macro, because `concat!` takes nothing else.
macro_rules! figure {
    () => {
        concat!(
            ".figure{display:block;width:100%;height:auto;font-family:system-ui,sans-serif}\n",
            ".title{font-size:15px;font-weight:600;fill:var(--ink)}.key{font-size:12px;fill:var(--ink)}\n",
            ".tick{font-size:12px;fill:var(--soft)}.across{text-anchor:middle}.up{text-anchor:end}\n",
            ".axis{stroke:var(--soft);stroke-width:1}.grid{stroke:var(--rule);stroke-width:1}\n",
            ".line{fill:none;stroke-width:2;stroke-linejoin:round}\n",
            ".line.ours{stroke:var(--ours)}.line.theirs{stroke:var(--theirs)}\n",
            ".line.bound{stroke:var(--bound);stroke-dasharray:6 4;stroke-width:1.5}\n",
            ".mark.ours{fill:var(--ours)}.mark.theirs{fill:var(--theirs)}.mark.bound{fill:var(--bound)}\n",
            ".bar{fill:var(--ours)}.bar.slower{fill:var(--theirs)}.name{font-size:12px;fill:var(--ink)}\n"
        )
    };
}

/// Of a figure in a file of its own.
pub const FIGURE_ALONE: &str = concat!(
    "svg{--paper:#ffffff;--ink:#1f2328;--soft:#59636e;--rule:#d9dee3;--ours:#0a66c2;--theirs:#c2410c;--bound:#6e7781}",
    "@media (prefers-color-scheme:dark){svg{--paper:#0d1117;--ink:#e6edf3;--soft:#9198a1;--rule:#30363d;",
    "--ours:#58a6ff;--theirs:#f0883e;--bound:#8b949e}}",
    ".paper{fill:var(--paper)}",
    figure!()
);

/// Of a page.
pub const PAGE: &str = concat!(
    ":root{color-scheme:light dark;--paper:#ffffff;--ink:#1f2328;--soft:#59636e;--rule:#d9dee3;--band:#f6f8fa;",
    "--ours:#0a66c2;--theirs:#c2410c;--bound:#6e7781}\n",
    "@media (prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--soft:#9198a1;--rule:#30363d;--band:#161b22;",
    "--ours:#58a6ff;--theirs:#f0883e;--bound:#8b949e}}\n",
    "body{margin:0 auto;padding:1.5rem;max-width:84rem;background:var(--paper);color:var(--ink);",
    "font:16px/1.5 system-ui,sans-serif}\n",
    "h1{font-size:1.6rem;margin:0 0 .25rem}h2{font-size:1.2rem;margin:2.5rem 0 .5rem}\n",
    "p{margin:.25rem 0 .75rem;max-width:60rem}.soft{color:var(--soft)}\n",
    ".main{max-width:52rem}.bars{max-width:64rem}\n",
    ".figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(30rem,100%),1fr));gap:1rem}\n",
    "summary{cursor:pointer;color:var(--soft);margin:.75rem 0}\n",
    ".table{overflow-x:auto;border:1px solid var(--rule);border-radius:6px}\n",
    "table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums;width:100%}\n",
    "th,td{padding:.3rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--rule)}\n",
    "th{background:var(--band);font-weight:600}th.word,td.word{text-align:left}tr:last-child td{border-bottom:0}\n",
    figure!()
);
