//! A GPU from a TOML file: the fields of [`Machine`] by their names, or those that differ from a GPU that is known.

use std::path::Path;

use lanky::text::read_text;
use model::machine::{Assumed, Name};
use model::{Machine, MachineError};
use toml::{Table, Value};

use super::gpu;
use crate::error::Fault;

/// The machine that a file describes.
///
/// # Errors
/// [`Fault::Input`], one line that starts with the path and names the field.
pub fn read(path: &Path) -> Result<Machine, Fault> {
    let text = read_text(path).map_err(|error| Fault::file(path, &error))?;
    parse(&text).map_err(|reason| Fault::at(path, &reason))
}

/// The machine that a text describes, or what is wrong with it.
fn parse(text: &str) -> Result<Machine, String> {
    let mut fields = Fields::of(text)?;
    let said: Vec<String> = fields.table.keys().cloned().collect();
    let machine = fields.machine()?;
    if let Some(unknown) = fields.table.keys().next() {
        return Err(format!("{unknown} is no field of a GPU"));
    }
    machine.check().map_err(|error: MachineError| match said.iter().any(|field| field == error.field) {
        true => error.to_string(),
        // What is inherited is right where it comes from: what the file says does not go with it.
        false => format!("{error}; that is from like, the file has {}", said.join(", ")),
    })?;
    // Measured on a GPU that others use too, reads may be any part of it; a file is written by a person.
    let (bus, most) = (machine.bus_bytes_per_s, IDLE * machine.read_bytes_per_s);
    match said.iter().any(|field| field == "bus_bytes_per_s") && bus > most {
        true => Err(format!("bus_bytes_per_s is {bus:e}: it must be up to {most:e} bytes/s, 4 of read_bytes_per_s")),
        false => Ok(machine),
    }
}

/// Times of what is read that the bus may give: a GK210 reads 0.64 of it, and bits are eight times as many.
const IDLE: f64 = 4.0;

/// The fields that are left to be read, and where those that are missing come from.
struct Fields {
    table: Table,
    like: Option<Machine>,
}

impl Fields {
    fn of(text: &str) -> Result<Self, String> {
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count()) + 1;
            let said = text.lines().nth(line - 1).and_then(|said| said.split_once('='));
            let field = said.map_or(String::new(), |(field, _)| format!("{}: ", field.trim()));
            format!("line {line}: {field}{}", error.message().lines().collect::<Vec<_>>().join(", "))
        })?;
        let like = match table.remove("like") {
            None => None,
            Some(Value::String(name)) => Some(gpu::by_name(&name).map_err(|error| format!("like: {error}"))?),
            Some(other) => return Err(wrong("like", "the name of a GPU", &other)),
        };
        Ok(Self { table, like })
    }

    fn machine(&mut self) -> Result<Machine, String> {
        // What the file says is known, and what it leaves to another GPU stays that one's.
        let said: Vec<String> = self.table.keys().cloned().collect();
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let assumed = self.like.map_or(Assumed::NONE, |like| like.assumed.without(&said));
        Ok(Machine {
            assumed,
            name: self.name()?,
            compute_capability: self.compute_capability()?,
            sms: self.count("sms", |m| m.sms)?,
            clock_hz: self.number("clock_hz", |m| m.clock_hz)?,
            registers_per_sm: self.count("registers_per_sm", |m| m.registers_per_sm)?,
            registers_per_block: self.count("registers_per_block", |m| m.registers_per_block)?,
            registers_per_thread: self.count("registers_per_thread", |m| m.registers_per_thread)?,
            register_granule: self.count("register_granule", |m| m.register_granule)?,
            register_partitions: self.count("register_partitions", |m| m.register_partitions)?,
            shared_per_sm: self.count("shared_per_sm", |m| m.shared_per_sm)?,
            shared_per_block: self.count("shared_per_block", |m| m.shared_per_block)?,
            shared_reserved: self.count("shared_reserved", |m| m.shared_reserved)?,
            shared_granule: self.count("shared_granule", |m| m.shared_granule)?,
            threads_per_sm: self.count("threads_per_sm", |m| m.threads_per_sm)?,
            threads_per_block: self.count("threads_per_block", |m| m.threads_per_block)?,
            blocks_per_sm: self.count("blocks_per_sm", |m| m.blocks_per_sm)?,
            l2_bytes: self.count("l2_bytes", |m| m.l2_bytes)?,
            l2_read_bytes_per_s: self.number("l2_read_bytes_per_s", |m| m.l2_read_bytes_per_s)?,
            bus_bytes_per_s: self.number("bus_bytes_per_s", |m| m.bus_bytes_per_s)?,
            read_bytes_per_s: self.number("read_bytes_per_s", |m| m.read_bytes_per_s)?,
            write_bytes_per_s: self.number("write_bytes_per_s", |m| m.write_bytes_per_s)?,
            memory_latency_s: self.number("memory_latency_s", |m| m.memory_latency_s)?,
            fma_f32_per_s: self.number("fma_f32_per_s", |m| m.fma_f32_per_s)?,
            fma_f64_per_s: self.number("fma_f64_per_s", |m| m.fma_f64_per_s)?,
            fma_latency_cycles: self.number("fma_latency_cycles", |m| m.fma_latency_cycles)?,
            mma_f64_per_s: self.number("mma_f64_per_s", |m| m.mma_f64_per_s)?,
            mma_tf32_per_s: self.number("mma_tf32_per_s", |m| m.mma_tf32_per_s)?,
            launch_s: self.number("launch_s", |m| m.launch_s)?,
        })
    }

    /// A field's value as `convert` has it, or that of the GPU that this one is like.
    fn take<T>(
        &mut self,
        field: &str,
        wants: &str,
        convert: impl Fn(&Value) -> Option<T>,
        known: impl Fn(&Machine) -> T,
    ) -> Result<T, String> {
        match (self.table.remove(field), &self.like) {
            (Some(value), _) => convert(&value).ok_or_else(|| wrong(field, wants, &value)),
            (None, Some(like)) => Ok(known(like)),
            (None, None) => Err(format!("{field} is missing; like = \"h200\" would take it from an H200")),
        }
    }

    fn count<T: TryFrom<i64>>(&mut self, field: &str, known: impl Fn(&Machine) -> T) -> Result<T, String> {
        self.take(
            field,
            "a whole number that is not negative and not too large",
            |value| T::try_from(value.as_integer()?).ok(),
            known,
        )
    }

    fn number(&mut self, field: &str, known: impl Fn(&Machine) -> f64) -> Result<f64, String> {
        let convert = |value: &Value| value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        self.take(field, "a number", convert, known)
    }

    /// A machine of another name is not the one that tables know by its name.
    fn name(&mut self) -> Result<Name, String> {
        let convert = |value: &Value| {
            value.as_str().filter(|text| !text.trim().is_empty() && !text.contains(char::is_control)).map(Name::new)
        };
        self.take("name", "some text without control characters", convert, |_| Name::new("the GPU of the file"))
    }

    fn compute_capability(&mut self) -> Result<(u32, u32), String> {
        let convert = |value: &Value| match value.as_array()?.as_slice() {
            [major, minor] => {
                Some((u32::try_from(major.as_integer()?).ok()?, u32::try_from(minor.as_integer()?).ok()?))
            }
            _ => None,
        };
        self.take("compute_capability", "two whole numbers, as [9, 0]", convert, |m| m.compute_capability)
    }
}

fn wrong(field: &str, wants: &str, value: &Value) -> String {
    format!("{field} is {value}: it wants {wants}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_what_differs() {
        let machine =
            parse("like = \"v100\"\nname = \"V100S\"\nbus_bytes_per_s = 1.134e12\nread_bytes_per_s = 1.1e12\nsms = 84")
                .expect("a machine");
        assert_eq!((machine.name.as_str(), machine.sms, machine.read_bytes_per_s), ("V100S", 84, 1.1e12));
        assert_eq!(machine.shared_per_sm, Machine::V100.shared_per_sm);
        assert_eq!(machine.assumed, Machine::V100.assumed);
        assert_eq!(parse("like = \"V100\"\nname = \"x\"").map(|machine| machine.sms), Ok(80));
        let launched = parse("like = \"v100\"\nlaunch_s = 3e-6").expect("a machine");
        assert!(launched.assumed.is_empty() && !Machine::V100.assumed.is_empty());
    }

    #[test]
    fn an_error_names_the_field() {
        for (text, error) in [
            ("sms = 132", "name is missing; like = \"h200\" would take it from an H200"),
            ("like = \"h200\"\nsms = 0", "sms is 0: it must be from 1 to 4096 multiprocessors"),
            ("like = \"h200\"\nsms = -1", "sms is -1: it wants a whole number that is not negative and not too large"),
            (
                "like = \"h200\"\nsms = \"many\"",
                "sms is \"many\": it wants a whole number that is not negative and not too large",
            ),
            (
                "like = \"h200\"\nread_bytes_per_s = nan",
                "read_bytes_per_s is NaN: it must be from 1e10 to 1e15 bytes/s",
            ),
            (
                "like = \"v100\"\nread_bytes_per_s = 1.1e12",
                "read_bytes_per_s is 1.1e12: it must be from 1e10 to 9.45e11 bytes/s, 1.05 of bus_bytes_per_s",
            ),
            ("like = \"h200\"\nclock_hz = 1.98", "clock_hz is 1.98: it must be from 1e8 to 1e10 Hz"),
            ("like = \"h200\"\nclock_ghz = 1.98", "clock_ghz is no field of a GPU"),
            (
                "like = \"h200\"\nshared_per_sm = 102400",
                "shared_per_block is 232448: it must be from 1024 to 102400 bytes; that is from like, the file has shared_per_sm",
            ),
            ("sms = 1\nsms = 1", "line 2: sms: duplicate key"),
            (
                "like = \"v100\"\nbus_bytes_per_s = 7.2e12",
                "bus_bytes_per_s is 7.2e12: it must be up to 3.52e12 bytes/s, 4 of read_bytes_per_s",
            ),
            ("like = 200", "like is 200: it wants the name of a GPU"),
            ("like = \"h200\"\nname = 7", "name is 7: it wants some text without control characters"),
            (
                "like = \"h200\"\nname = \"a\\u001b[31m\"",
                "name is \"a\\u001B[31m\": it wants some text without control characters",
            ),
            (
                "like = \"h200\"\ncompute_capability = 9",
                "compute_capability is 9: it wants two whole numbers, as [9, 0]",
            ),
        ] {
            assert_eq!(parse(text), Err(error.to_string()), "{text}");
        }
        let error = parse("sms = 1\nclock_hz = = 2").expect_err("no TOML");
        assert!(error.starts_with("line 2: ") && !error.contains('\n'), "{error}");
        assert!(parse("like = \"h300\"").is_err_and(|error| error.starts_with("like: unknown GPU 'h300'")));
    }

    /// A file with every field needs no other GPU.
    #[test]
    fn a_whole_machine_is_read_back() {
        let Machine { sms, clock_hz, .. } = Machine::A100;
        let text = format!(
            "name = \"{}\"\ncompute_capability = [8, 0]\nsms = {sms}\nclock_hz = {clock_hz}\nregisters_per_sm = 65536\n\
             registers_per_block = 65536\nregisters_per_thread = 255\nregister_granule = 256\nregister_partitions = 4\n\
             shared_per_sm = 167936\nshared_per_block = 166912\nshared_reserved = 1024\nshared_granule = 128\n\
             threads_per_sm = 2048\nthreads_per_block = 1024\nblocks_per_sm = 32\nl2_bytes = 41943040\n\
             l2_read_bytes_per_s = 0\nbus_bytes_per_s = 1.555e12\nread_bytes_per_s = 1.490e12\nwrite_bytes_per_s = 1.503e12\n\
             memory_latency_s = {}\nfma_f32_per_s = {}\nfma_f64_per_s = {}\nfma_latency_cycles = 4\n\
             mma_f64_per_s = {}\nmma_tf32_per_s = {}\nlaunch_s = 5e-6\n",
            Machine::A100.name,
            Machine::A100.memory_latency_s,
            Machine::A100.fma_f32_per_s,
            Machine::A100.fma_f64_per_s,
            Machine::A100.mma_f64_per_s,
            Machine::A100.mma_tf32_per_s,
        );
        assert_eq!(parse(&text), Ok(Machine { assumed: Assumed::NONE, ..Machine::A100 }));
    }
}
