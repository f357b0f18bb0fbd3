//! Names for things that were created without one.

use rand::RngExt as _;

const GREEK: [&str; 24] = [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu",
    "nu", "xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
];

/// `<greek letter>-<1..24>-<kind>`. Names are not unique and never were.
pub fn generate(kind: &str) -> String {
    let mut random = rand::rng();
    let letter = GREEK[random.random_range(0..GREEK.len())];
    format!("{letter}-{}-{kind}", random.random_range(1..=24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_name_has_three_parts() {
        for _ in 0..100 {
            let name = generate("cluster");
            let parts: Vec<&str> = name.split('-').collect();
            assert!(GREEK.contains(&parts[0]), "{name}");
            assert!((1..=24).contains(&parts[1].parse::<u32>().unwrap()), "{name}");
            assert_eq!(parts[2], "cluster");
        }
    }
}
