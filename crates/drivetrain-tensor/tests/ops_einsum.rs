//! Einstein summation against loops over all indices.
#![allow(missing_docs)]

mod common;

use common::*;
use drivetrain_tensor::{DType, Tensor};
use std::collections::BTreeMap;

/// The definition: for every value of every letter the product of the operands' elements, summed where the result's
/// letters agree.
fn by_loops(equation: &str, operands: &[&Tensor]) -> Vec<f64> {
    let (inputs, output) = equation.split_once("->").unwrap();
    let groups: Vec<&str> = inputs.split(',').collect();
    let mut sizes: BTreeMap<char, usize> = BTreeMap::new();
    for (group, operand) in groups.iter().zip(operands) {
        for (c, &size) in group.chars().zip(operand.dims()) {
            let known = sizes.entry(c).or_insert(size);
            *known = if *known == 1 { size } else { *known };
        }
    }
    let letters: Vec<char> = sizes.keys().copied().collect();
    let flat = |group: &str, dims: &[usize], at: &BTreeMap<char, usize>| {
        let index = |(c, &size): (char, &usize)| (at[&c] % size.max(1), size);
        group
            .chars()
            .zip(dims)
            .map(index)
            .fold(0, |flat, (i, size)| flat * size + i)
    };
    let out_dims: Vec<usize> = output.chars().map(|c| sizes[&c]).collect();
    let mut out = vec![0.0; out_dims.iter().product()];
    let elements: Vec<Vec<f64>> = operands.iter().map(|t| t.to_f64_vec().unwrap()).collect();
    for mut counter in 0..sizes.values().product::<usize>() {
        let mut at = BTreeMap::new();
        for &c in &letters {
            at.insert(c, counter % sizes[&c]);
            counter /= sizes[&c];
        }
        let factor = |i: usize| elements[i][flat(groups[i], operands[i].dims(), &at)];
        out[flat(output, &out_dims, &at)] += (0..operands.len()).map(factor).product::<f64>();
    }
    out
}

#[track_caller]
fn check(equation: &str, operands: &[&Tensor]) {
    let want = by_loops(equation, operands);
    close(&Tensor::einsum(equation, operands).unwrap(), &want, 1e-13);
    let turned: Vec<Tensor> = operands.iter().map(|t| strided(t)).collect();
    let turned: Vec<&Tensor> = turned.iter().collect();
    close(&Tensor::einsum(equation, &turned).unwrap(), &want, 1e-13);
}

#[test]
fn one_two_and_more_operands() {
    let (m, v) = (values(1, &[3, 4]), values(2, &[4]));
    let square = values(3, &[3, 3]);
    for equation in ["ij->ji", "ij->i", "ij->j", "ij->", "ij->ij"] {
        check(equation, &[&m]);
    }
    for equation in ["ii->i", "ii->", "ij->"] {
        check(equation, &[&square]);
    }
    check("iji->j", &[&values(4, &[2, 3, 2])]);
    check("iii->i", &[&values(4, &[3, 3, 3])]);
    check("iijj->ji", &[&values(4, &[2, 2, 3, 3])]);
    for equation in ["ij,j->i", "ij,j->ij", "ij,j->", "ij,k->ikj", "ij,k->kj"] {
        check(equation, &[&m, &v]);
    }
    let (a, b) = (values(5, &[2, 3, 4]), values(6, &[2, 4, 5]));
    for equation in [
        "bij,bjk->bik",
        "bij,bjk->kb",
        "bij,cjk->bcik",
        "bij,bjk->",
        "aij,bjk->ik",
    ] {
        check(equation, &[&a, &b]);
    }
    check("ii,ij->j", &[&square, &m]);
    check("ij,jk,k->i", &[&m, &values(7, &[4, 2]), &values(8, &[2])]);
    check(
        "i,j,k->kij",
        &[&values(1, &[2]), &values(2, &[3]), &values(3, &[4])],
    );
    check("ij,ij,ij->ij", &[&m, &m, &m]);
    check(
        "ab,bc,cd,da->",
        &[
            &values(1, &[2, 3]),
            &values(2, &[3, 4]),
            &values(3, &[4, 2]),
            &values(4, &[2, 2]),
        ],
    );
    check(",i->i", &[&f64s(&[2.0], &[]), &v]);
}

#[test]
fn sizes_of_one_broadcast_and_sizes_of_zero_sum_to_zero() {
    check("ij,jk->ik", &[&values(1, &[2, 1]), &values(2, &[3, 4])]);
    check("ij,ij->ij", &[&values(1, &[1, 3]), &values(2, &[2, 1])]);
    check(
        "ij,jk,kj->i",
        &[
            &values(1, &[2, 1]),
            &values(2, &[1, 4]),
            &values(3, &[4, 3]),
        ],
    );
    check("ij,jk->ik", &[&values(1, &[2, 0]), &values(2, &[0, 3])]);
    check("ij,jk->ik", &[&values(1, &[0, 2]), &values(2, &[2, 3])]);
    check("ij,jk->ik", &[&values(1, &[2, 1]), &values(2, &[0, 3])]);
    check("i,i->", &[&values(1, &[0]), &values(2, &[0])]);
}

#[test]
fn the_ellipsis_and_the_implicit_result() {
    let (a, b) = (values(1, &[2, 3, 4]), values(2, &[2, 4, 5]));
    let want = a.matmul(&b).unwrap().to_vec::<f64>().unwrap();
    close(
        &Tensor::einsum("...ij,...jk->...ik", &[&a, &b]).unwrap(),
        &want,
        1e-13,
    );
    close(
        &Tensor::einsum("...ij, ...jk", &[&a, &b]).unwrap(),
        &want,
        1e-13,
    );
    close(
        &Tensor::einsum("bij,bjk -> bik", &[&a, &b]).unwrap(),
        &want,
        1e-13,
    );
    // Dimensions of an ellipsis broadcast from the last.
    let (x, y) = (values(3, &[5, 2, 3, 4]), values(4, &[3, 1]));
    let z = Tensor::einsum("...i,...->i...", &[&x, &y.reshape([3]).unwrap()]).unwrap();
    let want = x.mul(&y).unwrap().permute(&[3, 0, 1, 2]).unwrap();
    assert_eq!(z.dims(), [4, 5, 2, 3]);
    close(&z, &want.to_vec::<f64>().unwrap(), 1e-14);
    // Without an arrow: letters that occur once, capitals first.
    let t = Tensor::einsum("ba", &[&count(0, &[2, 3])]).unwrap();
    equal(&t, &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(
        Tensor::einsum("bA", &[&count(0, &[2, 3])]).unwrap().dims(),
        [3, 2]
    );
    let m = count(1, &[2, 2]);
    equal(
        &Tensor::einsum("ij,jk", &[&m, &m]).unwrap(),
        &[7.0, 10.0, 15.0, 22.0],
    );
    equal(&Tensor::einsum("ii", &[&m]).unwrap(), &[5.0]);
    equal(
        &Tensor::einsum("...->...", &[&m]).unwrap(),
        &[1.0, 2.0, 3.0, 4.0],
    );
    // Left out of the result, the ellipsis is summed over.
    equal(&Tensor::einsum("i...->i", &[&m]).unwrap(), &[3.0, 7.0]);
}

#[test]
fn dtypes_promote() {
    let whole = Tensor::from_slice(&[1i64, 2], [2], &device()).unwrap();
    let y = Tensor::einsum("i,i->", &[&whole, &whole]).unwrap();
    assert_eq!((y.dtype(), y.item::<i64>().unwrap()), (DType::I64, 5));
    let y = Tensor::einsum("i,i->", &[&whole, &f32s(&[0.5, 0.25], &[2])]).unwrap();
    assert_eq!((y.dtype(), y.item::<f32>().unwrap()), (DType::F32, 1.0));
    let two = [values(1, &[2, 3, 4]), values(2, &[2, 4, 5])];
    check_layouts_and_dtypes(&two, |t| Tensor::einsum("bij,bjk->kbi", &[&t[0], &t[1]]));
}

#[test]
fn gradients_of_sums() {
    let three = [values(1, &[2, 3]), values(2, &[3, 2]), values(3, &[2])];
    check_gradients(&three, |t| {
        Tensor::einsum("ij,jk,k->i", &[&t[0], &t[1], &t[2]])
    });
    check_gradients(&[values(4, &[3, 2, 3])], |t| {
        Tensor::einsum("iji->j", &[&t[0].square()?])
    });
    check_gradients(&three[..2], |t| {
        Tensor::einsum("ij,ji->ij", &[&t[0], &t[1]])
    });
    check_gradients(&three[..1], |t| {
        Tensor::einsum("ij,kj->ik", &[&t[0], &t[0]])
    });
    let ones = [values(5, &[2, 1]), values(6, &[3, 2])];
    check_gradients(&ones, |t| Tensor::einsum("ij,jk->ik", &[&t[0], &t[1]]));
}

#[test]
fn mistakes_are_named() {
    let m = values(1, &[2, 3]);
    let run = |equation: &str| Tensor::einsum(equation, &[&m]);
    refused(
        run("ij,jk->ik"),
        &["einsum", "2 groups for 1 operands", "ij,jk->ik"],
    );
    refused(run("ijk->i"), &["\"ijk\" names 3 dimensions", "has 2"]);
    refused(run("i->i"), &["\"i\" names 1 dimensions", "has 2"]);
    refused(run("i1->i"), &["'1'"]);
    refused(run("i.j->i"), &["'.'"]);
    refused(run("i...j...->i"), &["'.'"]);
    refused(run("ij->ik"), &["'k'", "in no operand"]);
    refused(run("ij->ii"), &["'i' stands twice"]);
    refused(run("ij->i->j"), &["'-'"]);
    refused(run("ii->i"), &["'i' stands for sizes 2 and 3"]);
    refused(
        Tensor::einsum("ij,jk->ik", &[&m, &m]),
        &["'j' has size 3 in operand 0 and 2 in operand 1"],
    );
    refused(Tensor::einsum("", &[]), &["0 operands"]);
    let flags = m.gt(0.0).unwrap();
    refused(Tensor::einsum("ij->i", &[&flags]), &["Bool"]);
}
