//! Compressed bodies.
//!
//! What kombu calls `gzip` is a zlib stream. Sent only with `kombu_compression`; received in any case. The size is
//! capped while decompressing, so a small body cannot fill the memory.

use std::io::{self, Read, Write};

use bytes::Bytes;

use magnum_config::Compression;

/// Why a body could not be decompressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    /// The stream is broken, or is not what its label says.
    #[error("the body is labelled `{label}` but does not decompress: {reason}")]
    Corrupt {
        /// The `compression` header.
        label: String,
        /// What the decoder said.
        reason: String,
    },
    /// It grows beyond the cap.
    #[error("the body decompresses to more than {0} bytes")]
    TooLarge(usize),
    /// A codec we do not have.
    #[error("compression `{0}` is not supported; supported are zlib (application/x-gzip) and bzip2")]
    Unsupported(String),
}

/// Decompresses `body` as its `compression` header says.
///
/// A label that nobody knows leaves the body as it is, as kombu does: it may well be plain JSON.
///
/// # Errors
/// The compression is known and not supported, the body is not what the header says, or it has more than `limit` bytes
/// when decompressed.
pub fn decompress(body: Bytes, label: Option<&str>, limit: usize) -> Result<Bytes, CompressionError> {
    let Some(label) = label else {
        return Ok(body);
    };
    let codec = match label.to_ascii_lowercase().as_str() {
        "application/x-gzip" | "gzip" | "zlib" => Compression::Zlib,
        "application/x-bz2" | "bzip2" | "bz2" => Compression::Bzip2,
        "application/x-lzma" | "application/x-xz" | "application/zstd" | "application/x-brotli" => {
            return Err(CompressionError::Unsupported(label.to_owned()));
        }
        _ => return Ok(body),
    };
    let mut plain = Vec::new();
    let cap = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let result = match codec {
        Compression::Zlib => flate2::read::ZlibDecoder::new(body.as_ref())
            .take(cap)
            .read_to_end(&mut plain),
        Compression::Bzip2 => bzip2::read::BzDecoder::new(body.as_ref())
            .take(cap)
            .read_to_end(&mut plain),
    };
    if let Err(error) = result {
        return Err(CompressionError::Corrupt {
            label: label.to_owned(),
            reason: error.to_string(),
        });
    }
    if plain.len() > limit {
        return Err(CompressionError::TooLarge(limit));
    }
    Ok(Bytes::from(plain))
}

/// Compresses `body` and tells the `compression` header that goes with it.
///
/// # Errors
/// The compressor fails; writing to memory, it does not.
pub fn compress(body: &[u8], compression: Compression) -> io::Result<(&'static str, Bytes)> {
    Ok(match compression {
        Compression::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(body)?;
            ("application/x-gzip", encoder.finish()?.into())
        }
        Compression::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
            encoder.write_all(body)?;
            ("application/x-bz2", encoder.finish()?.into())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zlib(data: &[u8]) -> Bytes {
        compress(data, Compression::Zlib).unwrap().1
    }

    fn bz2(data: &[u8]) -> Bytes {
        compress(data, Compression::Bzip2).unwrap().1
    }

    #[test]
    fn gzip_means_zlib_under_both_names() {
        for label in ["application/x-gzip", "gzip"] {
            assert_eq!(decompress(zlib(b"{}"), Some(label), 10).unwrap(), "{}");
        }
        assert_eq!(
            decompress(bz2(b"{}"), Some("application/x-bz2"), 10).unwrap(),
            "{}"
        );
    }

    #[test]
    fn compressed_body_reads_back_by_its_header() {
        for compression in [Compression::Zlib, Compression::Bzip2] {
            let (label, body) = compress(b"{}", compression).unwrap();
            assert_ne!(body, "{}");
            assert_eq!(decompress(body, Some(label), 10).unwrap(), "{}");
        }
    }

    #[test]
    fn an_unknown_label_leaves_the_body_alone() {
        let body = Bytes::from_static(b"{}");
        assert_eq!(decompress(body.clone(), Some("none"), 10).unwrap(), body);
        assert_eq!(decompress(body.clone(), None, 10).unwrap(), body);
    }

    #[test]
    fn a_true_gzip_stream_is_refused() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(b"{}").unwrap();
        let body = Bytes::from(encoder.finish().unwrap());
        let error = decompress(body, Some("gzip"), 10).unwrap_err();
        assert!(matches!(error, CompressionError::Corrupt { .. }), "{error}");
    }

    #[test]
    fn a_bomb_stops_at_the_cap() {
        let zeros = vec![0; 1 << 20];
        for body in [zlib(&zeros), bz2(&zeros)] {
            assert!(body.len() < 10_000);
        }
        assert_eq!(
            decompress(zlib(&zeros), Some("gzip"), 1000),
            Err(CompressionError::TooLarge(1000))
        );
        assert_eq!(
            decompress(bz2(&zeros), Some("bzip2"), 1000),
            Err(CompressionError::TooLarge(1000))
        );
        assert_eq!(
            decompress(zlib(&zeros), Some("gzip"), 1 << 20).unwrap().len(),
            1 << 20
        );
    }

    #[test]
    fn a_codec_we_lack_is_named() {
        let error = decompress(Bytes::new(), Some("application/x-lzma"), 10).unwrap_err();
        assert!(error.to_string().contains("application/x-lzma"));
    }
}
