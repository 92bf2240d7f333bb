//! Prevalence of topics in groups of documents: per value of some metadata, or over time.

use std::collections::BTreeMap;
use std::str::FromStr;

/// How values are grouped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bin {
    /// The year of a date that begins with it, such as 2024-05-17.
    Year,
    /// Year and month of such a date.
    Month,
    /// The first year of the decade.
    Decade,
    /// Intervals of numbers with this width.
    Width(f64),
}

impl FromStr for Bin {
    type Err = String;

    fn from_str(text: &str) -> Result<Bin, String> {
        match text {
            "year" => Ok(Bin::Year),
            "month" => Ok(Bin::Month),
            "decade" => Ok(Bin::Decade),
            number => match number.parse::<f64>() {
                Ok(width) if width.is_finite() && width > 0.0 => Ok(Bin::Width(width)),
                _ => {
                    Err("expected year, month, decade, or a positive width of intervals".to_owned())
                }
            },
        }
    }
}

impl Bin {
    /// The group of a value.
    fn of(self, value: &str) -> Result<String, String> {
        let year = || -> Option<i64> {
            let digits = value.get(..4)?;
            digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let found = match self {
            Bin::Year => year().map(|year| format!("{year:04}")),
            Bin::Decade => year().map(|year| format!("{:04}", year / 10 * 10)),
            Bin::Month => {
                let month =
                    value.get(5..7).filter(|month| month.bytes().all(|b| b.is_ascii_digit()));
                year().zip(month).map(|(year, month)| format!("{year:04}-{month}"))
            }
            Bin::Width(width) => {
                value.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| {
                    let low = (number / width).floor() * width;
                    // Rounding errors of the product are not part of the value.
                    format!("{}", (low * 1e9).round() / 1e9)
                })
            }
        };
        let what = match self {
            Bin::Year | Bin::Month | Bin::Decade => "a date such as 2024-05-17",
            Bin::Width(_) => "a number",
        };
        found.ok_or_else(|| format!("`{value}` is not {what}"))
    }
}

/// A group of documents with the same value.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The value, or the name of the interval.
    pub value: String,
    /// Number of documents.
    pub n_documents: usize,
    /// Prevalence of each topic.
    pub topics: Vec<Prevalence>,
}

/// The mean share of a topic with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prevalence {
    /// Mean over documents.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Measures the prevalence of topics per value, with one value and one mixture per document.
///
/// Documents with an empty value are left out. Values that are all numbers are in the order of the numbers. Intervals are
/// mean ± 1.96 standard errors, cut off at 0 and 1; with a single document they are [0, 1].
pub fn trend(
    values: &[String],
    mixtures: &[&[f32]],
    bin: Option<Bin>,
) -> Result<Vec<Group>, String> {
    let mut members: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (idx, value) in values.iter().enumerate().filter(|(_, value)| !value.is_empty()) {
        let group = bin.map_or_else(|| Ok(value.clone()), |bin| bin.of(value))?;
        members.entry(group).or_default().push(idx);
    }
    let group = |(value, members): (String, Vec<usize>)| {
        let n_topics = members.first().map_or(0, |&idx| mixtures[idx].len());
        let shares = |topic: usize| members.iter().map(move |&idx| f64::from(mixtures[idx][topic]));
        let topics = (0..n_topics).map(|topic| prevalence(shares(topic).collect())).collect();
        Group { value, n_documents: members.len(), topics }
    };
    let mut groups: Vec<Group> = members.into_iter().map(group).collect();
    let numbers: Option<Vec<f64>> = groups.iter().map(|group| group.value.parse().ok()).collect();
    if numbers.is_some() {
        let number = |group: &Group| group.value.parse().unwrap_or(0.0);
        groups.sort_by(|a, b| f64::total_cmp(&number(a), &number(b)));
    }
    Ok(groups)
}

fn prevalence(shares: Vec<f64>) -> Prevalence {
    let n = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / n;
    if shares.len() < 2 {
        return Prevalence { mean, low: 0.0, high: 1.0 };
    }
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = 1.96 * (variance / n).sqrt();
    Prevalence { mean, low: (mean - half).max(0.0), high: (mean + half).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prevalence_is_a_mean_with_its_standard_error() {
        let values = ["b", "a", "b", "", "b"].map(str::to_owned);
        let mixtures: [&[f32]; 5] =
            [&[0.5, 0.5], &[1.0, 0.0], &[0.25, 0.75], &[0.9, 0.1], &[0.75, 0.25]];
        let groups = trend(&values, &mixtures, None).unwrap();
        assert_eq!(groups.len(), 2);
        assert_eq!((groups[0].value.as_str(), groups[0].n_documents), ("a", 1));
        assert_eq!(groups[0].topics[1], Prevalence { mean: 0.0, low: 0.0, high: 1.0 });
        let b = &groups[1].topics[0];
        // Shares 0.5, 0.25 and 0.75: the variance is 0.0625, the standard error √(0.0625 / 3).
        let half = 1.96 * (0.0625f64 / 3.0).sqrt();
        assert!((b.mean - 0.5).abs() < 1e-12 && (b.high - b.low - 2.0 * half).abs() < 1e-12);
    }

    #[test]
    fn dates_and_numbers_are_grouped() {
        let of = |bin: &str, value: &str| bin.parse::<Bin>().unwrap().of(value);
        assert_eq!(of("year", "2024-05-17").unwrap(), "2024");
        assert_eq!(of("month", "2024-05-17T10:00").unwrap(), "2024-05");
        assert_eq!(of("decade", "1999").unwrap(), "1990");
        assert_eq!(of("5", "13").unwrap(), "10");
        assert_eq!(of("0.1", "0.35").unwrap(), "0.3");
        assert_eq!(of("10", "-3").unwrap(), "-10");
        assert_eq!(
            of("year", "May 2024").unwrap_err(),
            "`May 2024` is not a date such as 2024-05-17"
        );
        assert_eq!(of("10", "x").unwrap_err(), "`x` is not a number");
        for bin in ["week", "0", "-1", "inf", ""] {
            assert!(bin.parse::<Bin>().is_err(), "{bin}");
        }
    }

    #[test]
    fn numbers_are_in_numeric_order() {
        let values = ["10", "9", "100"].map(str::to_owned);
        let mixtures: [&[f32]; 3] = [&[1.0], &[1.0], &[1.0]];
        let groups = trend(&values, &mixtures, None).unwrap();
        assert_eq!(groups.iter().map(|g| g.value.as_str()).collect::<Vec<_>>(), ["9", "10", "100"]);
    }
}
