//! JSON with an element a line. All else stays as it was written, numbers too.

use serde::de::IgnoredAny;

/// A longer text is not laid out: deep nesting takes much space.
const BYTES_MAX: usize = 512 << 10;
/// The indentation of a level.
const INDENT: &str = "  ";

/// A text of JSON with an element a line. `None`: it is not JSON, or would be too long.
pub(crate) fn pretty(text: &str) -> Option<String> {
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut out = String::with_capacity(text.len() * 2);
    let mut level = 0_usize;
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        if out.len() > BYTES_MAX {
            return None;
        }
        match next {
            '"' => {
                out.push(next);
                copy_string(&mut rest, &mut out);
            }
            '{' | '[' => {
                out.push(next);
                while rest.next_if(is_blank).is_some() {}
                match rest.next_if(|end| matches!(end, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        level += 1;
                        begin_line(&mut out, level);
                    }
                }
            }
            '}' | ']' => {
                level = level.saturating_sub(1);
                begin_line(&mut out, level);
                out.push(next);
            }
            ',' => {
                out.push(next);
                begin_line(&mut out, level);
            }
            ':' => out.push_str(": "),
            blank if is_blank(&blank) => {}
            other => out.push(other),
        }
    }
    Some(out)
}

/// The rest of a string, with its end.
fn copy_string(rest: &mut impl Iterator<Item = char>, out: &mut String) {
    let mut is_escaped = false;
    for next in rest.by_ref() {
        out.push(next);
        match next {
            '"' if !is_escaped => return,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
}

fn begin_line(out: &mut String, level: usize) {
    out.push('\n');
    out.push_str(&INDENT.repeat(level));
}

fn is_blank(it: &char) -> bool {
    matches!(it, ' ' | '\t' | '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_stay_as_they_were_written() {
        let written = r#" {"id": 9007199254740993, "n":1.10e+2,"a":[ ] ,"t":"a, {b}: \"c\\",
            "o":{"x":[1,null]}} "#;
        let expected = [
            "{",
            "  \"id\": 9007199254740993,",
            "  \"n\": 1.10e+2,",
            "  \"a\": [],",
            r#"  "t": "a, {b}: \"c\\","#,
            "  \"o\": {",
            "    \"x\": [",
            "      1,",
            "      null",
            "    ]",
            "  }",
            "}",
        ];
        assert_eq!(pretty(written).unwrap(), expected.join("\n"));
        assert_eq!(pretty(" 1.50 ").unwrap(), "1.50");
        assert_eq!(pretty("{ }").unwrap(), "{}");
    }

    #[test]
    fn what_is_no_json_is_left_alone() {
        for text in ["", "hello", "{\"a\":", "{} {}", "[1,]", "'a'"] {
            assert_eq!(pretty(text), None, "{text}");
        }
    }

    #[test]
    fn deep_nesting_does_not_fill_the_page() {
        let depth = 100;
        let many = format!("{}{}1{}", "[".repeat(depth), "1,".repeat(32 << 10), "]".repeat(depth));
        assert_eq!(pretty(&many), None);
    }
}
