//! `--color` and `--progress`, into pipes and on a terminal.

mod common;

use std::fs::File;
use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use common::{Array, Bench, text};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A terminal: what is written to the second can be read from the first.
fn terminal() -> (File, File) {
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("it may be used");
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&keyboard, size).expect("it has a size");
    let name = ptsname(&keyboard, Vec::new()).expect("a name").into_string().expect("a path");
    let screen = File::options().read(true).write(true).open(name).expect("its other end");
    (keyboard.into(), screen)
}

/// What arrives, as it arrives.
fn pieces(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut piece = [0; 4096];
        // A terminal whose other end is closed gives an error rather than nothing.
        while let Ok(len @ 1..) = from.read(&mut piece) {
            if send.send(piece[..len].to_vec()).is_err() {
                return;
            }
        }
    });
    receive
}

/// Everything that arrives until there is no more, or so much time has passed, or `enough` of it is there.
fn gathered(pieces: &Receiver<Vec<u8>>, time: Duration, enough: impl Fn(&str) -> bool) -> String {
    let (end, mut all) = (Instant::now() + time, Vec::new());
    loop {
        match pieces.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(piece) => all.extend(piece),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return text(&all),
        }
        if enough(&text(&all)) {
            return text(&all);
        }
    }
}

#[test]
fn colours_are_for_terminals_or_asked_for() {
    let bench = Bench::new();
    let coloured = |args: &[&str], no_color: bool| {
        let mut command = bench.command(args);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let output = command.output().expect("the program starts");
        output.stdout.contains(&0x1b) || output.stderr.contains(&0x1b)
    };
    // Help, an error of a command, and lines that are understood in part or not at all.
    for args in [
        &["--help"][..],
        &["plan", "2", "2", "2", "--variant", "nonsense"],
        &["nonsense"],
        &["mul"],
        &["plan", "two", "2", "2"],
        &["info", "--progress", "sometimes"],
    ] {
        assert!(!coloured(args, false), "{args:?} into a pipe");
        assert!(coloured(&[args, &["--color", "always"]].concat(), false), "{args:?}");
        assert!(coloured(&[args, &["--color=always"]].concat(), true), "{args:?}: the option is the later word");
        assert!(!coloured(&[args, &["--color", "never"]].concat(), false), "{args:?}");
    }
    bench.fail(2, &["info", "--color", "sometimes"]);
    bench.fail(2, &["info", "--progress", "sometimes"]);
}

#[test]
fn a_terminal_has_colours_unless_it_is_told_otherwise() {
    let bench = Bench::new();
    let on_a_terminal = |args: &[&str], variable: Option<(&str, &str)>| {
        let (keyboard, screen) = terminal();
        let mut command = bench.command(args);
        for variable in ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "CI"] {
            command.env_remove(variable); // with CI a dumb terminal has colours
        }
        command.env("TERM", "xterm");
        command.envs(variable).stdin(Stdio::null()).stdout(Stdio::null()).stderr(screen);
        let mut child = command.spawn().expect("the program starts");
        drop(command);
        let said = gathered(&pieces(keyboard), Duration::from_secs(20), |_| false);
        assert_eq!(child.wait().expect("it ends").code(), Some(2), "{said}");
        assert!(said.contains("lanky:"), "{said:?}");
        said.contains('\u{1b}')
    };
    for args in [&["nonsense"][..], &["plan", "2", "2", "2", "--variant", "nonsense"]] {
        assert!(on_a_terminal(args, None), "{args:?}");
        assert!(!on_a_terminal(args, Some(("NO_COLOR", "1"))), "{args:?}");
        assert!(!on_a_terminal(args, Some(("TERM", "dumb"))), "{args:?}");
        assert!(!on_a_terminal(&[args, &["--color", "never"]].concat(), None), "{args:?}");
        assert!(on_a_terminal(&[args, &["--color", "always"]].concat(), Some(("NO_COLOR", "1"))), "{args:?}");
    }
}

/// `lanky mul` with C going into a pipe that nobody reads yet, so that it writes until somebody does.
fn writing(bench: &Bench, args: &[&str], stderr: Stdio) -> Child {
    bench.put("tall.npy", Array::<f64>::integers(&[50_000, 2], 1, false).file(1));
    bench.put("good.npy", Array::<f64>::integers(&[2, 2], 1, false).file(1));
    let mul = ["mul", "tall.npy", "good.npy", "-o", "-", "--device", "cpu"];
    let mut command = bench.command(&[&mul[..], args].concat());
    command.env_remove("NO_COLOR").env("TERM", "xterm").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
    command.spawn().expect("the program starts")
}

/// Lets the program end, and gives the rest of what it says.
fn finish(mut child: Child, said: &Receiver<Vec<u8>>) -> String {
    let mut c = Vec::new();
    child.stdout.take().expect("a pipe").read_to_end(&mut c).expect("C");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(Array::<f64>::read(&c).shape, [50_000, 2], "the bar is not in the result");
    gathered(said, Duration::from_secs(20), |_| false)
}

/// The bar is there when the work has taken a second, which here is as long as nobody reads.
const TIME: Duration = Duration::from_secs(60);
/// Longer than the second after which a bar would be there.
const WHILE: Duration = Duration::from_millis(2500);

fn is_a_bar(said: &str) -> bool {
    said.contains("writing") && said.contains(" of ")
}

#[test]
fn a_terminal_has_a_bar_that_is_gone_in_the_end() {
    let bench = Bench::new();
    let (keyboard, screen) = terminal();
    let child = writing(&bench, &[], screen.into());
    let screen = pieces(keyboard);
    let said = gathered(&screen, TIME, is_a_bar);
    assert!(is_a_bar(&said), "{said:?}");
    let rest = finish(child, &screen);
    // The line is cleared before the result's is written.
    let (_, last) = rest.rsplit_once("\u{1b}[2K").expect("a line that is cleared");
    assert!(!last.contains("writing") && last.contains("tsmm"), "{rest:?}");

    let (keyboard, screen) = terminal();
    let child = writing(&bench, &["--progress", "never"], screen.into());
    let screen = pieces(keyboard);
    assert_eq!(gathered(&screen, WHILE, is_a_bar), "");
    assert!(!finish(child, &screen).contains("writing"));
}

#[test]
fn a_pipe_has_no_bar_unless_it_is_asked_for() {
    let bench = Bench::new();
    for args in [&[][..], &["--progress", "auto"], &["--progress=never"]] {
        let mut child = writing(&bench, args, Stdio::piped());
        let said = pieces(child.stderr.take().expect("a pipe"));
        assert_eq!(gathered(&said, WHILE, is_a_bar), "", "{args:?}");
        assert!(!finish(child, &said).contains("writing"), "{args:?}");
    }
    let mut child = writing(&bench, &["--progress", "always"], Stdio::piped());
    let said = pieces(child.stderr.take().expect("a pipe"));
    let bar = gathered(&said, TIME, is_a_bar);
    assert!(is_a_bar(&bar), "{bar:?}");
    // Lines of text: nothing that moves a cursor.
    let all = bar + &finish(child, &said);
    assert!(!all.contains('\u{1b}') && !all.contains('\r') && all.ends_with('\n'), "{all:?}");
}
