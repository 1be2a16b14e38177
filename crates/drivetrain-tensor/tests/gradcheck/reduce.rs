//! Sums, extremes, spreads, running and sorted values.

use crate::check::{ANY, Checker, Domain, POSITIVE};
use drivetrain_tensor::{Result, Tensor};

#[test]
fn reductions() {
    type Reduction = fn(&Tensor) -> Result<Tensor>;
    let table: &[(&str, Domain, Reduction)] = &[
        ("sum", ANY, |x| x.sum(())),
        ("sum along", ANY, |x| x.sum([0, 2])),
        ("sum_keepdim", ANY, |x| x.sum_keepdim([1])),
        ("mean", ANY, |x| x.mean(())),
        ("mean along", ANY, |x| x.mean(-1)),
        ("mean_keepdim", ANY, |x| x.mean_keepdim([0, 1])),
        ("prod", ANY, |x| x.prod(())),
        ("prod along", ANY, |x| x.prod(1)),
        ("prod_keepdim", ANY, |x| x.prod_keepdim(2)),
        ("amax", ANY, |x| x.amax(())),
        ("amax along", ANY, |x| x.amax([0, 2])),
        ("amin", ANY, |x| x.amin(1)),
        ("amin_keepdim", ANY, |x| x.amin_keepdim(1)),
        ("logsumexp", ANY, |x| x.logsumexp(())),
        ("logsumexp along", ANY, |x| x.logsumexp(1)),
        ("logsumexp_keepdim", ANY, |x| x.logsumexp_keepdim(2)),
        ("var", ANY, |x| x.var((), 1.0, false)),
        ("var along", ANY, |x| x.var([0, 2], 0.0, true)),
        ("std", ANY, |x| x.std((), 1.0, false)),
        ("std along", ANY, |x| x.std(2, 1.0, false)),
        ("norm 2", ANY, |x| x.norm(2.0, (), false)),
        ("norm 2 along", ANY, |x| x.norm(2.0, 1, true)),
        ("norm 1", ANY, |x| x.norm(1.0, 1, false)),
        ("norm 3", ANY, |x| x.norm(3.0, 1, false)),
        ("norm 0", ANY, |x| x.norm(0.0, 1, false)),
        ("norm inf", ANY, |x| x.norm(f64::INFINITY, 1, false)),
        ("norm -inf", ANY, |x| x.norm(f64::NEG_INFINITY, 1, false)),
        ("max", ANY, |x| Ok(x.max(1, false)?.0)),
        ("min", ANY, |x| Ok(x.min(-1, true)?.0)),
        ("cumsum", ANY, |x| x.cumsum(1)),
        ("cumprod", ANY, |x| x.cumprod(1)),
        ("sort", ANY, |x| Ok(x.sort(1, false)?.0)),
        ("sort descending", ANY, |x| Ok(x.sort(-1, true)?.0)),
        ("topk", ANY, |x| Ok(x.topk(2, 1, true)?.0)),
        ("softmax", ANY, |x| x.softmax(1)),
        ("softmax last", ANY, |x| x.softmax(-1)),
        ("log_softmax", ANY, |x| x.log_softmax(1)),
        ("normalize", POSITIVE, |x| x.normalize(2.0, 1, 1e-12)),
        ("normalize 1", POSITIVE, |x| x.normalize(1.0, 1, 1e-12)),
    ];
    let mut checker = Checker::default();
    for &(name, domain, f) in table {
        checker.check(name, &[&[2, 3, 2]], domain, &|x| f(&x[0]));
    }
    checker.check("sum of a scalar", &[&[]], ANY, &|x| x[0].sum(()));
    checker.check("softmax of a scalar", &[&[]], ANY, &|x| x[0].softmax(0));
    checker.check("prod of five", &[&[5]], ANY, &|x| x[0].prod(()));
    checker.check("prod with a zero", &[&[5]], ANY, &|x| {
        x[0].mul(&Tensor::from_data(
            [1.0f64, 1.0, 0.0, 1.0, 1.0],
            x[0].device(),
        )?)?
        .prod(())
    });
    checker.done();
}

#[test]
fn products_and_distances() {
    let mut checker = Checker::default();
    checker.check("matmul", &[&[2, 3], &[3, 4]], ANY, &|x| x[0].matmul(&x[1]));
    checker.check("matmul vectors", &[&[3], &[3]], ANY, &|x| {
        x[0].matmul(&x[1])
    });
    checker.check("matmul vector right", &[&[2, 2, 3], &[3]], ANY, &|x| {
        x[0].matmul(&x[1])
    });
    checker.check("matmul vector left", &[&[3], &[2, 3, 2]], ANY, &|x| {
        x[0].matmul(&x[1])
    });
    checker.check("matmul batches", &[&[2, 1, 2, 3], &[3, 3, 2]], ANY, &|x| {
        x[0].matmul(&x[1])
    });
    checker.check("matmul shared", &[&[2, 2, 3], &[3, 2]], ANY, &|x| {
        x[0].matmul(&x[1])
    });
    checker.check("matmul transposed", &[&[3, 2], &[4, 3]], ANY, &|x| {
        x[0].t()?.matmul(&x[1].t()?)
    });
    checker.check("linear", &[&[2, 2, 3], &[4, 3], &[4]], ANY, &|x| {
        x[0].linear(&x[1], Some(&x[2]))
    });
    checker.check("linear of a vector", &[&[3], &[4, 3]], ANY, &|x| {
        x[0].linear(&x[1], None)
    });
    checker.check("outer", &[&[3], &[2]], ANY, &|x| x[0].outer(&x[1]));
    checker.check("dot", &[&[3], &[3]], ANY, &|x| x[0].dot(&x[1]));
    checker.check("einsum", &[&[2, 3], &[3, 2], &[2]], ANY, &|x| {
        Tensor::einsum("ij,jk,k->i", &[&x[0], &x[1], &x[2]])
    });
    checker.check("einsum diagonal", &[&[3, 3]], ANY, &|x| {
        Tensor::einsum("ii->i", &[&x[0]])
    });
    checker.check("cosine_similarity", &[&[2, 3], &[2, 3]], ANY, &|x| {
        x[0].cosine_similarity(&x[1], 1, 1e-8)
    });
    checker.done();
}
