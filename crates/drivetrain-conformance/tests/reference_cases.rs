//! PyTorch's cases of single ops on the reference device, which has primitives only: what holds here holds of
//! core's decompositions.

use drivetrain_conformance::{Options, Suite, reference, run};
use drivetrain_core::DType;

/// Cases of whole models and of training, which prove other crates.
const NOT_OPS: [&str; 8] = [
    "lstm",
    "gru",
    "multihead_attention",
    "transformer_encoder_layer",
    "optimizer",
    "lr_schedule",
    "clip_grad_norm",
    "train",
];

#[test]
fn decompositions_give_what_pytorch_gives() {
    let suite = Suite::embedded().unwrap();
    let device = reference::device();
    let ops = suite.cases.iter().map(|case| case.op.clone());
    let only: Vec<String> = ops.filter(|op| !NOT_OPS.contains(&op.as_str())).collect();
    for dtype in [DType::F64, DType::F32, DType::BF16] {
        let options = Options {
            dtype,
            only: only.clone(),
            ..Options::default()
        };
        let report = run(&device, &suite, &options);
        assert!(report.failures.is_empty(), "{dtype}: {report}");
        assert!(report.passed > 300, "{dtype}: {report}");
    }
}
