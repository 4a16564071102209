//! `lanky report`: a page that needs nothing else and says what the results say.

mod common;

use std::path::Path;

use common::{Bench, HEADER, text};
use roxmltree::{Document, Node, ParsingOptions};

/// Results with names that would break a page that does not escape them; every second case has no opponent.
fn results_of_a_test() -> String {
    let row = |(index, n): (usize, u64)| {
        let (bytes, flops) = (8 * (100 * 50 + 50 * n + 100 * n), 2 * 100 * 50 * n);
        let ns = 1000.0 + 37.5 * n as f64;
        let opponent = if index % 2 == 0 { format!("o<&>,{:.1},{:.4}", 2.0 * ns, 2.0) } else { ",,".into() };
        format!(
            "tsm2r,f64,ccc,n,n,0,100,{n},50,100,50,100,1,\"</title><b> & \"\"GPU\"\"\",v'{n},model,,30,{ns:.1},{:.1},{:.1},{:.1},\
             {bytes},{flops},{:.3},800.0,{:.4},{opponent},1,c1,580,2026-11-21\n",
            ns - 1.0,
            ns + 1.0,
            ns - 2.0,
            bytes as f64 / ns,
            800.0 / ns
        )
    };
    [1, 2, 4, 8, 16].into_iter().enumerate().map(row).fold(format!("{HEADER}\n"), |csv, row| csv + &row)
}

fn page(bench: &Bench, csv: &str) -> String {
    bench.put("r.csv", csv);
    let output = bench.run(&["report", "r.csv", "-o", "page.html"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&bench.get("page.html"))
}

fn parsed(html: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(html, options).expect("well-formed")
}

fn cells<'d>(row: Node<'d, 'd>, tag: &str) -> Vec<&'d str> {
    row.children().filter(|node| node.has_tag_name(tag)).map(|cell| cell.text().unwrap_or("")).collect()
}

#[test]
fn the_numbers_are_those_of_the_results() {
    let bench = Bench::new();
    let csv = results_of_a_test();
    let html = page(&bench, &csv);
    let document = parsed(&html);
    let table = document.descendants().find(|node| node.has_tag_name("table")).expect("a table");
    let rows: Vec<Node<'_, '_>> = table.descendants().filter(|node| node.has_tag_name("tr")).collect();
    let header = cells(rows[0], "th");
    assert_eq!(rows.len(), 1 + 5);
    let names: Vec<&str> = HEADER.split(',').collect();
    for (row, line) in rows[1..].iter().zip(csv.lines().skip(1)) {
        // The one field with commas or quotes is the same everywhere, and so not in the table.
        let line = line.replace("\"</title><b> & \"\"GPU\"\"\"", "device");
        let fields: Vec<&str> = line.split(',').collect();
        for (name, cell) in header.iter().zip(cells(*row, "td")) {
            let column = names.iter().position(|known| known == name).expect("a column of the schema");
            assert_eq!(cell, fields[column], "{name}");
        }
    }
    for name in ["n", "ns_median", "gbs", "fraction", "opponent", "opponent_ns", "ratio"] {
        assert!(header.contains(&name), "{name} in {header:?}");
    }
    let constant = "The same in all rows: family tsm2r, dtype f64, layout ccc,";
    assert!(document.descendants().any(|node| node.text().is_some_and(|words| words.starts_with(constant))));
}

#[test]
fn the_figures_have_every_case() {
    let bench = Bench::new();
    let html = page(&bench, &results_of_a_test());
    let document = parsed(&html);
    let titles: Vec<&str> =
        document.descendants().filter(|node| node.has_tag_name("title")).filter_map(|node| node.text()).collect();
    for n in [1, 2, 4, 8, 16] {
        assert!(titles.iter().any(|title| title.starts_with(&format!("lanky, n = {n}: "))), "{titles:?}");
        assert!(titles.iter().any(|title| title.starts_with(&format!("tsm2r f64 100 x {n} x 50: "))), "{titles:?}");
    }
    let bars = document.descendants().filter(|node| node.attribute("class") == Some("bar")).count();
    assert_eq!(bars, 3, "no bar without an opponent");
    assert!(html.contains("2.00 x as fast as o&lt;&amp;&gt;"));
    // n = 8: 49 600 bytes in 1300 ns, of 800.
    assert!(titles.contains(&"lanky, n = 8: 38.2 GB/s, 61.5% of the bound"), "{titles:?}");
}

/// A file of ceilings beside the results, or rows of them within, are the roofs and are stated.
#[test]
fn ceilings_beside_the_results_are_drawn_and_stated() {
    let bench = Bench::new();
    let device = "\"</title><b> & \"\"GPU\"\"\"";
    let ceiling = |what: &str, dtype: &str, bytes: u32, flops: u32| {
        let gbs = if bytes > 0 { format!("{:.3}", f64::from(bytes) / 1000.0) } else { String::new() };
        format!(
            "ceiling,{dtype},ccc,n,n,0,10,1,1,10,1,10,1,{device},{what},,,4,1000.0,990.0,1010.0,980.0,{bytes},{flops},{gbs},,,,,,1,c1,\
             580,2026-11-21\n"
        )
    };
    let rows = [ceiling("read", "f64", 98_000, 0), ceiling("fma", "f64", 0, 196_000), ceiling("fma", "f32", 0, 980)];
    let alone = page(&bench, &results_of_a_test());
    assert!(!alone.contains("Ceilings") && alone.contains("what the memory allows"));
    bench.put("r-ceilings.csv", format!("{HEADER}\n{}", rows.concat()));
    let beside = page(&bench, &results_of_a_test());
    let words = "Ceilings, measured 2026-11-21: read 100 GB/s, f64 fma 200.0 GFLOP/s, f32 fma 1.0 GFLOP/s.";
    assert!(beside.contains(words), "{beside}");
    assert!(beside.contains("the device&#39;s ceilings") && beside.contains(">fma</text>"));
    parsed(&beside);
    std::fs::remove_file(bench.path("r-ceilings.csv")).expect("it is there");
    let within = page(&bench, &(results_of_a_test() + &rows.concat()));
    assert_eq!(within, beside);
    // The folder's, of any results in it.
    bench.put("ceilings.csv", format!("{HEADER}\n{}", rows.concat()));
    assert_eq!(page(&bench, &results_of_a_test()), beside);
    bench.put("ceilings.csv", format!("{HEADER}\n{}", rows.concat().replace(",read,", ",reed,")));
    let error = bench.fail(2, &["report", "r.csv", "-o", "p.html"]);
    assert!(error.contains("ceilings.csv: line 2: variant is 'reed'"), "{error}");
}

#[test]
fn the_page_needs_nothing_else() {
    let bench = Bench::new();
    let html = page(&bench, &results_of_a_test());
    for word in ["http", "<script", "src=", "href=", "url(", "@import", "<link"] {
        assert!(!html.contains(word), "{word}");
    }
    assert!(html.contains("prefers-color-scheme:dark"));
    assert!(!html.contains("</title><b>"), "names are escaped");
}

#[test]
fn the_figure_alone_is_a_file() {
    let bench = Bench::new();
    bench.put("r.csv", results_of_a_test());
    let output = bench.run(&["report", "r.csv", "--svg", "figure.svg"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let svg = text(&bench.get("figure.svg"));
    let document = parsed(&svg);
    assert!(document.root_element().has_tag_name(("http://www.w3.org/2000/svg", "svg")));
    assert!(svg.contains("prefers-color-scheme:dark") && svg.matches("mark ours").count() == 5);
    assert_eq!(bench.names(), ["figure.svg", "r.csv"]);
}

/// A page with the tables of results, and their figure.
fn renewed(page: &str, results: &[&str]) -> (String, String) {
    let bench = Bench::new();
    bench.put("page.md", page);
    let args = [&["report"][..], results, &["--into", "page.md", "--svg", "figure.svg"]].concat();
    let output = bench.run(&args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    (text(&bench.get("page.md")), text(&bench.get("figure.svg")))
}

/// Numbers in prose cannot drift: the pages' tables and figures are what the command makes of the committed results.
#[test]
fn pages_say_what_the_results_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
    for (pattern, names, page, figure) in [
        ("tsm2r*.csv", &["tsm2r.csv", "tsm2r-variants.csv"][..], "README.md", Some("docs/tsm2r-h200.svg")),
        ("{gemm,gemm-ladder}.csv", &["gemm.csv", "gemm-ladder.csv"], "docs/squares.md", Some("docs/squares-h200.svg")),
        (
            "{tsmm,tsm2l,tsmttsm,gram,gemv,batched}.csv",
            &["tsmm.csv", "tsm2l.csv", "tsmttsm.csv", "gram.csv", "gemv.csv", "batched.csv"],
            "docs/families.md",
            None,
        ),
    ] {
        let paths: Vec<_> = names.iter().map(|name| root.join("benches/results/h200").join(name)).collect();
        let found: Vec<&str> = paths.iter().filter_map(|path| path.to_str()).collect();
        let figures = figure.map(|figure| format!(" --svg {figure}")).unwrap_or_default();
        let command = format!("lanky report benches/results/h200/{pattern} --into {page}{figures}");
        let text = read(page);
        assert!(text.contains(&command), "{page} does not say how it is renewed");
        let (tables, drawn) = renewed(&text, &found);
        assert!(tables == text, "{page} is not what the results say: {command}");
        assert!(figure.is_none_or(|figure| drawn == read(figure)), "{figure:?} is not what the results say: {command}");
        // Other results, another page.
        let other = Bench::new();
        other.put("r.csv", results_of_a_test());
        let (tables, _) = renewed(&text, &[other.path("r.csv").to_str().expect("a path")]);
        assert!(tables != text && tables.contains("| f64, % of the bound | 77.1 |"), "{tables}");
    }
}

/// What benches/README.md says of the committed files is what is in them.
#[test]
fn the_committed_results_are_what_is_said_of_them() {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches");
    let read = |path: &str| std::fs::read_to_string(benches.join(path)).expect(path);
    let names: Vec<&str> = HEADER.split(',').collect();
    let column = |name: &str| names.iter().position(|known| *known == name).expect("a column");
    let rows = |text: &str| -> Vec<Vec<String>> {
        text.lines().skip(1).map(|line| line.split(',').map(String::from).collect()).collect()
    };
    let (cases, forced) = (rows(&read("results/h200/tsm2r.csv")), rows(&read("results/h200/tsm2r-variants.csv")));
    let variant = column("variant");
    let is_gone = |row: &&Vec<String>| model::VARIANTS.iter().all(|known| known.entry != row[variant]);
    let gone = |rows: &[Vec<String>]| rows.iter().filter(is_gone).count();
    let count =
        |rows: &[Vec<String>], name: &str, value: &str| rows.iter().filter(|row| row[column(name)] == value).count();
    let least =
        cases.iter().filter_map(|row| row[column("ns_median")].parse::<f64>().ok()).fold(f64::INFINITY, f64::min);
    let said = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        format!("so that tsm2r.csv has {} rows", cases.len()),
        format!("The shortest takes {:.0} us", least / 1e3),
        format!("has {} rows of forced entries, {} of them timed once", forced.len(), count(&forced, "samples", "1")),
        format!("So {} of the {} rows of the cases, and {} of the forced", gone(&cases), cases.len(), gone(&forced)),
        format!("the plans of the {} rows with β = 1", count(&cases, "beta", "1")),
        format!("built from commit {}", cases[0][column("commit")]),
        format!("with driver {} on {}", cases[0][column("driver")], cases[0][column("date")]),
    ] {
        assert!(said.contains(&words), "benches/README.md does not say '{words}'");
    }
    // Cases are of one run, and so are forced entries by rows; by columns they are of two runs before, whose entries of large tiles were timed anew.
    let large = [
        "stsm2r_staged_16x8_n32_k16_s2_t128",
        "stsm2r_staged_8x12_n24_k16_s2_t128",
        "stsm2r_staged_8x12_n48_k16_s3_t128",
    ];
    assert!(large.iter().all(|entry| said.contains(&format!("`{entry}`"))));
    let main = ["commit", "driver", "date"].map(|name| cases[0][column(name)].as_str());
    let is_before = |row: &&Vec<String>| !row[column("layout")].starts_with('r');
    let is_anew = |row: &&Vec<String>| is_before(row) && large.contains(&row[variant].as_str());
    for row in &forced {
        let run = ["commit", "driver", "date"].map(|name| row[column(name)].as_str());
        let commit = match (is_before(&row), is_anew(&row)) {
            (true, true) => "fe76582",
            (true, false) => "b5db2ca-dirty",
            (false, _) => main[0],
        };
        assert_eq!(run, [commit, main[1], main[2]], "{}", row[variant]);
    }
    assert!(cases.iter().all(|row| ["commit", "driver", "date"].map(|name| row[column(name)].as_str()) == main));
    let [before, anew] = [forced.iter().filter(is_before).count(), forced.iter().filter(is_anew).count()];
    assert!(said.contains(&format!("{before} of them, by columns, are of")), "{before}");
    assert!(said.contains(&format!("{anew} of those, of")), "{anew}");
    let by_cublas = |row: &Vec<String>| row[column("opponent")].starts_with("cublas") && !row[variant].contains('@');
    assert!(cases.iter().all(by_cublas) && count(&cases, "chooser", "model") == cases.len());
    for name in cases.iter().chain(&forced).filter(is_gone).map(|row| &row[variant]) {
        assert!(said.contains(&format!("`{name}`")), "{name} is gone, and benches/README.md does not say so");
    }
}

/// What README.md's table says of f64 beside cuBLAS, family by family, is in the files.
#[test]
fn what_is_said_beside_cublas_is_in_the_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
    let names: Vec<&str> = HEADER.split(',').collect();
    let column = |name: &str| names.iter().position(|known| *known == name).expect("a column");
    // m, n, ns, cuBLAS's time by ours, and 1 of entries for lines that are not aligned.
    let rows = |files: &[&str]| -> Vec<[f64; 5]> {
        let texts: String = files.iter().map(|name| read(&format!("benches/results/h200/{name}.csv"))).collect();
        let rows = texts.lines().map(|line| line.split(',').collect::<Vec<&str>>());
        // Alone, or of the files that end so in graphs.
        let is_timed = |variant: &str| !variant.contains('@') || variant.contains("@graph");
        let rows = rows.filter(|row| row[column("dtype")] == "f64" && is_timed(row[column("variant")]));
        let numbers = |row: &[&str]| ["m", "n", "ns_median", "ratio"].map(|name| row[column(name)].parse().ok());
        let by_elements = |row: &[&str]| f64::from(row[column("variant")].contains("_elements_"));
        rows.filter_map(|row| match numbers(&row) {
            [Some(m), Some(n), Some(ns), Some(ratio)] => Some([m, n, ns, ratio, by_elements(&row)]),
            _ => None,
        })
        .collect()
    };
    let of = |rows: &[[f64; 5]], is: &dyn Fn(f64, f64, f64) -> bool| -> Vec<f64> {
        let found: Vec<f64> = rows.iter().filter(|[m, n, ns, ..]| is(*m, *n, *ns)).map(|row| row[3]).collect();
        assert!(found.len() > 3, "{} rows of a kind", found.len());
        found
    };
    let slower = |ratios: &[f64]| ratios.iter().filter(|ratio| **ratio < 1.0).count();
    let least = |ratios: &[f64]| ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |ratios: &[f64]| ratios.iter().copied().fold(0.0, f64::max);
    let all = |_: f64, _: f64, _: f64| true;
    let skinny = rows(&["tsm2r"]);
    let (few, many) = (of(&skinny, &|m, n, _| m.min(n) <= 48.0), of(&skinny, &|m, n, _| m.min(n) > 48.0));
    assert!(skinny.iter().all(|[m, n, ..]| m.min(*n) <= 48.0 || m.min(*n) == 64.0) && 2 * slower(&few) < few.len());
    let both = rows(&["tsmttsm"]);
    let long = |wide: bool| of(&both, &|m, n, ns| ns >= 5e4 && (m.max(n) > 48.0) == wide);
    assert_eq!(slower(&long(false)), 0, "faster up to 48 columns");
    let short = of(&rows(&["tsmttsm-graphs"]), &|m, n, ns| ns < 5e4 && m.min(n) == 64.0);
    let (odd, whole): (Vec<[f64; 5]>, Vec<[f64; 5]>) = rows(&["gemm"]).into_iter().partition(|row| row[4] == 1.0);
    let [whole, odd] = [whole, odd].map(|rows| of(&rows, &|m, n, _| m.min(n) >= 1024.0));
    let (tall, gram) = (of(&rows(&["tsmm", "tsm2l"]), &all), of(&rows(&["gram"]), &all));
    assert_eq!(slower(&gram), 0, "of Gram matrices");
    let said = read("README.md");
    for words in [
        format!("mostly faster up to 48 columns, {:.2} of its speed at the least; ", least(&few)),
        format!("; {:.2} to {:.2} at 64 |", least(&many), most(&many)),
        format!("faster but in {} of {} cases, most where", slower(&tall), tall.len()),
        format!("; by columns {:.2} at the least |", least(&of(&rows(&["tall"]), &all))),
        format!(
            "by rows, from 50 us on faster up to 48 columns, {:.2} at the least beyond; 64 x 64",
            least(&long(true))
        ),
        format!("64 x 64 of few rows, in graphs, slower in {} of {} cases; by", slower(&short), short.len()),
        format!("cases; by columns {:.2} at the least |", least(&of(&rows(&["columns"]), &all))),
        format!("faster in all {} cases |", gram.len()),
        format!("as fast, {:.2} at the least |", least(&of(&rows(&["gemv"]), &all))),
        format!("{:.2} to {:.2} of its speed from 1024 on, {:.2} to", least(&whole), most(&whole), least(&odd)),
        format!(" to {:.2} where lines are not aligned to 16 bytes |", most(&odd)),
    ] {
        assert!(said.contains(&words), "README.md does not say '{words}'");
    }
}

/// Columns of the table of A B by rows.
const WIDTHS: [u64; 13] = [1, 2, 4, 5, 8, 13, 16, 24, 31, 32, 33, 48, 64];

/// The table of A B by rows in benches/README.md is tsmm.csv, and of every file of results a page can be made.
#[test]
fn the_other_families_first_figures_are_those_of_the_files() {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches");
    let said = std::fs::read_to_string(benches.join("README.md")).expect("README.md");
    let file = |name: &str| std::fs::read_to_string(benches.join("results/h200").join(name)).expect(name);
    let names: Vec<&str> = HEADER.split(',').collect();
    let column = |name: &str| names.iter().position(|known| *known == name).expect("a column");
    // Of square B and the most rows, as many as make 4 GB of A; none where cuBLAS was left out, since its runs took too long.
    let numbers = |dtype: &str, name: &str, times: f64| -> Vec<Option<f64>> {
        let text = file("tsmm.csv");
        let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|row| row.split(',').collect()).collect();
        let is = |row: &&Vec<&str>, width: u64| {
            let whole = |name: &str| row[column(name)].parse::<u64>().expect("a whole number");
            row[column("dtype")] == dtype && (whole("n"), whole("k")) == (width, width) && whole("m") * width > 1 << 27
        };
        let row = |width: u64| rows.iter().find(|row| is(row, width)).unwrap_or_else(|| panic!("{dtype} {width}"));
        let number = |text: &str| text.parse::<f64>().expect("a number") * times;
        let of_row = |width: u64| Some(row(width)[column(name)]).filter(|text| !text.is_empty()).map(number);
        WIDTHS.map(of_row).into()
    };
    let of = |dtype: &str, name: &str, digits: usize, times: f64| {
        let cell = |number: Option<f64>| number.map_or_else(|| " – |".into(), |number| format!(" {number:.digits$} |"));
        numbers(dtype, name, times).into_iter().map(cell).collect::<String>()
    };
    let mut table = vec![format!("| C = A B, by rows |{}", of("f64", "n", 0, 1.0))];
    for dtype in ["f64", "c128"] {
        table.push(format!("| {dtype}, % of the bound |{}", of(dtype, "fraction", 0, 100.0)));
        table.push(format!("| {dtype}, times as fast as cuBLAS |{}", of(dtype, "ratio", 2, 1.0)));
    }
    for row in table {
        assert!(said.lines().any(|line| line == row), "benches/README.md does not say '{row}'");
    }
    let bench = Bench::new();
    for name in ["tsmm.csv", "tsm2l.csv", "tsmttsm.csv", "gram.csv", "complex.csv"] {
        parsed(&page(&bench, &file(name)));
    }
}

#[test]
fn what_is_no_result_is_refused_in_a_line() {
    let bench = Bench::new();
    bench.put("empty.csv", format!("{HEADER}\n"));
    parsed(&page(&bench, &format!("{HEADER}\n")));
    bench.put("good.csv", results_of_a_test());
    bench.put("text.csv", "not,results\n1,2\n");
    bench.put("broken.csv", results_of_a_test().replace(",100,8,50,", ",100,8,fifty,"));
    for (args, reason) in [
        (&["report", "empty.csv", "--svg", "f.svg"][..], "no figure"),
        (&["report", "text.csv", "-o", "p.html"], "a column is 'not', not 'family'"),
        (&["report", "broken.csv", "-o", "p.html"], "line 5: k is 'fifty', not a number as it must be"),
        (&["report", "nowhere.csv", "-o", "p.html"], "no such file"),
        (&["report", "empty.csv"], ""),
        (&["report", "empty.csv", "--into", "text.csv"], "no tables"),
        (&["report", "good.csv", "--into", "text.csv"], "must be there once each"),
        (&["report", "empty.csv", "-o", "no/folder/p.html"], "no such file"),
    ] {
        assert!(bench.fail(2, args).contains(reason), "{args:?}");
    }
}
