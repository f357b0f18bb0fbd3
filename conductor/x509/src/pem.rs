//! PEM, as the many tools that make certificate requests write it: text before and after a block, any line
//! length and any line ending are taken. What is written has lines of 64 and no newline at the end, as Magnum
//! stores and answers it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Longest text that is decoded. A request with a key of 8192 bits and hundreds of names has a tenth of it.
pub(crate) const LONGEST: usize = 256 * 1024;

const LINE: usize = 64;

/// Why a text holds no usable block. Neither variant quotes the text: it may be a private key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PemError {
    #[error("there is no PEM block that begins with -----BEGIN {0}-----")]
    Missing(&'static str),
    #[error("the PEM block -----BEGIN {0}----- has no end, so the text is cut off")]
    Cut(&'static str),
    #[error("what stands in the PEM block -----BEGIN {0}----- is not base64")]
    Encoding(&'static str),
    #[error("the text is longer than {LONGEST} bytes")]
    TooLong,
}

/// The first block that has one of these labels, decoded, with its label.
pub(crate) fn decode(text: &str, labels: &[&'static str]) -> Result<(&'static str, Vec<u8>), PemError> {
    if text.len() > LONGEST {
        return Err(PemError::TooLong);
    }
    let first = labels
        .iter()
        .filter_map(|label| {
            let begin = format!("-----BEGIN {label}-----");
            text.find(&begin).map(|at| (at, at + begin.len(), *label))
        })
        .min();
    let Some((_, start, label)) = first else {
        return Err(PemError::Missing(labels.first().copied().unwrap_or("?")));
    };
    let rest = text.get(start..).unwrap_or_default();
    let end = rest
        .find(&format!("-----END {label}-----"))
        .ok_or(PemError::Cut(label))?;
    let body: Vec<u8> = rest
        .bytes()
        .take(end)
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let der = STANDARD.decode(body).map_err(|_| PemError::Encoding(label))?;
    Ok((label, der))
}

/// A block, without a newline at its end.
pub(crate) fn encode(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in body.as_bytes().chunks(LINE) {
        text.extend(line.iter().map(|byte| char::from(*byte)));
        text.push('\n');
    }
    text.push_str(&format!("-----END {label}-----"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_pem_decodes_again_and_has_no_newline_at_its_end() {
        let der: Vec<u8> = (0..=255).collect();
        let text = encode("X", &der);
        assert!(text.lines().all(|line| line.len() <= 64));
        assert!(text.ends_with("-----END X-----"));
        assert_eq!(decode(&text, &["X"]), Ok(("X", der)));
    }

    #[test]
    fn text_around_other_blocks_and_other_line_ends_do_not_matter() {
        let text = format!(
            "Certificate Request:\n  Data: ü\n{}\n{}\r\nbye",
            encode("EC PARAMETERS", b"other"),
            encode("B", b"wanted").replace('\n', "\r\n")
        );
        assert_eq!(decode(&text, &["A", "B"]), Ok(("B", b"wanted".to_vec())));
    }

    #[test]
    fn broken_pem_is_refused_with_the_reason() {
        let whole = encode("A", b"0123456789");
        assert_eq!(decode("", &["A"]), Err(PemError::Missing("A")));
        assert_eq!(decode(&whole[..25], &["A"]), Err(PemError::Cut("A")));
        assert_eq!(
            decode(&whole.replace("MDEy", "M!!y"), &["A"]),
            Err(PemError::Encoding("A"))
        );
        assert_eq!(decode(&"x".repeat(LONGEST + 1), &["A"]), Err(PemError::TooLong));
    }
}
