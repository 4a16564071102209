//! What shells and man read: completions and pages, made from the command line's own description.

use std::fs;
use std::io::{self, Write};

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::error::Fault;
use crate::output;

/// Writes the completions of a shell to standard output.
pub fn completions(args: &CompletionsArgs) -> Result<(), Fault> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "lanky", &mut script);
    write(&script)
}

/// Writes the page of the program to standard output, or those of all commands into a folder.
pub fn man(args: &ManArgs) -> Result<(), Fault> {
    let mut program = Cli::command();
    let Some(folder) = &args.out else { return write(rendered(&Man::new(program))?.as_bytes()) };
    fs::create_dir_all(folder).map_err(|error| Fault::file(folder, &error))?;
    // Each command then calls itself by the whole of its name: `lanky mul`.
    program.build();
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
    commands.chain([&program]).try_for_each(|command| {
        let man = Man::new(command.clone());
        output::write(&folder.join(man.get_filename()), &rendered(&man)?)
    })
}

fn rendered(man: &Man) -> Result<String, Fault> {
    let mut page = Vec::new();
    man.render(&mut page).map_err(|error| Fault::Input(format!("the man page: {error}")))?;
    String::from_utf8(page).map_err(|error| Fault::Input(format!("the man page: {error}")))
}

fn write(text: &[u8]) -> Result<(), Fault> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text).and_then(|()| stdout.flush()).map_err(|error| Fault::stdout(&error))
}
