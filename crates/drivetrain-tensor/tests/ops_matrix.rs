//! Triangles, one-hot, vectors, dropout, folding: values, gradients, messages.
#![allow(missing_docs)]

mod common;

use common::*;
use drivetrain_tensor::{DType, FoldOptions, Tensor, with_seed};

fn i64s(values: &[i64], dims: &[usize]) -> Tensor {
    Tensor::from_slice(values, dims, &device()).unwrap()
}

#[test]
fn triangles_of_any_shape() {
    let x = count(1, &[2, 3]);
    equal(&x.tril(0).unwrap(), &[1.0, 0.0, 0.0, 4.0, 5.0, 0.0]);
    equal(&x.tril(1).unwrap(), &[1.0, 2.0, 0.0, 4.0, 5.0, 6.0]);
    equal(&x.tril(-1).unwrap(), &[0.0, 0.0, 0.0, 4.0, 0.0, 0.0]);
    equal(&x.triu(0).unwrap(), &[1.0, 2.0, 3.0, 0.0, 5.0, 6.0]);
    equal(&x.triu(2).unwrap(), &[0.0, 0.0, 3.0, 0.0, 0.0, 0.0]);
    equal(&x.triu(-5).unwrap(), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let batch = Tensor::ones([2, 2, 2], DType::Bool, &device()).unwrap();
    let low = batch.tril(0).unwrap();
    assert_eq!(low.dtype(), DType::Bool);
    equal(&low, &[1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
    // What is left out never reaches the result or the gradient.
    let x = f64s(&[1.0, f64::INFINITY, 2.0, f64::NAN], &[2, 2])
        .requires_grad_()
        .unwrap();
    let y = x.tril(-1).unwrap();
    equal(&y, &[0.0, 0.0, 2.0, 0.0]);
    y.sum(()).unwrap().backward().unwrap();
    equal(&x.grad().unwrap(), &[0.0, 0.0, 1.0, 0.0]);
    refused(values(1, &[3]).tril(0), &["tril", "[3]"]);
    assert_eq!(values(1, &[0, 3]).triu(0).unwrap().dims(), [0, 3]);
}

#[test]
fn one_hot_checks_its_classes() {
    let x = i64s(&[0, 2, 1, 1], &[2, 2]);
    let y = x.one_hot(None).unwrap();
    assert_eq!((y.dims(), y.dtype()), (&[2, 2, 3][..], DType::I64));
    equal(
        &y,
        &[1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0],
    );
    assert_eq!(x.one_hot(5).unwrap().dims(), [2, 2, 5]);
    refused(x.one_hot(2), &["one_hot", "class 2", "position 1", "0..2"]);
    refused(
        i64s(&[0, -1], &[2]).one_hot(None),
        &["class -1", "position 1"],
    );
    refused(i64s(&[], &[0]).one_hot(None), &["no class numbers"]);
    assert_eq!(i64s(&[], &[0]).one_hot(3).unwrap().dims(), [0, 3]);
    equal(&i64s(&[1], &[]).one_hot(2).unwrap(), &[0.0, 1.0]);
    refused(values(1, &[2]).one_hot(3), &["F64"]);
    let bytes = x.to_dtype(DType::U8).unwrap().one_hot(3).unwrap();
    equal(&bytes, &y.to_f64_vec().unwrap());
    refused(i64s(&[i64::MAX], &[1]).one_hot(None), &["shape"]);
}

#[test]
fn products_of_vectors() {
    let (x, y) = (count(1, &[2]), count(1, &[3]));
    equal(&x.outer(&y).unwrap(), &[1.0, 2.0, 3.0, 2.0, 4.0, 6.0]);
    equal(&y.dot(&y).unwrap(), &[14.0]);
    assert_eq!(y.dot(&y).unwrap().rank(), 0);
    equal(
        &i64s(&[2, 3], &[2]).dot(&i64s(&[4, 5], &[2])).unwrap(),
        &[23.0],
    );
    refused(x.dot(&y), &["dot", "[2]", "[3]"]);
    refused(x.outer(&count(1, &[1, 2])), &["outer", "[1, 2]"]);
    equal(&values(1, &[0]).dot(&values(2, &[0])).unwrap(), &[0.0]);
}

#[test]
fn cosine_and_normalize() {
    let x = f64s(&[3.0, 4.0, 0.0, 0.0], &[2, 2]);
    let y = f64s(&[4.0, 3.0], &[2]);
    close(
        &x.cosine_similarity(&y, 1, 1e-8).unwrap(),
        &[0.96, 0.0],
        1e-15,
    );
    close(
        &x.normalize(2.0, 1, 1e-12).unwrap(),
        &[0.6, 0.8, 0.0, 0.0],
        1e-15,
    );
    close(
        &x.normalize(1.0, 1, 1e-12).unwrap(),
        &[3.0 / 7.0, 4.0 / 7.0, 0.0, 0.0],
        1e-15,
    );
    close(
        &x.normalize(f64::INFINITY, 1, 1e-12).unwrap(),
        &[0.75, 1.0, 0.0, 0.0],
        1e-15,
    );
    // B037: where the norm is 0 the gradient is finite.
    let zero = f64s(&[0.0; 3], &[3]).requires_grad_().unwrap();
    zero.normalize(2.0, 0, 1e-2)
        .unwrap()
        .sum(())
        .unwrap()
        .backward()
        .unwrap();
    close(&zero.grad().unwrap(), &[100.0; 3], 1e-12);
    let zero = zero.detach().requires_grad_().unwrap();
    zero.cosine_similarity(&f64s(&[1.0, 0.0, 0.0], &[3]), 0, 1e-2)
        .unwrap()
        .backward()
        .unwrap();
    close(&zero.grad().unwrap(), &[100.0, 0.0, 0.0], 1e-12);
    // Halves do not overflow on the way.
    let big = Tensor::full([4], 300.0, DType::F16, &device()).unwrap();
    close(&big.normalize(2.0, 0, 1e-12).unwrap(), &[0.5; 4], 1e-3);
    close(&big.cosine_similarity(&big, 0, 1e-8).unwrap(), &[1.0], 1e-3);
    refused(x.normalize(2.0, 2, 1e-12), &["normalize", "dimension 2"]);
    refused(
        x.cosine_similarity(&y, 2, 1e-8),
        &["cosine_similarity", "dimension 2"],
    );
    refused(
        x.cosine_similarity(&values(1, &[3]), 0, 1e-8),
        &["cosine_similarity", "[3]"],
    );
    let two = [values(1, &[2, 3]), values(2, &[1, 3])];
    check_gradients(&two, |t| t[0].cosine_similarity(&t[1], 1, 1e-8));
    check_gradients(&two, |t| t[0].normalize(2.0, 0, 1e-8)?.mul(&t[1]));
    check_gradients(&two, |t| t[0].normalize(3.0, -1, 1e-8)?.tril(1)?.mul(&t[1]));
    check_layouts_and_dtypes(&two, |t| t[0].cosine_similarity(&t[1], 1, 1e-8));
    check_layouts_and_dtypes(&two, |t| t[0].normalize(2.0, 1, 1e-8));
}

#[test]
fn dropout_keeps_the_expectation() {
    let x = Tensor::ones([100, 100], DType::F64, &device())
        .unwrap()
        .requires_grad_()
        .unwrap();
    let y = with_seed(3, || x.dropout(0.25)).unwrap();
    let list = y.to_vec::<f64>().unwrap();
    let zeros = list.iter().filter(|v| **v == 0.0).count();
    // 10000 draws: within 5 standard deviations of 2500.
    assert!((2280..2720).contains(&zeros), "{zeros}");
    assert!(
        list.iter()
            .all(|v| *v == 0.0 || (v - 4.0 / 3.0).abs() < 1e-15)
    );
    y.sum(()).unwrap().backward().unwrap();
    equal(&x.grad().unwrap(), &list);
    equal(&with_seed(3, || x.dropout(0.25)).unwrap(), &list);
    assert_ne!(x.dropout(0.25).unwrap().to_vec::<f64>().unwrap(), list);
    equal(&x.dropout(1.0).unwrap(), &[0.0; 10000]);
    equal(&x.dropout(0.0).unwrap(), &[1.0; 10000]);
    let bad = f64s(&[f64::INFINITY, f64::NAN], &[2]);
    equal(&bad.dropout(1.0).unwrap(), &[0.0, 0.0]);
    for p in [-0.1, 1.1, f64::NAN] {
        refused(x.dropout(p), &["dropout", "0..=1"]);
    }
    refused(i64s(&[1], &[1]).dropout(0.5), &["I64"]);
}

#[test]
fn feature_dropout_takes_whole_channels() {
    let x = Tensor::ones([8, 8, 3, 3], DType::F32, &device()).unwrap();
    let y = with_seed(5, || x.feature_dropout(0.5)).unwrap();
    let y = y.to_vec::<f32>().unwrap();
    let channels: Vec<&[f32]> = y.chunks(9).collect();
    assert!(channels.iter().all(|c| c.iter().all(|v| *v == c[0])));
    let gone = channels.iter().filter(|c| c[0] == 0.0).count();
    assert!((12..52).contains(&gone), "{gone}");
    refused(
        values(1, &[3]).feature_dropout(0.5),
        &["feature_dropout", "[3]"],
    );
}

#[test]
fn windows_as_columns() {
    let x = count(1, &[1, 1, 3, 3]);
    let y = x.unfold2d(&FoldOptions::new(2)).unwrap();
    assert_eq!(y.dims(), [1, 4, 4]);
    #[rustfmt::skip]
    equal(&y, &[
        1.0, 2.0, 4.0, 5.0, 2.0, 3.0, 5.0, 6.0,
        4.0, 5.0, 7.0, 8.0, 5.0, 6.0, 8.0, 9.0,
    ]);
    let y = x
        .unfold2d(
            &FoldOptions::new([1, 2])
                .dilation([1, 2])
                .stride(2)
                .padding([0, 1]),
        )
        .unwrap();
    equal(&y, &[0.0, 2.0, 0.0, 8.0, 2.0, 0.0, 8.0, 0.0]);
    // A product with the columns is a convolution.
    let (x, w) = (values(1, &[2, 3, 5, 6]), values(2, &[4, 3, 3, 2]));
    let options = FoldOptions::new([3, 2]).padding(1).stride([1, 2]);
    let columns = x.unfold2d(&options).unwrap();
    let y = w.reshape([4, 18]).unwrap().matmul(&columns).unwrap();
    let conv = drivetrain_tensor::ConvOptions::default()
        .padding(1)
        .stride([1, 2]);
    let want = x.conv2d(&w, None, &conv).unwrap();
    close(&y, &want.to_vec::<f64>().unwrap(), 1e-13);
}

#[test]
fn columns_fold_back() {
    let y = count(1, &[1, 4, 4])
        .fold2d(3, &FoldOptions::new(2))
        .unwrap();
    equal(&y, &[1.0, 7.0, 6.0, 12.0, 34.0, 22.0, 11.0, 27.0, 16.0]);
    // ⟨unfold(a), b⟩ = ⟨a, fold(b)⟩.
    let options = FoldOptions::new([2, 3])
        .dilation([2, 1])
        .padding([1, 2])
        .stride([2, 1]);
    let a = values(1, &[2, 3, 6, 5]);
    let columns = a.unfold2d(&options).unwrap();
    let b = values(2, columns.dims());
    let left = columns
        .mul(&b)
        .unwrap()
        .sum(())
        .unwrap()
        .item::<f64>()
        .unwrap();
    let folded = b.fold2d([6, 5], &options).unwrap();
    assert_eq!(folded.dims(), a.dims());
    close(&folded.mul(&a).unwrap().sum(()).unwrap(), &[left], 1e-12);
    let single = columns
        .select(0, 0)
        .unwrap()
        .fold2d([6, 5], &options)
        .unwrap();
    assert_eq!(single.dims(), [3, 6, 5]);
}

#[test]
fn gradients_of_folding() {
    let options = FoldOptions::new(2).padding([1, 0]).stride([2, 1]);
    check_gradients(&[values(1, &[1, 2, 3, 4])], |t| {
        t[0].square()?.unfold2d(&options)
    });
    check_gradients(&[values(2, &[2, 4, 6])], |t| {
        t[0].square()?.fold2d([3, 4], &options)
    });
    check_gradients(&[values(1, &[2, 3, 3])], |t| {
        t[0].unfold2d(&FoldOptions::new(2).dilation(2))
    });
}

#[test]
fn mistakes_of_folding_are_named() {
    let x = values(1, &[1, 2, 3, 3]);
    refused(
        x.unfold2d(&FoldOptions::new(4)),
        &["unfold", "no window fits", "kernel 4"],
    );
    refused(x.unfold2d(&FoldOptions::new(0)), &["kernel_size [0, 0]"]);
    refused(
        x.unfold2d(&FoldOptions::new(2).stride(0)),
        &["stride [0, 0]"],
    );
    refused(
        x.unfold2d(&FoldOptions::new(2).dilation(usize::MAX)),
        &["no window fits"],
    );
    refused(
        values(1, &[3, 3]).unfold2d(&FoldOptions::new(1)),
        &["rank 2"],
    );
    let y = values(2, &[1, 8, 4]);
    refused(
        y.fold2d(4, &FoldOptions::new(2)),
        &["fold", "[1, 8, 4]", "9 columns"],
    );
    refused(y.fold2d(3, &FoldOptions::new(3)), &["multiple of 9"]);
}

#[test]
fn sizes_that_no_memory_holds_are_errors() {
    let huge = 1usize << 45;
    let x = values(1, &[1, 1, 3]);
    let long = huge as isize;
    assert!(
        x.pad(&[long, 0], drivetrain_tensor::PadMode::Replicate)
            .is_err()
    );
    assert!(
        x.pad(&[long, 0], drivetrain_tensor::PadMode::Constant(0.into()))
            .is_err()
    );
    assert!(x.upsample_nearest(&[huge]).is_err());
    assert!(x.upsample_linear1d(huge, false).is_err());
    assert!(x.adaptive_avg_pool1d(huge).is_err());
    assert!(x.adaptive_max_pool1d(huge).is_err());
}
