//! What each fuzz target begins with: recordings of real peers, requests made by OpenSSL, the sample configuration.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_cert::der::{DecodePem as _, Encode as _};
use x509_cert::ext::Extension;
use x509_cert::request::CertReq;

use crate::fuzz::{EXTENSIONS, TARGETS};

/// The seeds of the target of this name.
///
/// # Errors
/// A file of `tests/fixtures` cannot be read, or there is no such target.
pub fn seeds(target: &str) -> Result<Vec<Vec<u8>>> {
    match target {
        "message" => messages(),
        "object" => objects(),
        "csr" => requests(),
        "config" => configurations(),
        other => bail!("{other} has no seeds: add them here"),
    }
}

/// Writes the seeds of every target to `folder/TARGET/`, as the fuzzer reads them: one file each.
///
/// # Errors
/// As [`seeds`]; or a file cannot be written.
pub fn write(folder: &Path) -> Result<()> {
    for (target, _) in TARGETS {
        let folder = folder.join(target);
        fs::create_dir_all(&folder)?;
        for (number, seed) in seeds(target)?.into_iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:03}")), seed)?;
        }
    }
    Ok(())
}

fn fixture(path: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// The texts of a folder's files whose names begin and end so, by name.
fn fixtures(folder: &str, begin: &str, end: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("fixtures")
            .join(folder),
    )? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(begin) && name.ends_with(end) {
            names.push(format!("{folder}/{name}"));
        }
    }
    names.sort();
    names.iter().map(|name| fixture(name)).collect()
}

fn messages() -> Result<Vec<Vec<u8>>> {
    let mut seeds = Vec::new();
    for text in fixtures("rpc", "re", ".json")? {
        let frame: Value = serde_json::from_str(&text)?;
        let kind = frame["properties"]["content_type"].as_str().unwrap_or_default();
        let kind = if kind.contains("msgpack") { 2 } else { 1 };
        let label = match frame["headers"]["compression"].as_str() {
            Some("application/x-gzip") => 1 << 2,
            Some(_) => 2 << 2,
            None => 0,
        };
        let body = frame["body"].as_str().context("a frame without a body")?;
        let body = match frame["body_encoding"].as_str() {
            Some("base64") => STANDARD.decode(body)?,
            _ => body.as_bytes().to_vec(),
        };
        seeds.push([&[label | kind], body.as_slice()].concat());
    }
    Ok(seeds)
}

fn objects() -> Result<Vec<Vec<u8>>> {
    let lines = fixture("objects/recorded.jsonl")?;
    let objects = lines.lines().map(|line| {
        let line: Value = serde_json::from_str(line)?;
        Ok(line["object"].to_string().into_bytes())
    });
    objects.collect()
}

/// Each request as it is, then its parts as [`crate::fuzz::csr`] takes them; and the text of the recorded one.
fn requests() -> Result<Vec<Vec<u8>>> {
    let mut seeds = Vec::new();
    let frame: Value = serde_json::from_str(&fixture("rpc/request-sign_certificate.json")?)?;
    let csr = frame["inner"]["args"]["certificate"]["magnum_object.data"]["csr"].as_str();
    seeds.push([&[0], csr.context("a recording without a request")?.as_bytes()].concat());
    for text in fixtures("csr", "", ".pem")? {
        seeds.push([&[0], text.as_bytes()].concat());
        // Some are broken on purpose.
        let Ok(request) = CertReq::from_pem(&text) else {
            continue;
        };
        seeds.push([&[1], request.info.to_der()?.as_slice()].concat());
        for value in request
            .info
            .attributes
            .iter()
            .flat_map(|attribute| attribute.values.iter())
        {
            seeds.push([&[2], value.to_der()?.as_slice()].concat());
            for extension in value.decode_as::<Vec<Extension>>().unwrap_or_default() {
                let known = EXTENSIONS
                    .iter()
                    .position(|oid| *oid == extension.extn_id.as_bytes());
                let Some(which) = known.and_then(|which| u8::try_from(which).ok()) else {
                    continue;
                };
                let which = which | if extension.critical { 0x80 } else { 0 };
                seeds.push([&[3, which], extension.extn_value.as_bytes()].concat());
            }
        }
    }
    Ok(seeds)
}

/// Every option in effect, by itself and all together.
fn configurations() -> Result<Vec<Vec<u8>>> {
    let sample = fixture("../../deploy/config/magnum.conf.sample")?;
    let effective = sample.replace("\n#", "\n");
    let mut all = vec![sample.into_bytes(), effective.clone().into_bytes()];
    all.extend(effective.split("\n\n").map(|part| part.as_bytes().to_vec()));
    Ok(all)
}
