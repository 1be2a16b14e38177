//! Rules of convolutions, pooling, losses and norms.

use super::*;

#[test]
fn convolution_names_channels_stride_groups_and_kernel() {
    let conv = |change: fn(&mut ConvolutionSpec)| {
        let mut spec = CONVOLUTION;
        change(&mut spec);
        Composite::Convolution(spec)
    };
    let x = f(&[1, 3, 8, 8]);
    gives(
        conv(|s| s.stride = [2, 2, 1]),
        &[x, f(&[4, 3, 3, 3]), f(&[4])],
        &[f(&[1, 4, 3, 3])],
    );
    refuses(
        conv(|_| ()),
        &[x, f(&[8, 2, 3, 3])],
        &["has 3 channels, weight [8, 2, 3, 3] with groups 1 expects 2"],
    );
    refuses(
        conv(|s| s.stride[1] = 0),
        &[x, f(&[4, 3, 3, 3])],
        &["stride [1, 0]"],
    );
    refuses(
        conv(|s| s.dilation[0] = 0),
        &[x, f(&[4, 3, 3, 3])],
        &["dilation [0, 1]"],
    );
    refuses(
        conv(|s| s.groups = 3),
        &[x, f(&[4, 1, 3, 3])],
        &["4 output channels", "3 groups"],
    );
    refuses(
        conv(|s| s.groups = 0),
        &[x, f(&[4, 1, 3, 3])],
        &["groups 0"],
    );
    refuses(
        conv(|_| ()),
        &[f(&[1, 3, 2, 2]), f(&[4, 3, 3, 3])],
        &["kernel larger than padded input", "[2, 2]", "[3, 3]"],
    );
    refuses(
        conv(|_| ()),
        &[f(&[3, 8, 8]), f(&[4, 3, 3, 3])],
        &["rank 3, 4 expected"],
    );
    refuses(
        conv(|_| ()),
        &[x, f(&[4, 3, 3, 3]), f(&[3])],
        &["bias", "[3]", "[4]"],
    );
    refuses(
        conv(|s| s.padding = [usize::MAX; 3]),
        &[x, f(&[4, 3, 3, 3])],
        &["kernel"],
    );
}

#[test]
fn convolution_gradients_know_their_sizes() {
    let spec = ConvolutionSpec {
        stride: [2, 2, 1],
        sizes: [6, 6, 1],
        ..CONVOLUTION
    };
    let dy = f(&[1, 4, 2, 2]);
    gives(
        Composite::ConvolutionInputGrad(spec),
        &[dy, f(&[4, 3, 3, 3])],
        &[f(&[1, 3, 6, 6])],
    );
    refuses(
        Composite::ConvolutionInputGrad(spec),
        &[f(&[1, 4, 3, 2]), f(&[4, 3, 3, 3])],
        &["[1, 4, 3, 2]", "[2, 2]"],
    );
    refuses(
        Composite::ConvolutionInputGrad(spec),
        &[f(&[1, 5, 2, 2]), f(&[4, 3, 3, 3])],
        &["5 channels"],
    );
    let spec = ConvolutionSpec {
        sizes: [3, 3, 1],
        ..spec
    };
    gives(
        Composite::ConvolutionWeightGrad(spec),
        &[dy, f(&[1, 3, 6, 6])],
        &[f(&[4, 3, 3, 3])],
    );
    refuses(
        Composite::ConvolutionWeightGrad(spec),
        &[dy, f(&[2, 3, 6, 6])],
        &["batch sizes 1 and 2"],
    );
}

#[test]
fn pooling_names_padding_stride_and_window() {
    let pool = |change: fn(&mut PoolSpec)| {
        let mut spec = POOL;
        change(&mut spec);
        Composite::MaxPool(spec)
    };
    let x = meta(I32, &[1, 1, 5, 4]);
    gives(
        pool(|_| ()),
        &[x],
        &[meta(I32, &[1, 1, 2, 2]), i(&[1, 1, 2, 2])],
    );
    gives(
        pool(|s| s.ceil_mode = true),
        &[x],
        &[meta(I32, &[1, 1, 3, 2]), i(&[1, 1, 3, 2])],
    );
    refuses(
        pool(|s| s.padding[0] = 2),
        &[x],
        &["padding [2, 0] is more than half the kernel [2, 2]"],
    );
    refuses(pool(|s| s.stride[0] = 0), &[x], &["stride [0, 2]"]);
    refuses(pool(|s| s.kernel[0] = 0), &[x], &["kernel size [0, 2]"]);
    refuses(
        pool(|s| (s.kernel[0], s.dilation[0]) = (3, 2)),
        &[f(&[1, 1, 1, 4])],
        &["window does not fit", "reaches over 5"],
    );
    let large = pool(|s| s.kernel = [9, 9, 1]);
    refuses(
        large,
        &[x],
        &["window does not fit", "kernel 9", "[1, 1, 5, 4]"],
    );
    // Taps at -1 and 2 of an image of two: padding would be all that the window sees.
    let over = pool(|s| (s.stride[0], s.padding[0], s.dilation[0]) = (1, 1, 3));
    refuses(
        over.clone(),
        &[f(&[1, 1, 2, 4])],
        &["window does not fit", "dilation 3", "[1, 1, 2, 4]"],
    );
    gives(
        over,
        &[f(&[1, 1, 3, 4])],
        &[f(&[1, 1, 2, 2]), i(&[1, 1, 2, 2])],
    );
    let spec = PoolSpec {
        sizes: [5, 4, 1],
        ..POOL
    };
    let dy = f(&[1, 1, 2, 2]);
    gives(Composite::AvgPoolGrad(spec), &[dy], &[f(&[1, 1, 5, 4])]);
    gives(
        Composite::MaxPoolGrad(spec),
        &[dy, i(&[1, 1, 2, 2])],
        &[f(&[1, 1, 5, 4])],
    );
    refuses(
        Composite::AvgPoolGrad(spec),
        &[f(&[1, 1, 3, 2])],
        &["[1, 1, 3, 2]", "[1, 1, 2, 2]"],
    );
    refuses(Composite::AvgPool(POOL), &[x], &["I32", "float"]);
}

#[test]
fn cross_entropy_explains_the_usual_mistakes() {
    let loss = Composite::CrossEntropy {
        ignore_index: -100,
        label_smoothing: 0.0,
        weighted: false,
    };
    gives(
        loss.clone(),
        &[meta(F16, &[4, 10, 2]), i(&[4, 2])],
        &[meta(F16, &[4, 2]), f(&[4, 2]), meta(F16, &[4, 2])],
    );
    refuses(
        loss.clone(),
        &[f(&[16, 10]), i(&[4])],
        &[
            "16",
            "4",
            "[16, 10]",
            "[4]",
            "the batch dimension was flattened?",
            "flatten/view",
        ],
    );
    refuses(
        loss.clone(),
        &[f(&[1, 10]), i(&[8])],
        &["1", "8", "flatten from 1"],
    );
    refuses(
        loss.clone(),
        &[f(&[8, 10]), i(&[8, 10])],
        &["one-hot", "argmax"],
    );
    refuses(
        loss.clone(),
        &[f(&[8, 10]), f(&[8, 10])],
        &["one-hot", "I64"],
    );
    refuses(loss.clone(), &[f(&[8, 10]), i(&[8, 1])], &["squeeze"]);
    refuses(
        loss.clone(),
        &[f(&[8, 10]), meta(I32, &[8])],
        &["I32", "I64"],
    );
    refuses(loss.clone(), &[f(&[10]), i(&[])], &["[10]", "[N, C"]);
    refuses(loss, &[i(&[8, 10]), i(&[8])], &["logits is I64"]);
    let weighted = Composite::CrossEntropy {
        ignore_index: -100,
        label_smoothing: 0.0,
        weighted: true,
    };
    refuses(
        weighted,
        &[f(&[8, 10]), i(&[8]), f(&[9])],
        &["[9]", "10 classes"],
    );
    let smoothing = Composite::CrossEntropy {
        ignore_index: -100,
        label_smoothing: 1.5,
        weighted: false,
    };
    refuses(smoothing, &[f(&[8, 10]), i(&[8])], &["label_smoothing 1.5"]);
}

#[test]
fn norms_give_statistics_of_the_accumulation_type() {
    let spec = NormSpec {
        dims: 2,
        eps: 1e-5,
        affine: true,
    };
    let x = meta(F16, &[2, 3, 4]);
    let parameter = meta(F16, &[3, 4]);
    let statistic = f(&[2, 1, 1]);
    gives(
        Composite::LayerNorm(spec),
        &[x, parameter, parameter],
        &[x, statistic, statistic],
    );
    gives(
        Composite::LayerNormGrad(spec),
        &[x, x, statistic, statistic, parameter],
        &[x, parameter, parameter],
    );
    gives(Composite::RmsNorm(spec), &[x, parameter], &[x, statistic]);
    gives(
        Composite::RmsNormGrad(spec),
        &[x, x, statistic, parameter],
        &[x, parameter],
    );
    refuses(
        Composite::LayerNorm(spec),
        &[x, meta(F16, &[4]), meta(F16, &[4])],
        &["weight [4]", "[2, 3, 4]", "[3, 4] expected"],
    );
    refuses(
        Composite::LayerNorm(NormSpec { dims: 4, ..spec }),
        &[x, parameter, parameter],
        &["4 trailing dimensions", "[2, 3, 4]"],
    );
    refuses(
        Composite::RmsNorm(NormSpec { eps: -1.0, ..spec }),
        &[x, parameter],
        &["eps -1"],
    );
}

#[test]
fn batch_norm_wants_more_than_one_value_per_channel() {
    let norm = Composite::BatchNorm {
        eps: 1e-5,
        affine: false,
    };
    gives(
        norm.clone(),
        &[f(&[1, 3, 2, 2])],
        &[f(&[1, 3, 2, 2]), f(&[3]), f(&[3])],
    );
    for dims in [&[1, 3][..], &[1, 3, 1, 1]] {
        refuses(
            norm.clone(),
            &[f(dims)],
            &["more than one value per channel needed", "has 1"],
        );
    }
    refuses(norm, &[f(&[3])], &["[N, C"]);
}
