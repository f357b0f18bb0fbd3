//! How much work a stored key may ask for before it opens.
//!
//! The number of rounds stands in the stored text, and whoever can write there (a row, a secret of Barbican, a file) could
//! have one key keep a thread for hours, or take all memory. What anybody encrypts keys with is far below these limits:
//! OpenSSL takes 2048 rounds of PBKDF2, or 16 MiB of scrypt.

use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::pbes2::Kdf;

use super::key::KeyError;

/// Rounds of PBKDF2: about a second.
const MOST_ROUNDS: u32 = 2_000_000;
/// Bytes of memory for scrypt.
const MOST_MEMORY: u64 = 64 << 20;
/// Blocks that scrypt mixes at one after the other.
const MOST_LANES: u16 = 16;

/// # Errors
/// [`KeyError::Costly`]
pub(crate) fn check(scheme: &EncryptionScheme<'_>) -> Result<(), KeyError> {
    // The old scheme counts its rounds in 16 bits.
    let EncryptionScheme::Pbes2(parameters) = scheme else {
        return Ok(());
    };
    match &parameters.kdf {
        Kdf::Pbkdf2(asked) if asked.iteration_count > MOST_ROUNDS => Err(KeyError::Costly(format!(
            "{} rounds of PBKDF2, at most {MOST_ROUNDS} are made",
            asked.iteration_count
        ))),
        Kdf::Scrypt(asked) => {
            let memory =
                (asked.cost_parameter.saturating_mul(128)).saturating_mul(u64::from(asked.block_size));
            if memory > MOST_MEMORY || asked.parallelization > MOST_LANES {
                return Err(KeyError::Costly(format!(
                    "{memory} bytes for scrypt, {} times; at most {MOST_MEMORY} and {MOST_LANES} are spent",
                    asked.parallelization
                )));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
