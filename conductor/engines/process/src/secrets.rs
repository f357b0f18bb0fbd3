//! Texts that are masked in whatever a process writes: that ends up in rows, logs and replies.
//!
//! Masking comes before reading, since a program may put a secret anywhere. So a secret that is part of ordinary words
//! would garble what the program says: `UPDATE_COMPLETE` under the token `P`, which a client may send to an API without
//! Keystone. Texts of fewer than eight bytes are therefore not masked.

/// Fewest bytes of a secret. Keystone's tokens have at least 32, our own passwords more.
const SHORTEST: usize = 8;

/// The secrets of one call. Prints nothing of them.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// These, without those that are too short to be masked.
    pub fn of(secrets: impl IntoIterator<Item = Option<String>>) -> Self {
        Self(
            secrets
                .into_iter()
                .flatten()
                .filter(|secret| secret.len() >= SHORTEST)
                .collect(),
        )
    }

    /// The text with every secret replaced by `***`.
    pub fn mask(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.0 {
            if text.contains(secret) {
                text = text.replace(secret, "***");
            }
        }
        text
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_secret_is_masked_and_none_is_printed() {
        let secrets = Secrets::of([Some("t0ken-of-42".into()), None, Some(String::new())]);
        assert_eq!(secrets.mask("a t0ken-of-42, t0ken-of-42"), "a ***, ***");
        assert_eq!(format!("{secrets:?}"), "Secrets(1)");
    }

    #[test]
    fn a_token_that_is_a_part_of_words_leaves_them_whole() {
        let secrets = Secrets::of([Some("P".into()), Some("UPDATE_".into())]);
        assert_eq!(secrets.mask("UPDATE_COMPLETE"), "UPDATE_COMPLETE");
    }
}
