//! Lines of figures over time, as SVG.

use maud::{Markup, html};

use super::{
    live::Live,
    texts::{count, rate},
};

/// The width of a plot, in units of its own.
const WIDTH: f64 = 600.0;

/// A line without axes, for a figure. The points go from the first to the last one over the whole width.
pub(crate) fn spark(live: &mut Live, id: &str, points: &[f64]) -> Markup {
    let top = highest(&[points]);
    let line = live.line(id, "line", scaled(points, 0.0, 30.0, top));
    html! {
        svg.spark viewBox="0 0 600 32" preserveAspectRatio="none" aria-hidden="true" { (line) }
    }
}

/// Points of the line of a row.
const ROW_POINTS: usize = 30;
/// The height of such a line.
const ROW_HEIGHT: f64 = 24.0;

/// A line in a row of a list, of counts of the last steps. A list has many of them, so each is as short as it
/// can be: a point is as wide as a step and as high as a pixel, and one between two like it is left out.
/// Fewer points than there are steps are the last ones. `id`: how the ids of its parts begin.
pub(crate) fn row_spark(live: &mut Live, id: &str, points: &[f64]) -> Markup {
    let known = || points.iter().copied().filter(|point| point.is_finite());
    let whole = |number: f64| count(number.round() as u64);
    let (least, most) = (known().reduce(f64::min), known().reduce(f64::max));
    let title = match (least.map(whole), most.map(whole)) {
        (Some(least), Some(most)) if least == most => format!("{most} ready"),
        (Some(least), Some(most)) => format!("{least} to {most} ready"),
        _ => String::new(),
    };
    html! {
        svg.row viewBox="0 0 29 24" preserveAspectRatio="none" role="img" {
            (live.title(format!("{id}t"), title))
            (live.line(format!("{id}h"), "line", row_points(points)))
        }
    }
}

/// The points of the line of a row.
fn row_points(points: &[f64]) -> String {
    let points = &points[points.len().saturating_sub(ROW_POINTS)..];
    let (top, first) = (highest(&[points]), ROW_POINTS - points.len());
    let known = (first..).zip(points).filter(|(_, point)| point.is_finite());
    let place = |(step, point): (usize, &f64)| {
        // Lines are not cut in half at the edges.
        let height = 1.0 + (ROW_HEIGHT - 2.0) * (1.0 - point / top);
        (step, height.round() as u32)
    };
    let mut places: Vec<(usize, u32)> = known.map(place).collect();
    // One point alone would not be seen.
    if let [(step, height)] = places[..] {
        places.insert(0, (step.saturating_sub(1), height));
    }
    let height = |at: usize| places.get(at).map(|(_, height)| *height);
    let is_needed = |at: &usize| *at == 0 || height(at - 1) != height(*at) || height(at + 1) != height(*at);
    let needed = (0..places.len()).filter(is_needed).map(|at| format!("{},{}", places[at].0, places[at].1));
    needed.collect::<Vec<_>>().join(" ")
}

/// A series of a plot.
pub struct Series<'a> {
    /// Its name, for people.
    pub name: &'a str,
    /// Its class, which colours it.
    pub class: &'static str,
    /// One point a step. What is not a number was not known then.
    pub points: &'a [f64],
}

/// A plot of one or several series on one scale. `unit` writes a value.
pub fn plot(
    live: &mut Live,
    id: &str,
    title: &str,
    over: &str,
    series: &[Series<'_>],
    unit: fn(f64) -> String,
) -> Markup {
    let all: Vec<&[f64]> = series.iter().map(|series| series.points).collect();
    let top = highest(&all);
    let scale = live.text(format!("{id}-top"), unit(top));
    html! {
        figure.plot {
            figcaption {
                b { (title) }
                @for (place, one) in series.iter().enumerate() { (key(live, id, place, one, unit, "")) }
            }
            svg viewBox="0 0 600 120" preserveAspectRatio="none" role="img" aria-label=(title) {
                line.grid x1="0" y1="118" x2="600" y2="118" {}
                line.grid x1="0" y1="60" x2="600" y2="60" {}
                line.grid x1="0" y1="2" x2="600" y2="2" {}
                @for (place, one) in series.iter().enumerate() {
                    (live.line(format!("{id}-{place}"), one.class, scaled(one.points, 2.0, 118.0, top)))
                }
            }
            (axis(live, id, over, &scale, ""))
        }
    }
}

/// Two series mirrored on one scale: above what comes in, below what goes out.
pub(crate) fn mirrored(
    live: &mut Live,
    id: &str,
    over: &str,
    above: &Series<'_>,
    below: &Series<'_>,
) -> Markup {
    let top = highest(&[above.points, below.points]);
    let scale = live.text(format!("{id}-top"), rate(top));
    html! {
        figure.plot {
            figcaption { (key(live, id, 0, above, rate, "/s")) (key(live, id, 1, below, rate, "/s")) }
            svg viewBox="0 0 600 160" preserveAspectRatio="none" role="img" aria-label="Items a second" {
                line.grid x1="0" y1="2" x2="600" y2="2" {}
                line.grid x1="0" y1="158" x2="600" y2="158" {}
                (live.line(format!("{id}-0"), above.class, scaled(above.points, 2.0, 79.0, top)))
                (live.line(format!("{id}-1"), below.class, scaled(below.points, 158.0, 81.0, top)))
                line.axisline x1="0" y1="80" x2="600" y2="80" {}
            }
            (axis(live, id, over, &scale, "/s"))
        }
    }
}

/// The name of a line, and its value now.
fn key(
    live: &mut Live,
    id: &str,
    place: usize,
    series: &Series<'_>,
    write: fn(f64) -> String,
    unit: &str,
) -> Markup {
    let now = series.points.last().map_or("–".to_owned(), |point| write(*point));
    let now = live.text(format!("{id}-now{place}"), now);
    html! { span.key { i class=(series.class) {} (series.name) " " (now) (unit) } }
}

/// The line below a plot: how far back it goes, and the value of its highest line.
fn axis(live: &mut Live, id: &str, over: &str, top: &Markup, unit: &str) -> Markup {
    let ago = live.text(format!("{id}-over"), format!("{over} ago"));
    html! { div.axis { span { (ago) } span { "top " (top) (unit) } span { "now" } } }
}

/// The highest point, or 1 if none is above 0.
fn highest(series: &[&[f64]]) -> f64 {
    let top = series.iter().flat_map(|points| points.iter()).copied().filter(|point| point.is_finite());
    let top = top.fold(0.0, f64::max);
    if top > 0.0 { top } else { 1.0 }
}

/// Points as SVG has them. `from`: the place of the highest one; `to`: that of 0. Where nothing is known the
/// line goes on from the last known point, and begins at the first one.
fn scaled(points: &[f64], from: f64, to: f64, top: f64) -> String {
    let step = WIDTH / (points.len().max(2) - 1) as f64;
    let known = points.iter().enumerate().filter(|(_, point)| point.is_finite());
    let place = |(index, point): (usize, &f64)| {
        format!("{:.0},{:.1}", index as f64 * step, to + (from - to) * (point / top).clamp(0.0, 1.0))
    };
    known.map(place).collect::<Vec<_>>().join(" ")
}

/// A bar of how far something is, which moves. `part`: of the whole, 0 to 1.
pub fn bar(live: &mut Live, id: &str, part: f64) -> Markup {
    let end = if part.is_finite() { part.clamp(0.0, 1.0) * WIDTH } else { 0.0 };
    let line = live.line(id, "out", format!("0,5 {end:.0},5"));
    html! {
        svg.bar viewBox="0 0 600 10" preserveAspectRatio="none" aria-hidden="true" { (line) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_fill_the_width_and_share_a_scale() {
        assert_eq!(scaled(&[0.0, 5.0, 10.0], 0.0, 30.0, 10.0), "0,30.0 300,15.0 600,0.0");
        assert_eq!(scaled(&[f64::NAN, 5.0, f64::NAN], 0.0, 30.0, 10.0), "300,15.0");
        assert_eq!(scaled(&[], 0.0, 30.0, 1.0), "");
        assert_eq!(highest(&[&[f64::NAN, 0.0], &[3.0]]), 3.0);
        assert_eq!(highest(&[&[0.0]]), 1.0, "a line of zeros lies at the bottom");
    }

    #[test]
    fn the_line_of_a_row_ends_at_its_right_edge_and_has_no_needless_points() {
        assert_eq!(row_points(&[0.0, 4.0, 4.0, 4.0, 4.0, 8.0]), "24,23 25,12 28,12 29,1");
        assert_eq!(row_points(&[0.0; 60]), "0,23 29,23", "no more than there is room for");
        assert_eq!(row_points(&[2.0, f64::NAN, 2.0]), "27,1 29,1");
        assert_eq!([&[5.0][..], &[], &[f64::NAN]].map(row_points), ["28,1 29,1", "", ""]);
        let mut live = Live::default();
        let shown = row_spark(&mut live, "r", &[1_204.0, f64::NAN, 3.0]).into_string();
        assert!(shown.contains("<title id=\"rt\">3 to 1,204 ready</title>"), "{shown}");
    }

    #[test]
    fn a_mirrored_plot_has_its_zero_in_the_middle() {
        let mut live = Live::default();
        let (above, below) = ([0.0, 10.0], [0.0, 5.0]);
        let series = |name, points| Series { name, class: "in", points };
        let shown = mirrored(&mut live, "flow", "15 min", &series("in", &above), &series("out", &below))
            .into_string();
        assert!(shown.contains("points=\"0,79.0 600,2.0\""), "{shown}");
        assert!(shown.contains("points=\"0,81.0 600,119.5\""), "{shown}");
    }
}
