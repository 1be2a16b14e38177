//! Indexing: the same results as PyTorch's for the same brackets; views, gradients, errors.
// `1..-1` ends before the last element here, as in Python.
#![allow(clippy::reversed_empty_ranges)]

use drivetrain_cpu as _;
use drivetrain_tensor::{DType, Device, Index, Result, Tensor};

fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

/// 0, 1, 2, … in shape [2, 3, 4].
fn counted() -> Result<Tensor> {
    Tensor::arange(0i64, 24, 1, &cpu())?.reshape([2, 3, 4])
}

#[test]
fn reads_as_pytorch() -> Result<()> {
    let (d, x) = (cpu(), counted()?);
    let mask = x.remainder(5i64)?.eq(0)?;
    let three = Tensor::from_data([true, false, true], &d)?;
    let two = Tensor::from_data([false, true], &d)?;
    let six = Tensor::from_data([[true, false, true], [false, false, true]], &d)?;
    let truth = Tensor::from_data(true, &d)?;
    let t2 = || Tensor::from_data([[0i64], [2]], &d).unwrap();
    let t2b = || Tensor::from_data([[0i64], [1]], &d).unwrap();
    let t3 = || Tensor::from_data([1i32, 3, 0], &d).unwrap();
    let scalar = || Tensor::from_data(1i64, &d).unwrap();
    let cases = [
        (
            "x[1]",
            x.index(1)?,
            [3, 4].as_slice(),
            vec![12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23],
        ),
        (
            "x[-1,0]",
            x.index((-1, 0))?,
            [4].as_slice(),
            vec![12, 13, 14, 15],
        ),
        (
            "x[:,1:]",
            x.index((.., 1..))?,
            [2, 2, 4].as_slice(),
            vec![4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23],
        ),
        (
            "x[...,-1]",
            x.index((Index::Ellipsis, -1))?,
            [2, 3].as_slice(),
            vec![3, 7, 11, 15, 19, 23],
        ),
        (
            "x[0,:,::2]",
            x.index((0, .., Index::step(.., 2)))?,
            [3, 2].as_slice(),
            vec![0, 2, 4, 6, 8, 10],
        ),
        (
            "x[None,0,...,None,1:3]",
            x.index((Index::NewAxis, 0, Index::Ellipsis, Index::NewAxis, 1..3))?,
            [1, 3, 1, 2].as_slice(),
            vec![1, 2, 5, 6, 9, 10],
        ),
        (
            "x[:,:-1,1:-1]",
            x.index((.., ..-1, 1..-1))?,
            [2, 2, 2].as_slice(),
            vec![1, 2, 5, 6, 13, 14, 17, 18],
        ),
        (
            "x[0,5:,:]",
            x.index((0, 5.., ..))?,
            [0, 4].as_slice(),
            vec![],
        ),
        (
            "x[[1,0,1]]",
            x.index([1, 0, 1])?,
            [3, 3, 4].as_slice(),
            vec![
                12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
            ],
        ),
        (
            "x[:,[2,-3]]",
            x.index((.., [2, -3]))?,
            [2, 2, 4].as_slice(),
            vec![8, 9, 10, 11, 0, 1, 2, 3, 20, 21, 22, 23, 12, 13, 14, 15],
        ),
        (
            "x[...,[0,3,-1]]",
            x.index((Index::Ellipsis, [0, 3, -1]))?,
            [2, 3, 3].as_slice(),
            vec![
                0, 3, 3, 4, 7, 7, 8, 11, 11, 12, 15, 15, 16, 19, 19, 20, 23, 23,
            ],
        ),
        (
            "x[[0,1],[2,0]]",
            x.index(([0, 1], [2, 0]))?,
            [2, 4].as_slice(),
            vec![8, 9, 10, 11, 12, 13, 14, 15],
        ),
        (
            "x[[0,1],:,[3,-4]]",
            x.index(([0, 1], .., [3, -4]))?,
            [2, 3].as_slice(),
            vec![3, 7, 11, 12, 16, 20],
        ),
        (
            "x[:,[0,2],[1,3]]",
            x.index((.., [0, 2], [1, 3]))?,
            [2, 2].as_slice(),
            vec![1, 11, 13, 23],
        ),
        (
            "x[:,I([[0],[2]]),I([1,3,0])]",
            x.index((.., t2(), t3()))?,
            [2, 2, 3].as_slice(),
            vec![1, 3, 0, 9, 11, 8, 13, 15, 12, 21, 23, 20],
        ),
        (
            "x[I([[0],[1]]),:,I([1,3,0])]",
            x.index((t2b(), .., t3()))?,
            [2, 3, 3].as_slice(),
            vec![
                1, 5, 9, 3, 7, 11, 0, 4, 8, 13, 17, 21, 15, 19, 23, 12, 16, 20,
            ],
        ),
        (
            "x[0,[0,2],None,[1,3]]",
            x.index((0, [0, 2], Index::NewAxis, [1, 3]))?,
            [2, 1].as_slice(),
            vec![1, 11],
        ),
        (
            "x[1:,[0,2],[1,3]]",
            x.index((1.., [0, 2], [1, 3]))?,
            [1, 2].as_slice(),
            vec![13, 23],
        ),
        (
            "x[x%5==0]",
            x.index(&mask)?,
            [5].as_slice(),
            vec![0, 5, 10, 15, 20],
        ),
        (
            "x[:,I([True,False,True])]",
            x.index((.., &three))?,
            [2, 2, 4].as_slice(),
            vec![0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 20, 21, 22, 23],
        ),
        (
            "x[I([False,True]),:,1]",
            x.index((&two, .., 1))?,
            [1, 3].as_slice(),
            vec![13, 17, 21],
        ),
        (
            "x[I([[True,False,True],[False,False,True]])]",
            x.index(&six)?,
            [3, 4].as_slice(),
            vec![0, 1, 2, 3, 8, 9, 10, 11, 20, 21, 22, 23],
        ),
        (
            "x[I([[True,False,True],[False,False,True]]),[1,2,3]]",
            x.index((&six, [1, 2, 3]))?,
            [3].as_slice(),
            vec![1, 10, 23],
        ),
        (
            "x[I([],dtype=torch.int64)]",
            x.index(Vec::<i64>::new())?,
            [0, 3, 4].as_slice(),
            vec![],
        ),
        (
            "x[I(1)]",
            x.index(scalar())?,
            [3, 4].as_slice(),
            vec![12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23],
        ),
        (
            "x[I(True)]",
            x.index((&truth,))?,
            [1, 2, 3, 4].as_slice(),
            vec![
                0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
                23,
            ],
        ),
    ];
    for (python, result, shape, values) in cases {
        assert_eq!(result.dims(), shape, "{python}");
        assert_eq!(result.to_vec::<i64>()?, values, "{python}");
    }
    Ok(())
}

#[test]
fn writes_as_pytorch() -> Result<()> {
    let (d, x) = (cpu(), counted()?);
    let mask = x.remainder(5i64)?.eq(0)?;
    let three = Tensor::from_data([true, false, true], &d)?;
    let cases = [
        (
            "x[1:,0]=I([7,8,9,10])",
            x.assign((1.., 0), &Tensor::from_data([7i64, 8, 9, 10], &d)?)?,
            vec![
                0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 7, 8, 9, 10, 16, 17, 18, 19, 20, 21, 22, 23,
            ],
        ),
        (
            "x[...,None,-1]=5",
            x.assign((Index::Ellipsis, Index::NewAxis, -1), 5)?,
            vec![
                0, 1, 2, 5, 4, 5, 6, 5, 8, 9, 10, 5, 12, 13, 14, 5, 16, 17, 18, 5, 20, 21, 22, 5,
            ],
        ),
        (
            "x[:,[2,0]]=I([[1],[2]])",
            x.assign((.., [2, 0]), &Tensor::from_data([[1i64], [2]], &d)?)?,
            vec![
                2, 2, 2, 2, 4, 5, 6, 7, 1, 1, 1, 1, 2, 2, 2, 2, 16, 17, 18, 19, 1, 1, 1, 1,
            ],
        ),
        (
            "x[[0,1],:,[3,-4]]=I([7,8,9])",
            x.assign(([0, 1], .., [3, -4]), &Tensor::from_data([7i64, 8, 9], &d)?)?,
            vec![
                0, 1, 2, 7, 4, 5, 6, 8, 8, 9, 10, 9, 7, 13, 14, 15, 8, 17, 18, 19, 9, 21, 22, 23,
            ],
        ),
        (
            "x[:,[0,2],[1,3]]=I([7,8])",
            x.assign((.., [0, 2], [1, 3]), &Tensor::from_data([7i64, 8], &d)?)?,
            vec![
                0, 7, 2, 3, 4, 5, 6, 7, 8, 9, 10, 8, 12, 7, 14, 15, 16, 17, 18, 19, 20, 21, 22, 8,
            ],
        ),
        (
            "x[1,[0,2],[1,3]]=I([7,8])",
            x.assign((1, [0, 2], [1, 3]), &Tensor::from_data([7i64, 8], &d)?)?,
            vec![
                0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 7, 14, 15, 16, 17, 18, 19, 20, 21, 22, 8,
            ],
        ),
        (
            "x[x%5==0]=I([100,101,102,103,104])",
            x.assign(&mask, &Tensor::from_data([100i64, 101, 102, 103, 104], &d)?)?,
            vec![
                100, 1, 2, 3, 4, 101, 6, 7, 8, 9, 102, 11, 12, 13, 14, 103, 16, 17, 18, 19, 104,
                21, 22, 23,
            ],
        ),
        (
            "x[:,I([True,False,True]),::2]=I([[[1,2]]])",
            x.assign(
                (.., &three, Index::step(.., 2)),
                &Tensor::from_data([[[1i64, 2]]], &d)?,
            )?,
            vec![
                1, 1, 2, 3, 4, 5, 6, 7, 1, 9, 2, 11, 1, 13, 2, 15, 16, 17, 18, 19, 1, 21, 2, 23,
            ],
        ),
    ];
    for (python, result, values) in cases {
        assert_eq!(result.to_vec::<i64>()?, values, "{python}");
    }
    // The tensor itself keeps its value.
    assert_eq!(x.to_vec::<i64>()?, (0..24).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn views_where_python_has_views() -> Result<()> {
    let x = counted()?;
    let view = x.index((.., Index::step(.., -2), Index::NewAxis, 1..3))?;
    assert_eq!(view.dims(), [2, 2, 1, 2]);
    assert!(view.shares_memory_with(&x));
    assert_eq!(view.to_vec::<i64>()?, [9, 10, 1, 2, 21, 22, 13, 14]);
    // A list of items built at run time.
    let items = vec![Index::Ellipsis, Index::from(..=1), Index::from(-1)];
    assert_eq!(x.index(items.as_slice())?.to_vec::<i64>()?, [3, 7, 15, 19]);
    assert_eq!(x.index(items)?.to_vec::<i64>()?, [3, 7, 15, 19]);
    assert_eq!(
        x.index((0, 0, Index::step(3..0, -1)))?.to_vec::<i64>()?,
        [3, 2, 1]
    );
    assert_eq!(
        x.index((0, 0, Index::step(.., isize::MIN)))?
            .to_vec::<i64>()?,
        [3]
    );
    let inner = x.index((0, 0, Index::from(1..).until(-1)))?;
    assert_eq!(inner.to_vec::<i64>()?, [1, 2]);
    // A view of a view, and an index on a transposed tensor.
    let turned = x.permute(&[2, 0, 1])?;
    assert_eq!(turned.index((1, .., 2))?.to_vec::<i64>()?, [9, 21]);
    assert_eq!(
        turned.index(([1, 2], .., [2, 0]))?.to_vec::<i64>()?,
        [9, 21, 2, 14]
    );
    Ok(())
}

#[test]
fn non_zero_elements() -> Result<()> {
    let d = cpu();
    let x = Tensor::from_data([[0.0f32, 1.5, 0.0], [-2.0, 0.0, f32::NAN]], &d)?;
    let found = x.nonzero()?;
    assert_eq!(found.dims(), [3, 2]);
    assert_eq!(found.to_vec::<i64>()?, [0, 1, 1, 0, 1, 2]);
    assert_eq!(
        Tensor::zeros([2, 2], DType::Bool, &d)?.nonzero()?.dims(),
        [0, 2]
    );
    assert_eq!(
        Tensor::zeros([0, 3], DType::F32, &d)?.nonzero()?.dims(),
        [0, 2]
    );
    assert_eq!(Tensor::from_data(2.0f32, &d)?.nonzero()?.dims(), [1, 0]);
    assert_eq!(Tensor::from_data(0.0f32, &d)?.nonzero()?.dims(), [0, 0]);
    Ok(())
}

#[test]
fn empty_tensors_and_indices() -> Result<()> {
    let d = cpu();
    let x = Tensor::zeros([2, 0, 3], DType::F32, &d)?;
    assert_eq!(x.index((.., .., [1, 2]))?.dims(), [2, 0, 2]);
    assert_eq!(x.index((0, .., [1, 2]))?.dims(), [0, 2]);
    assert_eq!(x.index(([0, 1], .., [1, 2]))?.dims(), [2, 0]);
    let none = Tensor::zeros([0], DType::I64, &d)?;
    let y = Tensor::ones([2, 3], DType::F32, &d)?;
    assert_eq!(y.index((&none, &none))?.dims(), [0]);
    assert_eq!(y.index(y.gt(5.0)?)?.dims(), [0]);
    assert_eq!(y.assign(y.gt(5.0)?, 3.0)?.to_vec::<f32>()?, [1.0; 6]);
    assert_eq!(y.assign((&none, 0), 3.0)?.to_vec::<f32>()?, [1.0; 6]);
    assert_eq!(y.index(())?.dims(), [2, 3]);
    Ok(())
}

#[test]
fn gradients_go_where_the_values_came_from() -> Result<()> {
    let d = cpu();
    let x = Tensor::arange(0.0f64, 6.0, 1.0, &d)?
        .reshape([2, 3])?
        .requires_grad_()?;
    let weight = Tensor::from_data([1.0f64, 2.0, 4.0], &d)?;
    // A place taken twice gets both gradients.
    x.index(([0, 1, 0], [2, 0, 2]))?
        .mul(&weight)?
        .sum(())?
        .backward()?;
    assert_eq!(
        x.grad().unwrap().to_vec::<f64>()?,
        [0.0, 0.0, 5.0, 2.0, 0.0, 0.0]
    );
    x.zero_grad();
    x.index((1, Index::step(.., -1)))?
        .mul(&weight)?
        .sum(())?
        .backward()?;
    assert_eq!(
        x.grad().unwrap().to_vec::<f64>()?,
        [0.0, 0.0, 0.0, 4.0, 2.0, 1.0]
    );
    x.zero_grad();
    let source = weight.requires_grad_()?;
    let y = x.assign((.., [2, 0]), &source.index((..2,))?)?;
    y.mul(&Tensor::from_data(
        [[1.0f64, 2.0, 3.0], [4.0, 5.0, 6.0]],
        &d,
    )?)?
    .sum(())?
    .backward()?;
    assert_eq!(
        x.grad().unwrap().to_vec::<f64>()?,
        [0.0, 2.0, 0.0, 0.0, 5.0, 0.0]
    );
    assert_eq!(source.grad().unwrap().to_vec::<f64>()?, [9.0, 5.0, 0.0]);
    Ok(())
}

#[test]
fn wrong_indices_are_errors_that_say_what() -> Result<()> {
    let (d, x) = (cpu(), counted()?);
    let f = Tensor::ones([2], DType::F32, &d)?;
    let cases = [
        (
            x.index(5),
            "index 5 out of range for dimension 0 of size 2 of shape [2, 3, 4]",
        ),
        (
            x.index((.., -4)),
            "index -4 out of range for dimension 1 of size 3",
        ),
        (
            x.index((.., .., [0, 4])),
            "index 4 out of range for dimension 2 of size 4",
        ),
        (
            x.index(([0, -3], 0)),
            "index -3 out of range for dimension 0 of size 2",
        ),
        (
            x.index((0, 0, 0, 0)),
            "4 indices for shape [2, 3, 4] of rank 3",
        ),
        (x.index((Index::Ellipsis, Index::Ellipsis)), "2 ellipses"),
        (x.index(Index::step(.., 0)), "a step of 0 along dimension 0"),
        (x.index(&f), "an index tensor of F32 [2]"),
        (x.index(f.eq(1.0)?.reshape([1, 2])?), "a mask [1, 2]"),
        (x.index(([0, 1], [0, 1, 2])), "do not broadcast"),
        (
            x.index(usize::MAX),
            "out of range for dimension 0 of size 2",
        ),
        (
            x.assign((.., 3), 1),
            "index 3 out of range for dimension 1 of size 3",
        ),
        (
            x.assign(0, &Tensor::zeros([5], DType::I64, &d)?),
            "a source [5] does not broadcast to what is picked out, [3, 4]",
        ),
        (f.index(vec![Index::NewAxis; 8]), "9 dimensions"),
        (f.index((0, 0)), "2 indices for shape [2] of rank 1"),
    ];
    for (result, text) in cases {
        let error = result.map(|t| t.to_string()).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    Ok(())
}
