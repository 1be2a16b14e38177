//! Views, joins, look-ups.

use crate::check::{ANY, Checker, cpu, ints, weights};
use drivetrain_tensor::{Index, PadMode, Result, Tensor};

type Shaping = fn(&Tensor) -> Result<Tensor>;

#[test]
fn views() {
    let table: &[(&str, Shaping)] = &[
        ("reshape", |x| x.reshape([4, 6])),
        ("view of a copy", |x| x.contiguous()?.view([3, 8])),
        ("flatten", |x| x.flatten(1, -1)),
        ("permute", |x| x.permute(&[2, 0, 1])),
        ("transpose", |x| x.transpose(0, -1)),
        ("t", |x| x.select(0, 1)?.t()),
        ("expand", |x| x.unsqueeze(1)?.expand([2, 3, 3, 4])),
        ("unsqueeze", |x| x.unsqueeze(-1)),
        ("squeeze", |x| x.unsqueeze(1)?.squeeze(1)),
        ("squeeze_all", |x| x.unsqueeze(1)?.squeeze_all()),
        ("unfold overlapping", |x| x.unfold(2, 2, 1)),
        ("unfold with gaps", |x| x.unfold(2, 1, 3)),
        ("diagonal", |x| x.diagonal(1, 2)),
        ("diagonal turned", |x| x.diagonal(2, 0)),
        ("narrow", |x| x.narrow(1, 1, 2)),
        ("slice", |x| x.slice(2, Some(3), None, -2)),
        ("slice step", |x| x.slice(2, Some(1), Some(4), 2)),
        ("select", |x| x.select(-2, -1)),
        ("flip", |x| x.flip(&[0, 2])),
        ("split", |x| x.split(2, 1)?.remove(1).exp()),
        ("chunk", |x| x.chunk(3, 2)?.remove(0).exp()),
        ("roll", |x| x.roll(-3, 2)),
        ("repeat", |x| x.repeat(&[2, 1, 1, 3])),
        ("pad_constant", |x| {
            x.pad_constant(&[(0, 1), (2, 0), (0, 0)], 1.5)
        }),
        ("pad reflect", |x| x.pad(&[2, 1], PadMode::Reflect)),
        ("pad replicate", |x| {
            x.pad(&[2, 1, 1, 0], PadMode::Replicate)
        }),
        ("pad circular", |x| x.pad(&[2, 1], PadMode::Circular)),
        ("pad negative", |x| {
            x.pad(&[-1, 2], PadMode::Constant(0.5.into()))
        }),
        ("tril", |x| x.tril(0)),
        ("triu", |x| x.triu(1)),
        ("index view", |x| {
            x.index((Index::NewAxis, 1, Index::step(.., -2)))
        }),
        ("index tensor", |x| x.index((.., [0, 2, 0]))),
        ("index tensors", |x| x.index(([0, 1, 0], .., [2, 3, 2]))),
        ("index adjacent tensors", |x| x.index((.., [2, 0], [1, 1]))),
        ("index mask", |x| x.index(x.detach().gt(0.0)?)),
        ("square of a view", |x| {
            x.select(0, 1)?.transpose(0, 1)?.square()
        }),
    ];
    let mut checker = Checker::default();
    for &(name, f) in table {
        checker.check(name, &[&[2, 3, 4]], ANY, &|x| f(&x[0]));
        // Followed by a curve, the second order is not all 0.
        checker.check(name, &[&[2, 3, 4]], ANY, &|x| f(&x[0])?.sin());
    }
    checker.done();
}

#[test]
fn joins_and_updates() {
    let mut checker = Checker::default();
    checker.check("cat", &[&[2, 1], &[2, 3]], ANY, &|x| {
        Tensor::cat(&[&x[0], &x[1], &x[0]], 1)?.square()
    });
    checker.check("stack", &[&[2, 3], &[2, 3]], ANY, &|x| {
        Tensor::stack(&[&x[0], &x[1]], 1)?.square()
    });
    checker.check("assign", &[&[3, 4], &[2]], ANY, &|x| {
        x[0].assign((Index::step(.., 2), 1), &x[1])?.square()
    });
    checker.check("assign whole", &[&[3], &[]], ANY, &|x| {
        x[0].assign(.., &x[1])?.square()
    });
    checker.check("assign at tensors", &[&[3, 4], &[2]], ANY, &|x| {
        x[0].assign(([0, 2], [1, 3]), &x[1])?.square()
    });
    checker.check("assign at a mask", &[&[3, 4], &[]], ANY, &|x| {
        x[0].assign(weights(&[3, 4]).gt(0.3)?, &x[1])?.square()
    });
    checker.done();
}

#[test]
fn look_ups() -> Result<()> {
    let mut checker = Checker::default();
    let d = cpu();
    let index = Tensor::from_data([[0i64, 2, 0], [1, 1, 2]], &d)?;
    let once = Tensor::from_data([[0i64, 2, 1], [1, 0, 2]], &d)?;
    checker.check("gather", &[&[2, 3]], ANY, &|x| {
        x[0].gather(1, &index)?.square()
    });
    checker.check("scatter_add", &[&[2, 3], &[2, 3]], ANY, &|x| {
        x[0].scatter_add(1, &index, &x[1])?.square()
    });
    checker.check("scatter", &[&[2, 4], &[2, 3]], ANY, &|x| {
        x[0].scatter(1, &once, &x[1])?.square()
    });
    let three = ints([2, 0, 2]);
    checker.check("index_select", &[&[3, 2]], ANY, &|x| {
        x[0].index_select(0, &three)?.square()
    });
    checker.check("index_add", &[&[3, 2], &[3, 2]], ANY, &|x| {
        x[0].index_add(0, &three, &x[1])?.square()
    });
    checker.check("embedding", &[&[4, 2]], ANY, &|x| {
        x[0].embedding(&index)?.square()
    });
    checker.done();
    Ok(())
}
