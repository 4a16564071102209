//! Comma-separated values as RFC 4180 has them: fields with commas, quotes or line breaks are quoted.

/// One line, with its break.
pub fn line<S: AsRef<str>>(fields: impl IntoIterator<Item = S>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|field| quoted(field.as_ref())).collect();
    fields.join(",") + "\n"
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.into() }
}

/// All records, empty lines left out, each with the number of its first line.
///
/// # Errors
/// A quote that does not end, with the line where it began.
pub fn records(text: &str) -> Result<Vec<(usize, Vec<String>)>, String> {
    let mut records = Vec::new();
    let (mut record, mut field) = (Vec::new(), String::new());
    let (mut number, mut began) = (1, 1);
    let mut quote: Option<usize> = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('"', Some(_)) if letters.peek() == Some(&'"') => field.extend(letters.next()),
            ('"', Some(_)) => quote = None,
            ('"', None) if field.is_empty() => quote = Some(number),
            (',', None) => record.push(std::mem::take(&mut field)),
            ('\r', None) if letters.peek() == Some(&'\n') => {}
            ('\n', None) => end(&mut records, &mut record, &mut field, began),
            _ => field.push(letter),
        }
        if letter == '\n' {
            number += 1;
            if quote.is_none() {
                began = number;
            }
        }
    }
    if let Some(line) = quote {
        return Err(format!("line {line}: a quote that does not end"));
    }
    end(&mut records, &mut record, &mut field, began);
    Ok(records)
}

fn end(records: &mut Vec<(usize, Vec<String>)>, record: &mut Vec<String>, field: &mut String, began: usize) {
    if record.is_empty() && field.is_empty() {
        return;
    }
    record.push(std::mem::take(field));
    records.push((began, std::mem::take(record)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let fields = ["plain", "", "a,b", "she said \"no\"", "two\nlines", "\"", "end"];
        let text = line(fields) + "\n" + &line(["second", "record"]);
        let read = records(&text).expect("well-formed");
        assert_eq!(read[0], (1, fields.map(String::from).to_vec()));
        assert_eq!(read[1], (4, vec!["second".to_string(), "record".to_string()]));
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn other_systems_lines_and_open_quotes() {
        let read = records("a,b\r\nc,\r\n").expect("well-formed");
        assert_eq!(read, [(1, vec!["a".into(), "b".into()]), (2, vec!["c".into(), String::new()])]);
        assert_eq!(records("a\nb,\"c\n"), Err("line 2: a quote that does not end".into()));
    }
}
