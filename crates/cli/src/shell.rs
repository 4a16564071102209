//! What shells and man read: completions and pages, made from the command line's own description.

use std::fs;
use std::io::{self, Write};

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::error::Fault;

/// Writes the completions of a shell to standard output.
pub fn completions(args: &CompletionsArgs) -> Result<(), Fault> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "lanky", &mut script);
    write(&script)
}

/// Writes the page of the program to standard output, or those of all commands into a folder.
pub fn man(args: &ManArgs) -> Result<(), Fault> {
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(|error| Fault::stdout(&error))?;
        return write(&page);
    };
    fs::create_dir_all(folder).map_err(|error| Fault::file(folder, &error))?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(|error| Fault::file(folder, &error))
}

fn write(text: &[u8]) -> Result<(), Fault> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text).and_then(|()| stdout.flush()).map_err(|error| Fault::stdout(&error))
}
