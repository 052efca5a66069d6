//! Tables: aligned text without frames, heads in capitals.

use std::io::{self, Write as _};

use super::{text::visible, time::Style};

/// Meaning of a cell's content, as colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// It may need somebody.
    Warn,
    /// It is wrong.
    Bad,
}

impl Tone {
    /// The escape sequence that begins it.
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "\x1b[32m",
            Self::Warn => "\x1b[33m",
            Self::Bad => "\x1b[31m",
        }
    }
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    /// Its text. It has no control characters.
    text: String,
    /// Its colour.
    tone: Tone,
}

impl Cell {
    /// A text with a colour.
    pub fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        Self { text: visible(text.as_ref()).into_owned(), tone }
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: visible(&text.to_string()).into_owned(), tone: Tone::Plain }
    }
}

/// A table with aligned columns.
#[derive(Debug)]
pub struct Table {
    /// The first row.
    heads: Vec<&'static str>,
    /// The others.
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Without rows yet.
    pub fn new(heads: impl IntoIterator<Item = &'static str>) -> Self {
        Self { heads: heads.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Prints it.
    pub fn print(&self, style: &Style) -> io::Result<()> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        out.write_all(self.render(style.color).as_bytes())?;
        out.flush()
    }

    /// Its lines.
    pub fn render(&self, color: bool) -> String {
        let mut widths: Vec<_> = self.heads.iter().map(|head| head.len()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        let mut text = String::new();
        let heads: Vec<_> = self.heads.iter().map(Cell::from).collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let mut gap = 0;
            for (cell, width) in row.iter().zip(&widths) {
                // The gap comes before the next text, so that no line ends with blanks.
                if !cell.text.is_empty() {
                    text.extend(std::iter::repeat_n(' ', gap));
                    gap = 0;
                    match cell.tone.code() {
                        code if color && !code.is_empty() => {
                            text.extend([code, &cell.text, "\x1b[0m"]);
                        }
                        _ => text.push_str(&cell.text),
                    }
                }
                gap += width.saturating_sub(cell.text.chars().count()) + 2;
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_without_blanks() {
        let mut table = Table::new(["A", "LONG", "C"]);
        table.row(["first".into(), "\u{e4}".into(), "x".into()]);
        table.row([Cell::toned("b\x1b", Tone::Bad), "".into(), "".into()]);
        assert_eq!(table.render(false), "A        LONG  C\nfirst    \u{e4}     x\nb\\u{1b}\n");
        assert!(table.render(true).ends_with("\x1b[31mb\\u{1b}\x1b[0m\n"));
    }
}
