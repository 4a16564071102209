//! f32 in parts on the matrix units: planned where it is allowed, and nowhere else.

use super::*;
use lanky_host::{Determinism, Dtype, Error, Layout, Plan, PlanBuilder, Shape};

#[test]
fn f32_is_split_for_who_allows_it() {
    const NAME: &str = "split::f32_is_split_for_who_allows_it";
    with_driver(NAME, "sms=132", || {
        let device = Device::cuda(0)?;
        for layout in [Layout::ColumnMajor, Layout::RowMajor] {
            let builder = |dtype, n| {
                let shape = |rows, cols| Shape::packed(rows, cols, layout, dtype);
                Plan::gemm(&device, shape(20_480, 20_480), shape(20_480, n), shape(20_480, n))
            };
            let splits = |builder: PlanBuilder| Ok::<_, Error>(builder.build()?.to_string().contains("tsm2r_split"));
            for n in [24, 32, 48, 64] {
                // What is allowed is no part of what is remembered of the others, in either order.
                for _ in 0..2 {
                    assert!(!splits(builder(Dtype::F32, n))?, "{n} columns, {layout:?}: nobody allowed it");
                    assert!(splits(builder(Dtype::F32, n).split_f32())?, "{n} columns, {layout:?}");
                }
                assert!(!splits(builder(Dtype::F64, n).split_f32())?, "f64, {n} columns, {layout:?}");
                let across = builder(Dtype::F32, n).split_f32().determinism(Determinism::AcrossGpus);
                assert!(!splits(across)?, "{n} columns, {layout:?}: not all GPUs have it");
            }
            assert!(!splits(builder(Dtype::F32, 4).split_f32())?, "4 columns, {layout:?}: the memory is the bound");
            // Who names it allows it.
            assert!(splits(builder(Dtype::F32, 64).variant("tsm2r_split"))?);
        }
        Ok(())
    });
    with_driver(NAME, "sms=108 capability=80", || {
        let device = Device::cuda(0)?;
        let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F32);
        let builder = Plan::gemm(&device, shape(20_480, 20_480), shape(20_480, 64), shape(20_480, 64));
        assert!(!builder.clone().split_f32().build()?.to_string().contains("tsm2r_split"));
        let refused = builder.variant("tsm2r_split").build().expect_err("it has no such kernel");
        let text = "unsupported: variant tsm2r_split: it needs compute capability 9.0";
        assert!(refused.to_string().starts_with(text), "{refused}");
        Ok(())
    });
}
