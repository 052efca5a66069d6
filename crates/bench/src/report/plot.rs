//! Horizontal bar plots. A name is above its bars, so that long names fit on a phone.

use anyhow::{Context as _, anyhow};
use plotters::{
    chart::ChartBuilder,
    coord::{
        cartesian::Cartesian2d,
        types::{RangedCoordf64, RangedCoordi32},
    },
    drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea as _},
    element::{Circle, PathElement, Rectangle, Text},
    prelude::{DrawingBackend, SVGBackend},
    style::{
        Color as _, IntoFont as _, TextStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

use super::palette::{GRID, INK, MUTED, PAPER, Shade};
use crate::statistics::Summary;

/// One bar, made of coloured segments.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Colour and length of each segment.
    pub segments: Vec<(Shade, f64)>,
    /// The spread of the rounds, drawn as a whisker.
    pub spread: Option<Summary>,
    /// The rounds, drawn as dots.
    pub rounds: Vec<f64>,
}

/// The bars of one candidate.
#[derive(Debug, Clone)]
pub struct Row {
    /// Name of the candidate.
    pub label: String,
    /// The values of the bars, as text.
    pub value: String,
    /// The bars from top to bottom.
    pub bars: Vec<Bar>,
}

/// The scale of the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Bars are proportional to their values.
    Linear,
    /// Bars are proportional to the logarithms of their values, from a power of ten on.
    Logarithmic,
}

/// Narrow, so that it stays readable on a phone.
const WIDTH: u32 = 460;
/// Half of the longest axis label, which is centred on the end of the axis.
const MARGIN: u32 = 24;
const AXIS_HEIGHT: u32 = 46;
const NAME_HEIGHT: i32 = 22;
const BAR_HEIGHT: i32 = 18;
const GAP: i32 = 12;
/// Maximum characters of a name and its value. Longer names are cut; the table shows them in full.
const LINE_CHARACTERS_MAX: usize = 56;
/// The backend divides font sizes by 1.24.
const FONT_SIZE: f64 = 13.5 * 1.24;
/// The smallest value on a logarithmic scale.
const LOGARITHMIC_MIN: f64 = 0.001;

/// Draws the rows as an SVG image. `unit` is the label of the axis.
pub fn draw(title: &str, unit: &str, scale: Scale, rows: &[Row]) -> anyhow::Result<String> {
    let mut svg = String::new();
    draw_into(&mut svg, unit, scale, rows).map_err(|error| anyhow!("cannot draw {title}: {error}"))?;
    inline(&svg, title).context("the SVG image has no viewBox")
}

type DrawingError<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;
/// The area of the bars: horizontally the values, vertically pixels from the bottom.
type Plane<'a> = DrawingArea<SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordi32>>;

fn draw_into<'a>(
    svg: &'a mut String,
    unit: &str,
    scale: Scale,
    rows: &[Row],
) -> Result<(), DrawingError<'a>> {
    let height: i32 = rows.iter().map(Row::height).sum();
    let (low, high) = scale.ends(rows);
    let area = SVGBackend::with_string(svg, (WIDTH, height as u32 + AXIS_HEIGHT + 2)).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .margin_left(MARGIN)
        .margin_right(MARGIN)
        .margin_top(2)
        .x_label_area_size(AXIS_HEIGHT)
        .build_cartesian_2d(low..high, 0..height)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_labels(scale.labels(low, high))
        .x_label_formatter(&|position| scale.label(*position))
        .x_desc(unit)
        .bold_line_style(GRID.drawn())
        .light_line_style(GRID.drawn().mix(0.0))
        .axis_style(MUTED.drawn())
        .x_label_style(text_style(MUTED, HPos::Center))
        .axis_desc_style(text_style(MUTED, HPos::Center))
        .draw()?;
    let plane = chart.plotting_area();
    let mut top = height;
    for row in rows {
        let name = cut(&row.label, &row.value);
        plane.draw(&Text::new(name, (low, top - 3), text_style(INK, HPos::Left)))?;
        plane.draw(&Text::new(row.value.clone(), (high, top - 3), text_style(MUTED, HPos::Right)))?;
        for (number, bar) in row.bars.iter().enumerate() {
            let upper = top - NAME_HEIGHT - BAR_HEIGHT * number as i32;
            draw_bar(plane, bar, upper, |value| scale.position(value).clamp(low, high))?;
        }
        top -= row.height();
    }
    area.present()
}

/// Draws one bar below `upper`. `at` is the horizontal position of a value.
fn draw_bar<'a>(
    plane: &Plane<'a>,
    bar: &Bar,
    upper: i32,
    at: impl Fn(f64) -> f64,
) -> Result<(), DrawingError<'a>> {
    let (lower, middle) = (upper - BAR_HEIGHT + 3, upper - (BAR_HEIGHT - 3) / 2);
    let mut from = 0.0;
    for (shade, length) in &bar.segments {
        let corners = [(at(from), upper), (at(from + length), lower)];
        plane.draw(&Rectangle::new(corners, shade.drawn().filled()))?;
        from += length;
    }
    if let Some(spread) = bar.spread {
        let ends = vec![(at(spread.min), middle), (at(spread.max), middle)];
        plane.draw(&PathElement::new(ends, INK.drawn()))?;
    }
    for value in bar.rounds.iter().filter(|value| value.is_finite()) {
        // A ring separates the dot from bars of the same brightness.
        for (radius, shade) in [(4, PAPER), (3, INK)] {
            plane.draw(&Circle::new((at(*value), middle), radius, shade.drawn().filled()))?;
        }
    }
    Ok(())
}

impl Row {
    /// Pixels that the row takes.
    fn height(&self) -> i32 {
        NAME_HEIGHT + BAR_HEIGHT * self.bars.len() as i32 + GAP
    }
}

/// Converts an image for use inside a page, where it needs no namespace and no size.
fn inline(svg: &str, title: &str) -> Option<String> {
    let (opening, rest) = svg.split_once('>')?;
    let (_, view) = opening.split_once("viewBox=\"")?;
    let (view, _) = view.split_once('"')?;
    let title = super::escape::escape(title);
    Some(format!("<svg viewBox=\"{view}\" role=\"img\" aria-label=\"{title}\">{rest}"))
}

fn text_style(shade: Shade, side: HPos) -> TextStyle<'static> {
    let font = ("sans-serif", FONT_SIZE).into_font();
    TextStyle { font, color: shade.drawn().to_backend_color(), pos: Pos::new(side, VPos::Top) }
}

fn cut(label: &str, value: &str) -> String {
    let max = LINE_CHARACTERS_MAX.saturating_sub(value.chars().count());
    match label.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &label[..end]),
        None => label.to_owned(),
    }
}

impl Scale {
    fn position(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Logarithmic => value.max(LOGARITHMIC_MIN).log10(),
        }
    }

    /// The ends of the axis, which includes all values.
    fn ends(self, rows: &[Row]) -> (f64, f64) {
        let mut values = Vec::new();
        for bar in rows.iter().flat_map(|row| &row.bars) {
            values.push(bar.segments.iter().map(|(_, length)| length).sum());
            values.extend(bar.spread.iter().flat_map(|spread| [spread.min, spread.max]));
        }
        values.retain(|value: &f64| value.is_finite());
        let most = values.iter().copied().fold(0.0, f64::max);
        match self {
            Self::Linear if most > 0.0 => (0.0, most * 1.04),
            Self::Linear => (0.0, 1.0),
            Self::Logarithmic => {
                let least = values.iter().copied().fold(most, f64::min);
                let low = self.position(least).floor();
                (low, self.position(most).ceil().max(low + 1.0))
            }
        }
    }

    fn labels(self, low: f64, high: f64) -> usize {
        match self {
            Self::Linear => 5,
            Self::Logarithmic => (high - low) as usize + 1,
        }
    }

    fn label(self, position: f64) -> String {
        let value = match self {
            Self::Linear => position,
            Self::Logarithmic => 10_f64.powf(position),
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
        let spread = Summary { median: value, min: value / 2.0, max: value * 2.0 };
        let bar = Bar { segments: vec![(INK, value)], spread: Some(spread), rounds: vec![value, f64::NAN] };
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
        // A plot without rows.
        draw("empty", "ms", Scale::Logarithmic, &[]).unwrap();
    }

    #[test]
    fn the_axis_includes_all_values() {
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
        assert_eq!(cut(&"ä".repeat(60), "12 · 34"), format!("{}…", "ä".repeat(LINE_CHARACTERS_MAX - 7)));
        assert_eq!(cut("forebay", "12"), "forebay");
    }
}
