//! A guard for tests: this test binary again, since the programs are not built when unit tests run.

use std::ffi::OsString;

use magnum_driver_api::GuardProgram;
use magnum_engine_process::guard::{self, GuardArgs};

/// libtest prints to standard output, so the program's output goes through descriptor 3.
pub(crate) fn program() -> GuardProgram {
    let script = r#"tests=$1; shift; GUARD_ARGS=$(printf '%s\n' "$@") exec "$tests" --exact --nocapture tests::guard_of_tests::stands_in_for_the_guards_program 3>&1 >/dev/null"#;
    GuardProgram {
        program: "/bin/sh".into(),
        arguments: ["-c", script, "sh"]
            .iter()
            .map(OsString::from)
            .chain([std::env::current_exe().unwrap().into_os_string()])
            .collect(),
    }
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: GuardArgs,
}

#[test]
fn stands_in_for_the_guards_program() {
    let Ok(arguments) = std::env::var("GUARD_ARGS") else {
        return;
    };
    let line = <Line as clap::Parser>::parse_from(arguments.lines());
    let stdout = std::fs::OpenOptions::new()
        .write(true)
        .open("/proc/self/fd/3")
        .unwrap();
    std::process::exit(i32::from(guard::run(&line.args, stdout.into())));
}
