//! The colours of the plots. Plots are drawn in the colours for light pages; the style sheet replaces them on
//! dark pages.

use std::fmt::Write as _;

use plotters::style::RGBColor;

/// A colour for light and for dark pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shade {
    /// On a light page.
    pub light: u32,
    /// On a dark page.
    pub dark: u32,
}

const fn shade(light: u32, dark: u32) -> Shade {
    Shade { light, dark }
}

/// Text.
pub const INK: Shade = shade(0x1f2430, 0xe6e8ee);
/// Secondary text.
pub const MUTED: Shade = shade(0x5b6472, 0x9ba4b4);
/// Grid lines.
pub const GRID: Shade = shade(0xdfe3ea, 0x333a48);
/// Background of a plot.
pub const PAPER: Shade = shade(0xf5f7fa, 0x1d222d);
/// The first candidate, which is compared with the others.
pub const FIRST: Shade = shade(0x2a6fd6, 0x5598f5);
/// The other candidates.
pub const OTHER: Shade = shade(0xa9b8cf, 0x56647d);
/// p50, p99 and p99.9.
pub const QUANTILES: [Shade; 3] =
    [shade(0x9cc4f5, 0x2f5f9e), shade(0x2a6fd7, 0x5598f4), shade(0x123a7a, 0xb9d6ff)];

/// The colour of a role's CPU time.
pub fn role(name: &str) -> Shade {
    match name {
        "node" => shade(0x2a6fd8, 0x5598f3),
        "database" => shade(0xe09b1a, 0xd9a23c),
        "broker" => shade(0x8a55c9, 0xb18be6),
        _ => shade(0xb4b9c4, 0x6d7585),
    }
}

impl Shade {
    /// The colour that a plot is drawn in.
    pub const fn drawn(self) -> RGBColor {
        RGBColor((self.light >> 16) as u8, (self.light >> 8) as u8, self.light as u8)
    }

    /// The name of its variable in the style sheet.
    pub fn variable(self) -> String {
        format!("--c{:06x}", self.light)
    }
}

fn all() -> Vec<Shade> {
    let mut all = vec![INK, MUTED, GRID, PAPER, FIRST, OTHER];
    all.extend(QUANTILES);
    all.extend(["node", "database", "broker", "load"].map(role));
    all
}

/// The rules of the style sheet that replace the colours.
pub fn style() -> String {
    let mut text = String::new();
    let variables = |of: fn(Shade) -> u32| {
        all().iter().fold(String::new(), |mut text, shade| {
            let _ = write!(text, "{}:#{:06x};", shade.variable(), of(*shade));
            text
        })
    };
    let _ = writeln!(text, ":root{{{}}}", variables(|shade| shade.light));
    let dark = variables(|shade| shade.dark);
    let _ = writeln!(text, "@media (prefers-color-scheme:dark){{:root{{{dark}}}}}");
    for shade in all() {
        for what in ["fill", "stroke"] {
            // The backend writes colours in capitals.
            let _ =
                writeln!(text, "svg [{what}=\"#{:06X}\"]{{{what}:var({})}}", shade.light, shade.variable());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_colours_are_different() {
        let mut lights: Vec<u32> = all().iter().map(|shade| shade.light).collect();
        lights.sort_unstable();
        lights.dedup();
        assert_eq!(lights.len(), all().len());
    }
}
