//! Texts that are masked in whatever a process writes: that ends up in rows, logs and replies.

/// The secrets of one call. Prints nothing of them.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// These; empty ones are no secrets.
    pub fn of(secrets: impl IntoIterator<Item = Option<String>>) -> Self {
        Self(
            secrets
                .into_iter()
                .flatten()
                .filter(|secret| !secret.is_empty())
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
        let secrets = Secrets::of([Some("t0ken".into()), None, Some(String::new())]);
        assert_eq!(secrets.mask("a t0ken, t0ken"), "a ***, ***");
        assert_eq!(format!("{secrets:?}"), "Secrets(1)");
    }
}
