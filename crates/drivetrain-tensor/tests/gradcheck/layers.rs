//! Convolutions, pooling, norms, attention, resizing, losses.

use crate::check::{ANY, Checker, cpu, weights};
use drivetrain_core::Composite;
use drivetrain_tensor::{
    AvgPoolOptions, ConvOptions, ConvTransposeOptions, FoldOptions, MaxPoolOptions, Result, Tensor,
};

#[test]
fn convolutions() {
    let mut checker = Checker::default();
    let wide = ConvOptions::default().stride(2).padding(1);
    checker.check("conv1d", &[&[2, 2, 6], &[3, 2, 3], &[3]], ANY, &|x| {
        x[0].conv1d(&x[1], Some(&x[2]), &wide)
    });
    checker.check("conv2d", &[&[1, 2, 4, 4], &[2, 2, 3, 2], &[2]], ANY, &|x| {
        x[0].conv2d(&x[1], Some(&x[2]), &ConvOptions::default().padding(1))
    });
    checker.check(
        "conv2d groups",
        &[&[1, 4, 3, 3], &[4, 2, 2, 2]],
        ANY,
        &|x| x[0].conv2d(&x[1], None, &ConvOptions::default().groups(2).dilation(2)),
    );
    checker.check("conv3d", &[&[1, 1, 3, 2, 3], &[1, 1, 2, 2, 2]], ANY, &|x| {
        x[0].conv3d(&x[1], None, &ConvOptions::default())
    });
    let apart = ConvTransposeOptions::default()
        .stride(2)
        .padding(1)
        .output_padding(1);
    checker.check(
        "conv_transpose1d",
        &[&[1, 2, 3], &[2, 2, 3], &[2]],
        ANY,
        &|x| x[0].conv_transpose1d(&x[1], Some(&x[2]), &apart),
    );
    checker.check(
        "conv_transpose2d",
        &[&[1, 2, 2, 2], &[2, 1, 2, 2]],
        ANY,
        &|x| x[0].conv_transpose2d(&x[1], None, &ConvTransposeOptions::default().stride(2)),
    );
    checker.check(
        "conv_transpose3d",
        &[&[1, 1, 2, 2, 1], &[1, 1, 2, 1, 2]],
        ANY,
        &|x| x[0].conv_transpose3d(&x[1], None, &ConvTransposeOptions::default()),
    );
    checker.done();
}

#[test]
fn pooling_folding_resizing() {
    type Pooling = fn(&Tensor) -> Result<Tensor>;
    let table: &[(&str, &[usize], Pooling)] = &[
        ("max_pool1d", &[1, 2, 5], |x| {
            x.max_pool1d(&MaxPoolOptions::new(2))
        }),
        ("max_pool2d", &[1, 1, 4, 4], |x| {
            x.max_pool2d(&MaxPoolOptions::new(2).stride(1))
        }),
        ("max_pool3d", &[1, 1, 2, 3, 2], |x| {
            x.max_pool3d(&MaxPoolOptions::new(2))
        }),
        ("avg_pool1d", &[1, 2, 5], |x| {
            x.avg_pool1d(&AvgPoolOptions::new(2).ceil_mode(true))
        }),
        ("avg_pool2d", &[1, 1, 4, 4], |x| {
            x.avg_pool2d(&AvgPoolOptions::new(3).stride(2).padding(1))
        }),
        ("avg_pool3d", &[1, 1, 2, 3, 2], |x| {
            x.avg_pool3d(&AvgPoolOptions::new(2))
        }),
        ("adaptive_avg_pool1d", &[1, 2, 5], |x| {
            x.adaptive_avg_pool1d(3)
        }),
        ("adaptive_avg_pool2d", &[1, 1, 4, 3], |x| {
            x.adaptive_avg_pool2d([3, 2])
        }),
        ("adaptive_avg_pool3d", &[1, 1, 2, 3, 2], |x| {
            x.adaptive_avg_pool3d([1, 2, 2])
        }),
        ("adaptive_max_pool1d", &[1, 2, 5], |x| {
            x.adaptive_max_pool1d(2)
        }),
        ("adaptive_max_pool2d", &[1, 1, 4, 3], |x| {
            x.adaptive_max_pool2d([3, 2])
        }),
        ("upsample_nearest", &[1, 1, 2, 2], |x| {
            x.upsample_nearest(&[4, 5])
        }),
        ("upsample_linear1d", &[1, 2, 3], |x| {
            x.upsample_linear1d(5, false)
        }),
        ("upsample_bilinear2d", &[1, 1, 2, 3], |x| {
            x.upsample_bilinear2d([4, 4], false)
        }),
        ("upsample_bilinear2d corners", &[1, 1, 2, 3], |x| {
            x.upsample_bilinear2d([3, 5], true)
        }),
        ("upsample_trilinear3d", &[1, 1, 2, 2, 2], |x| {
            x.upsample_trilinear3d([3, 2, 3], false)
        }),
        ("unfold2d", &[1, 2, 3, 3], |x| {
            x.unfold2d(&FoldOptions::new(2).padding(1))
        }),
        ("fold2d", &[1, 4, 4], |x| {
            x.fold2d([3, 3], &FoldOptions::new(2))
        }),
    ];
    let mut checker = Checker::default();
    for &(name, shape, f) in table {
        checker.check(name, &[shape], ANY, &|x| f(&x[0]));
        checker.check(name, &[shape], ANY, &|x| f(&x[0].sin()?)?.square());
    }
    checker.done();
}

#[test]
fn norms() {
    let mut checker = Checker::default();
    checker.check("layer_norm", &[&[2, 3], &[3], &[3]], ANY, &|x| {
        x[0].layer_norm([3], Some(&x[1]), Some(&x[2]), 1e-5)
    });
    checker.check("layer_norm plain", &[&[2, 2, 3]], ANY, &|x| {
        x[0].layer_norm([2, 3], None, None, 1e-5)
    });
    checker.check("rms_norm", &[&[2, 3], &[3]], ANY, &|x| {
        x[0].rms_norm([3], Some(&x[1]), 1e-5)
    });
    checker.check("rms_norm plain", &[&[2, 3]], ANY, &|x| {
        x[0].rms_norm([3], None, None)
    });
    checker.check("group_norm", &[&[2, 4, 2], &[4], &[4]], ANY, &|x| {
        x[0].group_norm(2, Some(&x[1]), Some(&x[2]), 1e-5)
    });
    checker.check("instance_norm", &[&[2, 2, 3], &[2], &[2]], ANY, &|x| {
        x[0].instance_norm(Some(&x[1]), Some(&x[2]), 1e-5)
    });
    checker.check(
        "batch_norm_training",
        &[&[3, 2, 2], &[2], &[2]],
        ANY,
        &|x| {
            Ok(x[0]
                .batch_norm_training(Some(&x[1]), Some(&x[2]), 1e-5)?
                .output)
        },
    );
    checker.check("batch_norm_training plain", &[&[4, 2]], ANY, &|x| {
        Ok(x[0].batch_norm_training(None, None, 1e-5)?.output)
    });
    checker.check("batch_norm", &[&[3, 2], &[2], &[2]], ANY, &|x| {
        let (mean, var) = (weights(&[2]), weights(&[2]).square()?.add(0.5)?);
        x[0].batch_norm(&mean, &var, Some(&x[1]), Some(&x[2]), 1e-5)
    });
    checker.done();
}

#[test]
fn attention_and_losses() -> Result<()> {
    let mut checker = Checker::default();
    checker.check(
        "attention",
        &[&[1, 2, 3], &[1, 3, 3], &[1, 3, 2]],
        ANY,
        &|x| x[0].scaled_dot_product_attention(&x[1], &x[2], None, false, None),
    );
    checker.check(
        "attention causal",
        &[&[1, 3, 2], &[1, 3, 2], &[1, 3, 2]],
        ANY,
        &|x| x[0].scaled_dot_product_attention(&x[1], &x[2], None, true, 0.7),
    );
    let target = Tensor::from_data([2i64, -100, 0], &cpu())?;
    let class_weights = weights(&[3]).square()?;
    for (label_smoothing, weighted) in [(0.0, false), (0.1, false), (0.0, true), (0.1, true)] {
        let name = format!("cross_entropy, smoothing {label_smoothing}, weights {weighted}");
        checker.check(&name, &[&[3, 3]], ANY, &|x| {
            let op = Composite::CrossEntropy {
                ignore_index: -100,
                label_smoothing,
                weighted,
            };
            let inputs = [&x[0], &target, &class_weights];
            Ok(drivetrain_tensor::run(op, &inputs[..2 + usize::from(weighted)])?.remove(0))
        });
    }
    checker.done();
    Ok(())
}
