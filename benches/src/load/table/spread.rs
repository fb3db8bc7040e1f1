//! The middle of some values, and between what the middle half of them lies.

use std::fmt;

use serde_json::{Value, json};

pub struct Spread {
    pub median: f64,
    lower: f64,
    upper: f64,
}

impl Spread {
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<_> = values.collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = values.len().saturating_sub(1) as f64 * share;
            let value = |place: f64| values.get(place as usize).copied().unwrap_or(f64::NAN);
            let (below, above) = (value(place.floor()), value(place.ceil()));
            below + (above - below) * place.fract()
        };
        Self { median: at(0.5), lower: at(0.25), upper: at(0.75) }
    }

    pub fn to_json(&self) -> Value {
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        let (lower, upper) = (rounded(self.lower), rounded(self.upper));
        json!({ "median": rounded(self.median), "lower_quartile": lower, "upper_quartile": upper })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ({:.2}–{:.2})", self.median, self.lower, self.upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_values() {
        let spread = Spread::of([4.0, 1.0, 2.0, 3.0].into_iter());
        assert_eq!((spread.lower, spread.median, spread.upper), (1.75, 2.5, 3.25));
    }
}
