//! Bars that lie: a row an entry, its name above its bars, so that names of any length fit on a phone.

use anyhow::{Context as _, anyhow};
use plotters::{
    chart::ChartBuilder,
    drawing::IntoDrawingArea as _,
    element::{Circle, PathElement, Rectangle, Text},
    prelude::SVGBackend,
    style::{
        Color as _, IntoFont as _, TextStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

use super::{
    palette::{GRID, INK, MUTED, PAPER, Shade},
    statistics::Summary,
};

/// One bar, in stretches of colour.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Colour and length of each stretch.
    pub stretches: Vec<(Shade, f64)>,
    /// A whisker over what the rounds spread.
    pub spread: Option<Summary>,
    /// A dot a round.
    pub rounds: Vec<f64>,
}

/// The bars of an entry.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name.
    pub label: String,
    /// What the bars say, in figures.
    pub value: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
}

/// How long a bar is for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// As long as the value says.
    Linear,
    /// As long as its logarithm says, from a power of ten on.
    Logarithmic,
}

/// Narrow, so that a phone need not shrink it to where it can't be read.
const WIDTH: u32 = 460;
/// Half of the longest label of an axis, which is centred on its end.
const MARGIN: u32 = 24;
const AXIS: u32 = 46;
const NAME: i32 = 22;
const BAR: i32 = 18;
const GAP: i32 = 12;
/// A name and its value have room for this many characters; longer names are cut, and the table has them in full.
const LINE_CHARACTERS: usize = 56;
/// The backend divides sizes by 1.24.
const LETTERS: f64 = 13.5 * 1.24;
/// Nothing that is measured in logarithms is smaller.
const LEAST: f64 = 0.001;

/// Draws the rows as an SVG image; `unit` is written below the axis.
pub fn draw(title: &str, unit: &str, scale: Scale, rows: &[Row]) -> anyhow::Result<String> {
    let height_of = |row: &Row| NAME + BAR * row.bars.len() as i32 + GAP;
    let height: i32 = rows.iter().map(height_of).sum();
    let (low, high) = scale.ends(rows);
    let at = |value: f64| scale.place(value).clamp(low, high);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height as u32 + AXIS + 2)).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin_left(MARGIN)
            .margin_right(MARGIN)
            .margin_top(2)
            .x_label_area_size(AXIS)
            .build_cartesian_2d(low..high, 0..height)
            .map_err(|error| anyhow!("{error}"))?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(scale.labels(low, high))
            .x_label_formatter(&|place| scale.label(*place))
            .x_desc(unit)
            .bold_line_style(GRID.drawn())
            .light_line_style(GRID.drawn().mix(0.0))
            .axis_style(MUTED.drawn())
            .x_label_style(letters(MUTED, HPos::Center))
            .axis_desc_style(letters(MUTED, HPos::Center))
            .draw()
            .map_err(|error| anyhow!("{error}"))?;
        let plane = chart.plotting_area();
        let mut top = height;
        for row in rows {
            let name = Text::new(cut(&row.label, &row.value), (low, top - 3), letters(INK, HPos::Left));
            plane.draw(&name).map_err(|error| anyhow!("{error}"))?;
            let value = Text::new(row.value.clone(), (high, top - 3), letters(MUTED, HPos::Right));
            plane.draw(&value).map_err(|error| anyhow!("{error}"))?;
            for (number, bar) in row.bars.iter().enumerate() {
                let upper = top - NAME - BAR * number as i32;
                let (lower, middle) = (upper - BAR + 3, upper - (BAR - 3) / 2);
                let mut from = 0.0;
                for (shade, length) in &bar.stretches {
                    let corners = [(at(from), upper), (at(from + length), lower)];
                    let stretch = Rectangle::new(corners, shade.drawn().filled());
                    plane.draw(&stretch).map_err(|error| anyhow!("{error}"))?;
                    from += length;
                }
                if let Some(spread) = bar.spread {
                    let ends = vec![(at(spread.least), middle), (at(spread.most), middle)];
                    let whisker = PathElement::new(ends, INK.drawn());
                    plane.draw(&whisker).map_err(|error| anyhow!("{error}"))?;
                }
                for value in bar.rounds.iter().filter(|value| value.is_finite()) {
                    // A ring sets the dot off from bars that are as dark, or as light, as itself.
                    for (radius, shade) in [(4, PAPER), (3, INK)] {
                        let dot = Circle::new((at(*value), middle), radius, shade.drawn().filled());
                        plane.draw(&dot).map_err(|error| anyhow!("{error}"))?;
                    }
                }
            }
            top -= height_of(row);
        }
        area.present().map_err(|error| anyhow!("{error}"))?;
    }
    inline(&svg, title).context("an image that does not begin as expected")
}

/// As part of a page: there it needs no name space, and the page says how large it is.
fn inline(svg: &str, title: &str) -> Option<String> {
    let (opening, rest) = svg.split_once('>')?;
    let (_, view) = opening.split_once("viewBox=\"")?;
    let (view, _) = view.split_once('"')?;
    let title = super::escape::escape(title);
    Some(format!("<svg viewBox=\"{view}\" role=\"img\" aria-label=\"{title}\">{rest}"))
}

fn letters(shade: Shade, side: HPos) -> TextStyle<'static> {
    let font = ("sans-serif", LETTERS).into_font();
    TextStyle { font, color: shade.drawn().to_backend_color(), pos: Pos::new(side, VPos::Top) }
}

fn cut(label: &str, value: &str) -> String {
    let room = LINE_CHARACTERS.saturating_sub(value.chars().count());
    match label.char_indices().nth(room) {
        Some((end, _)) => format!("{}…", &label[..end]),
        None => label.to_owned(),
    }
}

impl Scale {
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Logarithmic => value.max(LEAST).log10(),
        }
    }

    /// The ends of the axis, so that everything lies between them.
    fn ends(self, rows: &[Row]) -> (f64, f64) {
        let mut values = Vec::new();
        for bar in rows.iter().flat_map(|row| &row.bars) {
            values.push(bar.stretches.iter().map(|(_, length)| length).sum());
            values.extend(bar.spread.iter().flat_map(|spread| [spread.least, spread.most]));
        }
        values.retain(|value: &f64| value.is_finite());
        let most = values.iter().copied().fold(0.0, f64::max);
        match self {
            Self::Linear if most > 0.0 => (0.0, most * 1.04),
            Self::Linear => (0.0, 1.0),
            Self::Logarithmic => {
                let least = values.iter().copied().fold(most, f64::min);
                let low = self.place(least).floor();
                (low, self.place(most).ceil().max(low + 1.0))
            }
        }
    }

    fn labels(self, low: f64, high: f64) -> usize {
        match self {
            Self::Linear => 5,
            Self::Logarithmic => (high - low) as usize + 1,
        }
    }

    fn label(self, place: f64) -> String {
        let value = match self {
            Self::Linear => place,
            Self::Logarithmic => 10_f64.powf(place),
        };
        let digits =
            if value == 0.0 { 0 } else { (1 - value.abs().log10().floor() as i32).clamp(0, 3) as usize };
        let text = format!("{value:.digits$}");
        let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        short.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, value: f64) -> Row {
        let spread = Summary { median: value, least: value / 2.0, most: value * 2.0 };
        let bar = Bar { stretches: vec![(INK, value)], spread: Some(spread), rounds: vec![value, f64::NAN] };
        Row { label: label.to_owned(), value: String::new(), bars: vec![bar] }
    }

    #[test]
    fn a_plot_is_an_image_for_a_page() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let svg = draw("t \"<i>", "ms", scale, &[row("a <b> & c", 0.0), row("d", 70.0)]).unwrap();
            assert!(svg.starts_with("<svg viewBox=\"0 0 460 "), "{svg}");
            assert!(svg.contains("aria-label=\"t &quot;&lt;i&gt;\""), "{svg}");
            assert!(svg.contains("a &lt;b&gt; &amp; c") && !svg.contains("http"), "{svg}");
            assert!(svg.trim_end().ends_with("</svg>"), "{svg}");
        }
        // Nothing at all is drawn, too.
        draw("empty", "ms", Scale::Logarithmic, &[]).unwrap();
    }

    #[test]
    fn the_axis_holds_everything() {
        assert_eq!(Scale::Logarithmic.ends(&[row("a", 0.3), row("b", 70.0)]), (-1.0, 3.0));
        assert_eq!(Scale::Linear.ends(&[row("a", 50.0)]), (0.0, 104.0));
        assert_eq!(Scale::Linear.ends(&[]), (0.0, 1.0));
    }

    #[test]
    fn labels_are_short() {
        assert_eq!(Scale::Linear.label(0.0), "0");
        assert_eq!(Scale::Linear.label(25_000.0), "25000");
        assert_eq!(Scale::Linear.label(2.5), "2.5");
        assert_eq!(Scale::Logarithmic.label(-2.0), "0.01");
        assert_eq!(cut(&"ä".repeat(60), "12 · 34"), format!("{}…", "ä".repeat(LINE_CHARACTERS - 7)));
        assert_eq!(cut("floor", "12"), "floor");
    }
}
