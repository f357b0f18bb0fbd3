//! What an engine is made from.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use magnum_drivers::DriverFolder;

/// Everything the engine of one driver may use.
#[derive(Debug, Clone)]
pub struct EngineHost {
    /// The driver's folder, with its manifest and the settings in it.
    pub folder: DriverFolder,
    /// What the conductor offers to all engines.
    pub services: EngineServices,
}

/// What the conductor offers to all engines: one for a process, cheap to clone.
#[derive(Debug, Clone)]
pub struct EngineServices {
    /// How to start a guard for a program.
    pub guard: GuardProgram,
    /// The term of an operation's lease. It is renewed at a third; when it was not, everything that an engine has
    /// started outside of this process must have ended before two thirds of it are over.
    pub lease: Duration,
}

/// How to start a guard, the small process that ends a driver's program when the conductor cannot.
#[derive(Debug, Clone)]
pub struct GuardProgram {
    /// The program, which must know the guard's sub-command.
    pub program: PathBuf,
    /// Arguments before the sub-command.
    pub arguments: Vec<OsString>,
}

impl GuardProgram {
    /// The running program itself. On Linux by its inode, so that a package upgrade under a running conductor
    /// does not change or break its guards.
    ///
    /// # Errors
    /// The program does not know its own file.
    pub fn this_program() -> io::Result<Self> {
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe()?
        };
        Ok(Self {
            program,
            arguments: Vec::new(),
        })
    }
}
