//! What each kernel of `kernels` must contain and compute.

/// A kernel: its instructions, how it is launched, and what it makes of its input.
pub struct Case {
    pub entry: &'static str,
    pub instructions: &'static [&'static str],
    pub needs_sm_90: bool,
    pub blocks: (u32, u32, u32),
    pub threads: (u32, u32, u32),
    pub input: Vec<u8>,
    pub expected: Vec<u8>,
}

impl Case {
    /// One warp that reads one word and writes nothing.
    pub fn new(entry: &'static str, instructions: &'static [&'static str]) -> Self {
        Case {
            entry,
            instructions,
            needs_sm_90: false,
            blocks: (1, 1, 1),
            threads: (32, 1, 1),
            input: vec![0; 8],
            expected: Vec::new(),
        }
    }

    fn input<T: Number>(self, input: &[T]) -> Self {
        Case { input: T::bytes(input), ..self }
    }

    fn gives<T: Number>(self, expected: &[T]) -> Self {
        Case { expected: T::bytes(expected), ..self }
    }

    fn launched(self, blocks: (u32, u32, u32), threads: (u32, u32, u32)) -> Self {
        Case { blocks, threads, ..self }
    }

    fn needs_sm_90(self) -> Self {
        Case { needs_sm_90: true, ..self }
    }
}

/// What kernels read and write.
trait Number: Copy {
    fn bytes(numbers: &[Self]) -> Vec<u8>;
}

/// A number of the machine's.
macro_rules! number {
    ($($type:ident)*) => {$(
        impl Number for $type {
            fn bytes(numbers: &[$type]) -> Vec<u8> {
                numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
            }
        }
    )*};
}
number!(u32 f32 f64);

/// `len` numbers, by place.
fn each<T>(len: u32, number: impl Fn(u32) -> T) -> Vec<T> {
    (0..len).map(number).collect()
}

/// All cases; an entry may have several.
pub fn table() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(threads());
    cases.extend(barriers());
    cases.extend(shuffles());
    cases.extend(votes());
    cases.extend(global_f32());
    cases.extend(global_f64());
    cases.extend(shared());
    cases.extend(copies());
    cases.extend(bulk_copies());
    cases.extend(arithmetic());
    cases.extend(atomics());
    cases.extend(matrices());
    cases
}

fn threads() -> [Case; 3] {
    let (blocks, threads) = ((2, 3, 2), (4, 4, 2));
    let at = |place: u32, of: (u32, u32, u32)| [place % of.0, place / of.0 % of.1, place / of.0 / of.1];
    let of = |(x, y, z): (u32, u32, u32)| [x, y, z];
    let registers: Vec<u32> = (0..12 * 32)
        .flat_map(|place| [at(place % 32, threads), at(place / 32, blocks), of(threads), of(blocks)].concat())
        .collect();
    [
        Case::new(
            "registers",
            &[
                "%tid.x",
                "%tid.y",
                "%tid.z",
                "%ctaid.x",
                "%ctaid.y",
                "%ctaid.z",
                "%ntid.x",
                "%ntid.y",
                "%ntid.z",
                "%nctaid.x",
                "%nctaid.y",
                "%nctaid.z",
            ],
        )
        .launched(blocks, threads)
        .gives(&registers),
        Case::new("index_1d", &["%ctaid.x", "%ntid.x", "%tid.x"])
            .launched((3, 1, 1), (32, 1, 1))
            .gives(&each(96, |i| 1000 * (i / 32) + i % 32)),
        Case::new("lane_id", &["%laneid"]).launched((1, 1, 1), (64, 1, 1)).gives(&each(64, |t| t % 32)),
    ]
}

fn barriers() -> [Case; 6] {
    let pairs = |even: u32, odd: u32| each(128, move |i| if i % 2 == 0 { even } else { odd });
    let numbers = each(64, |i| 5 * i + 1);
    [
        Case::new("sync_threads", &["bar.sync"])
            .launched((1, 1, 1), (64, 1, 1))
            .input(&numbers)
            .gives(&each(64, |t| 5 * (63 - t) + 1)),
        Case::new("sync_threads_count", &["barrier.red.popc.u32"]).launched((1, 1, 1), (64, 1, 1)).gives(&[40_u32; 64]),
        Case::new("sync_threads_and", &["barrier.red.and.pred"]).launched((1, 1, 1), (64, 1, 1)).gives(&pairs(0, 1)),
        Case::new("sync_threads_or", &["barrier.red.or.pred"])
            .launched((1, 1, 1), (64, 1, 1))
            .input(&[0_u32])
            .gives(&pairs(1, 0)),
        Case::new("sync_warp", &["bar.warp.sync"]).input(&numbers).gives(&each(32, |t| 5 * (t ^ 1) + 1)),
        Case::new("device_fence", &["fence.sc.gpu"]).gives(&each(64, |i| i % 32 + 1 + i / 32)),
    ]
}

fn shuffles() -> [Case; 5] {
    let value = |t: u32| 7 * t + 100;
    // A lane's source within segments of `width`, `None` out of reach; then value and flag of both widths.
    let words = |source: &dyn Fn(u32, u32) -> Option<u32>| -> Vec<u32> {
        let pair = |t, width| source(t, width).map_or([value(t), 0], |lane| [value(lane), 1]);
        (0..32).flat_map(|t| [pair(t, 32), pair(t, 8)].concat()).collect()
    };
    let end = |t: u32, width: u32| t / width * width + width;
    let case = |entry, instructions, source: &dyn Fn(u32, u32) -> Option<u32>| {
        Case::new(entry, instructions).input(&each(32, value)).gives(&words(source))
    };
    let doubles = each(32, |t| f64::from(t) / 3.0);
    [
        case("warp_shuffle_idx", &["shfl.sync.idx.b32"], &|t, width| Some(t / width * width + 11 % width)),
        case("warp_shuffle_up", &["shfl.sync.up.b32"], &|t, width| (t % width >= 3).then(|| t - 3)),
        case("warp_shuffle_down", &["shfl.sync.down.b32"], &|t, width| Some(t + 5).filter(|&to| to < end(t, width))),
        case("warp_shuffle_xor", &["shfl.sync.bfly.b32"], &|t, width| Some(t ^ 9).filter(|&to| to < end(t, width))),
        Case::new("shuffle_of_f64", &["shfl.sync.bfly.b32"])
            .input(&doubles)
            .gives(&each(32, |t| f64::from(t ^ 16) / 3.0)),
    ]
}

fn votes() -> [Case; 3] {
    // Lane and value are the same: those of thirds, those above 17.
    let mask = |yes: &dyn Fn(u32) -> bool| (0..32).filter(|&t| yes(t)).map(|t| 1 << t).sum::<u32>();
    let case = |entry, instructions, [thirds, all, none, upper]: [u32; 4]| {
        let words = (0..32_u32).flat_map(|t| [thirds, all, none, if t >= 16 { upper } else { 0 }]);
        Case::new(entry, instructions).input(&each(32, |t| t)).gives(&words.collect::<Vec<u32>>())
    };
    [
        case("warp_vote_all", &["vote.sync.all.pred"], [0, 1, 0, 0]),
        case("warp_vote_any", &["vote.sync.any.pred"], [1, 1, 0, 1]),
        case("warp_vote_ballot", &["vote.sync.ballot.b32"], [mask(&|t| t % 3 == 0), u32::MAX, 0, mask(&|t| t > 17)]),
    ]
}

fn global_f32() -> [Case; 5] {
    let number = |i: u32| i as f32 * 1.5 + 0.25;
    let thirds = each(32, |t| if t % 3 == 0 { 0.0 } else { number(t) });
    let (some, many) = (each(32, number), each(128, number));
    [
        Case::new("load_f32", &["ld.global.b32", "st.global.b32"])
            .input(&some)
            .gives(&each(32, |t| number(31 - t) + 1.0)),
        Case::new("load_if_f32", &["@p ld.global.nc.b32"]).input(&some).gives(&thirds),
        Case::new("coherent_if_f32", &["@p ld.global.b32"]).input(&some).gives(&thirds),
        Case::new("stream_if_f32", &["@p ld.global.nc.L1::evict_first.b32"]).input(&some).gives(&thirds),
        Case::new("stream_wide_f32", &["ld.global.nc.L1::evict_first.v4.b32"])
            .input(&many)
            .gives(&each(128, |i| number(4 * (31 - i / 4) + i % 4))),
    ]
}

fn global_f64() -> [Case; 5] {
    let number = |i: u32| f64::from(i) * 1.25 + 0.125;
    let thirds = each(32, |t| if t % 3 == 0 { 0.0 } else { number(t) });
    let (some, many) = (each(32, number), each(64, number));
    [
        Case::new("load_f64", &["ld.global.b64", "st.global.b64"])
            .input(&some)
            .gives(&each(32, |t| number(31 - t) + 1.0)),
        Case::new("load_if_f64", &["@p ld.global.nc.b64"]).input(&some).gives(&thirds),
        Case::new("coherent_if_f64", &["@p ld.global.b64"]).input(&some).gives(&thirds),
        Case::new("stream_if_f64", &["@p ld.global.nc.L1::evict_first.b64"]).input(&some).gives(&thirds),
        Case::new("stream_wide_f64", &["ld.global.nc.L1::evict_first.v2.b64"])
            .input(&many)
            .gives(&each(64, |i| number(2 * (31 - i / 2) + i % 2))),
    ]
}

fn shared() -> [Case; 10] {
    let (single, double) = (|i: u32| i as f32 * 1.5 + 0.25, |i: u32| f64::from(i) * 1.25 + 0.125);
    [
        Case::new("opaque", &["mov.u32", ".pragma \"nounroll\";"]).gives(&each(32, |t| t + 5)),
        Case::new("starting_at", &["ld.global.b32", "st.global.b32"])
            .input(&each(32, |t| t as f32))
            .gives(&each(32, |t| (31 - t) as f32)),
        Case::new("pinned", &["shfl.sync.bfly.b32"]).gives(&each(32, |t| t)),
        Case::new("dynamic_shared", &["lanky_dynamic_shared"]).gives(&[0_u32; 32]),
        Case::new("shared_f32", &["st.shared.b32", "ld.shared.b32"])
            .input(&each(32, single))
            .gives(&each(32, |t| single(31 - t))),
        Case::new("shared_f64", &["st.shared.b64", "ld.shared.b64"])
            .input(&each(32, double))
            .gives(&each(32, |t| double(31 - t))),
        Case::new("shared_wide_f32", &["ld.shared.v4.b32"])
            .input(&each(128, single))
            .gives(&each(128, |i| single(4 * (31 - i / 4) + i % 4))),
        Case::new("shared_wide_f64", &["ld.shared.v2.b64"])
            .input(&each(64, double))
            .gives(&each(64, |i| double(2 * (31 - i / 2) + i % 2))),
        Case::new(
            "stored_wide_f32",
            &["@p ld.global.nc.L1::evict_first.v4.b32", "st.shared.v4.b32", "st.global.v4.b32"],
        )
        .input(&each(128, single))
        .gives(&each(128, |i| if (31 - i / 4) % 3 == 0 { 0.0 } else { single(4 * (31 - i / 4) + i % 4) })),
        Case::new(
            "stored_wide_f64",
            &["@p ld.global.nc.L1::evict_first.v2.b64", "st.shared.v2.b64", "st.global.v2.b64"],
        )
        .input(&each(64, double))
        .gives(&each(64, |i| if (31 - i / 2) % 3 == 0 { 0.0 } else { double(2 * (31 - i / 2) + i % 2) })),
    ]
}

fn copies() -> [Case; 5] {
    let (single, double) = (|i: u32| i as f32 * 1.5 + 0.25, |i: u32| f64::from(i) * 1.25 + 0.125);
    // Thread 31 - t copied what t reads.
    let outside = |t: u32| (31 - t) % 4 == 0;
    [
        Case::new("cp_async_16", &["cp.async.cg.shared.global"])
            .input(&each(128, single))
            .gives(&each(128, |i| if outside(i / 4) { 0.0 } else { single(4 * (31 - i / 4) + i % 4) })),
        Case::new("cp_async_16_first", &["cp.async.cg.shared.global"])
            .input(&each(128, single))
            .gives(&each(128, |i| if i % 4 < (31 - i / 4) % 4 { single(4 * (31 - i / 4) + i % 4) } else { 0.0 })),
        Case::new("cp_async_8", &["cp.async.ca.shared.global"])
            .input(&each(32, double))
            .gives(&each(32, |t| if outside(t) { 0.0 } else { double(31 - t) })),
        Case::new("cp_async_4", &["cp.async.ca.shared.global"])
            .input(&each(32, single))
            .gives(&each(32, |t| if outside(t) { 0.0 } else { single(31 - t) })),
        Case::new("cp_async_groups", &["cp.async.commit_group", "cp.async.wait_group 1", "cp.async.wait_group 0"])
            .input(&each(64, double))
            .gives(&each(64, |i| double(i ^ 1))),
    ]
}

fn bulk_copies() -> [Case; 4] {
    const LOAD: &[&str] = &[
        "mbarrier.init.shared.b64",
        "fence.proxy.async.shared::cta",
        "mbarrier.arrive.expect_tx.shared.b64",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
        "mbarrier.try_wait.parity.shared.b64",
    ];
    const STORE: &[&str] = &[
        "fence.proxy.async.shared::cta",
        "cp.async.bulk.global.shared::cta.bulk_group",
        "cp.async.bulk.commit_group",
        "cp.async.bulk.wait_group.read 0",
        "cp.async.bulk.wait_group 0",
    ];
    let number = |i: u32| i as f32 * 1.5 + 0.25;
    let reversed = |i: u32| if i == 32 { number(31) + 1.0 } else { number(31 - i) };
    [
        Case::new("bulk_load", LOAD).input(&each(36, number)).gives(&each(32, |t| number(4 + 31 - t))),
        Case::new("bulk_phases", LOAD).input(&each(96, number)).gives(&each(96, |i| number(i ^ 1))),
        Case::new("bulk_store", STORE).input(&each(32, number)).gives(&each(33, reversed)),
        Case::new("bulk_groups", &["cp.async.bulk.wait_group.read 1"])
            .input(&each(64, number))
            .gives(&each(64, number)),
    ]
    .map(Case::needs_sm_90)
}

fn arithmetic() -> [Case; 4] {
    // Their squares have more digits than fit.
    let (single, double) = (|t: u32| 1.0 + t as f32 / 8192.0, |t: u32| 1.0 + f64::from(t) / f64::from(1 << 28));
    [
        Case::new("fma_f32", &["fma.rn.f32"])
            .input(&each(32, single))
            .gives(&each(32, |t| single(t).mul_add(single(t), -1.0))),
        Case::new("fma_f64", &["fma.rn.f64"])
            .input(&each(32, double))
            .gives(&each(32, |t| double(t).mul_add(double(t), -1.0))),
        Case::new("apart_f32", &["mul.rn.f32", "add.rn.f32"])
            .input(&each(32, |t| single(t) / 3.0))
            .gives(&each(32, |t| single(t) / 3.0 * (single(t) / 3.0) + single(t) / 3.0)),
        Case::new("apart_f64", &["mul.rn.f64", "add.rn.f64"])
            .input(&each(32, |t| double(t) / 3.0))
            .gives(&each(32, |t| double(t) / 3.0 * (double(t) / 3.0) + double(t) / 3.0)),
    ]
}

fn atomics() -> [Case; 3] {
    // Sums of the even and of the odd numbers below 32, each plus 16 ones: exact in any order.
    let (even, odd) = (240 + 16, 256 + 16);
    let mut tickets = vec![64_u32];
    tickets.extend((0..63).map(|place| if place % 2 == 0 { 7 } else { 0 }));
    [
        Case::new("red_add_f32", &["red.global.add.f32"])
            .input(&each(32, |t| t as f32 + 1.0))
            .gives(&[even as f32, odd as f32]),
        Case::new("red_add_f64", &["red.global.add.f64"])
            .input(&each(32, |t| f64::from(t) + 1.0))
            .gives(&[f64::from(even), f64::from(odd)]),
        Case::new("atom_add_u32", &["atom.global.add.u32"]).gives(&tickets),
    ]
}

const MMA_K4: &[&str] = &["mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64"];
const MMA_K8: &[&str] = &["mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64"];
const MMA: &[&str] = &["mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"];

/// D = A B + C as a chain of fused multiply-adds over l in ascending order.
fn product(a: &[f64], b: &[f64], c: &[f64]) -> Vec<f64> {
    let steps = b.len() / 8;
    let element = |place: usize| {
        let (i, j) = (place / 8, place % 8);
        (0..steps).fold(c[place], |sum, l| a[steps * i + l].mul_add(b[8 * l + j], sum))
    };
    (0..128).map(element).collect()
}

/// The same by the instruction that drops the last 13 bits of f32: numbers that have them, and sums that need no rounding.
fn short_product() -> Case {
    let (a, b) = (each(128, |i| 1.0 + (i + 1) as f32), each(64, |i| 1001.0 + i as f32));
    let c = each(128, |i| 5001.0 + i as f32);
    let element = |place: usize| (0..8).fold(c[place], |sum, l| sum + a[8 * (place / 8) + l] * b[8 * l + place % 8]);
    let d: Vec<f32> = (0..128).map(element).collect();
    // A bit behind the eleventh: of A of the last that is looked at half, of B all that are not.
    let more = |x: &f32, bits: u32| f32::from_bits(x.to_bits() | bits);
    let (a, b): (Vec<f32>, Vec<f32>) =
        (a.iter().map(|x| more(x, 1 << 12)).collect(), b.iter().map(|x| more(x, (1 << 13) - 1)).collect());
    Case::new("mma_m16n8k8_tf32", &["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"])
        .input(&[a, b, c].concat())
        .gives(&d)
}

fn matrices() -> [Case; 8] {
    let case = |a: Vec<f64>, b: Vec<f64>, c: Vec<f64>| {
        let d = product(&a, &b, &c);
        let (entry, mnemonic) = match b.len() {
            32 => ("mma_m16n8k4_f64", MMA_K4),
            64 => ("mma_m16n8k8_f64", MMA_K8),
            _ => ("mma_m16n8k16_f64", MMA),
        };
        Case::new(entry, mnemonic).needs_sm_90().input(&[a, b, c].concat()).gives(&d)
    };
    let whole = |first: u32| move |i: u32| f64::from(first + i);
    // Far from whole, of both signs and several magnitudes: every rounding shows.
    let rough = |seed: f64| move |i: u32| (f64::from(i + 1) * seed).sin() * f64::from(i % 5 + 1).exp();
    let mut some = vec![0.0; 64];
    some.extend((16..32).flat_map(|lane| {
        // Each sum adds four times the numbers of the four lanes of its row; rows from 8 on are the same lanes'.
        let row = f64::from(lane / 4 * 4);
        [4.0 * (4.0 * row + 6.0); 4]
    }));
    [
        case(each(64, whole(1)), each(32, whole(1001)), each(128, whole(5001))),
        case(each(64, rough(0.7)), each(32, rough(1.3)), each(128, rough(2.9))),
        case(each(128, whole(1)), each(64, whole(1001)), each(128, whole(5001))),
        case(each(128, rough(0.7)), each(64, rough(1.3)), each(128, rough(2.9))),
        case(each(256, whole(1)), each(128, whole(1001)), each(128, whole(5001))),
        case(each(256, rough(0.7)), each(128, rough(1.3)), each(128, rough(2.9))),
        short_product(),
        Case::new("mma_for_some", MMA).needs_sm_90().input(&each(32, f64::from)).gives(&some),
    ]
}

/// Results that a wrong instruction would give too would show nothing.
#[test]
fn the_table_tells_right_from_wrong() {
    let different = |entry: &str, wrong: Vec<u8>| {
        let case = table().into_iter().find(|case| case.entry == entry).expect("it is in the table");
        assert_eq!(case.expected.len(), wrong.len());
        assert_ne!(case.expected, wrong, "{entry}");
    };
    let single = |t: u32| 1.0 + t as f32 / 8192.0;
    different("fma_f32", f32::bytes(&each(32, |t| single(t) * single(t) - 1.0)));
    different("apart_f32", f32::bytes(&each(32, |t| (single(t) / 3.0).mul_add(single(t) / 3.0, single(t) / 3.0))));
    let double = |t: u32| 1.0 + f64::from(t) / f64::from(1 << 28);
    different("fma_f64", f64::bytes(&each(32, |t| double(t) * double(t) - 1.0)));
    different("apart_f64", f64::bytes(&each(32, |t| (double(t) / 3.0).mul_add(double(t) / 3.0, double(t) / 3.0))));
}
