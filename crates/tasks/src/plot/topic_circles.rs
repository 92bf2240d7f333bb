//! Map of topics as circles: similar topics are near each other.

use super::labels::{Rectangle, place_labels, text_width};
use super::svg::{COLORS, Svg};

/// A topic to place on the map.
#[derive(Clone, Debug)]
pub struct TopicCircle {
    /// Index of the topic.
    pub topic: usize,
    /// Its words in one line.
    pub label: String,
    /// Its share of all tokens, the area of the circle.
    pub prevalence: f64,
    /// Probabilities of words; all topics have the same words in the same order.
    pub words: Vec<f64>,
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 720.0;
const MARGIN: f64 = 90.0;
/// Radius of a topic with all tokens.
const RADIUS: f64 = 120.0;
const FONT: f64 = 12.0;

/// The places of topics on a map: the first two coordinates of classical scaling of the distances between topics, the
/// square roots of their Jensen–Shannon divergences (as in LDAvis, Sievert & Shirley 2014).
pub fn topic_places(topics: &[TopicCircle]) -> Vec<[f64; 2]> {
    scaled(&distances(topics))
}

/// Draws topics as circles at their places ([`topic_places`]), as SVG.
pub fn topic_circles(topics: &[TopicCircle]) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let places = topic_places(topics);
    let span = |axis: usize| {
        let of_axis = || places.iter().map(|place| place[axis]);
        let low = of_axis().fold(f64::INFINITY, f64::min);
        let high = of_axis().fold(f64::NEG_INFINITY, f64::max);
        (low, (high - low).max(f64::MIN_POSITIVE))
    };
    let (x_span, y_span) = (span(0), span(1));
    let points: Vec<(f64, f64)> = places
        .iter()
        .map(|place| {
            let x = MARGIN + (place[0] - x_span.0) / x_span.1 * (WIDTH - 4.0 * MARGIN);
            let y = HEIGHT - MARGIN - (place[1] - y_span.0) / y_span.1 * (HEIGHT - 2.0 * MARGIN);
            (x, y)
        })
        .collect();
    for (idx, (topic, &point)) in topics.iter().zip(&points).enumerate() {
        svg.circle(point, RADIUS * topic.prevalence.sqrt(), COLORS[idx % COLORS.len()]);
    }
    let text = |topic: &TopicCircle| format!("{}: {}", topic.topic, topic.label);
    // Prevalent topics choose their places first.
    let mut order: Vec<usize> = (0..topics.len()).collect();
    order.sort_by(|&a, &b| topics[b].prevalence.total_cmp(&topics[a].prevalence));
    let sizes: Vec<(f64, f64)> =
        order.iter().map(|&idx| (text_width(&text(&topics[idx]), FONT), FONT + 2.0)).collect();
    let starts: Vec<(f64, f64)> = order.iter().map(|&idx| points[idx]).collect();
    let frame = Rectangle { left: 0.0, top: 0.0, right: WIDTH, bottom: HEIGHT };
    for (&idx, place) in order.iter().zip(place_labels(&starts, &sizes, frame)) {
        let Some(place) = place else { continue };
        let middle = (place.top + place.bottom) / 2.0;
        if (place.left - points[idx].0).hypot(middle - points[idx].1) > 2.0 * FONT {
            svg.line(&[points[idx], (place.left, middle)], "#aaa", 0.5);
        }
        svg.colored_text((place.left, place.bottom - 3.0), FONT, "#222", &text(&topics[idx]));
    }
    svg.finish()
}

fn distances(topics: &[TopicCircle]) -> Vec<Vec<f64>> {
    let distance = |a: &TopicCircle, b: &TopicCircle| {
        let terms = a.words.iter().zip(&b.words).map(|(&p, &q)| {
            let mean = (p + q) / 2.0;
            let part = |p: f64| if p > 0.0 { p * (p / mean).ln() } else { 0.0 };
            (part(p) + part(q)) / 2.0
        });
        terms.sum::<f64>().max(0.0).sqrt()
    };
    topics.iter().map(|a| topics.iter().map(|b| distance(a, b)).collect()).collect()
}

/// Two coordinates of each point by classical multidimensional scaling (Torgerson 1952).
fn scaled(distances: &[Vec<f64>]) -> Vec<[f64; 2]> {
    let n = distances.len();
    let squares: Vec<Vec<f64>> =
        distances.iter().map(|row| row.iter().map(|d| d * d).collect()).collect();
    let means: Vec<f64> = squares.iter().map(|row| row.iter().sum::<f64>() / n as f64).collect();
    let all = means.iter().sum::<f64>() / n.max(1) as f64;
    let mut products: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..n).map(|j| -(squares[i][j] - means[i] - means[j] + all) / 2.0).collect())
        .collect();
    let mut places = vec![[0.0; 2]; n];
    for axis in 0..2 {
        let (vector, value) = principal(&products);
        for (i, place) in places.iter_mut().enumerate() {
            place[axis] = vector[i] * value.max(0.0).sqrt();
        }
        for (i, row) in products.iter_mut().enumerate() {
            row.iter_mut().zip(&vector).for_each(|(x, v)| *x -= value * vector[i] * v);
        }
    }
    places
}

/// The first eigenvector of a symmetric matrix and its eigenvalue, by power iteration.
fn principal(matrix: &[Vec<f64>]) -> (Vec<f64>, f64) {
    let mut vector: Vec<f64> = (0..matrix.len()).map(|i| 1.0 + 0.3 * (i as f64).sin()).collect();
    let mut value = 0.0;
    for _ in 0..300 {
        let norm = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        if norm == 0.0 {
            return (vector, 0.0);
        }
        vector.iter_mut().for_each(|x| *x /= norm);
        let product = |row: &Vec<f64>| row.iter().zip(&vector).map(|(a, b)| a * b).sum::<f64>();
        let next: Vec<f64> = matrix.iter().map(product).collect();
        value = next.iter().zip(&vector).map(|(a, b)| a * b).sum();
        vector = next;
    }
    let norm = vector.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    (vector.into_iter().map(|x| x / norm).collect(), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_recovers_points_of_the_plane() {
        let points: [(f64, f64); 4] = [(0.0, 0.0), (3.0, 0.0), (3.0, 1.0), (-2.0, 1.0)];
        let distance = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).hypot(a.1 - b.1);
        let distances: Vec<Vec<f64>> =
            points.iter().map(|&a| points.iter().map(|&b| distance(a, b)).collect()).collect();
        let places = scaled(&distances);
        for (i, a) in places.iter().enumerate() {
            for (j, b) in places.iter().enumerate() {
                let found = (a[0] - b[0]).hypot(a[1] - b[1]);
                assert!((found - distances[i][j]).abs() < 1e-6, "{found} {}", distances[i][j]);
            }
        }
    }

    #[test]
    fn equal_topics_have_distance_0_and_disjoint_ones_the_root_of_ln_2() {
        let topic = |words: &[f64]| TopicCircle {
            topic: 0,
            label: "a <b>".to_owned(),
            prevalence: 0.5,
            words: words.to_vec(),
        };
        let topics = [topic(&[1.0, 0.0]), topic(&[0.0, 1.0]), topic(&[1.0, 0.0])];
        let found = distances(&topics);
        assert_eq!(found[0][2], 0.0);
        assert!((found[0][1] - 2f64.ln().sqrt()).abs() < 1e-12);
        let picture = topic_circles(&topics);
        let document = roxmltree::Document::parse(&picture).unwrap();
        assert_eq!(document.descendants().filter(|node| node.has_tag_name("circle")).count(), 3);
        assert_eq!(picture.matches("a &lt;b&gt;").count(), 3);
        assert!(topic_circles(&[]).starts_with("<svg"));
    }
}
