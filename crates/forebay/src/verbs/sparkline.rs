//! A line of figures in one row of text.

/// From nothing to the most.
const BLOCKS: [char; 8] =
    ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];

/// Draws points from 0 to the greatest. Several points in one column are their mean; a gap stays a gap.
pub fn sparkline(points: &[Option<f64>], width: usize) -> String {
    let columns = points.len().min(width);
    let mut means = Vec::with_capacity(columns);
    for column in 0..columns {
        let (begin, end) = (column * points.len() / columns, (column + 1) * points.len() / columns);
        let known: Vec<f64> = points[begin..end].iter().copied().flatten().collect();
        means.push((!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64));
    }
    let most = means.iter().copied().flatten().fold(0.0, f64::max);
    let block = |mean: &Option<f64>| match mean {
        None => ' ',
        Some(_) if most <= 0.0 => BLOCKS[0],
        // Between 0 and 7 by the division.
        Some(mean) => BLOCKS[(mean / most * 7.0).round().clamp(0.0, 7.0) as usize],
    };
    means.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_from_nothing_to_the_most_and_has_gaps() {
        let points = [Some(0.0), Some(7.0), None, Some(3.5)];
        assert_eq!(sparkline(&points, 60), "\u{2581}\u{2588} \u{2585}");
        assert_eq!(sparkline(&[Some(0.0), Some(0.0)], 60), "\u{2581}\u{2581}");
        assert_eq!(sparkline(&[], 60), "");
    }

    #[test]
    fn many_points_share_a_column() {
        let points: Vec<_> = (0..300).map(|at| Some(f64::from(at))).collect();
        let line = sparkline(&points, 60);
        assert_eq!(line.chars().count(), 60);
        assert!(line.starts_with('\u{2581}') && line.ends_with('\u{2588}'));
    }
}
