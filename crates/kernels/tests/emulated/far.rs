//! Lines, and matrices of a batch, that are further apart than 32 bits count: every entry finds them, and touches nothing between them.

use crate::batched::{self, Follow};
use crate::harness::{Case, FAR, check};
use crate::numbers::tried;
use crate::places::{cases, takes};
use model::variants::batched::{BATCHED, Design};

#[test]
fn lines_of_products() {
    let mut checked = 0;
    for variant in tried() {
        for (at, case) in cases(variant).into_iter().filter(|case| takes(variant, *case)).enumerate() {
            let [a, b, _] = case.by_rows;
            let case =
                Case { by_rows: [a, b, at % 2 == 1], gap: FAR, offset: at / 2 % 2, beta: [0.0, 1.0][at / 2], ..case };
            check(variant, case);
            checked += 1;
        }
    }
    assert!(checked > tried().count(), "{checked} cases");
}

/// Strided and listed; and the lines of one matrix.
#[test]
fn matrices_of_batches() {
    let far = |follow| match follow {
        Follow::Gap(_) => Follow::Gap(FAR),
        Follow::Listed(_) => Follow::Listed(FAR),
        Follow::Shared => follow,
    };
    // Those that are packed have no lines and no matrices that are apart.
    for variant in BATCHED.iter().filter(|variant| !variant.is_packed()) {
        let cases = batched::cases(variant).into_iter().filter(|case| case.sizes[2] > 0 && case.count > 1);
        for (at, case) in cases.enumerate().filter(|(at, _)| at % 9 < 2) {
            let case = match at % 9 {
                // A matrix without gaps has no such lines.
                _ if at % 9 == 0 || variant.design() == Design::Flat => {
                    batched::Case { follow: case.follow.map(far), ..case }
                }
                _ => batched::Case { count: 1, gaps: [FAR; 3], follow: [Follow::Gap(0); 3], ..case },
            };
            batched::check(variant, case);
        }
    }
}
