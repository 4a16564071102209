//! A program of somebody who wants lanky's model alone: no GPU, no driver, no other crate.
use lanky::model::{self, Dtype, Machine, Problem};

fn main() {
    let problem = Problem::column_major(Dtype::F64, 20480, 4, 20480);
    match model::choose(&problem, &Machine::H200, None) {
        Ok(choice) => println!("{choice}"),
        Err(refusal) => panic!("{refusal}"),
    }
}
