//! Rebuilds this crate when a migration is added: the embedded ones are read at compile time, and Cargo sees
//! no file that names them.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
