#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| magnum_fuzz::fuzz::csr(data));
