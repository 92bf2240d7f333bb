//! Places for labels of points, so that no two labels overlap.

/// A rectangle: left, top, right and bottom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rectangle {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Rectangle {
    pub(super) fn overlaps(&self, other: &Rectangle) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// Approximate width of a text in a sans-serif font.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    // East Asian characters are as wide as high, others about 0.6 of it.
    text.chars().map(|c| if u32::from(c) >= 0x1100 { size } else { 0.6 * size }).sum()
}

/// Places labels near points, each beside its point or on a growing spiral around it. Earlier labels have better places.
/// Returns the box of each label; `None` where there is no room in the `frame`.
pub(super) fn place_labels(
    points: &[(f64, f64)],
    sizes: &[(f64, f64)],
    frame: Rectangle,
) -> Vec<Option<Rectangle>> {
    const N_STEPS: usize = 1500;
    let mut taken: Vec<Rectangle> = Vec::new();
    let mut place = |(&(x, y), &(width, height)): (&(f64, f64), &(f64, f64))| {
        (0..N_STEPS).find_map(|step| {
            // Steps along a spiral whose turns are one line of text apart.
            let angle = 0.4 * (step as f64).sqrt() * 2.0;
            let radius = if step == 0 { 0.0 } else { 0.35 * height * angle };
            let (left, middle) = (x + 3.0 + radius * angle.cos(), y + radius * angle.sin());
            let (top, bottom) = (middle - height / 2.0, middle + height / 2.0);
            let found = Rectangle { left, top, right: left + width, bottom };
            let is_inside = found.left >= frame.left
                && found.right <= frame.right
                && found.top >= frame.top
                && found.bottom <= frame.bottom;
            let is_free = is_inside && !taken.iter().any(|other| other.overlaps(&found));
            is_free.then(|| {
                taken.push(found);
                found
            })
        })
    };
    points.iter().zip(sizes).map(&mut place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_equal_points_do_not_overlap_and_stay_in_the_frame() {
        let frame = Rectangle { left: 0.0, top: 0.0, right: 400.0, bottom: 300.0 };
        let points = vec![(200.0, 150.0); 40];
        let placed = place_labels(&points, &vec![(50.0, 12.0); 40], frame);
        let placed: Vec<Rectangle> = placed.into_iter().flatten().collect();
        assert_eq!(placed.len(), 40);
        for (i, a) in placed.iter().enumerate() {
            assert!(a.left >= 0.0 && a.right <= 400.0 && a.top >= 0.0 && a.bottom <= 300.0);
            assert!(placed[..i].iter().all(|b| !a.overlaps(b)), "{a:?}");
        }
        // The first label is beside its point.
        assert_eq!((placed[0].left, placed[0].top), (203.0, 144.0));
        let tiny = Rectangle { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };
        assert_eq!(place_labels(&points[..1], &[(50.0, 12.0)], tiny), [None]);
    }
}
