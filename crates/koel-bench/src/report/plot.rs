//! Draws line charts as SVG. Each line has its own colour, marker and dashes, and its name at its
//! end.
//!
//! The colours are those of M. Okabe and K. Ito, which are distinguishable with any colour vision;
//! markers and dashes work without colour. Positions are computed here, in pixels, since ticks at
//! powers and names that do not overlap need it.

use std::path::Path;

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::Failure;

const WIDTH: i32 = 920;
const HEIGHT: i32 = 560;
const LEFT: i32 = 72;
const RIGHT: i32 = WIDTH - 210;
const TOP: i32 = 48;
const BOTTOM: i32 = HEIGHT - 58;
const LINE_OF_TEXT: i32 = 15;

const GRID: RGBColor = RGBColor(222, 222, 222);
const INK: RGBColor = RGBColor(30, 30, 30);
const GREY: RGBColor = RGBColor(110, 110, 110);
/// Without yellow, which is too light for a line on white.
const COLOURS: [RGBColor; 7] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 0, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Pixel = (i32, i32);

/// The look of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// A filter: the number chooses colour, marker and dashes. 0 and 1 are drawn thick.
    Filter(usize),
    /// The same filter in another mode: the same colour, thin, with a plus.
    Variant(usize),
    /// A limit: grey, without markers; the number chooses the dashes.
    Limit(usize),
}

/// One line of a chart.
pub(crate) struct Line {
    /// May be empty.
    pub(crate) name: String,
    pub(crate) ink: Ink,
    pub(crate) points: Vec<(f64, f64)>,
}

/// One axis, and the values with a tick and a label.
pub(crate) struct Axis {
    pub(crate) title: &'static str,
    pub(crate) logarithmic: bool,
    pub(crate) ticks: Vec<(f64, String)>,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// A complete chart.
pub(crate) struct Chart {
    pub(crate) title: &'static str,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Line>,
}

impl Axis {
    /// A linear axis with labels at multiples of `step`.
    pub(crate) fn linear(title: &'static str, from: f64, to: f64, step: f64) -> Self {
        let at = |i: u32| from + f64::from(i) * step;
        let values = (0..200).map(at).take_while(|&value| value <= to + step / 1e6);
        let ticks = values.map(|value| (value, trimmed(value))).collect();
        Self { title, logarithmic: false, ticks, from, to }
    }

    /// A logarithmic axis over at least all `values`, with labels at 1, 2 and 5 times powers of
    /// ten.
    pub(crate) fn decades(title: &'static str, values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<_> = values.filter(|&value| value > 0.0).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min).min(1e9);
        let high = values.iter().copied().fold(0.0, f64::max).max(low);
        let steps: Vec<f64> = (-9..12)
            .flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(exponent)))
            .collect();
        let from = steps.iter().copied().filter(|&step| step <= low).fold(1e-9, f64::max);
        let to = steps.iter().copied().filter(|&step| step >= high * 1.02).fold(5e11, f64::min);
        let inside = steps.into_iter().filter(|&step| step >= from * 0.99 && step <= to * 1.01);
        let ticks = inside.map(|step| (step, trimmed(step))).collect();
        Self { title, logarithmic: true, ticks, from, to }
    }

    /// A logarithmic axis with labels at these values only.
    pub(crate) fn marked(title: &'static str, ticks: Vec<(f64, String)>) -> Self {
        let from = ticks.iter().map(|tick| tick.0).fold(f64::INFINITY, f64::min);
        let to = ticks.iter().map(|tick| tick.0).fold(0.0, f64::max);
        Self { title, logarithmic: true, ticks, from, to }
    }

    /// Whether a value is on the axis.
    fn holds(&self, value: f64) -> bool {
        (self.from.min(self.to)..=self.from.max(self.to)).contains(&value)
    }

    /// The position of a value, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.logarithmic { value.max(1e-12).ln() } else { value };
        let (from, to) = (scale(self.from), scale(self.to));
        ((scale(value) - from) / (to - from)).clamp(0.0, 1.0)
    }
}

/// The number without trailing zeros.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[expect(clippy::cast_possible_truncation, reason = "between two pixels of the picture")]
fn between(from: i32, to: i32, share: f64) -> i32 {
    (f64::from(from) + f64::from(to - from) * share).round() as i32
}

impl Chart {
    /// Writes the chart to a file.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Failure> {
        let size = (WIDTH.unsigned_abs(), HEIGHT.unsigned_abs());
        let area = SVGBackend::new(path, size).into_drawing_area();
        area.fill(&WHITE)?;
        self.frame(&area)?;
        for line in &self.lines {
            self.line(&area, line)?;
        }
        self.names(&area)?;
        area.present()?;
        Ok(())
    }

    fn pixel(&self, (x, y): (f64, f64)) -> Pixel {
        (between(LEFT, RIGHT, self.x.place(x)), between(BOTTOM, TOP, self.y.place(y)))
    }

    /// The points of a line that are inside the chart; others are left out, not moved to its edge.
    fn visible(&self, line: &Line) -> impl Iterator<Item = (f64, f64)> {
        line.points.iter().copied().filter(|&(x, y)| self.x.holds(x) && self.y.holds(y))
    }

    /// Title, grid, ticks and axis labels.
    fn frame(&self, area: &Area<'_>) -> Result<(), Failure> {
        write(area, self.title, (LEFT, 24), 17, &INK, HPos::Left)?;
        for (value, label) in &self.x.ticks {
            let (x, _) = self.pixel((*value, self.y.from));
            area.draw(&PathElement::new([(x, TOP), (x, BOTTOM)], GRID))?;
            write(area, label, (x, BOTTOM + 14), 12, &INK, HPos::Center)?;
        }
        for (value, label) in &self.y.ticks {
            let (_, y) = self.pixel((self.x.from, *value));
            area.draw(&PathElement::new([(LEFT, y), (RIGHT, y)], GRID))?;
            write(area, label, (LEFT - 8, y), 12, &INK, HPos::Right)?;
        }
        area.draw(&PathElement::new([(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM)], INK))?;
        write(area, self.x.title, (RIGHT, BOTTOM + 38), 13, &INK, HPos::Right)?;
        let turned = ("sans-serif", 13).into_font().transform(FontTransform::Rotate270);
        let style = turned.color(&INK).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw(&Text::new(self.y.title, (16, TOP), style))?;
        Ok(())
    }

    fn line(&self, area: &Area<'_>, line: &Line) -> Result<(), Failure> {
        let pixels: Vec<_> = self.visible(line).map(|point| self.pixel(point)).collect();
        let width = if matches!(line.ink, Ink::Filter(0 | 1)) { 3 } else { 2 };
        let style = line.ink.colour().stroke_width(width);
        match line.ink.dashes() {
            None => area.draw(&PathElement::new(pixels.clone(), style))?,
            Some((dash, gap)) => {
                area.draw(&DashedPathElement::new(pixels.clone(), dash, gap, style))?;
            }
        }
        pixels.iter().try_for_each(|&at| marker(area, line.ink, at))?;
        Ok(())
    }

    /// The name of each line, beside its last point and moved up or down to avoid other names.
    fn names(&self, area: &Area<'_>) -> Result<(), Failure> {
        let end = |line: &Line| self.visible(line).last().map(|point| self.pixel(point));
        let named = self.lines.iter().filter(|line| !line.name.is_empty());
        let mut ends: Vec<_> = named.filter_map(|line| Some((end(line)?, line))).collect();
        ends.sort_by_key(|((_, y), _)| *y);
        let wished: Vec<_> = ends.iter().map(|((_, y), _)| *y).collect();
        for (&(at, line), y) in ends.iter().zip(apart(&wished)) {
            let colour = line.ink.colour();
            let from = (at.0 + 6, at.1);
            let to = (RIGHT + 16, y);
            area.draw(&PathElement::new([from, to], colour.mix(0.45)))?;
            marker(area, line.ink, (RIGHT + 24, y))?;
            let text = if matches!(line.ink, Ink::Limit(_)) { GREY } else { INK };
            write(area, &line.name, (RIGHT + 34, y), 13, &text, HPos::Left)?;
        }
        Ok(())
    }
}

/// Heights at least a line of text apart, close to the wanted ones, which ascend, and inside the
/// chart.
fn apart(wished: &[i32]) -> Vec<i32> {
    let mut places = wished.to_vec();
    for i in 1..places.len() {
        places[i] = places[i].max(places[i - 1] + LINE_OF_TEXT);
    }
    let mut limit = BOTTOM + 6;
    for place in places.iter_mut().rev() {
        *place = (*place).min(limit);
        limit = *place - LINE_OF_TEXT;
    }
    places
}

fn write(
    area: &Area<'_>,
    text: &str,
    at: Pixel,
    size: i32,
    colour: &RGBColor,
    side: HPos,
) -> Result<(), Failure> {
    let style = ("sans-serif", size).into_font().color(colour);
    area.draw(&Text::new(text.to_string(), at, style.pos(Pos::new(side, VPos::Center))))?;
    Ok(())
}

impl Ink {
    fn colour(self) -> RGBColor {
        match self {
            Self::Filter(number) | Self::Variant(number) => COLOURS[number % COLOURS.len()],
            Self::Limit(_) => GREY,
        }
    }

    /// Pixels drawn and left out.
    fn dashes(self) -> Option<(i32, i32)> {
        match self {
            Self::Variant(_) => Some((6, 2)),
            Self::Filter(number) => [None, Some((10, 4)), None, Some((3, 3))][number % 4],
            Self::Limit(number) => [Some((14, 5)), Some((5, 5)), Some((2, 4))][number % 3],
        }
    }
}

fn marker(area: &Area<'_>, ink: Ink, (x, y): Pixel) -> Result<(), Failure> {
    let (filled, open) = (ink.colour().filled(), ink.colour().stroke_width(2));
    let square = [(x - 4, y - 4), (x + 4, y + 4)];
    let diamond = vec![(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)];
    match ink {
        Ink::Limit(_) => {}
        Ink::Variant(_) => {
            area.draw(&PathElement::new([(x - 5, y), (x + 5, y)], open))?;
            area.draw(&PathElement::new([(x, y - 5), (x, y + 5)], open))?;
        }
        Ink::Filter(number) => match number % 7 {
            0 => area.draw(&Circle::new((x, y), 5, filled))?,
            1 => area.draw(&Rectangle::new(square, filled))?,
            2 => area.draw(&TriangleMarker::new((x, y), 6, filled))?,
            3 => area.draw(&Circle::new((x, y), 4, open))?,
            4 => area.draw(&Cross::new((x, y), 4, open))?,
            5 => area.draw(&Polygon::new(diamond, filled))?,
            _ => area.draw(&Rectangle::new(square, open))?,
        },
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_apart_and_inside_the_picture() {
        assert_eq!(apart(&[100, 200]), [100, 200]);
        assert_eq!(apart(&[100, 100, 103]), [100, 115, 130]);
        let low = apart(&[BOTTOM, BOTTOM]);
        assert_eq!(low, [BOTTOM + 6 - LINE_OF_TEXT, BOTTOM + 6]);
    }

    #[test]
    fn a_logarithmic_axis_places_powers_evenly_and_labels_them_shortly() {
        let axis = Axis::decades("x", [1.5, 90.0].into_iter());
        assert_eq!((axis.from, axis.to), (1.0, 100.0));
        assert!((axis.place(10.0) - 0.5).abs() < 1e-9);
        let labels: Vec<_> = axis.ticks.iter().map(|tick| tick.1.as_str()).collect();
        assert_eq!(labels, ["1", "2", "5", "10", "20", "50", "100"]);
    }
}
